"""People's labels: what people would say of a night, by rows that people scored.

This package reads labels, joins them with the judge's scores of the same rows, estimates the mean
that people would give, and draws the rows that are worth a label. It does not compare judges with
labelled sets (`calibration`), and it writes no page (`report`).
"""
