"""What a pull request shows of a comparison or gate: a summary, one comment and a check.

It reads the records of `ragmetrics compare` and `ragmetrics gate`, and computes nothing. GitHub and
GitLab are spoken to by their REST APIs.
"""
