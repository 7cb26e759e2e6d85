"""The words of the pages that need a meaning, in one line each, by what they are of."""

from __future__ import annotations

from ragmetrics.text import slug

NUMBERS = {
    "mean": "The average of a metric over the rows that were scored; rows without a score are "
    "counted beside it and never taken for 0.",
    "interval": "Where the true mean lies, 95% sure: 95 of 100 such intervals hold it. A wide one "
    "means few questions, not a bad night.",
    "cluster": "Rows of the same question count as one witness, not as many: intervals are "
    "clustered by question.",
    "change": "How far a metric moved since its baseline: of the questions that both have, where "
    "they are enough, each counted once; the mean of a night is of all its rows. Bold where the "
    "95% interval excludes 0.",
    "drop": "How far a mean got worse against its baseline, question by question where both have "
    "the question; negative where it got better.",
    "surely below": "The upper bound of a drop, one-sided: the true drop is smaller, 95% sure.",
    "baseline": "What a night is compared with: an earlier night, the nights of some days before, "
    "a named run, or the index build that serves.",
    "limit": "The level or the drop that a rule allows.",
    "detectable drop": "The smallest drop that so many questions would show on four nights "
    "of five: the minimum detectable effect, MDE. A smaller one can pass unseen.",
    "p-value": "How often chance alone would make a difference at least this large; small means: "
    "hardly by chance.",
    "q-value": "A p-value that is corrected for how many were looked at: of findings below 5%, at "
    "most 5% are false alarms on average.",
    "false alarms": "The share of quiet nights, alpha, on which a drop rule may fire by "
    "chance; set by `alerts: false_alarms`.",
    "carried by": "Which part of the rows a drop sits in, as a share of the whole drop: a tag's "
    "value, or an index build.",
    "distribution": "How many rows have which value: one mean may be all rows half good, or half "
    "the rows good.",
    "spread": "How far repeated verdicts of the same judge on the same row lie apart, as a mean "
    "standard deviation.",
    "judge movement": "How far a judge's level moves from one night to the next, all questions "
    "together, though nothing changed: a standard deviation. Intervals allow for it.",
    "agreement α": "Krippendorff's alpha: how far the judges of a panel, or a judge and people, "
    "agree beyond chance. 1 is always, 0 is as by chance.",
    "kappa": "Agreement with people's labels beyond chance: 1 is always, 0 is as by chance. "
    "Quadratic: a miss by two grades counts four times a miss by one.",
    "lifted": "The share of irrelevant contexts that get a higher grade when text that answers "
    "nothing is added to them. 0 is best.",
    "AUC": "The chance that a judge ranks something that people call good above something that "
    "they call bad: 0.5 says nothing, 1 is always.",
    "Spearman": "How alike two rankings are: 1 is the same order, 0 no relation, −1 the reverse.",
    "accuracy": "The share of units on which judge and people say the same.",
    "reliability": "Whether a judge's 0.8 means that people say yes 80% of the time.",
    "calibration error": "How far on average what was judged is from the share of people's yes.",
    "PPI": "Prediction-powered inference: a free judge scores all rows, the paid one a sample, "
    "and the mean is the free one's, corrected by where both differ.",
    "nDCG": "How good the order is: hits count less the further down they stand, 1 is the best "
    "order there is.",
    "MRR": "The mean of 1 / the rank of the first hit: 1 where the first context is always right.",
}
STATES = {
    "ok": "The rule compared its numbers and found nothing.",
    "pending": "A suspect that has not lasted long enough to alert: it fires if it stays.",
    "firing": "People have been told, or are being told, of this.",
    "suspect": "A number beyond its limit by a margin that chance may explain.",
    "breach": "A number beyond its limit by more than chance explains: fires at once.",
    "no data": "Too few rows for a verdict, or none at all. Never green.",
    "not compared yet": "The rule has no earlier night to compare with. Never green.",
    "fell, no drop rule": "The metric surely got worse, and no rule watches it for drops: it is "
    "said, and nobody is alerted.",
    "incomplete": "Nothing fires, but not all was read or scored.",
    "no rules": "Scored, but no alert rule looked at it.",
    "escalated": "A firing alert that got worse than people were last told: they are told at once, "
    "and its acknowledgement or snooze has ended.",
    "resolved": "An alert that had fired and is over.",
    "no night": "A day between two nights on which the flow did not run.",
    "did not end": "A run of this night began and published nothing: it died, or is still at work.",
}
ROWS = {
    "row": "One retrieval from the log: a question, the contexts retrieved for it, and what else "
    "was logged.",
    "context": "One retrieved text, in the order in which the retriever returned them.",
    "reference": "The answer that a question should get, from the log or the golden set.",
    "golden set": "Questions with the answers or contexts that are right for them.",
    "tag": "What the log says of a row beside its texts, as section=billing; a segment is the "
    "rows of one value.",
    "quarantine": "Rows that could not be read, kept aside with file, line and reason; they are "
    "in no number.",
    "scored": "The row has a value in this metric.",
    "not applicable": "The row lacks what the metric needs, as a reference answer: no fault.",
    "unreadable verdict": "The judge answered, but not with a usable verdict, however often it "
    "was asked.",
    "refused by the judge": "The judge, or the content filter before it, declined to answer: asked "
    "again once, and then left out of the mean.",
    "metric failed": "The metric's own code raised an error on the row; the run's problems "
    "say which.",
    "judge failed": "The judge gave no answer at all, or the part of the night was never scored.",
    "over budget": "The night's budget was used up before this row.",
    "not in the sample": "Only a sample of the rows is judged; this one is estimated by the free "
    "judge.",
    "grade": "What the judge thinks of a context: 0 of no use, 1 of some use, 2 answers the "
    "question.",
    "needed sentence": "A sentence of a context without which the question could not be answered; "
    "highlighted in the texts.",
}
JUDGES = {
    "judge": "Who gives the verdicts: a language model, or the embedded baseline.",
    "embedded judge": "Counts shared words in place of asking a model: free, the same every time, "
    "and a baseline. Trust its changes more than its values.",
    "fingerprint": "A short hash of judge, prompts, metric version and parameters. Only numbers "
    "with the same one compare; a trend's line breaks where it changes.",
    "panel": "Several judges that each judge every row; the row's value is made of theirs.",
    "judge drift": "The judge answers otherwise than before on the same labelled rows: its "
    "numbers of before and after do not compare.",
    "calibration": "A judge held against rows that people labelled.",
    "unit": "What people labelled one by one: a context, a sentence or a statement.",
    "from the store": "Verdicts that had been paid for before and were not asked again.",
    "shared": "Requests that were equal to another of the same night: asked once.",
    "cached": "Prompt tokens that the endpoint had in its cache, often at a lower price.",
    "budget": "The most that a night may ask or spend.",
}
RUNS = {
    "night": "One day's log, evaluated: everything here is by night. Times are UTC.",
    "run": "One evaluation of a night. Of several, the one that looked for the night's files last "
    "speaks for it.",
    "shard": "A part of the night's rows, scored by itself; equal questions meet in one.",
    "coverage": "How many rows have a score, and why the others have none.",
    "index build": "A version of the index that contexts are retrieved from.",
    "gate": "The check of a new index build against the one that serves, before it serves: "
    "promote, hold or inconclusive.",
    "supersedes": "A later run of the same night that takes the place of an earlier one, as after "
    "late data.",
}
GROUPS = {
    "Numbers": NUMBERS,
    "States": STATES,
    "Rows": ROWS,
    "Judges": JUDGES,
    "Nights and builds": RUNS,
}
TERMS = {term: line for group in GROUPS.values() for term, line in group.items()}


def anchor_of(term: str) -> str:
    """Where a term stands in the glossary: `term-p-value`."""
    return f"term-{slug(term.lower().replace('α', 'alpha'))}"
