"""The groups of the open model: whether they are shown, and the scene that follows from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kuiper_studio.graph_view.folding import Folding
from kuiper_studio.graph_view.scene import Scene, Wires, make_folded_scene, make_scene
from kuiper_studio.item_models.operator_groups import group_operators
from kuiper_studio.layout.groups import Group

if TYPE_CHECKING:
    from engine.runtime import RuntimeGraph

__all__ = ["Grouping"]

_FEW: Final = 60  # operators of a model that is shown without groups unless asked


class Grouping:
    """The groups of the open model.

    Attributes
    ----------
    folding : Folding
        Which of them are open.
    choice : bool or None
        Whether the user wants groups; None where the size of the model decides.
    """

    def __init__(self) -> None:
        self.folding = Folding(Group("", 0, -1))
        self.choice: bool | None = None
        self._graph: RuntimeGraph | None = None
        self._wires: Wires | None = None

    def take(self, graph: RuntimeGraph | None) -> None:
        """Group another model's operators; groups that it has too stay open."""
        self._graph, self._wires = graph, None
        root = Group("", 0, -1) if graph is None else group_operators(graph)
        if self.folding.root != root:
            self.folding, self.choice = Folding(root), None

    @property
    def exists(self) -> bool:
        """Whether the model has any groups."""
        return bool(self.folding.root.children)

    @property
    def is_shown(self) -> bool:
        """Whether groups are shown."""
        is_large = self.folding.root.size > _FEW
        return self.exists and (is_large if self.choice is None else self.choice)

    def make_scene(self) -> Scene:
        """Build the scene of the model, or of what is visible of it."""
        if self._graph is None:
            return Scene()
        if not self.is_shown:
            return make_scene(self._graph)
        if self._wires is None:
            self._wires = Wires.of(self._graph)
        return make_folded_scene(self._graph, self.folding, self._wires)
