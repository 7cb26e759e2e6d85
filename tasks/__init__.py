"""Prefect tasks: thin wrappers around the steps of `ragmetrics`."""
