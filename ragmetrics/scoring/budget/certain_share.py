"""Share of verdicts of which a cascade's judges are certain, estimated from the last nights.

    share = verdicts that the judge was certain of / verdicts that it was asked for

Of the last seven nights, those of the same cascade count: one with other judges, thresholds or
repeats is another.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from hashlib import blake2b

from ragmetrics.config import Settings
from ragmetrics.judges import MetricRequest
from ragmetrics.records import Usage
from ragmetrics.scoring.metric_choice import judge_info
from ragmetrics.storage import Files, Runs

_NIGHTS = 7


def certain_shares(settings: Settings, files: Files) -> dict[tuple[str, str], float]:
    """The shares by judge and metric; without a night of this cascade there is none."""
    if settings.aggregate != "cascade":
        return {}
    fingerprint = judge_info(settings)[0].fingerprint
    nights = [
        night
        for night in Runs(files).nights(last=_NIGHTS)
        if night.judge.fingerprint == fingerprint
    ]
    usages: defaultdict[tuple[str, str], Usage] = defaultdict(Usage)
    for night in nights:
        for metric, by_judge in night.usage_by_metric.items():
            for judge, usage in by_judge.items():
                usages[judge, metric] += usage
    asked = {key: one.certain + one.escalated for key, one in usages.items()}
    return {key: one.certain / asked[key] for key, one in usages.items() if asked[key]}


class ExpectedCertainty:
    """Which verdicts the judges of a cascade will be certain of, as often as in the last nights."""

    def __init__(self, shares: Mapping[tuple[str, str], float]) -> None:
        self._shares = shares
        self.is_used = False
        """True when a share decided on a verdict."""
        self.is_unknown = False
        """True when a judge without a share was asked: it counts as never certain."""

    def of(self, judge: str, wanted: MetricRequest) -> bool:
        """Whether a judge will be certain of its verdict on a request: the same each time."""
        share = self._shares.get((judge, wanted.metric))
        if share is None:
            self.is_unknown = True
            return False
        self.is_used = True
        digest = blake2b(f"{judge} {wanted.request.key}".encode(), digest_size=4).digest()
        return int.from_bytes(digest) < share * 2**32
