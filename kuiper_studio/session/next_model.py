"""What was set ahead for the model that is opened next."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from kuiper_studio.engine_service.protocol import Plan
from kuiper_studio.session.opening import Looks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.inputs import ImageOptions, InputSource

__all__ = ["NextModel"]


class NextModel:
    """Inputs, overrides and looks of the model that is opened next.

    Its operands are not known yet, so inputs are in order, and sizes are texts.
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget all of it."""
        self._plan, self._looks = Plan(), Looks()

    def take(self) -> tuple[Plan, Looks]:
        """Return what was set, and forget it."""
        taken = self._plan, self._looks
        self.clear()
        return taken

    def set_sources(
        self, sources: Sequence[InputSource], options: ImageOptions | None = None
    ) -> None:
        """Set the inputs in order.

        Parameters
        ----------
        sources : sequence of InputSource
            A single ``.npz``, random or constant one is used for all inputs.
        options : ImageOptions, optional
            For pictures; those of the model before by default.
        """
        self._plan = replace(self._plan, sources=tuple(sources), options=options)

    def set_shapes(self, texts: Sequence[str]) -> None:
        """Set the sizes of inputs, in the command line's notation."""
        self._plan = replace(self._plan, shapes=tuple(texts))

    def set_supplies(self, supplies: Sequence[tuple[str, InputSource]]) -> None:
        """Override operands, or all outputs of operators.

        Parameters
        ----------
        supplies : sequence of (str, InputSource)
            Name of the operand or operator, and the file.
        """
        self._plan = replace(self._plan, supplies=tuple(supplies))

    def set_breakpoints(self, breakpoints: frozenset[str]) -> None:
        """Set breakpoints, as far as the model has these operators."""
        self._looks = replace(self._looks, breakpoints=breakpoints)

    def set_labels(self, labels: tuple[str, ...]) -> None:
        """Set the class labels."""
        self._looks = replace(self._looks, labels=labels)
