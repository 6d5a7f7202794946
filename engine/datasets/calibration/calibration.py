"""From what was counted over a data set to a table, its errors and an int8 pair."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from engine.atomic import write_file
from engine.datasets.calibration.int8_pair import write_int8_pair
from engine.datasets.calibration.layers import LARGEST, quantisable_layers, uses_winograd
from engine.datasets.calibration.measuring import Measuring, calibrate_layers
from engine.datasets.calibration.ncnn2table import run_ncnn2table
from engine.datasets.calibration.table import format_table
from engine.datasets.calibration.thresholds import METHODS, PERCENTILE
from engine.errors import EngineError
from engine.plain import plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

    from engine.datasets.calibration.held_out import Agreement, HeldOut, ScalesOf
    from engine.datasets.calibration.magnitudes import Magnitudes
    from engine.datasets.calibration.measuring import Harm, LayerCalibration
    from engine.datasets.calibration.thresholds import Method
    from engine.precision.loss import Loss
    from engine.runtime import RuntimeGraph
    from engine.values import Array

__all__ = [
    "NO_LAYER",
    "REPORT",
    "TABLE",
    "Calibration",
    "CalibrationOptions",
    "calibrate",
]

TABLE: Final = "calibration.table"
REPORT: Final = "calibration.json"
NO_LAYER: Final = (
    "the model has no Convolution, ConvolutionDepthWise or InnerProduct of ncnn's own format "
    "with weights in float32 or float16"
)
_INT8_PAIR: Final = "int8.ncnn.param"


@dataclass(frozen=True, slots=True)
class CalibrationOptions:
    """Options of `calibrate`.

    Attributes
    ----------
    method : {"kl", "aciq", "minmax", "percentile"}
        Of the table; the errors of all are measured.
    percentile : float
        For that method.
    wanted_error : float or None
        Relative error at the output, for the choice of layers to keep in float32.
    winograd : bool
        Whether ncnn may compute int8 layers with Winograd's transform, where weights then have
        6 bits.
    backend : str
        What computes the errors: ``auto`` and ``ncnn`` are ncnn, ``numpy`` NumPy.
    """

    method: Method = "kl"
    percentile: float = PERCENTILE
    wanted_error: float | None = None
    winograd: bool = True
    backend: str = "auto"


@dataclass(frozen=True, slots=True)
class Calibration:
    """A calibrated model.

    Attributes
    ----------
    options : CalibrationOptions
    layers : tuple of LayerCalibration
        In execution order.
    left : dict of str to str
        Layers without a scale, and why.
    output : dict of str to Agreement
        By method: at the model's output, with all layers in int8.
    harm : Harm
    kept : Agreement or None
        With the layers to keep in float32; None if no error was wanted.
    deployed : dict of str to Agreement or None
        ncnn with the options of deployment against float32: the model as it is (``float``) and
        the int8 pair (``int8``). None without ncnn.
    tool : dict of str to float or None
        Thresholds of ncnn2table; None without it.
    remarks : tuple of str
    """

    options: CalibrationOptions
    layers: tuple[LayerCalibration, ...] = field(repr=False)
    left: dict[str, str]
    output: dict[Method, Agreement]
    harm: Harm
    kept: Agreement | None
    deployed: dict[str, Agreement] | None
    tool: dict[str, float] | None
    remarks: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return everything as strict JSON can hold it."""
        names = {layer.operator.index: layer.operator.name for layer in self.layers}
        keep = None
        if self.kept is not None:
            keep = {
                "wanted_error": self.options.wanted_error,
                "reached": self.kept.loss.relative <= (self.options.wanted_error or 0.0),
                "layers": [names[index] for index in self.harm.kept],
                "output": _agreement_facts(self.kept),
                "steps": [
                    {
                        "added": [names[index] for index in step.added],
                        "removed": [names[index] for index in step.removed],
                        "output": _loss_facts(step.output),
                    }
                    for step in self.harm.steps
                ],
            }
        deployed = self.deployed
        return {
            "method": self.options.method,
            "percentile": self.options.percentile,
            "winograd": self.options.winograd,
            "layers": [self._layer_facts(layer) for layer in self.layers],
            "left_in_float32": self.left,
            "output": {name: _agreement_facts(each) for name, each in self.output.items()},
            "alone_inputs": self.harm.inputs,
            "keep_float32": keep,
            "ncnn": deployed and {k: _agreement_facts(each) for k, each in deployed.items()},
            "ncnn2table": self.tool,
            "remarks": list(self.remarks),
        }

    def _layer_facts(self, layer: LayerCalibration) -> dict[str, Any]:
        seen = layer.magnitudes
        six_bits = uses_winograd(layer.operator) and not layer.bars_winograd
        return {
            "name": layer.operator.name,
            "type": layer.operator.type,
            "largest": seen.largest,
            "count": seen.count,
            "zeros": seen.zeros,
            "nonfinite": seen.nonfinite,
            "weight_bits": 6 if six_bits else 8,
            "thresholds": {
                method: {
                    "threshold": layer.thresholds[method],
                    "scale": LARGEST / layer.thresholds[method],
                    **_loss_facts(layer.losses[method].loss),
                }
                for method in METHODS
            },
            "output_alone": _loss_facts(self.harm.alone[layer.operator.index]),
        }


