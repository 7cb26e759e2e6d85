"""The pages of the dashboard: each module has one, of its own name."""
