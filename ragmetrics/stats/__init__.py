"""Statistics: pure numpy and scipy, no I/O."""
