"""Scores of classes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Final

from typing_extensions import override

from engine.meanings.names import NAMES, class_names
from engine.meanings.registry import Fit, Option, OutputReading, register_reading
from engine.meanings.results import Classes
from engine.meanings.scores import are_probabilities, best_scores, probabilities, softmax

if TYPE_CHECKING:
    from engine.meanings.ends import Ends, OutputEnd
    from engine.meanings.registry import ReadingContext
    from engine.values import Array

__all__ = ["Classification"]

_LARGEST: Final = 100_000
_HEADS: Final = ("linear", "innerproduct", "gemm", "softmax", "sigmoid", "log_softmax")
_USUAL: Final = frozenset({1000, 1001, 21841})  # classes of ImageNet
_POOLED: Final = (
    "conv1d", "conv2d", "conv3d", "matmul", "einsum", "mean", "avg_pool2d", "avgpool2d",
    "adaptiveavgpool1d", "adaptiveavgpool2d", "adaptiveavgpool3d",
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d",
)  # fmt: skip
_FAR: Final = 4
# What stands between the head and the output without changing what it means.
_BEHIND: Final = 3


@register_reading
class Classification(OutputReading):
    """The best classes of a vector of scores."""

    name: ClassVar[str] = "classification"
    title: ClassVar[str] = "Classes"
    options: ClassVar[tuple[Option, ...]] = (
        Option("top", "Best", "count", 5, "How many classes are shown", low=1, high=100),
        Option(
            "scores", "Scores", "choice", "automatic",
            "What the model gives becomes a probability by softmax (one class is right) or "
            "sigmoid (several may be). Automatic: softmax, unless it gives probabilities",
            ("automatic", "softmax", "sigmoid", "as they are"),
        ),
        NAMES,
    )  # fmt: skip

    @override
    def fits_output(self, output: OutputEnd, ends: Ends) -> Fit:
        shape = output.shape
        flat = len(shape) == 1 or (len(shape) >= 2 and all(each == 1 for each in shape[2:]))
        count = shape[-1] if len(shape) == 1 else shape[1] if len(shape) > 1 else 0
        if not flat or not output.is_real or not 2 <= count <= _LARGEST:
            return Fit(0, "no output is one vector of scores")
        if len(shape) == 3:  # rather a number for each of many boxes or moments
            return Fit(0.4, f"an output is a vector of {count} numbers")
        if ends.integers and shape in ends.inputs:
            return Fit(0.3, f"an output has a number for each of {count} tokens")
        if output.is_projection and count not in _USUAL:
            return Fit(0.45, f"an output is a vector of {count} numbers, rather an embedding")
        if count not in _USUAL and _is_bounded(output):
            return Fit(0.2, f"an output is a vector of {count} numbers, rather features")
        if output.ends_with(*_HEADS, among=_BEHIND) or count in _USUAL:
            return Fit(0.9, f"an output is a vector of {count} scores")
        if output.types and not output.ends_with(*_HEADS, *_POOLED, among=_FAR):
            return Fit(0.45, f"an output is a vector of {count} numbers, rather features")
        return Fit(0.6, f"an output is a vector of {count} numbers")

    @override
    def read_output(self, values: Array, output: OutputEnd, context: ReadingContext) -> Classes:
        if len(output.shape) == 1:
            values = context.arrays[context.ends.outputs.index(output)]
        flat = values.reshape(-1)
        names = class_names(flat.size, context.labels, context.text("names"))
        how = context.text("scores")
        if how == "automatic":
            is_multiple = output.ends_with("sigmoid", among=_BEHIND)
            how = "as they are" if are_probabilities(flat) or is_multiple else "softmax"
        top = int(context.number("top"))
        if how == "as they are":
            rows = best_scores(flat, names, top)
            return Classes(tuple(rows), flat.size, "scores as the model gives them")
        made = softmax(flat) if how == "softmax" else probabilities(flat)
        rows = best_scores(made, names, top, as_percentages=True, raw=flat)
        return Classes(tuple(rows), flat.size, f"{how} of the model's scores, in grey")


def _is_bounded(output: OutputEnd) -> bool:
    """Whether features are normalised or bounded at the end, each by itself or joined."""
    own = replace(output, types=output.types[1:]) if output.ends_with("cat") else output
    return own.ends_with("tanh", "layernorm", "layer_norm", "normalize")
