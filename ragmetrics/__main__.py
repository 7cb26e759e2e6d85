"""`python -m ragmetrics` is `ragmetrics`."""

from ragmetrics.cli.app import main

main()
