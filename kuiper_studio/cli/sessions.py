"""Creates and runs the session that a command line asks for."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

from engine.conversion.records import ConversionOptions
from engine.conversion.suffixes import is_source
from engine.errors import EngineError
from engine.ncnn.options import EXACT
from engine.states import SessionState
from engine.text import format_count
from kuiper_studio.cli.arguments import image_options
from kuiper_studio.cli.terminal import complain, progress_shown

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping, Sequence

    from engine.activity import Activity
    from engine.comparison import Reference
    from engine.conversion.records import Conversion
    from engine.inputs import InputSource
    from engine.runtime import RuntimeGraph, RuntimeOperand
    from engine.session import Session
    from engine.values import Array
    from kuiper_studio.cli.arguments import MemoryLimit
    from kuiper_studio.cli.supervisor import Supervision

__all__ = [
    "load_graph",
    "load_user_layers",
    "make_fed_session",
    "make_propagated_session",
    "make_referenced_session",
    "run_session",
    "settle_conversion",
    "tell_notes",
    "tune_session",
]


def load_graph(arguments: argparse.Namespace) -> RuntimeGraph:
    """Load the user's layer files, then the model."""
    import engine

    load_user_layers(arguments)
    path = Path(arguments.model)
    if not is_source(path):
        if arguments.shape2:
            raise EngineError("--shape2 applies only to a .pt or .onnx, which is converted")
        return engine.load(path, arguments.bin)
    graph = engine.load(path, arguments.bin, conversion=settle_conversion(arguments))
    tell_notes(graph.conversion)
    return graph


def settle_conversion(arguments: argparse.Namespace) -> ConversionOptions:
    """Choose the input sizes of a conversion, where the file says none.

    They come from ``--shape``, else from the inputs. The sizes of ``--shape`` are then written
    back in the order of the inputs, because the converted model names its operands otherwise.
    """
    from engine.conversion.inspection import inspect
    from engine.conversion.shapes import settle_inputs
    from engine.fed_sizes import find_sizes
    from engine.inputs import parse_source

    fed = [parse_source(text) for text in getattr(arguments, "input", ())]
    size = getattr(arguments, "size", None)
    source = inspect(Path(arguments.model))
    shapes = find_sizes(source, arguments.shape, fed, size)
    if shapes and arguments.shape:
        settled = settle_inputs(source.inputs, shapes)
        arguments.shape = [",".join(map(str, given.shape or ())) for given in settled]
    return ConversionOptions(shapes, tuple(arguments.shape2))


def tell_notes(conversion: Conversion | None) -> None:
    """Print the notes on a conversion."""
    for note in conversion.notes if conversion is not None else ():
        complain(note)


def load_user_layers(arguments: argparse.Namespace) -> None:
    """Run the user's layer files, in order."""
    if arguments.layers:  # imported here: without the engine's layers the window opens sooner
        from engine.layers import load_layers

        for path in arguments.layers:
            load_layers(path)


def make_fed_session(
    arguments: argparse.Namespace,
    instead: Callable[[Sequence[RuntimeOperand]], Sequence[Array]] | None = None,
) -> Session:
    """Load the model and feed a session with its inputs.

    Where the command line names no inputs, `instead` may return them, by their operands.
    """
    from engine.inputs import (
        load_inputs,
        load_outputs,
        named_outputs,
        parse_source,
        parse_supply,
    )
    from engine.shapes import parse_shapes

    sources = [parse_source(text) for text in arguments.input]
    _require_images(arguments, sources)
    supplies = [parse_supply(text) for text in arguments.supply]
    graph = load_graph(arguments)
    _require_ncnn(arguments, graph)
    operands = graph.input_operands
    shapes = parse_shapes(arguments.shape, operands)
    given: Sequence[Array] = ()
    if instead is not None and not sources:
        given = instead(operands)
    if operands and not sources and not given:
        raise EngineError(f"the model takes {_inputs_text(graph)}: give them with --input")
    session = _make_session(graph, arguments, _backend(arguments), _seed(arguments))
    with session.within_bound():
        session.feed(given or load_inputs(sources, operands, image_options(arguments), shapes))
    for name, source in supplies:
        with session.within_bound():
            session.override_all(load_outputs(source, named_outputs(graph, name)), source.text)
    return session


def make_referenced_session(arguments: argparse.Namespace) -> tuple[Session, Reference | str]:
    """Feed a session to compare with a reference; return it with the reference.

    Where the command line names no inputs, the reference's are fed. A reference that is a model
    is returned as its path: the session's inputs have to be computed first.
    """
    from engine.comparison import open_data
    from engine.exclusions import exclude_in_reference

    data = open_data(arguments.reference)
    supervision: Supervision | None = arguments.supervision
    if data is None and supervision is not None and supervision.fault is not None:
        exclude_in_reference(arguments.reference, supervision.fault)

    def recorded(operands: Sequence[RuntimeOperand]) -> Sequence[Array]:
        return () if data is None else _recorded_inputs(data, operands)

    session = make_fed_session(arguments, recorded)
    return session, arguments.reference if data is None else data


def _recorded_inputs(data: Reference, operands: Sequence[RuntimeOperand]) -> list[Array]:
    """Return a reference's inputs; none where it does not tell them."""
    names = [operand.name for operand in operands]
    # arrays of a file or folder do not say which are inputs: the names tell
    keys = data.inputs or (names if data.by_key.keys() >= set(names) else ())
    inputs = [data.array(key) for key in keys]
    for place, (array, operand) in enumerate(zip(inputs, operands, strict=False)):
        shape = operand.shape or ()
        if shape[:1] == (1,) and array.ndim == len(shape) - 1:  # ncnn records no batch axis
            inputs[place] = array[None]
    return inputs


