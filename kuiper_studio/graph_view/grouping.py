"""The groups of the open model: whether they are shown, and the scene that follows from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kuiper_studio.graph_view.folded_scenes import FoldedScenes, Wires
from kuiper_studio.graph_view.folding import Folding
from kuiper_studio.graph_view.scene import Scene, make_scene
from kuiper_studio.item_models.operator_groups import group_operators
from kuiper_studio.layout.groups import Group

if TYPE_CHECKING:
    from engine.runtime import RuntimeGraph

__all__ = ["Grouping", "Groups", "find_groups_of"]

_FEW: Final = 60  # operators of a model that is shown without groups unless asked
_GROUPED_AT_ONCE: Final = 2000  # operators; larger models are grouped on another thread


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """The groups of a model, with what is needed to fold it.

    Attributes
    ----------
    graph : RuntimeGraph
    root : Group
    wires : Wires
    """

    graph: RuntimeGraph
    root: Group
    wires: Wires


def find_groups_of(graph: RuntimeGraph) -> Groups:
    """Group the operators of a model; on any thread."""
    return Groups(graph, group_operators(graph), Wires.of(graph))


class Grouping:
    """The groups of the open model.

    Attributes
    ----------
    folding : Folding
        Which of them are open.
    choice : bool or None
        Whether the user wants groups; None where the size of the model decides.
    is_pending : bool
        Whether the groups of the model are not known yet: somebody should call
        `find_groups_of`, and `accept` with the result. Until then all of it is one group.
    """

    def __init__(self) -> None:
        self.folding = Folding(Group("", 0, -1))
        self.choice: bool | None = None
        self.is_pending = False
        self._former: tuple[Folding, bool | None] = self.folding, None  # of the model before
        self._graph: RuntimeGraph | None = None
        self._scenes: FoldedScenes | None = None

    def take(self, graph: RuntimeGraph | None) -> None:
        """Group another model's operators; groups that it has too stay open."""
        if not self.is_pending:
            self._former = self.folding, self.choice
        self._graph, self._scenes = graph, None
        self.choice, self.is_pending = None, False
        if graph is None:
            self.folding = Folding(Group("", 0, -1))
        elif len(graph.operators) < _GROUPED_AT_ONCE:
            self.accept(find_groups_of(graph))
        else:
            last = len(graph.operators) - 1
            self.folding = Folding(Group("", 0, last, (Group("all", 0, last),)))
            self.is_pending = True

    def accept(self, found: Groups) -> bool:
        """Take what was found; return whether it is of the open model."""
        if found.graph is not self._graph:
            return False
        self.is_pending = False
        self._scenes = FoldedScenes(found.graph, found.wires)
        folding, choice = self._former
        if folding.root != found.root:
            self.folding = Folding(found.root)
        else:
            self.folding = folding
            self.choice = choice if self.choice is None else self.choice
        return True

    @property
    def exists(self) -> bool:
        """Whether the model has any groups."""
        return bool(self.folding.root.children)

    @property
    def is_shown(self) -> bool:
        """Whether groups are shown."""
        is_large = self.folding.root.size > _FEW
        return self.exists and (is_large if self.choice is None else self.choice)

    def prepare(self, count: int) -> bool:
        """Make some of what is in closed groups ahead; return whether that was not done yet.

        See `FoldedScenes.prepare`.
        """
        if self._scenes is None or self._scenes.are_prepared:
            return False
        self._scenes.prepare(count)
        return True

    @property
    def is_prepared(self) -> bool:
        """Whether all that is in closed groups has been made."""
        return self._scenes is None or self._scenes.are_prepared

    def make_scene(self) -> Scene:
        """Build the scene of the model, or of what is visible of it."""
        if self._graph is None:
            return Scene()
        if not self.is_shown:
            return self._scenes.make_flat() if self._scenes else make_scene(self._graph)
        scenes = self._scenes or FoldedScenes(self._graph, Wires.cut(self._graph))
        return scenes.make(self.folding)
