"""Loads and runs PNNX graphs; usable alone, without a window.

>>> import engine
>>> graph = engine.load("model.pnnx.param")  # doctest: +SKIP
>>> session = engine.Session(graph)  # doctest: +SKIP
>>> session.feed([image])  # doctest: +SKIP
>>> record = session.step()  # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.lazy_import import lazy_names

if TYPE_CHECKING:
    from engine.comparison import Comparison, compare, open_reference
    from engine.conversion.records import ConversionOptions
    from engine.datasets import SweepOptions, open_sweep, sweep
    from engine.dump import DumpOptions, kernels_of, write_dump
    from engine.layers import load_layers
    from engine.output_reading import Meaning, read_output
    from engine.precision import choose_float32, simulate_precision
    from engine.provenance.explaining import explain_element
    from engine.provenance.fields import receptive_field
    from engine.provenance.gradients import check_field, effective_weight
    from engine.provenance.history import trace_place
    from engine.reproducer import write_reproducer
    from engine.runtime import GraphState, RuntimeGraph, load
    from engine.self_check import self_check
    from engine.session import OperatorStatus, Session, SessionState, StepRecord
    from engine.tensor import Tensor

__all__ = [
    "Comparison",
    "ConversionOptions",
    "DumpOptions",
    "GraphState",
    "Meaning",
    "OperatorStatus",
    "RuntimeGraph",
    "Session",
    "SessionState",
    "StepRecord",
    "SweepOptions",
    "Tensor",
    "check_field",
    "choose_float32",
    "compare",
    "effective_weight",
    "explain_element",
    "kernels_of",
    "load",
    "load_layers",
    "open_reference",
    "open_sweep",
    "read_output",
    "receptive_field",
    "self_check",
    "simulate_precision",
    "sweep",
    "trace_place",
    "write_dump",
    "write_reproducer",
]

_HOME = {
    "Comparison": "engine.comparison",
    "ConversionOptions": "engine.conversion.records",
    "DumpOptions": "engine.dump",
    "GraphState": "engine.runtime",
    "Meaning": "engine.output_reading",
    "OperatorStatus": "engine.session",
    "RuntimeGraph": "engine.runtime",
    "Session": "engine.session",
    "SessionState": "engine.session",
    "StepRecord": "engine.session",
    "SweepOptions": "engine.datasets",
    "Tensor": "engine.tensor",
    "check_field": "engine.provenance.gradients",
    "choose_float32": "engine.precision",
    "compare": "engine.comparison",
    "effective_weight": "engine.provenance.gradients",
    "explain_element": "engine.provenance.explaining",
    "kernels_of": "engine.dump",
    "load": "engine.runtime",
    "load_layers": "engine.layers",
    "open_reference": "engine.comparison",
    "open_sweep": "engine.datasets",
    "read_output": "engine.output_reading",
    "receptive_field": "engine.provenance.fields",
    "self_check": "engine.self_check",
    "simulate_precision": "engine.precision",
    "sweep": "engine.datasets",
    "trace_place": "engine.provenance.history",
    "write_dump": "engine.dump",
    "write_reproducer": "engine.reproducer",
}

__getattr__ = lazy_names(__name__, _HOME)
