"""`python -m ragmetrics` is `ragmetrics`."""

from ragmetrics.cli import main

main()
