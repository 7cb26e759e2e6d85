"""The dashboard: a static site that works from a folder, a bucket or a web server.

site.py                  what others call: write a night, the overview, the assets
overview_page.py         all nights: calendar.py by day, by_night.py their data and costs
night_page.py            one night; segments.py: its scores by tag
condition.py             the state of a night and of a rule, in words
trends.py, cards.py      one metric over the nights, and in one night; coverage.py: rows by status
glossary.py, terms.py    what the words mean
headline.py              one line per metric, for summary_page.py (e-mail) and markdown.py (Prefect)
costs.py                 what was asked and paid, in words
calibration*.py          judges against labelled rows: their page, figures and segments
builds_page.py           index builds: the page of all, and of each
compare_view.py          A against B: in changes_page.py two nights, in compare_page.py any two
made_of.py               which of the pages of builds and judges are as they would be
rows_page.py             a night's rows: the worst in full, all that are kept as data: rows_files.py
rows_reading.py          the rows that are kept (rows_kept.py), and what earlier nights retrieved
                         for their questions (rows_nights.py, rows_earlier.py)
evidence.py              one row and why it is good or bad; verdicts.py: on its parts;
                         passages.py: long texts, cut and marked
redacting.py             hashes in place of texts
trend_figure.py, traces.py, histogram.py, frame.py   numbers -> Plotly, as plain dicts
words.py                 numbers and hostile text -> words
pages.py, assets.py      templates -> HTML, and the files that all pages share
markdown.py              the headline of a night, or of calibrations, for a Prefect artifact
"""
