"""Embeddings: vectors that are compared with others, not scores of classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np
from typing_extensions import override

from engine.errors import MeaningError
from engine.meanings.registry import Fit, Reading, register_reading
from engine.meanings.results import Embedding, Row
from engine.text import format_brief

if TYPE_CHECKING:
    from engine.meanings.ends import Ends, OutputEnd
    from engine.meanings.registry import ReadingContext
    from engine.values import Array

__all__ = ["Embeddings"]

_FEWEST: Final = 16  # features
_MOST: Final = 65_536
_MOST_OTHERS: Final = 256


@register_reading
class Embeddings(Reading):
    """Vectors (N, features), such as those of CLIP, and their likeness."""

    name: ClassVar[str] = "embedding"
    title: ClassVar[str] = "Embedding: likeness of vectors"

    @override
    def fits(self, ends: Ends) -> Fit:
        places = _vectors(ends)
        if not places:
            return Fit(0, "no output is a vector of features")
        widths = [ends.outputs[place].shape[1] for place in places]
        reason = f"an output is a vector of {widths[0]} features"
        if len(widths) > 1 and len(set(widths)) == 1:
            return Fit(0.75, f"{len(widths)} outputs are vectors of {widths[0]} features")
        first = ends.outputs[places[0]]
        return Fit(0.7 if _is_embedding(first) else 0.3, reason)

    @override
    def read(self, context: ReadingContext) -> Embedding:
        places = _vectors(context.ends)
        if not places:
            raise MeaningError(self.fits(context.ends).reason)
        vector = context.of_sample(places[0]).astype(np.float64)
        sample = min(context.sample, len(context.arrays[places[0]]) - 1)
        length = float(np.linalg.norm(vector))
        rows = [
            Row(0, "length", format_brief(length)),
            Row(1, "mean", format_brief(float(vector.mean()))),
            Row(2, "standard deviation", format_brief(float(vector.std()))),
        ]
        others: list[tuple[float, str]] = []
        for place in places:
            array, output = context.arrays[place], context.ends.outputs[place]
            if output.shape[1] != vector.size:
                continue
            for number, other in enumerate(array[:_MOST_OTHERS]):
                if place != places[0] or number != sample:
                    others.append((_cosine(vector, other), f"{output.name} [{number}]"))
        for cosine, name in sorted(others, key=lambda each: -each[0])[:_MOST_OTHERS]:
            rows.append(Row(len(rows), name, f"{cosine:.4f}", max(cosine, 0.0), "cosine"))
        name = context.ends.outputs[places[0]].name
        note = f"vector {sample} of operand {name}"
        return Embedding(tuple(rows), vector.size, note)


def _vectors(ends: Ends) -> list[int]:
    """Return the places of vectors of features, those that are certain first."""
    found = [
        place
        for place, output in enumerate(ends.outputs)
        if len(output.shape) == 2 and output.is_real and _FEWEST <= output.shape[1] <= _MOST
    ]
    return sorted(found, key=lambda place: not _is_embedding(ends.outputs[place]))


def _is_embedding(output: OutputEnd) -> bool:
    """Whether a projection without bias or a division by a norm ends the model there."""
    return output.is_projection or output.ends_with("normalize")


def _cosine(one: Array, other: Array) -> float:
    lengths = float(np.linalg.norm(one) * np.linalg.norm(other.astype(np.float64)))
    return float(one @ other.astype(np.float64)) / lengths if lengths else 0.0
