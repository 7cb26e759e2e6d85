from .version import __version__ as __version__

# Score rows in Python.
from .pipeline import evaluate as evaluate, aevaluate as aevaluate, Result as Result
from .pipeline import RowsLost as RowsLost
from .pipeline import estimate as estimate
from .scoring import Estimate as Estimate
from .pipeline import compare as compare
from .records import Comparison as Comparison
from .pipeline import whatif as whatif
from .records import WhatIf as WhatIf

# Settings and the store.
from .config import Settings as Settings, load_settings as load_settings
from .config import make_settings as make_settings
from .storage import open_store as open_store

# Write a metric.
from .metrics import metric as metric
from .records import LogRow as LogRow, Score as Score, Status as Status, Steps as Steps
from .records import Prompt as Prompt, Text as Text, Data as Data, Lexicon as Lexicon
from .records import Predicate as Predicate, ScoreQuestion as ScoreQuestion
from .records import ask as ask, ask_each as ask_each, ask_times as ask_times
from .records import embed as embed, embed_each as embed_each, Vector as Vector
from .text import sentences as sentences, normalise as normalise

# Write a page of the dashboard.
from .dashboard import Page as Page, Shown as Shown

# Write a preset.
from .logs import Preset as Preset, Span as Span, Skipped as Skipped
from .records import BadRow as BadRow

# Write a judge.
from .config import JudgeKind as JudgeKind, JudgeSettings as JudgeSettings
from .judges import Endpoint as Endpoint, JudgeParts as JudgeParts, Reply as Reply
from .records import Ask as Ask

# Write a target that takes the scores of each night.
from .config import SettingsModel as SettingsModel
from .delivery import TargetKind as TargetKind, TargetClient as TargetClient
from .delivery import EvaluationResult as EvaluationResult, Outcome as Outcome
from .delivery import TargetError as TargetError, BatchRefused as BatchRefused

# Run the steps of the product in a flow of one's own.
from .pipeline import run_night as run_night, NightResult as NightResult
from .pipeline import NightSteps as NightSteps, NightRun as NightRun, NightPart as NightPart
from .pipeline import run_backfill as run_backfill
from .comparison import run_gate as run_gate, run_replay as run_replay
from .records import IndexBuild as IndexBuild, make_index_build as make_index_build
from .records import Manifest as Manifest, Finding as Finding, Gate as Gate

# Hold judges against labels.
from .people import calibrate as calibrate, load_calibrations as load_calibrations
from .people import compare_calibrations as compare_calibrations
from .people import calibration_drifts as calibration_drifts
from .records import Calibration as Calibration, Drift as Drift

# Errors.
from . import errors as errors
