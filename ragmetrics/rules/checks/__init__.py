"""The checks of a night: each module has one, of its own name."""
