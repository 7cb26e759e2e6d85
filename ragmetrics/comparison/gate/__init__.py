"""Gates: an index build held against the one that serves, before it may take its place."""
