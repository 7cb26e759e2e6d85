"""The dashboard: a static site that works from a folder, a bucket or a web server.

site.py                  what others call: write a night, the overview, the assets
condition.py             the state of a night and of a rule, in words
trends.py, cards.py      one metric over the nights, and in one night
segments.py              scores by tag
calibration*.py          judges against labelled rows: their page, figures and segments
evidence.py              one bad row and why it is bad; passages.py: long texts, cut and marked
trend_figure.py, traces.py, histogram.py, frame.py   numbers -> Plotly, as plain dicts
words.py                 numbers and hostile text -> words
pages.py, assets.py      templates -> HTML, and the files that all pages share
markdown.py              the headline of a night, or of calibrations, for a Prefect artifact
"""
