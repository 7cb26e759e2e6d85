"""The channels that `alerts: channels` can name: each module has one, of its own name."""
