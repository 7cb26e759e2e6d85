"""Samples: which rows the judge is asked about, and the mean of all rows that follows."""
