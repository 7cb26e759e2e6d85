"""Alerts: numbers become findings, findings transitions, transitions one message."""
