"""Calibration of ncnn models for int8: thresholds, tables, and what they cost.

`magnitudes` counts absolute values over a data set, `thresholds` says where to clip them.
`layers` has the layers that ncnn quantises by a table, `table` the table's format, `int8_pair`
writes the quantised model. `runs` and `measuring` measure what it loses, `calibration` does all
of it.
"""

from __future__ import annotations

from engine.datasets.calibration.calibration import (
    REPORT,
    TABLE,
    Calibration,
    CalibrationOptions,
    calibrate,
)
from engine.datasets.calibration.layers import LayerScales, quantisable_layers
from engine.datasets.calibration.magnitudes import Magnitudes
from engine.datasets.calibration.study import (
    CALIBRATION,
    HELD_OUT,
    CalibrationStudy,
    calibrate_sweep,
    ncnn_pair_of,
)
from engine.datasets.calibration.table import format_table, parse_table
from engine.datasets.calibration.thresholds import METHODS, PERCENTILE, Method

__all__ = [
    "CALIBRATION",
    "HELD_OUT",
    "METHODS",
    "PERCENTILE",
    "REPORT",
    "TABLE",
    "Calibration",
    "CalibrationOptions",
    "CalibrationStudy",
    "LayerScales",
    "Magnitudes",
    "Method",
    "calibrate",
    "calibrate_sweep",
    "format_table",
    "ncnn_pair_of",
    "parse_table",
    "quantisable_layers",
]
