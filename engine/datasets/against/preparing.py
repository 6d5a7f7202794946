"""Prepares a comparison over a data set, and writes what it gave."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from engine.atomic import write_file
from engine.datasets.against.labels import read_class_labels
from engine.datasets.against.report import REPORT, against_facts
from engine.datasets.against.study import AGAINST, AgainstStudy, match_rows
from engine.datasets.inputs import InputReader, find_inputs
from engine.errors import EngineError, SweepError
from engine.exclusions import ExclusionCache
from engine.session import Session
from engine.shapes import parse_shapes

if TYPE_CHECKING:
    from engine.datasets.against.others import OtherSpec
    from engine.datasets.options import SweepOptions
    from engine.datasets.results import Sweep
    from engine.runtime import RuntimeGraph
    from engine.values import Array

__all__ = ["prepare_against", "write_against"]

_TRIED: Final = 16  # inputs, until one can be read


def prepare_against(
    graph: RuntimeGraph,
    inputs: str | Path,
    other: OtherSpec,
    options: SweepOptions,
    labels: str | Path | None = None,
) -> AgainstStudy:
    """Match a model with the other side on the first input that can be run.

    Parameters
    ----------
    graph : RuntimeGraph
    inputs : path
        As for `sweep`.
    other : OtherSpec
        See `model_spec` and `dump_spec`.
    options : SweepOptions
        Of the sweep.
    labels : path, optional
        See `read_class_labels`.

    Returns
    -------
    AgainstStudy
        For `SweepOptions.studies`.

    Raises
    ------
    EngineError
        If nothing matches, the first inputs cannot be run, or the labels cannot be read.
    """
    session = Session(
        graph, options.backend, options.seed, memory_bound=options.memory_bound,
        excluded=ExclusionCache().load_for(graph), ncnn_options=options.ncnn_options,
    )  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="kuiper-sweep-") as folder:
        found = find_inputs(inputs, Path(folder), options.limit)
        with InputReader(found) as reader:
            classes: Array | None = None
            if labels is not None:
                classes = read_class_labels(labels, map(reader.name, range(found.count)))
            index = _run_first(session, reader, options)
    rows, outputs = match_rows(session, other.open(), index)
    return AgainstStudy(other, rows, outputs, classes)


def _run_first(session: Session, reader: InputReader, options: SweepOptions) -> int:
    """Run the first input that can be run; return its number."""
    operands = session.graph.input_operands
    shapes = parse_shapes(options.shapes, operands)
    failure: EngineError | None = None
    for index in range(min(_TRIED, reader.inputs.count)):
        try:
            with session.within_bound():
                session.feed(reader.load(index, operands, options.images, shapes))
            session.run()
        except EngineError as exc:
            failure = failure or exc
            continue
        return index
    raise SweepError(f"none of the first inputs can be run: {failure}")


def write_against(found: Sweep, study: AgainstStudy) -> dict[str, Any]:
    """Write ``against.json`` to the folder of a finished sweep; return its contents.

    Raises
    ------
    SweepError
        If the sweep has not gathered the study.
    OSError
        If writing fails.
    """
    with InputReader(found.inputs.set) as reader:
        facts = against_facts(study, found.study(AGAINST), reader.name)
    write_file(found.path / REPORT, json.dumps(facts, allow_nan=False, indent=1).encode())
    return facts
