"""The dashboard: a static site that works from a folder, a bucket or a web server.

site.py        what others call: write a night, the overview, the assets
condition.py   the state of a night and of a rule, in words
trends.py      one metric over the nights          cards.py     one metric in one night
segments.py    scores by tag                       evidence.py  one bad row and why it is bad
figures.py     numbers -> Plotly, as plain dicts   words.py     numbers and hostile text -> words
pages.py       templates -> HTML                   markdown.py  the headline for a Prefect artifact
"""
