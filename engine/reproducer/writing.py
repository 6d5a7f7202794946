"""Writes the folder of a reproducer, completely or not at all."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Final

from engine.array_files import write_npz
from engine.atomic import format_os_error, written_beside
from engine.comparison import compare, open_reference_for
from engine.comparison.references.sessions import run_to_end
from engine.dump import clean_name, select_operators
from engine.errors import DumpExistsError, ExportError
from engine.pnnx import save
from engine.reproducer.extraction import extract, output_names
from engine.text import format_count

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from engine.comparison import Reference
    from engine.reproducer.extraction import Extract
    from engine.runtime import RuntimeGraph, RuntimeOperator
    from engine.session import Session
    from engine.values import Value

__all__ = ["write_reproducer"]

_STEM: Final = "reproducer.pnnx"
_README: Final = """# Reproducer

{count} of `{model}`: {types}. `inputs.npz` has their inputs, `expected.npz`
their expected outputs.

    python check.py

compares the expected outputs with those of NumPy, which computes the common types, and of
Kuiper Studio, PyTorch and ncnn, as far as they are installed. It needs only NumPy. Exit status:
0 the same, 1 differences, 2 nothing could be checked.
{layers}"""
_LAYERS: Final = """
Layers of {files} are not in this folder; give them with `python check.py --layers FILE`.
"""


def write_reproducer(
    session: Session,
    operators: Sequence[str],
    folder: str | Path,
    *,
    expected: Mapping[str, Value] | None = None,
    reference: Reference | Session | RuntimeGraph | str | Path | None = None,
    overwrite: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Path:
    """Write some operators as a small model, with inputs, expected outputs and a check.

    Parameters
    ----------
    session : Session
        It has computed at least the inputs of the operators; its values are the expected
        outputs.
    operators : sequence of str
        Names, types or execution indexes, with ``*`` and ``?``. Their constants are included;
        all other operands that they read become inputs.
    folder : path
        Destination.
    expected : mapping of str to array_like, or to tuple of array_like, optional
        Other expected outputs, by operand, for example of another program. An operator that
        failed needs them, or a reference.
    reference : Reference, or what `engine.open_reference` takes, optional
        Its tensors are the expected outputs that `expected` does not name. The whole model is
        compared with it.
    overwrite : bool, optional
        Replace an existing reproducer.
    progress : callable, optional
        Of that comparison; see `engine.compare`.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    UnknownNameError
        If a pattern matches no operator.
    ExportError
        If the operators cannot be extracted (a value is missing, an operator is random, the
        reference lacks an output), or the folder cannot be written; no partial folder remains.
    ReferenceFileError, DumpFileError
        If the reference cannot be read.
    ModelFileError
        If the weights cannot be read.
    """
    destination = Path(folder)
    _check_destination(destination, overwrite=overwrite)
    selected = select_operators(session.graph, operators)
    if reference is not None:
        expected = _of_reference(session, selected, reference, expected or {}, progress)
    found = extract(session, selected, expected)
    if not session.graph.has_weights and any(op.attrs for op in found.graph.operators):
        raise ExportError(
            "there are no weights to write: the model was opened without its .bin"
        )
    try:
        with written_beside(destination, replace=overwrite) as partial:
            partial.mkdir()
            save(found.graph, partial / f"{_STEM}.param", partial / f"{_STEM}.bin")
            write_npz(partial / "inputs.npz", found.inputs.items())
            write_npz(partial / "expected.npz", found.expected.items())
            (partial / "README.md").write_text(_readme(session, found), encoding="utf-8")
            (partial / "check.py").write_text(_script(), encoding="utf-8")
    except FileExistsError as exc:
        raise _exists(destination) from exc
    except (OSError, MemoryError) as exc:
        reason = format_os_error(exc) if isinstance(exc, OSError) else "not enough memory"
        raise ExportError(f"{destination} was not written: {reason}") from exc
    return destination


def _of_reference(
    session: Session,
    selected: Sequence[RuntimeOperator],
    reference: Reference | Session | RuntimeGraph | str | Path,
    given: Mapping[str, Value],
    progress: Callable[[int, int], None] | None,
) -> dict[str, Value]:
    """Return the given values, and those of a reference for the other outputs."""
    names = output_names(session, selected)
    run = run_to_end(session, progress)
    opened = open_reference_for(run, reference, progress)
    comparison = compare(run, opened, progress=progress)
    found = dict(given)
    for name in names:
        if name not in found:
            value = comparison.expected(name, opened)
            if value is None:
                raise ExportError(
                    f"{opened.title} has no tensor for operand {name}; match it by hand, or "
                    "give its expected value"
                )
            found[name] = value
    return found


def _check_destination(path: Path, *, overwrite: bool) -> None:
    if not path.parent.is_dir():
        raise ExportError(f"{path.parent} is not a folder; create it, or choose another one")
    if not path.exists():
        return
    if not path.is_dir():
        raise ExportError(f"{path} is a file; name a folder")
    names = {entry.name for entry in path.iterdir()}
    if names and not overwrite:
        raise _exists(path)
    foreign = sorted(names - _FILES)
    if foreign:
        raise ExportError(
            f"{path} holds {foreign[0]!r}, which does not belong to a reproducer; choose "
            "another folder, or move it away"
        )


_FILES: Final = frozenset(
    [f"{_STEM}.param", f"{_STEM}.bin", "inputs.npz", "expected.npz", "README.md", "check.py"]
)


_PASTED: Final = re.compile(
    r"^from engine\.reproducer\.numpy_operators import .*\n", re.MULTILINE
)


def _exists(path: Path) -> DumpExistsError:
    return DumpExistsError(f"{path} already exists; choose another or overwrite it")


def _script() -> str:
    """Return the script that checks, with the functions of NumPy pasted in."""
    folder = resources.files("engine.reproducer")
    script = (folder / "check_script.py").read_text(encoding="utf-8")
    functions = (folder / "numpy_operators.py").read_text(encoding="utf-8")
    pasted = functions.split('"""', 2)[2].strip() + "\n"  # without its docstring
    return _PASTED.sub(lambda _: pasted, script, count=1)


def _readme(session: Session, found: Extract) -> str:
    types = sorted({_word(operator.type) for operator in found.operators})
    files = sorted({clean_name(op.layer_file.name) for op in found.operators if op.layer_file})
    return _README.format(
        count=format_count(len(found.operators), "operator"),
        model=clean_name(session.graph.param_path.name),
        types=", ".join(f"`{name}`" for name in types),
        layers=_LAYERS.format(files=", ".join(f"`{name}`" for name in files)) if files else "",
    )


def _word(kind: str) -> str:
    """Return a type without Markdown's special characters."""
    return re.sub(r"[^\w.:]", "_", kind)
