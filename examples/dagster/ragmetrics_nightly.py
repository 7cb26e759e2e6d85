"""The night in four steps as ops of Dagster: dagster dev -f ragmetrics_nightly.py"""

import datetime as dt
from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg

from ragmetrics import NightPart, NightRun, NightSteps, errors, load_settings

RETRIES = dg.RetryPolicy(max_retries=3, delay=60)


class Ragmetrics(dg.ConfigurableResource):
    """Where the settings file is."""

    settings: str = "/etc/ragmetrics/ragmetrics.yaml"

    @contextmanager
    def steps(self) -> Iterator[NightSteps]:
        """The steps. Dagster retries only errors that a retry may mend."""
        try:
            yield NightSteps(load_settings(self.settings))
        except errors.RagmetricsError as error:
            if error.transient:
                raise
            raise dg.Failure(str(error), allow_retries=False) from error


@dg.op(retry_policy=RETRIES)
def stage(context: dg.OpExecutionContext, ragmetrics: Ragmetrics) -> NightRun:
    """Stage the logs of the night, which is the partition."""
    with ragmetrics.steps() as steps:
        return steps.stage(dt.date.fromisoformat(context.partition_key))


@dg.op(retry_policy=RETRIES, out=dg.DynamicOut(NightPart))
def parts(ragmetrics: Ragmetrics, run: NightRun) -> Iterator[dg.DynamicOutput[NightPart]]:
    """One output for each part."""
    with ragmetrics.steps() as steps:
        for number, part in enumerate(steps.parts(run)):
            yield dg.DynamicOutput(part, mapping_key=str(number))


@dg.op(retry_policy=RETRIES)
def score(ragmetrics: Ragmetrics, run: NightRun, part: NightPart) -> str:
    """Score one part; return the problem, empty if it is scored."""
    with ragmetrics.steps() as steps:
        return steps.score(run, part) or ""


@dg.op(retry_policy=RETRIES)
def publish(ragmetrics: Ragmetrics, run: NightRun, problems: list[str]) -> NightRun:
    """Evaluate the alert rules and write the manifest."""
    with ragmetrics.steps() as steps:
        steps.publish(run, problems)
    return run


@dg.op(retry_policy=RETRIES)
def alert(ragmetrics: Ragmetrics, run: NightRun) -> None:
    """Send the messages, write the dashboard, write scores back."""
    with ragmetrics.steps() as steps:
        steps.alert(run)


@dg.job(partitions_def=dg.DailyPartitionsDefinition("2026-01-01"))
def ragmetrics_nightly() -> None:
    """Score one night's retrieval logs, publish the dashboard, alert on regressions."""
    run = stage()
    problems = parts(run).map(lambda part: score(run, part)).collect()
    alert(publish(run, problems))


defs = dg.Definitions(
    jobs=[ragmetrics_nightly],
    schedules=[dg.build_schedule_from_partitioned_job(ragmetrics_nightly, hour_of_day=3)],
    resources={"ragmetrics": Ragmetrics()},
)
