"""Topics of questions: the stored model, and what happened to topics on a night."""

from __future__ import annotations

from datetime import date

from pydantic import Field

from ragmetrics.records.base import Record

TOPIC = "topic"
"""Name of the tag that a row gets."""


class Topic(Record):
    """A group of questions."""

    id: int
    """The same after each refit, as long as its questions stay together."""
    name: str
    """Its most telling words: `payroll, export, hours`."""
    questions: list[str]
    """Its three most typical questions."""
    share: float
    """Share of the questions that it was fitted on."""
    weights: dict[str, float]
    """The weight of each of its words."""

    def label(self, *, redact: bool) -> str:
        """The value of the tag: the name, or with redaction a number."""
        return f"topic {self.id}" if redact else self.name


class TopicModel(Record):
    """The topics that questions are assigned to: `topics/model-DATE.json`."""

    version: int = 1
    day: date
    """The first night that uses it. It was fitted on nights before."""
    nights: list[date]
    questions: int
    """Distinct questions that it was fitted on."""
    rarity: dict[str, float]
    """Inverse document frequency of each word."""
    topics: list[Topic]
    known: dict[str, int] = Field(default_factory=dict)
    """The topic of each question that it was fitted on, by the key of the question."""


class FallenTopic(Record):
    """A topic whose questions got significantly worse."""

    topic: str
    metric: str
    before: float
    now: float
    drop: float
    low: float
    high: float
    p_value: float
    """Adjusted over all topics and metrics of the night."""
    questions: int
    typical: list[str] = Field(default_factory=list)
    """Typical questions."""


class RisenTopic(Record):
    """A topic that got a significantly larger share of the traffic."""

    topic: str
    share: float
    before: float
    p_value: float
    questions: int
    typical: list[str] = Field(default_factory=list)


class TopicWithoutGolden(Record):
    """A topic of the traffic in which no golden question is."""

    topic: str
    share: float
    typical: list[str] = Field(default_factory=list)


class TopicReport(Record):
    """What happened to the topics of a night."""

    model: date
    """Date of the topics' model."""
    topics: int
    rows: dict[str, int] = Field(default_factory=dict)
    """Rows of each topic; later nights are compared with them."""
    fallen: list[FallenTopic] = Field(default_factory=list)
    risen: list[RisenTopic] = Field(default_factory=list)
    without_golden: list[TopicWithoutGolden] = Field(default_factory=list)


def fallen_topic_text(topic: FallenTopic) -> str:
    """`context_recall of topic payroll, export fell by 0.31 [0.20, 0.42] (38 questions)`."""
    return (
        f"{topic.metric} of topic {topic.topic} fell by {topic.drop:.2f} [{topic.low:.2f}, "
        f"{topic.high:.2f}], from {topic.before:.3f} to {topic.now:.3f} "
        f"({topic.questions:,} questions)"
    )
