"""Monitoring: the newest night for Prometheus, as a file of the dashboard and pushed."""
