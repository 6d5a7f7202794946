"""What a data set is compared with: another model that runs, or the dump of another sweep."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from engine.comparison.references.sessions import fit_batch, reference_of_session
from engine.comparison.references.zarr_dumps import is_data_set_dump, reference_of_data_set
from engine.datasets.dump import DUMP
from engine.datasets.model import settle_kernels
from engine.dump.manifest import file_hash
from engine.errors import FeedError, SweepError
from engine.exclusions import ExclusionCache
from engine.runtime import load
from engine.session import Session

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.comparison.references.reference import Reference
    from engine.values import Array

__all__ = ["DumpSpec", "Other", "OtherModelSpec", "OtherSpec", "dump_spec", "model_spec"]


class Other(Protocol):
    """The other side, in a worker."""

    def values(self, index: int, inputs: Sequence[Array]) -> Mapping[str, Array]:
        """Return its tensors for an input, by the reference's keys.

        Parameters
        ----------
        index : int
            Of the input.
        inputs : sequence of ndarray
            What our model is fed, in order.

        Raises
        ------
        EngineError
            If there are none.
        """
        ...

    def reference(self, index: int, inputs: Sequence[Array]) -> Reference:
        """Return the same as a reference, for matching."""
        ...


class OtherSpec(Protocol):
    """Describes the other side. Instances can be pickled."""

    @property
    def title(self) -> str:
        """What to call it."""
        ...

    @property
    def key(self) -> str:
        """A text that changes with its contents."""
        ...

    @property
    def reads(self) -> Sequence[str]:
        """Paths that a sweep could write over or remove."""
        ...

    def open(self) -> Other:
        """Open it.

        Raises
        ------
        EngineError
            If it cannot be opened.
        """
        ...


@dataclass(frozen=True, slots=True)
class OtherModelSpec:
    """Another model.

    Attributes
    ----------
    param : str
        Path of the file to load.
    title, key : str
    backend, ncnn_options, seed, memory_bound
        Of its session.
    """

    param: str
    title: str
    key: str
    backend: str
    ncnn_options: str
    seed: int
    memory_bound: int | None

    @property
    def reads(self) -> Sequence[str]:
        """None: a sweep leaves the files of models alone."""
        return ()

    def open(self) -> Other:
        """Load the model."""
        return _OtherModel(self)


def model_spec(
    path: str | Path, backend: str, ncnn_options: str, seed: int, memory_bound: int | None
) -> OtherModelSpec:
    """Describe another model.

    Raises
    ------
    EngineError
        If it cannot be loaded.
    """
    graph = load(path)
    files = [graph.param_path, *([graph.bin_path] if graph.bin_path is not None else [])]
    digests = [file_hash(file, _go_on) for file in files]
    key = " ".join([*digests, backend, ncnn_options, str(seed)])
    return OtherModelSpec(
        str(Path(path).absolute()), graph.source_path.name, key, backend, ncnn_options, seed,
        memory_bound,
    )  # fmt: skip


def _go_on() -> None:
    """Nothing cancels the hashing of a model."""


class _OtherModel:
    def __init__(self, spec: OtherModelSpec) -> None:
        graph = load(spec.param)
        self._session = Session(
            graph, spec.backend, spec.seed, memory_bound=spec.memory_bound,
            excluded=ExclusionCache().load_for(graph), ncnn_options=spec.ncnn_options,
        )  # fmt: skip
        self._title = spec.title
        self._is_warm = False

    def values(self, index: int, inputs: Sequence[Array]) -> Mapping[str, Array]:  # noqa: ARG002
        if not self._is_warm:  # or the first input of each part had other last bits
            settle_kernels(self._session, lambda: self._run(inputs))
            self._is_warm = True
        self._run(inputs)
        session = self._session
        names = [o.name for operator in session.graph.operators for o in operator.outputs]
        found = {name: session.value(name) for name in names if session.has_value(name)}
        return {name: x for name, x in found.items() if isinstance(x, np.ndarray)}

    def reference(self, index: int, inputs: Sequence[Array]) -> Reference:  # noqa: ARG002
        self._run(inputs)
        return reference_of_session(self._session, self._title)

    def _run(self, inputs: Sequence[Array]) -> None:
        operands = self._session.graph.input_operands
        if len(operands) != len(inputs):
            raise FeedError(
                f"{self._title} takes {len(operands)} inputs, the swept model {len(inputs)}"
            )
        self._session.feed([fit_batch(x, o) for x, o in zip(inputs, operands, strict=True)])
        self._session.run()


@dataclass(frozen=True, slots=True)
class DumpSpec:
    """The dump of another sweep over the same inputs.

    Attributes
    ----------
    path : str
    title, key : str
    """

    path: str
    title: str
    key: str

    @property
    def reads(self) -> Sequence[str]:
        """The folder of the dump."""
        return (self.path,)

    def open(self) -> Other:
        """Open the dump."""
        return _Dump(self)


def dump_spec(path: str | Path) -> DumpSpec:
    """Describe a dump: a ``.zarr`` of a sweep, or the folder of a sweep with one.

    Raises
    ------
    SweepError
        If there is none.
    ReferenceFileError
        If it cannot be read.
    """
    folder = Path(path).absolute()
    if (folder / DUMP).is_dir():
        folder /= DUMP
    if not (folder.is_dir() and is_data_set_dump(folder)):
        raise SweepError(f"{folder} is no dump of a data set; sweep --dump writes one")
    reference_of_data_set(_input_of(folder, 0))
    # The files of a dump are too large to hash: their sizes and times stand for them.
    facts = [
        f"{file.relative_to(folder)} {file.stat().st_size} {file.stat().st_mtime_ns}"
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    ]
    key = hashlib.sha256("\n".join([str(folder), *facts]).encode()).hexdigest()
    title = folder.parent.name if folder.name == DUMP else folder.name
    return DumpSpec(str(folder), title, key)


def _input_of(dump: Path, index: int) -> Path:
    """Return how a reference names an input of a dump."""
    return dump.with_name(f"{dump.name}:{index}")


class _Dump:
    def __init__(self, spec: DumpSpec) -> None:
        self._path = Path(spec.path)

    def values(self, index: int, inputs: Sequence[Array]) -> Mapping[str, Array]:
        found = self.reference(index, inputs)
        return {tensor.key: tensor.load() for tensor in found.tensors}

    def reference(self, index: int, inputs: Sequence[Array]) -> Reference:  # noqa: ARG002
        return reference_of_data_set(_input_of(self._path, index))
