"""The golden set over time: what is stale in it, and which questions it lacks.

It finds the passages of labels by their texts after the index was built anew (`anchor`), names what
is stale (`check`), and proposes questions of the live traffic (`suggest`). It writes golden sets,
and never decides for a person: what it cannot find stays in the set and is named.
"""
