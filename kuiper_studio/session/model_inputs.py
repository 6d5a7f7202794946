"""The inputs that the user has set."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine.inputs import ImageOptions
from engine.shapes import InputShapes
from kuiper_studio.engine_service.protocol import Plan

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.inputs import InputSource
    from engine.runtime import RuntimeGraph

__all__ = ["ModelInputs"]


@dataclass(slots=True)
class ModelInputs:
    """The inputs that the user has set, which the engine may not have yet.

    Attributes
    ----------
    sources : dict of str to InputSource
        By operand name; also of operands that the open model does not have.
    shapes : InputShapes
        Their sizes.
    options : ImageOptions
        The preprocessing of pictures.
    """

    sources: dict[str, InputSource] = field(default_factory=dict)
    shapes: InputShapes = field(default_factory=InputShapes)
    options: ImageOptions = field(default_factory=ImageOptions)

    def suffice(self, graph: RuntimeGraph) -> bool:
        """Return whether every input of a model has a source."""
        return all(operand.name in self.sources for operand in graph.input_operands)

    def sources_of(self, graph: RuntimeGraph) -> tuple[InputSource, ...]:
        """Return the sources of a model's inputs, in their order, without those not set."""
        names = (operand.name for operand in graph.input_operands)
        return tuple(self.sources[name] for name in names if name in self.sources)

    def plan(self, sources: Iterable[InputSource]) -> Plan:
        """Return a plan with other sources, and these sizes and options."""
        return Plan(tuple(sources), self.options, self.shapes.texts)

    def describe(self, operands: Iterable[str]) -> str:
        """Return ``x = ones.npy, y = random``, of those that have a source."""
        named = (name for name in operands if name in self.sources)
        return ", ".join(f"{name} = {self.sources[name].text}" for name in named)
