"""Describes a graph, so that another process can rebuild it without files and layers.

A window shows a model whose operators run in the engine's process. It makes the graph from the
same text; the description adds what only the layers know: which operators cannot run, and which
are random.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine.errors import ModelFileError, SessionStateError
from engine.model_files import load_copy
from engine.pnnx.reader import read_bytes
from engine.runtime.graph import RuntimeGraph
from engine.runtime.operator import Bound

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from engine.conversion.records import Conversion
    from engine.errors import EngineError
    from engine.file_versions import FileVersion
    from engine.layers import Layer, LayerFile
    from engine.layers.notes import OperatorNote
    from engine.pnnx.attribute import WeightArchive
    from engine.runtime.operator import RuntimeOperator
    from engine.runtime.structure import GraphStructure

__all__ = [
    "ArchiveDescription",
    "DescribedLayers",
    "GraphDescription",
    "collect_notes",
    "describe",
    "graph_of",
]


@dataclass(frozen=True, slots=True)
class ArchiveDescription:
    """A ``.bin`` without its weights.

    Attributes
    ----------
    path : Path
    version : FileVersion
        When it was opened.
    entries : mapping of str to (int, int)
        Offset and size of each weight, by ``operator.attribute``.
    directory : bytes
        See `engine.pnnx.archive.Archive`.
    """

    path: Path
    version: FileVersion
    entries: Mapping[str, tuple[int, int]] = field(repr=False)
    directory: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class GraphDescription:
    """A built graph without its weights and layers; can be pickled.

    Attributes
    ----------
    param_path : Path
    param : bytes
        Contents of the ``.param``.
    version : FileVersion
        Of the ``.param`` when it was read.
    archive : ArchiveDescription or None
        None for a model without a ``.bin``.
    errors : mapping of int to EngineError
        Why operators cannot run, by their index.
    random : frozenset of int
        Operators that draw random numbers, by index.
    layer_files : tuple of LayerFile
        The user's layer files that it was built with.
    owners : mapping of str to Path
        Types of operators whose layers are the user's, and the file.
    structure : GraphStructure
    conversion : Conversion or None
        How the pair was made of a TorchScript or ONNX file.
    """

    param_path: Path
    param: bytes = field(repr=False)
    version: FileVersion
    archive: ArchiveDescription | None
    errors: Mapping[int, EngineError] = field(repr=False)
    random: frozenset[int] = field(repr=False)
    layer_files: tuple[LayerFile, ...]
    owners: Mapping[str, Path] = field(repr=False)
    structure: GraphStructure = field(repr=False)
    conversion: Conversion | None


def describe(graph: RuntimeGraph) -> GraphDescription:
    """Describe a built graph; builds the layer of every operator.

    Raises
    ------
    ModelFileError
        If the ``.param`` changed after the graph was read.
    """
    path = graph.param_path
    data, version = read_bytes(path)
    if version != graph.file.param_version:
        raise ModelFileError(path, "it changed while it was opened; open it again")
    archive = graph.file.archive
    described = None
    if archive is not None:
        described = ArchiveDescription(
            archive.path, archive.version, archive.entries, archive.directory
        )
    errors: dict[int, EngineError] = {}
    random: set[int] = set()
    for operator in graph.operators:
        if operator.error is not None:
            errors[operator.index] = operator.error
        elif operator.random:
            random.add(operator.index)
    owners = {name: file.path for file in graph.layer_files for name in file.types}
    return GraphDescription(
        path,
        data,
        version,
        described,
        errors,
        frozenset(random),
        graph.layer_files,
        owners,
        graph.structure,
        graph.conversion,
    )


def graph_of(
    description: GraphDescription, layers: DescribedLayers, archive: WeightArchive | None
) -> RuntimeGraph:
    """Make a described graph, which cannot run.

    Parameters
    ----------
    description : GraphDescription
    layers : DescribedLayers
        Of the description.
    archive : WeightArchive or None
        Source of the weights.

    Returns
    -------
    RuntimeGraph
        Its operators have no layers.
    """
    copy = description.param, description.version
    file = load_copy(description.param_path, copy, archive)
    graph = RuntimeGraph.of_file(description.param_path, file, layers, description.structure)
    graph.conversion = description.conversion
    return graph


def collect_notes(graph: RuntimeGraph) -> dict[str, OperatorNote]:
    """Collect the notes on all operator types of a built graph."""
    examples = {operator.type: operator for operator in graph.operators}
    return {name: operator.note for name, operator in examples.items()}


class DescribedLayers:
    """Stands in for the layers of a described graph.

    Parameters
    ----------
    description : GraphDescription

    Attributes
    ----------
    param_path : Path
        The ``.param`` file.
    notes : dict of str to OperatorNote
        By operator type; filled when they arrive.
    """

    from_onnx = False  # only needed to run operators

    def __init__(self, description: GraphDescription) -> None:
        self._description, self.param_path = description, description.param_path
        self.notes: dict[str, OperatorNote] = {}

    @property
    def files(self) -> tuple[LayerFile, ...]:
        """The user's layer files, with their types."""
        return self._description.layer_files

    def bind(self, operator: RuntimeOperator) -> Bound:
        """Return no layer for an operator, and the reason if it cannot run."""
        error = self._description.errors.get(operator.index)
        return Bound(None, error, self._description.owners.get(operator.type))

    def with_weights(self, operator: RuntimeOperator) -> Layer:
        """Raise an error: there are no layers in this process."""
        raise SessionStateError(f"{operator.name} runs in another process")

    def is_random(self, operator: RuntimeOperator) -> bool:
        """Return whether an operator may draw random numbers."""
        return operator.index in self._description.random

    def note(self, type: str) -> OperatorNote:  # noqa: A002 - pnnx's own word
        """Return the note on a type; an empty one until `notes` has it."""
        from engine.layers.notes import OperatorNote

        return self.notes.get(type) or OperatorNote(type)
