"""What users said of an answer: a thumb, a rating or a category."""

from __future__ import annotations

from ragmetrics.errors import InputError
from ragmetrics.metrics.definition import metric
from ragmetrics.records import LogRow, Score, Status, Steps

_GOOD = frozenset(
    [
        *("up", "thumb up", "thumbs up", "upvote", "👍", "+", "+1", "like", "liked", "yes", "true"),
        *("good", "positive", "helpful", "correct", "satisfied", "accepted"),
    ]
)
_BAD = frozenset(
    [
        *("down", "thumb down", "thumbs down", "downvote", "👎", "-", "dislike", "disliked", "no"),
        *("false", "bad", "negative", "not helpful", "unhelpful", "incorrect", "wrong"),
        *("outdated", "incomplete", "dissatisfied", "rejected"),
    ]
)


@metric(version=1, display="User feedback", needs=("feedback",), calls="0", least_change=0.02)
def user_feedback(
    row: LogRow,
    *,
    best: int | None = None,
    good: list[str] | None = None,
    bad: list[str] | None = None,
) -> Steps[Score]:
    """What the user said of the answer: 1 for a thumb up, 0 for a thumb down.

        feedback = 1 for up, 0 for down;   (r - 1) / (n - 1) for a rating of r from 1 to n

    Range [0, 1], higher is better; for thumbs, 1 - mean is the share of thumbs down. No judge
    call. A rating is written `4/5`, or `best: 5` gives its scale; without either, a number is from
    0 to 1, and -1 is a thumb down. Categories such as `helpful` and `outdated` are known; `good`
    and `bad` name others. No feedback, a rating without its scale or an unknown category: not
    applicable.
    The mean is that of users who answered, and the interval covers what all *such* users would say.
    Where contented users answer more or less often than others, it is not the mean of all users,
    and no larger log makes it so: compare nights, between which the habit of answering hardly
    changes. Source: Rubin 1976, "Inference and missing data" (missing not at random).
    """
    yield from ()
    if best is not None and best < 2:
        raise InputError(f"user_feedback: best is {best}: say the highest rating, as 5")
    if not row.feedback:
        return Score.not_applicable("no feedback")
    text = " ".join(row.feedback.casefold().replace("_", " ").split())
    for words, value in ((good, 1.0), (bad, 0.0), (_GOOD, 1.0), (_BAD, 0.0)):
        if text in {word.casefold().replace("_", " ") for word in words or ()}:
            return Score(value, details={"feedback": row.feedback})
    found = _rated(text, best)
    details = {"feedback": row.feedback}
    if isinstance(found, str):
        return Score(None, found, details, Status.NOT_APPLICABLE)
    return Score(found, details=details)


def _rated(text: str, best: int | None) -> float | str:
    """The value of a rating, or why there is none."""
    given, _, scale = text.partition("/")
    try:
        rating, highest = float(given), float(scale) if scale else best
    except ValueError:
        return "a category that is neither `good` nor `bad`: name it in one of them"
    if highest and highest > 1:
        inside = 1 <= rating <= highest
        return (rating - 1) / (highest - 1) if inside else "a rating outside of its scale"
    if rating == -1 or 0 <= rating <= 1:
        return max(rating, 0.0)
    return "a rating without its scale: write 4/5, or set `best`"
