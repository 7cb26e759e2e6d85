"""Calibration: compares judges with labelled rows, and measures the drift of judges.

It computes agreement, reliability and drift of judges, from calibrations and from the labelled set
of each night. It does not score traffic (`scoring`).
"""
