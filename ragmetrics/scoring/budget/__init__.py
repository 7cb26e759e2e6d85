"""Budgets: what a run may spend, how rows share it, and an estimate before anything is asked."""
