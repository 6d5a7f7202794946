"""A data set through two models, or a model and a dump: where and on which inputs they differ.

`study` measures the rows of a comparison for every input; operands are matched once, on the
first input. `others` has the other side, `distributions` what is kept of the measures, `labels`
the classes of the inputs, `report` what the results say.
"""

from __future__ import annotations

from engine.datasets.against.labels import read_class_labels
from engine.datasets.against.others import OtherSpec, dump_spec, model_spec
from engine.datasets.against.preparing import prepare_against, write_against
from engine.datasets.against.report import REPORT
from engine.datasets.against.study import AGAINST, AgainstRow, AgainstStudy

__all__ = [
    "AGAINST",
    "REPORT",
    "AgainstRow",
    "AgainstStudy",
    "OtherSpec",
    "dump_spec",
    "model_spec",
    "prepare_against",
    "read_class_labels",
    "write_against",
]
