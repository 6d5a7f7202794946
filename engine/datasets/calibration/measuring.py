"""What each threshold costs: at its layer and at the model's output, on held-out inputs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from engine.datasets.calibration.held_out import (
    Agreement,
    AllLayers,
    Alone,
    Deployed,
    Mixed,
)
from engine.datasets.calibration.layers import (
    LARGEST,
    LayerScales,
    uses_winograd,
    weight_scales,
)
from engine.datasets.calibration.thresholds import METHODS, find_threshold
from engine.precision.greedy import Greedy
from engine.precision.loss import LossSums

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from pathlib import Path

    from engine.datasets.calibration.held_out import HeldOut
    from engine.datasets.calibration.magnitudes import Magnitudes
    from engine.datasets.calibration.thresholds import Method
    from engine.precision.greedy import GreedyStep
    from engine.precision.loss import Loss
    from engine.runtime import RuntimeOperator
    from engine.values import Array

__all__ = [
    "Harm",
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


@dataclass(slots=True)
class LayerCalibration:
    """The thresholds of a layer and their errors.

    Attributes
    ----------
    operator : RuntimeOperator
    magnitudes : Magnitudes
        Of its input.
    weights : ndarray of float32 of shape (channels,) or (groups,)
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
    layers : sequence of LayerCalibration
        Their losses are filled in.
    held_out : HeldOut
        With their scales.
    """

    def __init__(self, layers: Sequence[LayerCalibration], held_out: HeldOut) -> None:
        self._layers, self._held_out = layers, held_out

    def measure(self) -> dict[Method, Agreement]:
        """Measure every method: each layer alone, and the model with all layers in int8."""
        found = {method: Agreement() for method in METHODS}
        for method in METHODS:
            for measured in self._held_out(AllLayers(method)):
                found[method].merge(measured.output)
                for layer in self._layers:
                    layer.losses[method].merge(measured.layers[layer.operator.index])
        return found

    def measure_kept(
        self, method: Method, kept: Iterable[int], most: int | None = None
    ) -> Agreement:
        """Measure the model with all layers but some in int8, on at most so many inputs."""
        found = Agreement()
        for agreement in self._held_out(Mixed(method, tuple(kept)), most):
            found.merge(agreement)
        return found

    def measure_deployed(self, param: Path) -> dict[str, Agreement]:
        """Measure ncnn's own runs of the model and of an int8 pair.

        Raises
        ------
        EngineError
            If ncnn cannot run them.
        """
        found = {name: Agreement() for name in ("float", "int8")}
        for agreements in self._held_out(Deployed(str(param))):
            for name, agreement in agreements.items():
                found[name].merge(agreement)
        return found

    def find_harm(self, method: Method, wanted: float | None = None) -> Harm:
        """Measure each layer alone at the model's output; choose layers to keep in float32.

        Parameters
        ----------
        method : str
        wanted : float, optional
            Relative error at the output that the choice must reach; see `Greedy`.
        """
        sums = {index: LossSums() for index in sorted(x.operator.index for x in self._layers)}
        most, inputs = most_inputs(len(sums)), 0
        for alone in self._held_out(Alone(method), most):
            inputs += 1
            for index, each in alone.items():
                sums[index].merge(each)
        harm = {index: alone.loss for index, alone in sums.items()}
        if wanted is None or not inputs:
            return Harm(harm, inputs)
        runs = 0

        def measure(kept: Collection[int]) -> Loss:
            nonlocal runs
            runs += inputs
            return self.measure_kept(method, kept, most).loss

        greedy = Greedy(measure(()), wanted, measure, lambda: runs >= _RUNS)
        greedy.add([index] for index in sorted(harm, key=lambda i: -harm[i].relative))
        greedy.give_back()
        return Harm(harm, inputs, tuple(greedy.steps), tuple(sorted(greedy.kept)))
