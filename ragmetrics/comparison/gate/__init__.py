"""Gates: compare an index build with the serving one, and decide whether it may serve."""
