"""The glossary: every term of the product once, defined in one or two sentences.

The dashboard shows a definition at hover, and `scripts/glossary_page.py` writes docs/glossary.md.
"""

from __future__ import annotations

from ragmetrics.text import slug

NUMBERS = {
    "mean": "The average of a metric over the rows that were scored. Rows without a score are "
    "counted beside it and are never taken for 0.",
    "interval": "The 95% confidence interval of a mean or a difference: 95 of 100 such intervals "
    "hold the true value. A wide one means few questions, not a bad night.",
    "cluster": "All rows of one question. Intervals are clustered by question, as rows of the "
    "same question are not independent.",
    "change": "The difference of a metric from its baseline, over the questions of both nights if "
    "they share enough, each counted once. Bold: the 95% interval excludes 0.",
    "drop": "How much worse a mean is than its baseline, question by question where both have the "
    "question. Negative: it is better.",
    "significantly worse": "Worse by more than chance explains: the drop's confidence interval, "
    "or its corrected p-value, excludes no change.",
    "no significant change": "The difference can be chance. It does not show that nothing "
    "changed: the detectable drop says how small a drop would be seen.",
    "upper bound": "The one-sided 95% upper bound of a drop: the true drop is smaller, with 95% "
    "confidence.",
    "baseline": "What a night is compared with: an earlier night, the nights of some days before, "
    "a named run, or the index build that serves.",
    "compared with": "Two sides are compared over the questions that both have, where they share "
    "enough of them. Means and their difference are then over the same questions.",
    "limit": "The lowest mean or the largest drop that a rule allows.",
    "detectable drop": "The minimum detectable effect, MDE: the smallest drop that is found with "
    "a probability of 80% with this many questions. A smaller one can go unseen.",
    "p-value": "How often chance alone would give a difference at least this large. A small value "
    "means: hardly chance.",
    "q-value": "A p-value that is corrected for the number of comparisons. Of findings with q "
    "below 5%, at most 5% are false alarms on average.",
    "false alarms": "The share of nights without a change on which a drop rule may still fire: "
    "alpha, set by `alerts: false_alarms`.",
    "attributed to": "The tag value or index build whose rows make up a drop, with its share of "
    "the whole drop.",
    "distribution": "How many rows have which value. A mean of 0.5 may be all rows half good, or "
    "half of the rows good.",
    "spread": "The mean standard deviation of repeated verdicts of the same judge on the same row.",
    "judge movement": "The standard deviation of a judge's level from night to night, over all "
    "questions, when nothing changed. Intervals include it.",
    "agreement α": "Krippendorff's alpha: agreement beyond chance, between the judges of a panel "
    "or between a judge and people. 1 is full agreement, 0 is chance.",
    "kappa": "Agreement with people's labels beyond chance: 1 is full agreement, 0 is chance. "
    "Quadratic kappa counts a miss by two grades four times as much as a miss by one.",
    "lifted": "The share of irrelevant contexts that get a higher grade when text that answers "
    "nothing is added to them. 0 is best.",
    "AUC": "The probability that a judge ranks something that people call good above something "
    "that they call bad. 0.5 is chance, 1 is perfect.",
    "Spearman": "How similar two rankings are: 1 is the same order, 0 is no relation, −1 is the "
    "reverse order.",
    "accuracy": "The share of units on which the judge and people give the same label.",
    "reliability": "Whether people say yes to 80% of the units that a judge scores 0.8.",
    "calibration error": "The mean distance between a judge's score and the share of people who "
    "say yes.",
    "PPI": "Prediction-powered inference: a free judge scores all rows, the paid judge a sample. "
    "The mean is the free judge's, corrected by their difference on the sample.",
    "nDCG": "How good the order of the contexts is: a relevant context counts less the further "
    "down it stands. 1 is the best possible order.",
    "MRR": "The mean of 1 / the rank of the first relevant context. 1: it is always first.",
    "change point": "The night from which a metric is lower, estimated from all nights. None is "
    "named if the data do not single one out.",
    "question mix": "The shares of the tags among a night's questions. A drop that comes from "
    "another mix is reported apart: nights are compared like with like.",
}
STATES = {
    "finding": "What one rule says about one night, with its numbers.",
    "ok": "The rule compared its numbers and found nothing.",
    "suspect": "A number is beyond its limit, by a margin that chance may explain.",
    "breach": "A number is beyond its limit by more than chance explains. The alert fires at once.",
    "pending": "A suspect that has not lasted long enough to fire. It fires if it stays.",
    "firing": "The alert is active, and people are notified of it.",
    "fired": "The alert began to fire on this night.",
    "resolved": "The alert had fired and is over.",
    "escalated": "A firing alert got significantly worse than at its last notification. People "
    "are notified at once, and its acknowledgement or snooze ends.",
    "reminded": "The alert still fires, and people are notified again after `remind_days`.",
    "no data": "There are too few rows for a verdict, or none. This is never green.",
    "not compared yet": "The rule has no earlier night to compare with. This is never green.",
    "fell, no drop rule": "The metric is significantly worse, and no rule watches it for drops. "
    "The page shows it, and nobody is notified.",
    "incomplete": "Nothing fires, but some rows were not read or not scored.",
    "no rules": "Scored, but no alert rule covers it.",
    "no night": "A day between two nights on which the flow did not run.",
    "did not end": "A run of this night began and has published nothing. It died, or still runs.",
}
ALERTS = {
    "alert": "One metric, segment and limit that is watched over the nights. Its state is ok, "
    "pending or firing.",
    "rule": "A limit on a metric, by `min` or `max_drop`, that makes a finding each night.",
    "incident": "One cause and all alerts that it explains, from the night on which it fires "
    "until it is resolved. It is one line of a message.",
    "critical": "The severity of alerts that all channels receive.",
    "warning": "The lower severity: channels may leave it out.",
    "acknowledge": "Mark a firing alert as known: no reminders until it resolves or escalates.",
    "snooze": "Get no notifications of an alert for some nights, unless it escalates.",
    "silence": "An acknowledgement or a snooze of an alert.",
    "channel": "A service that receives notifications: Slack, or any that Apprise knows.",
    "outbox": "Messages that a channel has not confirmed. The next run sends them.",
    "judge failures": "The alert for too many rows of a metric without a usable verdict.",
    "stale labels": "The golden set names documents that were replaced in the corpus. Metrics on "
    "ids then fall although retrieval is not worse.",
}
ROWS = {
    "row": "One retrieval from the log: a question, the contexts retrieved for it, and what else "
    "was logged.",
    "context": "One retrieved text. Contexts keep the order in which the retriever returned them.",
    "reference": "The right answer to a question, from the log or the golden set.",
    "golden set": "Questions with their right answers or contexts.",
    "tag": "A name and a value in the log that describe a row, as section=billing.",
    "segment": "The rows with one value of a tag.",
    "quarantine": "Rows that could not be read, kept apart with file, line and reason. They are "
    "in no number.",
    "preset": "A reader for the logs of one tool, such as Phoenix or Langfuse.",
    "status": "Whether a row has a score in a metric, and if not, why.",
    "scored": "The row has a value in this metric.",
    "not applicable": "The metric has no meaning for the row, as when it has no reference answer. "
    "This is no fault.",
    "unreadable verdict": "The judge replied, but never with a usable verdict, even when asked "
    "again.",
    "refused by the judge": "The judge, or a content filter before it, declined to answer twice. "
    "The row is not in the mean.",
    "metric failed": "The metric's own code raised an error on the row. The run's problems say "
    "which error.",
    "judge failed": "The judge gave no answer, or the part of the night was never scored.",
    "over budget": "The night's budget was used up before this row.",
    "not in the sample": "Only a sample of the rows is judged. This row is estimated by the free "
    "judge.",
    "grade": "The judge's mark for a context: 0 of no use, 1 of some use, 2 answers the question.",
    "needed sentence": "A sentence of a context without which the question could not be answered. "
    "It is highlighted in the texts.",
}
JUDGES = {
    "metric": "A function that scores one row, if needed by asking a judge.",
    "judge": "What gives the verdicts: a language model, or the embedded judge.",
    "verdict": "A judge's answer about one row, in the form that the prompt asks for.",
    "embedded judge": "Counts shared words and asks no model. It is free and always gives the "
    "same verdict. Trust its changes more than its values.",
    "prompt": "The instruction, examples and form of the answer that a metric sends to a judge.",
    "fingerprint": "A short hash of judge, prompts, metric version and parameters. Only numbers "
    "with the same fingerprint are compared; a trend's line breaks where it changes.",
    "panel": "Several judges that each judge every row. The row's value combines theirs.",
    "judge drift": "The judge answers the same labelled rows in another way than before. Its "
    "numbers from before and after are not compared.",
    "calibration": "A comparison of a judge with rows that people labelled.",
    "drift set": "The labelled rows that the nightly judges again to see judge drift.",
    "unit": "What people labelled one by one: a context, a sentence or a statement.",
    "reused from cache": "A reply that is in the store already, and is not asked or paid for "
    "again.",
    "shared": "Requests that equal another request of the same night. They were asked once.",
    "cached": "Prompt tokens that the endpoint had in its own cache, often at a lower price.",
    "failed": "An attempt of a request without an answer. Most are retried; if none succeeds, the "
    "row's status is judge failed.",
    "batch": "Requests that are sent together at half the price and answered within a day.",
    "fused request": "One request for all verdicts that a row needs.",
    "recording": "A file of judge replies that can be played again instead of asking.",
    "budget": "The most requests, tokens or dollars that a night may use.",
    "sample": "The rows that an expensive judge sees when a free one scores all of them.",
    "dry run": "Prints how many requests a run would send and what they cost. Nothing is sent.",
}
RUNS = {
    "night": "The log of one day, evaluated. Times are UTC.",
    "run": "One evaluation of a night. If there are several, the one that last looked for the "
    "night's files is the current run.",
    "current run": "The run whose numbers are a night's numbers.",
    "supersedes": "A later run of the same night replaces an earlier one, as after late data.",
    "republish": "Write the findings, manifest and pages of a published night again.",
    "backfill": "Score and publish nights of the past.",
    "manifest": "The file that makes a run exist: its numbers, findings and settings. It is "
    "written last.",
    "store": "The folder or bucket that holds everything: rows, scores, replies, alerts and the "
    "dashboard.",
    "shard": "A share of the night's rows that is scored by itself. Rows of one question are in "
    "one shard.",
    "part": "One shard scored by one group of metrics: the unit of work and of retry.",
    "coverage": "How many rows have a score, and why the others have none.",
    "index build": "A version of the index from which contexts are retrieved.",
    "gate": "The comparison of a new index build with the one that serves: promote, hold or "
    "inconclusive.",
    "promote": "The gate's verdict that the build may serve: each drop is significantly smaller "
    "than its limit.",
    "hold": "The gate's verdict that the build must not serve: a metric is significantly worse, "
    "and its drop is larger than the limit.",
    "inconclusive": "The gate's verdict that there are too few questions to decide. It says how "
    "many more it takes.",
    "replay": "Asks a search the golden questions and writes a log, so that a build can be gated.",
}
GROUPS = {
    "Numbers": NUMBERS,
    "States": STATES,
    "Alerts": ALERTS,
    "Rows": ROWS,
    "Judges": JUDGES,
    "Nights and builds": RUNS,
}
TERMS = {term: line for group in GROUPS.values() for term, line in group.items()}


def anchor_of(term: str) -> str:
    """Where a term stands in the glossary: `term-p-value`."""
    return f"term-{slug(term.lower().replace('α', 'alpha'))}"
