"""The command line: opens the window, or works without a display.

Results go to standard output. What goes wrong goes to standard error in one sentence with
exit status 2, never as a traceback.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from engine.inputs import ImageOptions
    from engine.runtime import RuntimeGraph, RuntimeOperand, RuntimeOperator
    from engine.session import Session
    from engine.values import Array

__all__ = ["main"]

_DONE, _FAILED = 0, 2


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments; those of the process when not given.

    Returns
    -------
    int
        Exit status: 0 done, 2 error.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    commands = _commands()
    named = arguments[:1] and arguments[0] in commands
    parser, run = commands[arguments.pop(0)] if named else (_window_parser(), _open_window)
    try:
        return run(parser.parse_args(arguments))
    except BrokenPipeError:  # the reader of a pipe went away
        sys.stdout = None  # type: ignore[assignment]
        return _DONE
    except (EngineError, OSError, ValueError) as exc:
        sys.stderr.write(f"kuiper-studio: {exc}\n")
        return _FAILED
    except KeyboardInterrupt:
        sys.stderr.write("kuiper-studio: interrupted\n")
        return 130


# Arguments


def _commands() -> dict[
    str, tuple[argparse.ArgumentParser, Callable[[argparse.Namespace], int]]
]:
    return {
        "info": (_info_parser(), _info),
        "run": (_run_parser(), _run),
        "dump": (_dump_parser(), _dump),
        "render": (_render_parser(), _render),
    }


def _parser(command: str, summary: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"kuiper-studio {command}".strip(), description=summary, allow_abbrev=False
    )
    required = {} if not command else {"nargs": None}
    parser.add_argument(
        "model", metavar="MODEL", help="the .param file, or the .bin beside it",
        **(required or {"nargs": "?"}),
    )  # fmt: skip
    parser.add_argument("--bin", metavar="FILE", help="the weights, where not found by itself")
    return parser


def _with_inputs(parser: argparse.ArgumentParser, *, required: bool) -> None:
    group = parser.add_argument_group("inputs")
    group.add_argument(
        "--input", metavar="SOURCE", nargs="+", action="extend", default=[], required=required,
        help="one per input: an image, .npy, .npz, random[:SEED], ones, zeros, constant:VALUE",
    )  # fmt: skip
    group.add_argument(
        "--size", metavar="ROWSxCOLUMNS", help="of pictures; default the model's"
    )
    group.add_argument("--fit", choices=("resize", "crop"), default="resize")
    group.add_argument("--order", choices=("RGB", "BGR"), default="RGB")
    group.add_argument("--scale", default="1/255", help="factor of pixels, e.g. 1/255")
    group.add_argument("--mean", default="0", help="e.g. 0.485,0.456,0.406")
    group.add_argument("--std", default="1", help="e.g. 0.229,0.224,0.225")
    parser.add_argument("--backend", default="auto", help="auto or numpy")
    parser.add_argument("--labels", metavar="FILE", help="class names, one a line")


def _window_parser() -> argparse.ArgumentParser:
    parser = _parser("", "A desktop debugger for neural networks in PNNX form.")
    parser.epilog = (
        "Commands that need no display: info, run, dump, render; "
        "see kuiper-studio COMMAND --help."
    )
    parser.add_argument("--sample", action="store_true", help="open the sample model")
    parser.add_argument("--theme", choices=("system", "light", "dark"))
    parser.add_argument(
        "--demo", metavar="DIR",
        help="without a display: step the model, write its dump and a picture of the window",
    )  # fmt: skip
    _with_inputs(parser, required=False)
    return parser


def _info_parser() -> argparse.ArgumentParser:
    parser = _parser("info", "List operators, shapes, parameters and cost of a model.")
    parser.add_argument("--json", action="store_true", help="for programs")
    return parser


def _run_parser() -> argparse.ArgumentParser:
    parser = _parser("run", "Run a model once and write its outputs.")
    _with_inputs(parser, required=True)
    parser.add_argument("--output", metavar="FILE.npz", help="outputs as out0, out1, …")
    return parser


def _dump_parser() -> argparse.ArgumentParser:
    from engine.dump import FORMATS

    parser = _parser("dump", "Run a model and write the tensors of every operator.")
    _with_inputs(parser, required=True)
    parser.add_argument("--output", metavar="PATH", required=True)
    parser.add_argument("--format", choices=FORMATS, default="folder")
    parser.add_argument(
        "--operators",
        metavar="PATTERN",
        nargs="+",
        help="names, types or indexes, with * and ?",
    )
    parser.add_argument("--weights", action="store_true", help="write the weights too")
    parser.add_argument("--no-inputs", action="store_true", help="leave the inputs out")
    parser.add_argument("--no-outputs", action="store_true", help="leave the operands out")
    parser.add_argument(
        "--statistics-only", action="store_true", help="manifest and summary, no arrays"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace an earlier dump")
    return parser


def _render_parser() -> argparse.ArgumentParser:
    parser = _parser("render", "Draw the graph of a model.")
    parser.add_argument("--output", metavar="FILE.svg|.png", required=True)
    parser.add_argument("--theme", choices=("light", "dark"), default="light")
    return parser


# Work


def _load(arguments: argparse.Namespace) -> RuntimeGraph:
    import engine
    from engine.pnnx import pair

    return engine.load(*pair(arguments.model, arguments.bin))


def image_options(arguments: argparse.Namespace) -> ImageOptions:
    """How pictures become tensors, as the command line says."""
    from engine.inputs import ImageOptions, parse_number

    size = None
    if arguments.size:
        try:
            rows, columns = (int(part) for part in arguments.size.lower().split("x"))
        except ValueError:
            raise ValueError(f"--size {arguments.size} is not like 224x224") from None
        size = (rows, columns)
    return ImageOptions(
        size=size,
        fit=arguments.fit,
        order=arguments.order,
        scale=parse_number(arguments.scale),
        mean=tuple(parse_number(part) for part in arguments.mean.split(",")),
        std=tuple(parse_number(part) for part in arguments.std.split(",")),
    )


def _fed_session(arguments: argparse.Namespace) -> Session:
    import engine
    from engine.inputs import load_inputs, parse_source

    options = image_options(arguments)
    sources = [parse_source(text) for text in arguments.input]
    graph = _load(arguments)
    session = engine.Session(graph, backend=arguments.backend)
    session.feed(load_inputs(sources, graph.input_operands, options))
    return session


def _info(arguments: argparse.Namespace) -> int:
    graph = _load(arguments)
    facts = _facts(graph)
    if arguments.json:
        _say(json.dumps(facts, indent=1, ensure_ascii=False))
        return _DONE
    _say(f"{graph.param_path.name}: {len(graph.operators)} operators, "
         f"{len(graph.operands)} operands, {facts['parameters']:,} parameters, "
         f"{facts['macs'] / 1e6:,.1f} MMAC")  # fmt: skip
    _say(f"weights: {graph.bin_path or 'none, structure only'}")
    rows = [("#", "type", "name", "output", "parameters", "MMAC")]
    for row in facts["operators"]:
        macs = f"{row['macs'] / 1e6:.2f}" if row["macs"] else ""
        count = f"{row['parameters']:,}" if row["parameters"] else ""
        shown = " ".join(_spell(o["shape"], o["dtype"]) for o in row["outputs"])
        rows.append((str(row["index"]), row["type"], row["name"], shown, count, macs))
    _say_table(rows, right={0, 4, 5})
    if graph.unsupported:
        _say(f"\n{len(graph.unsupported)} operators cannot run:")
        for operator in graph.unsupported:
            _say(f"  {operator.index:>4} {operator.reason}")
    return _DONE


def _facts(graph: RuntimeGraph) -> dict[str, Any]:
    from engine.cost import cost

    rows = []
    for operator in graph.operators:
        spent = asdict(cost(operator))
        rows.append({**_operator_facts(operator), **spent})
    return {
        "param": str(graph.param_path),
        "bin": str(graph.bin_path) if graph.bin_path else None,
        "inputs": [_operand_facts(operand) for operand in graph.input_operands],
        "outputs": [_operand_facts(operand) for operand in graph.output_operands],
        "parameters": sum(row["parameters"] for row in rows),
        "macs": sum(row["macs"] for row in rows),
        "flops": sum(row["flops"] for row in rows),
        "unsupported": [
            {"index": op.index, "name": op.name, "type": op.type, "reason": op.reason}
            for op in graph.unsupported
        ],
        "operators": rows,
    }


def _operator_facts(operator: RuntimeOperator) -> dict[str, Any]:
    return {
        "index": operator.index,
        "name": operator.name,
        "type": operator.type,
        "params": {key: _plain(value) for key, value in operator.params.items()},
        "attributes": {
            key: {"shape": attribute.shape, "dtype": attribute.stored_dtype}
            for key, attribute in operator.attributes.items()
        },
        "inputs": [operand.name for operand in operator.inputs],
        "outputs": [_operand_facts(operand) for operand in operator.outputs],
        "reason": operator.reason,
    }


def _operand_facts(operand: RuntimeOperand) -> dict[str, Any]:
    return {
        "name": operand.name,
        "shape": operand.shape,
        "dtype": operand.dtype.name if operand.dtype is not None else None,
    }


def _plain(value: object) -> object:
    """What JSON can hold; it has no complex, infinite or undefined numbers."""
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    if isinstance(value, complex) or (isinstance(value, float) and value - value != 0):
        return str(value)
    return value


def _run(arguments: argparse.Namespace) -> int:
    import numpy as np

    from engine.dump import write_arrays

    session = _fed_session(arguments)
    session.run()
    outputs = session.outputs()
    seconds = sum(record.seconds for record in session.records)
    _say(f"{len(session.records)} operators in {seconds * 1e3:.1f} ms")
    arrays = {f"out{index}": np.asarray(value) for index, value in enumerate(outputs)}
    for name, array in arrays.items():
        _say(f"{name}: {_spell(array.shape, array.dtype.name)}")
        for line in _top(array, arguments.labels):
            _say(f"  {line}")
    if arguments.output:
        write_arrays(Path(arguments.output), arrays)
        _say(f"written to {arguments.output}")
    return _DONE


def _top(array: Array, labels_path: str | None) -> list[str]:
    """The five best classes, where a labels file fits the output."""
    import numpy as np

    from engine.inputs import read_labels

    if labels_path is None:
        return []
    labels = read_labels(Path(labels_path))
    if array.size != len(labels):
        return []
    scores = array.ravel()
    best = np.argsort(-scores, kind="stable")[:5]
    return [f"{scores[index]:10.4f}  {labels[index]}" for index in best]


def _dump(arguments: argparse.Namespace) -> int:
    from engine.dump import DumpOptions, select_operators, write_dump

    options = DumpOptions(
        format=arguments.format,
        operators=tuple(arguments.operators) if arguments.operators else None,
        inputs=not arguments.no_inputs,
        outputs=not arguments.no_outputs,
        weights=arguments.weights,
        statistics_only=arguments.statistics_only,
        overwrite=arguments.overwrite,
    )
    session = _fed_session(arguments)
    select_operators(session.graph, options.operators)  # a wrong name is told before the run
    failure: EngineError | None = None
    try:
        session.run()
    except EngineError as exc:
        failure = exc  # what ran before is worth having
    written = write_dump(session, Path(arguments.output), options)
    _say(f"written to {written}")
    if failure is not None:
        raise failure
    return _DONE


def _render(arguments: argparse.Namespace) -> int:
    graph = _load(arguments)
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    from kuiper_studio.app import make_application
    from kuiper_studio.graph_view.render import render_graph
    from kuiper_studio.theme import Scheme, Theme

    application = make_application()
    theme = Theme(Scheme(arguments.theme))
    theme.apply(application)
    drawn = render_graph(graph, Path(arguments.output), theme)
    _say(f"written to {arguments.output} {drawn.note}".rstrip())
    return _DONE


def _open_window(arguments: argparse.Namespace) -> int:
    from kuiper_studio.app import run_demo, run_window

    options = image_options(arguments)
    start = run_demo if arguments.demo else run_window
    return start(arguments, options)


# Printing


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def _say_table(rows: Sequence[Sequence[str]], right: set[int]) -> None:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        cells = [
            cell.rjust(width) if column in right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        _say("  ".join(cells).rstrip())


def _spell(shape: Sequence[object] | None, dtype: str | None) -> str:
    if shape is None:
        return "?"
    dims = "×".join("?" if dim is None else str(dim) for dim in shape) or "scalar"
    return f"{dims} {dtype}" if dtype else dims
