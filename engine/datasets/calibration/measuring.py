"""What each threshold costs: at its layer and at the model's output, on held-out inputs."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.datasets.calibration.layers import (
    LARGEST,
    LayerScales,
    int8_twin,
    uses_winograd,
    weight_scales,
)
from engine.datasets.calibration.thresholds import METHODS, find_threshold
from engine.precision.greedy import Greedy
from engine.precision.loss import LossSums
from engine.values import materialise_all

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from engine.datasets.calibration.magnitudes import Magnitudes
    from engine.datasets.calibration.runs import Int8Runs, Visit
    from engine.datasets.calibration.thresholds import Method
    from engine.precision.greedy import GreedyStep
    from engine.precision.loss import Loss
    from engine.runtime import RuntimeOperator
    from engine.runtime.kernel import Kernel
    from engine.values import Array, Value

    HeldOut = Callable[[], Iterator[Mapping[str, Array]]]

__all__ = [
    "Agreement",
    "Harm",
    "HeldOut",
    "LayerCalibration",
    "Measuring",
    "calibrate_layers",
    "most_inputs",
]

_RUNS: Final = 200  # of the model, about, for each of the two parts of `find_harm`
_MOST_INPUTS: Final = 8  # for what runs the model once for each layer


def most_inputs(layers: int) -> int:
    """Return how many held-out inputs run once for each of so many layers."""
    return max(1, min(_MOST_INPUTS, _RUNS // max(1, layers)))


class Agreement:
    """How outputs agree with those in float32, over many inputs.

    Attributes
    ----------
    inputs : int
    same_top1 : int
        Inputs whose first output has its largest element in the same place.
    """

    def __init__(self) -> None:
        self.inputs = self.same_top1 = 0
        self._sums = LossSums()

    def add(self, found: Sequence[Value], expected: Sequence[Value]) -> None:
        """Add the outputs for one input."""
        self.inputs += 1
        self._sums.add(found, expected)
        tops = [_top1(values) for values in (found, expected)]
        self.same_top1 += tops[0] == tops[1]

    @property
    def loss(self) -> Loss:
        """The loss over all outputs."""
        return self._sums.loss


def _top1(outputs: Sequence[Value]) -> int | None:
    first = outputs[0] if outputs else None
    return int(np.argmax(first)) if isinstance(first, np.ndarray) and first.size else None


@dataclass(slots=True)
class LayerCalibration:
    """The thresholds of a layer and their errors.

    Attributes
    ----------
    operator : RuntimeOperator
    magnitudes : Magnitudes
        Of its input.
    weights : ndarray of float32
        Scales of its weight.
    thresholds : dict of str to float
        By method.
    losses : dict of str to LossSums
        By method: of the layer's output, computed in int8 from its input in float32.
    bars_winograd : bool
        As in `LayerScales`.
    """

    operator: RuntimeOperator
    magnitudes: Magnitudes
    weights: Array = field(repr=False)
    thresholds: dict[Method, float]
    losses: dict[Method, LossSums]
    bars_winograd: bool = False

    def scales(self, method: Method) -> LayerScales:
        """Return the scales that a method gives."""
        scale = LARGEST / self.thresholds[method]
        return LayerScales(self.weights, scale, self.bars_winograd)


def calibrate_layers(
    layers: Sequence[RuntimeOperator],
    magnitudes: Mapping[str, Magnitudes],
    percentile: float,
    *,
    winograd: bool = True,
) -> tuple[list[LayerCalibration], dict[str, str]]:
    """Find the thresholds of each layer, by every method.

    Parameters
    ----------
    layers : sequence of RuntimeOperator
    magnitudes : mapping of str to Magnitudes
        By layer.
    percentile : float
    winograd : bool
        Whether weights have 6 bits where ncnn may use Winograd's transform; else it must not.

    Returns
    -------
    list of LayerCalibration
    dict of str to str
        By layer: why it has no threshold and stays in float32.
    """
    found: list[LayerCalibration] = []
    left: dict[str, str] = {}
    for operator in layers:
        seen = magnitudes.get(operator.name)
        if seen is None or not seen.count:
            left[operator.name] = "no input of it has finite numbers"
        elif not seen.largest:
            left[operator.name] = "its input is always 0"
        else:
            thresholds = {m: find_threshold(seen, m, percentile) for m in METHODS}
            losses = {m: LossSums() for m in METHODS}
            scales = weight_scales(operator, winograd=winograd)
            bars = not winograd and uses_winograd(operator)
            found.append(LayerCalibration(operator, seen, scales, thresholds, losses, bars))
    return found, left


@dataclass(frozen=True, slots=True)
class Harm:
    """What single layers do to the model's output.

    Attributes
    ----------
    alone : dict of int to Loss
        By index of the layer: with only it in int8.
    inputs : int
        Held-out inputs that this was measured on.
    steps : tuple of GreedyStep
        Of the choice of layers to keep in float32; empty if no error was wanted.
    kept : tuple of int
    """

    alone: dict[int, Loss]
    inputs: int
    steps: tuple[GreedyStep, ...] = ()
    kept: tuple[int, ...] = ()


class Measuring:
    """Measures calibrated layers on held-out inputs.

    Parameters
    ----------
    runs : Int8Runs
    layers : sequence of LayerCalibration
        Their losses are filled in.
    held_out : callable
        Returns an iterator over inputs, as `RuntimeGraph.check_inputs` returns them.
    progress : callable, optional
        Called before each run of the model; an exception ends the work.
    """

    def __init__(
        self,
        runs: Int8Runs,
        layers: Sequence[LayerCalibration],
        held_out: HeldOut,
        progress: Callable[[], None] = lambda: None,
    ) -> None:
        self._runs, self._layers, self._held_out = runs, layers, held_out
        self._progress = progress
        self._kernels: dict[Method, Mapping[int, Kernel]] = {}
        self._passes = 0

    def measure(self) -> dict[Method, Agreement]:
        """Measure every method: each layer alone, and the model with all layers in int8."""
        kernels = {method: self._kernels_of(method) for method in METHODS}
        of_index = {layer.operator.index: layer for layer in self._layers}

        def visit(
            operator: RuntimeOperator, inputs: Sequence[Value], outputs: Sequence[Value]
        ) -> None:
            layer = of_index.get(operator.index)
            if layer is None:
                return
            done: dict[float, list[Value]] = {}  # methods may agree on a threshold
            for method in METHODS:
                threshold = layer.thresholds[method]
                if threshold not in done:
                    kernel = kernels[method][operator.index]
                    kernel.prepare(inputs)
                    done[threshold] = materialise_all(kernel(inputs))
                layer.losses[method].add(done[threshold], outputs)

        found = {method: Agreement() for method in METHODS}
        for inputs in self._held_out():
            expected = self._run(inputs, {}, visit=visit)
            for method in METHODS:
                found[method].add(self._run(inputs, kernels[method]), expected)
        return found

    def measure_kept(self, method: Method, kept: Collection[int]) -> Agreement:
        """Measure the model with all layers but some in int8."""
        found = Agreement()
        for inputs in self._held_out():
            expected = self._run(inputs, {})
            found.add(self._run(inputs, self._kernels_of(method), kept), expected)
        return found

    def find_harm(self, method: Method, wanted: float | None = None) -> Harm:
        """Measure each layer alone at the model's output; choose layers to keep in float32.

        Parameters
        ----------
        method : str
        wanted : float, optional
            Relative error at the output that the choice must reach; see `Greedy`.
        """
        kernels = self._kernels_of(method)
        inputs = list(islice(self._held_out(), most_inputs(len(kernels))))
        expected: list[tuple[Value, ...]] = []
        sums = {index: LossSums() for index in sorted(kernels)}
        for each in inputs:
            known: dict[str, Value] = dict(each)
            outputs = self._run(each, {}, visit=partial(_keep_outputs, known))
            expected.append(outputs)
            for index, alone in sums.items():
                found = self._run(each, {index: kernels[index]}, known=known)
                alone.add(found, outputs)
        harm = {index: alone.loss for index, alone in sums.items()}
        if wanted is None or not inputs:
            return Harm(harm, len(inputs))

        def measure(kept: Collection[int]) -> Loss:
            total = LossSums()
            for each, outputs in zip(inputs, expected, strict=True):
                total.add(self._run(each, kernels, kept), outputs)
            return total.loss

        most = self._passes + _RUNS
        greedy = Greedy(measure(()), wanted, measure, lambda: self._passes >= most)
        greedy.add([index] for index in sorted(kernels, key=lambda i: -harm[i].relative))
        greedy.give_back()
        return Harm(harm, len(inputs), tuple(greedy.steps), tuple(sorted(greedy.kept)))

    def _kernels_of(self, method: Method) -> Mapping[int, Kernel]:
        if method not in self._kernels:
            self._kernels[method] = self._runs.kernels(
                {
                    layer.operator.index: int8_twin(layer.operator, layer.scales(method))
                    for layer in self._layers
                }
            )
        return self._kernels[method]

    def _run(
        self,
        inputs: Mapping[str, Array],
        int8: Mapping[int, Kernel],
        kept: Collection[int] = (),
        visit: Visit | None = None,
        known: Mapping[str, Value] | None = None,
    ) -> tuple[Value, ...]:
        self._progress()
        self._passes += 1
        return self._runs.run(inputs, int8, kept, visit, known)


def _keep_outputs(
    known: dict[str, Value],
    operator: RuntimeOperator,
    _inputs: Sequence[Value],
    outputs: Sequence[Value],
) -> None:
    known |= {each.name: value for each, value in zip(operator.outputs, outputs, strict=True)}
