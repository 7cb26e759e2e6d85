"""The first settings file of a team, written from a sample of its own log."""

from ragmetrics.pipeline.init.first_settings import InitReport, init_settings
from ragmetrics.pipeline.init.log_layout import Ask, Question
from ragmetrics.pipeline.init.rule_limits import RuleLimit

__all__ = ["Ask", "InitReport", "Question", "RuleLimit", "init_settings"]
