"""Stand-ins for the outside world: real servers on localhost, and small logs."""