def _require_images(arguments: argparse.Namespace, sources: Sequence[InputSource]) -> None:
    """Refuse options for images if no input is one: they would do nothing."""
    from engine.inputs import ImageOptions

    if any(source.kind == "image" for source in sources):
        return
    usual, given = ImageOptions(), image_options(arguments)
    for each in fields(ImageOptions):
        if getattr(given, each.name) != getattr(usual, each.name):
            option = each.name.replace("_", "-")
            raise EngineError(f"--{option} applies only to images, and no input is one")


def _require_ncnn(arguments: argparse.Namespace, graph: RuntimeGraph) -> None:
    """Refuse options of ncnn for a model that is not in its format."""
    is_compared = getattr(arguments, "reference", None) is not None  # that one may be of ncnn
    if arguments.ncnn_options == EXACT.text or graph.file.format == "ncnn" or is_compared:
        return
    raise EngineError("--ncnn-options applies only to a model in ncnn's format")


def make_propagated_session(graph: RuntimeGraph, arguments: argparse.Namespace) -> Session:
    """Run a session at the requested input sizes, as far as the operators allow it."""
    from engine.inputs import InputSource, load_inputs
    from engine.shapes import parse_shapes

    operands = graph.input_operands
    zeros = [InputSource("constant", value=0.0)] * len(operands)
    session = _make_session(graph, arguments)
    shapes = parse_shapes(arguments.shape, operands)
    with session.within_bound():
        session.feed(load_inputs(zeros, operands, shapes=shapes))
    run_session(session, len(graph.operators), arguments)
    return session


def run_session(session: Session, count: int, arguments: argparse.Namespace) -> None:
    """Run the first `count` operators."""
    operators = session.graph.operators
    until = operators[count].name if count < len(operators) else None
    with progress_shown("running", "operators") as show:
        session.run(until, lambda record: show(record.index + 1, count))
    supervision: Supervision | None = arguments.supervision
    if supervision is not None:
        supervision.note.clear()  # a crash from here on is not an operator's


def tune_session(session: Session, arguments: argparse.Namespace) -> None:
    """Tune kernels for the seconds of the command line; the next run uses the fastest."""
    if not arguments.tune:
        return
    total = len(session.graph.operators)
    if session.state is not SessionState.FINISHED:
        complain("no kernels are tuned: the run has not reached the end of the model")
        return
    with progress_shown("tuning", "operators") as show:
        session.tune(arguments.tune, lambda: show(session.tuned, total))
    for kernel in session.wrong_kernels:
        complain(f"{kernel} differs from NumPy; later runs do not use it")
    complain(
        f"kernels of {session.tuned} of {format_count(total, 'operator')} are tuned; "
        "later runs use the fastest"
    )
    supervision: Supervision | None = arguments.supervision
    if supervision is not None:
        supervision.note.clear()


def _make_session(
    graph: RuntimeGraph,
    arguments: argparse.Namespace,
    backend: str | Mapping[str, str] = "auto",
    seed: int = 0,
) -> Session:
    import engine
    from engine.runtime.activity import watch

    supervision: Supervision | None = arguments.supervision
    if supervision is not None:
        watch(supervision.note.write)
    limit: MemoryLimit | None = arguments.memory_limit
    return engine.Session(
        graph,
        backend=backend,
        seed=seed,
        memory_limit=limit.nbytes if limit is not None else None,
        memory_bound=arguments.memory_bound,
        ncnn_options=getattr(arguments, "ncnn_options", "exact"),
        excluded=_excluded(graph, supervision.fault if supervision is not None else None),
    )


def _excluded(graph: RuntimeGraph, fault: Activity | None) -> dict[str, frozenset[str]]:
    """Return the libraries to keep out of each operator; remember that of `fault`."""
    from engine.exclusions import ExclusionCache, exclude_library

    cache = ExclusionCache()
    excluded = cache.load_for(graph)
    if excluded:
        names = list(excluded)
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        complain(
            f"operator {names[0]!r}{more} runs without "
            f"{' and '.join(sorted(frozenset().union(*excluded.values())))}, which crashed "
            f"there in an earlier run; remove {cache.path} to allow it again"
        )
    if fault is not None:
        for name in exclude_library(graph, fault):
            excluded[name] = excluded.get(name, frozenset()) | {fault.library}
    return excluded


def _backend(arguments: argparse.Namespace) -> str | Mapping[str, str]:
    import engine

    if arguments.backend_from is None:
        return str(arguments.backend)
    return engine.kernels_of(arguments.backend_from)


def _seed(arguments: argparse.Namespace) -> int:
    """Return the seed of the command line, or that of the dump to reproduce."""
    if arguments.seed is not None or arguments.backend_from is None:
        return arguments.seed or 0
    from engine.dump import seed_of

    return seed_of(arguments.backend_from)


def _inputs_text(graph: RuntimeGraph) -> str:
    from kuiper_studio.cli.report import format_operand

    operands = graph.input_operands
    shapes = [
        f"{o.name} {format_operand(o.shape, o.dtype.name if o.dtype is not None else None)}"
        for o in operands
    ]
    return f"{format_count(len(operands), 'input')} ({', '.join(shapes)})"
