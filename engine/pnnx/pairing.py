"""Opens pairs, and finds the other file of a pair by content.

A weight is the entry ``operator.attribute`` of the ``.bin``. A pair matches if every weight of
the ``.param`` is in the ``.bin`` with its size. The file of the same name is tried first; of
the others in the folder exactly one must match.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from engine.errors import ModelFileError
from engine.paths import beside, files_with_suffix
from engine.pnnx.archive import Archive
from engine.pnnx.diagnosis import line_of_operator
from engine.pnnx.graph import Graph
from engine.pnnx.prescan import prescan
from engine.pnnx.reader import Reader

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from engine.file_versions import FileVersion
    from engine.pnnx.attribute import Attribute, WeightArchive

__all__ = [
    "choose",
    "find_param",
    "find_weights",
    "load",
    "load_copy",
    "pair",
    "siblings",
]

_SHOWN: Final = 5  # names of files in a sentence
_LONG: Final = 2000  # lines; what is made in a few milliseconds need not be deferred
_PARAM_SUFFIXES: Final = (".param", ".pnnx.param", ".ncnn.param")
_NONE: Final = (0, 0)  # offset and bytes of a weight that is not in the archive


def load(
    param_path: str | Path,
    bin_path: str | Path | None = None,
    copy: tuple[bytes, FileVersion] | None = None,
) -> Graph:
    """Read a pair.

    Parameters
    ----------
    param_path : path
        The ``.param`` file.
    bin_path : path, optional
        The ``.bin`` file; found by its content beside `param_path` when not given. When
        there is none the graph has its structure only.
    copy : tuple of bytes and FileVersion, optional
        Contents and version of the ``.param``, where they were read already.

    Returns
    -------
    Graph
        Its weights are read when they are first asked for, those of a small ``.bin`` at
        once. What was read stays as it is, whatever becomes of the files.

    Raises
    ------
    ModelFileError
        With path, line and reason, if a file cannot be read or the two do not fit, or if one
        is written meanwhile.
    """
    model = _Structure(Path(param_path), copy)
    if bin_path is None:
        return model.graph(model.find_weights())
    archive = Archive(Path(bin_path))
    if misfit := model.misfit(archive):
        raise misfit
    return model.graph(archive)


def load_copy(
    param_path: Path, copy: tuple[bytes, FileVersion], archive: WeightArchive | None
) -> Graph:
    """Make the graph of a pair that another process has read, without reading files.

    Parameters
    ----------
    param_path : Path
    copy : tuple of bytes and FileVersion
        Contents and version of the ``.param``.
    archive : WeightArchive or None
        Source of the weights.
    """
    return _Structure(param_path, copy).bound_to(archive)


def find_weights(param_path: str | Path) -> Path | None:
    """Find the ``.bin`` of a ``.param`` in the same folder.

    Parameters
    ----------
    param_path : path

    Returns
    -------
    Path or None
        None where no file fits and none has the same name.

    Raises
    ------
    ModelFileError
        If the ``.param`` cannot be read, if only a ``.bin`` of the same name is there and
        does not fit, or if several others do.
    """
    archive = _Structure(Path(param_path)).find_weights()
    return archive.path if archive is not None else None


def find_param(bin_path: str | Path) -> Path | None:
    """Find the ``.param`` of a ``.bin`` in the same folder.

    Parameters
    ----------
    bin_path : path

    Returns
    -------
    Path or None
        None where no file fits and none has the same name. One of another name must list
        all that is in the ``.bin``.

    Raises
    ------
    ModelFileError
        If the ``.bin`` cannot be read, if only a ``.param`` of the same name is there and
        does not fit, or if several others do.
    """
    archive = Archive(Path(bin_path))
    own = beside(archive.path, ".param")
    failure = _failure_of_param(own, archive) if own.is_file() else None
    if own.is_file() and failure is None:
        return own
    fitting = [
        path
        for path in siblings(archive.path, own)
        if _failure_of_param(path, archive, complete=True) is None
    ]
    if not fitting and failure is not None:
        raise failure
    return choose(fitting, archive.path)


def pair(path: str | Path, bin_path: str | Path | None = None) -> tuple[Path, Path | None]:
    """Find the pair of a path, which may be either file or a folder.

    Parameters
    ----------
    path : path
        A ``.param``, with its suffixes or without; a folder with one in it; when `bin_path` is
        not given, also a ``.bin``.
    bin_path : path, optional

    Returns
    -------
    (Path, Path or None)
        Arguments of `load`.

    Raises
    ------
    ModelFileError
        If `path` is a ``.bin`` that no ``.param`` beside it fits, or a folder that holds
        no ``.param`` or several.
    """
    given = _complete(Path(path))
    if bin_path is not None:
        return given, Path(bin_path)
    if given.suffix.lower() != ".bin":
        return given, None
    param = find_param(given)
    if param is None:
        raise ModelFileError(
            given, "no .param file in its folder lists these weights; open the .param instead"
        )
    return param, given


def _complete(given: Path) -> Path:
    """The file that a folder, or a name without suffixes, stands for."""
    if given.is_dir():
        return _only_param(given)
    if not given.exists():
        for suffix in _PARAM_SUFFIXES:
            longer = given.with_name(f"{given.name}{suffix}") if given.name else given
            if longer.is_file():
                return longer
    return given


class _Structure:
    """A ``.param`` file and the weights that it lists; a long one is parsed later."""

    def __init__(self, path: Path, copy: tuple[bytes, FileVersion] | None = None) -> None:
        self._path = path
        self._reader = Reader(path, copy)
        self._lines = self._reader.lines
        self._graph: Graph | None = None
        self._weights: list[tuple[str, Attribute]] = []
        # bytes of the weights by the names of their entries
        sizes = prescan(self._reader) if len(self._lines) > _LONG else None
        if sizes is None:
            self._graph = self._reader.read()
            self._weights = list(self._graph.weights())
            sizes = {name: attribute.nbytes for name, attribute in self._weights}
        self._sizes = sizes
        self.needs_weights = any(sizes.values())

    def graph(self, archive: Archive | None) -> Graph:
        """Return the graph with matching weights."""
        if archive is not None:
            archive.keep()
            if not self._reader.version.is_current():  # maybe of two models
                raise ModelFileError(
                    self._path, "it changed while it was opened; open it again"
                )
        return self.bound_to(archive)

    def bound_to(self, archive: WeightArchive | None) -> Graph:
        """The graph with these weights."""
        graph = self._graph
        if graph is None:
            graph = Graph.deferred(lambda: self._read(archive))
        else:
            _bind(self._weights, archive)
        graph.has_weights = archive is not None or not self.needs_weights
        graph.archive, graph.param_version = archive, self._reader.version
        return graph

    def _read(self, archive: WeightArchive | None) -> Graph:
        graph = self._reader.read()
        _bind(graph.weights(), archive)
        return graph

    def find_weights(self) -> Archive | None:
        """Choose among the ``.bin`` files of the folder."""
        own = beside(self._path, ".bin")
        first = self._try(own) if own.is_file() else None
        if isinstance(first, Archive) or not self.needs_weights:
            return first if isinstance(first, Archive) else None
        others = map(self._try, siblings(self._path, own))
        fitting = {other.path: other for other in others if isinstance(other, Archive)}
        if not fitting and first is not None:
            raise first
        chosen = choose(list(fitting), self._path)
        return fitting[chosen] if chosen is not None else None

    def misfit(self, archive: Archive) -> ModelFileError | None:
        """Return why an archive does not match; None if it does."""
        wrong = [
            name
            for name, nbytes in self._sizes.items()
            if archive.entries.get(name, _NONE)[1] != nbytes
        ]
        if not wrong:
            return None
        missing = [name for name in wrong if name not in archive.entries]
        if missing:
            return ModelFileError(
                archive.path,
                f"{len(missing)} of the {len(self._sizes)} weights of {self._path.name} are "
                f"not in it, such as {missing[0]!r}; it belongs to another model, use the .bin "
                "that was exported with it",
            )
        operator, key = self._owner(wrong[0])
        return ModelFileError(
            self._path,
            f"weight @{key} takes {self._sizes[wrong[0]]} bytes and has "
            f"{archive.entries[wrong[0]][1]} in {archive.path.name}; it belongs to another "
            "version of the model, use the .bin that was exported with this file",
            line_of_operator(self._lines, operator),
        )

    def lists_all_of(self, archive: Archive) -> bool:
        """Return whether the graph has every entry of the archive."""
        return archive.entries.keys() <= self._sizes.keys()

    def _owner(self, entry: str) -> tuple[str, str]:
        """Operator and key of a weight."""
        graph = self._graph or self._reader.read()
        return next(
            (operator.name, key)
            for operator in graph.operators
            for key in operator.attrs
            if f"{operator.name}.{key}" == entry
        )

    def _try(self, path: Path) -> Archive | ModelFileError:
        try:
            archive = Archive(path)
        except ModelFileError as exc:
            return exc
        return self.misfit(archive) or archive


def _bind(weights: Iterable[tuple[str, Attribute]], archive: WeightArchive | None) -> None:
    """Connect weights to their bytes."""
    if archive is not None:
        for name, attribute in weights:
            attribute.bind(archive, archive.entries.get(name, _NONE)[0])


def _failure_of_param(
    path: Path, archive: Archive, *, complete: bool = False
) -> ModelFileError | None:
    """Return why a ``.param`` does not match an archive; None if it does."""
    try:
        model = _Structure(path)
    except ModelFileError as exc:
        return exc
    if complete and not model.lists_all_of(archive):
        return ModelFileError(path, f"it does not list all that is in {archive.path.name}")
    return model.misfit(archive)


def siblings(path: Path, own: Path) -> list[Path]:
    """Return other files of the folder with the suffix of `own`."""
    return [other for other in files_with_suffix(path.parent, own.suffix) if other != own]


def choose(fitting: Sequence[Path], path: Path) -> Path | None:
    """Return the matching file; of several the one with the same name up to the first dot.

    Parameters
    ----------
    fitting : sequence of Path
    path : Path
        The other file of the pair.

    Returns
    -------
    Path or None
        None if `fitting` is empty.

    Raises
    ------
    ModelFileError
        If several match.
    """
    stem = path.name.partition(".")[0]
    for files in (fitting, [other for other in fitting if other.name.startswith(f"{stem}.")]):
        if len(files) == 1:
            return files[0]
    if not fitting:
        return None
    raise ModelFileError(
        path, f"several files in its folder match it: {_names(fitting)}; choose one"
    )


def _only_param(folder: Path) -> Path:
    # pnnx writes NAME.ncnn.param beside its own file.
    every = files_with_suffix(folder, ".param")
    found = [p for p in every if not p.name.lower().endswith(".ncnn.param")] or every
    if len(found) != 1:
        raise ModelFileError(
            folder,
            f"a folder with one .param is needed, this has {_names(found) or 'none'}; open a "
            "file instead",
        )
    return found[0]


def _names(paths: Sequence[Path]) -> str:
    shown = [path.name for path in paths[:_SHOWN]]
    return ", ".join(shown) + (f" and {len(paths) - _SHOWN} more" if paths[_SHOWN:] else "")
