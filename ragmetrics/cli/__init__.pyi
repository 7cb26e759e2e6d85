from .app import main as main
from .demo import print_demo as print_demo
from .options import err as err, out as out
from .nightly import is_firing as is_firing, print_night as print_night
from .calibrate import print_calibration as print_calibration
from .output.summary import (
    print_summary as print_summary,
)
