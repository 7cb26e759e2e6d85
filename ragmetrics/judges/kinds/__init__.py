"""Kinds of judges, one file each, which is imported whenever settings are read: it imports what
makes a judge only where one is made.
"""
