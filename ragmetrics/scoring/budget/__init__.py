"""Budgets: estimates the cost of a run, plans which rows fit, and limits the spending."""
