"""`python -m ragmetrics` is `ragmetrics`."""

from ragmetrics.cli.main import main

main()