def _loss_facts(loss: Loss) -> dict[str, Any]:
    return {
        "relative": plain(loss.relative),
        "snr_db": plain(loss.snr),
        "cosine": loss.cosine,
    }


def _agreement_facts(found: Agreement) -> dict[str, Any]:
    return {
        **_loss_facts(found.loss),
        "inputs": found.inputs,
        "same_top1": found.same_top1,
    }


def calibrate(
    graph: RuntimeGraph,
    magnitudes: Mapping[str, Magnitudes],
    held_out: Callable[[ScalesOf], AbstractContextManager[HeldOut]],
    calibrating: Callable[[], Iterator[Mapping[str, Array]]],
    output: Path,
    options: CalibrationOptions | None = None,
) -> Calibration:
    """Find scales, measure their errors, and write the table, the report and an int8 pair.

    Parameters
    ----------
    graph : RuntimeGraph
        Of ncnn's own format, with weights.
    magnitudes : mapping of str to Magnitudes
        Of the input of each quantisable layer, by the layer's name.
    held_out : callable
        Takes the scales of the layers, by index and method, and returns a context of what runs
        tasks for the inputs to measure on.
    calibrating : callable
        Returns an iterator over the inputs that were counted, as `RuntimeGraph.check_inputs`
        returns them.
    output : path
        Existing folder, for `TABLE`, `REPORT` and the pair ``int8.ncnn.param``.
    options : CalibrationOptions, optional

    Raises
    ------
    EngineError
        If the model has no layer to quantise, or cannot run.
    OSError
        If writing fails.
    """
    options = options or CalibrationOptions()
    quantisable = quantisable_layers(graph)
    layers, left = calibrate_layers(
        quantisable, magnitudes, options.percentile, winograd=options.winograd
    )
    if not layers:
        reasons = "; ".join(f"{name}: {why}" for name, why in left.items())
        raise EngineError(f"no layer can be quantised: {reasons}" if reasons else NO_LAYER)
    scales = {x.operator.index: {m: x.scales(m) for m in METHODS} for x in layers}
    with held_out(scales) as run:
        measuring = Measuring(layers, run)
        at_output = measuring.measure()
        harm = measuring.find_harm(options.method, options.wanted_error)
        kept = None
        if options.wanted_error is not None:
            kept = measuring.measure_kept(options.method, harm.kept)
        names = {layer.operator.name for layer in layers if layer.operator.index in harm.kept}
        chosen = {layer.operator.name: layer.scales(options.method) for layer in layers}
        write_file(output / TABLE, format_table(chosen, names).encode())
        remarks: list[str] = []
        deployed, tool = None, None
        try:
            used = {name: each for name, each in chosen.items() if name not in names}
            param, _ = write_int8_pair(graph, used, output / _INT8_PAIR)
            deployed = measuring.measure_deployed(param)
        except EngineError as exc:
            remarks.append(f"ncnn's own int8 run: {exc}")
    try:
        tool = run_ncnn2table(graph, calibrating(), options.method)
    except EngineError as exc:
        remarks.append(str(exc))
    found = Calibration(
        options, tuple(layers), left, at_output, harm, kept, deployed, tool, tuple(remarks)
    )
    write_file(output / REPORT, json.dumps(found.to_json(), indent=1).encode())
    return found
