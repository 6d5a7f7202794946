"""Runs the commands, and turns their errors into one sentence and an exit status."""

from __future__ import annotations

import gc
import json
import os
import sys
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Final

from engine.atomic import format_os_error, written_beside
from engine.backend_names import require_installed
from engine.collector import collector_paused
from engine.conversion.suffixes import is_source
from engine.errors import (
    ConversionError,
    DumpExistsError,
    EngineError,
    ExportError,
    OpenShapeError,
)
from engine.leftovers import find_leftovers
from engine.text import format_count
from kuiper_studio.cli.arguments import (
    PARSERS,
    PICTURE_FORMATS,
    UsageError,
    image_options,
    window_parser,
)
from kuiper_studio.cli.commands import DIFFERENT, DONE, FAILED
from kuiper_studio.cli.sessions import (
    load_graph,
    load_user_layers,
    make_fed_session,
    make_propagated_session,
    make_referenced_session,
    run_session,
    settle_conversion,
    tell_notes,
    tune_session,
)
from kuiper_studio.cli.terminal import (
    OutputError,
    Terminated,
    complain,
    ended_by_signals,
    flush,
    forget_output,
    prepare,
    progress_shown,
    say,
)
from kuiper_studio.plain_imports import import_plainly

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping, Sequence

    from engine.conversion.records import Conversion
    from engine.dump import DumpOptions
    from engine.runtime import RuntimeGraph, RuntimeOperator
    from engine.session import Session
    from kuiper_studio.cli.supervisor import Supervision

__all__ = ["main"]


def main(argv: Sequence[str] | None = None, supervision: Supervision | None = None) -> int:
    """Run a command line in this process.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments; those of the process when not given.
    supervision : Supervision, optional
        By the parent process, if there is one.

    Returns
    -------
    int
        Exit status: 0 done, 1 differences, 2 error, 128 and more ended by a signal.
    """
    prepare()
    try:
        status = _dispatch(list(sys.argv[1:] if argv is None else argv), supervision)
        flush()
    except BrokenPipeError:  # the reader of a pipe has closed it
        forget_output()
        return DONE
    except KeyboardInterrupt as exc:
        complain("interrupted")
        return 128 + (exc.number if isinstance(exc, Terminated) else 2)
    except UsageError as exc:
        complain(str(exc))
        return FAILED
    except OutputError as exc:
        forget_output()
        complain(str(exc))
        return FAILED
    except Exception as exc:
        if sys.flags.dev_mode:
            raise
        complain(_sentence(exc))
        return FAILED
    return status


def _dispatch(arguments: list[str], supervision: Supervision | None) -> int:
    if arguments and arguments[0] in _COMMANDS:
        name = arguments[0]
        parsed = PARSERS[name]().parse_args(arguments[1:])
        parsed.supervision = supervision
        with ended_by_signals():
            _report_leftovers()
            return _COMMANDS[name](parsed)
    return _open_window(window_parser().parse_args(arguments))


def _report_leftovers() -> None:
    """Print where to find the earlier files of writes that a killed process left unfinished."""
    for leftover in find_leftovers():
        earlier, holder = (quote(str(p)) for p in (leftover.earlier, leftover.holder))
        place = leftover.destination
        restoring = "move it where you want it"
        if not place.exists():
            restoring = f"mv {earlier} {quote(str(place))} restores it"
        complain(
            f"a process was killed while it replaced {place}; the earlier version is in "
            f"{earlier}: {restoring}, rm -r {holder} removes it for good"
        )


def _sentence(error: Exception) -> str:
    if isinstance(error, OpenShapeError):
        options = " ".join(f"--shape {text}" for text in error.suggestions)
        return f"{error}, e.g. {options}"
    if isinstance(error, DumpExistsError):
        return f"{error} with --overwrite"
    if isinstance(error, EngineError):
        return str(error)
    if isinstance(error, OSError):
        place = f"{error.filename}: " if error.filename is not None else ""
        return f"{place}{format_os_error(error)}"
    if isinstance(error, MemoryError):
        return "not enough memory"
    kind = type(error).__name__
    return (
        f"an unexpected {kind}: {error}; please report it with the traceback that "
        "python -X dev -m kuiper_studio shows"
    )


# Commands


def _info(arguments: argparse.Namespace) -> int:
    from kuiper_studio.cli.report import model_facts, say_facts

    for name in ("memory_limit", "memory_bound"):
        if getattr(arguments, name) is not None and not arguments.shape:
            option = name.replace("_", "-")
            raise EngineError(f"--{option} of info applies only with --shape, which runs it")
    graph = load_graph(arguments)
    session = make_propagated_session(graph, arguments) if arguments.shape else None
    if arguments.json:
        _say_json(model_facts(graph, session))
    else:
        say_facts(graph, session)
    return DONE


def _run(arguments: argparse.Namespace) -> int:
    from engine.dump import write_arrays
    from engine.inputs import read_labels
    from kuiper_studio.cli.meaning import meaning_facts, read_meaning, say_meaning
    from kuiper_studio.cli.run import find_outputs, run_facts, say_run

    if arguments.output is not None:
        _check_output(Path(arguments.output), (".npz",))
    labels = read_labels(Path(arguments.labels)) if arguments.labels is not None else ()
    session = make_fed_session(arguments)
    run_session(session, len(session.graph.operators), arguments)
    tune_session(session, arguments)
    missing = _not_executed(session, [op for op in session.graph.operators if op.is_output])
    if missing:
        raise EngineError(f"the model did not run to its end: {_reason(session, missing[0])}")
    outputs = find_outputs(session, labels)
    meaning = read_meaning(session, arguments, labels)
    if not arguments.json:
        say_run(session, outputs, labels)
        say_meaning(meaning)
    if labels and all(output.scores is None for output in outputs):
        names = format_count(len(labels), "name")
        tell = complain if arguments.json else say
        tell(f"{arguments.labels} has {names}, but no output has as many values")
    if arguments.output is not None:
        arrays = {each.name: each.array for each in outputs if each.array is not None}
        write_arrays(Path(arguments.output), arrays)
    if arguments.json:
        facts = run_facts(session, outputs, labels, arguments.output)
        _say_json(facts | meaning_facts(meaning))
    elif arguments.output is not None:
        say(f"written to {arguments.output}")
    return DONE


def _dump(arguments: argparse.Namespace) -> int:
    from engine.dump import select_operators, write_dump

    options = _dump_options(arguments)
    output = Path(arguments.output)
    session = make_fed_session(arguments)
    graph = session.graph
    selected = select_operators(graph, options.operators)  # reports wrong names before the run
    _check_dump(output, session, options)
    fed = [operator for operator in graph.operators if operator.is_input]
    wanted = list(dict.fromkeys([*fed, *(selected if options.outputs else ())]))
    failure: EngineError | None = None
    last = max((operator.index for operator in wanted), default=-1)
    try:
        run_session(session, last + 1, arguments)
        tune_session(session, arguments)
    except EngineError as exc:
        failure = exc  # still write what ran before
    with progress_shown("writing", "tensors") as show:
        written = write_dump(session, output, options, show)
    say(f"written to {written}")
    if failure is not None:
        raise failure
    missing = _not_executed(session, wanted)
    if missing:
        raise EngineError(
            f"the dump lacks {len(missing)} of {format_count(len(wanted), 'operator')}: "
            f"{_reason(session, missing[0])}"
        )
    return DONE


def _reproduce(arguments: argparse.Namespace) -> int:
    from engine.dump import select_operators
    from engine.errors import InferenceError
    from engine.numpy_files import read_npz
    from engine.reproducer import write_reproducer

    if arguments.reference is not None:
        session, reference = make_referenced_session(arguments)
    else:
        session, reference = make_fed_session(arguments), None
    patterns = _separate(session.graph, arguments.operators)
    selected = select_operators(session.graph, patterns)  # reports wrong names before the run
    expected = None
    if arguments.expected is not None:
        expected = read_npz(
            Path(arguments.expected), lambda names: {name: name for name in names}
        )
    whole = len(session.graph.operators)
    count = max(op.index for op in selected) + 1 if reference is None else whole
    with suppress(InferenceError):  # the inputs of the failed operator may be all it takes
        run_session(session, count, arguments)
    with progress_shown("comparing", "operators") as show:
        written = write_reproducer(
            session,
            patterns,
            arguments.output,
            expected=expected,
            reference=reference,
            overwrite=arguments.overwrite,
            progress=show,
        )
    say(f"written to {written}; run python check.py in that folder")
    return DONE


def _separate(graph: RuntimeGraph, patterns: Sequence[str]) -> list[str]:
    """Separate patterns at commas, except in the name of an operator."""
    names = {operator.name for operator in graph.operators}
    return [
        part
        for pattern in patterns
        for part in ([pattern] if pattern in names else filter(None, pattern.split(",")))
    ]


def _check(arguments: argparse.Namespace) -> int:
    from engine.self_check import self_check
    from kuiper_studio.cli.check import check_facts, say_check

    session = make_fed_session(arguments)
    with progress_shown("checking", "operators") as show:
        found = self_check(session, arguments.tolerance, show)
    if arguments.json:
        _say_json(check_facts(found))
    else:
        say_check(found, everything=arguments.all)
    if arguments.tune and not found.differing:
        tuned = session.fork("auto")
        run_session(tuned, len(tuned.graph.operators), arguments)
        tune_session(tuned, arguments)
    if found.differing:
        return DIFFERENT
    if found.error is not None:
        raise found.error
    if found.not_run:
        count = format_count(len(found.not_run), "operator was", "operators were")
        raise EngineError(f"{count} not checked: {found.obstacle}")
    return DONE


def _precision(arguments: argparse.Namespace) -> int:
    from engine.precision import choose_float32, simulate_precision
    from kuiper_studio.cli.precision import precision_facts, say_precision

    session = make_fed_session(arguments)
    kept = None
    with progress_shown("simulating", "steps") as show:
        if arguments.keep is None:
            (found,) = simulate_precision(session, (arguments.format,), progress=show)
        else:
            kept = choose_float32(session, arguments.format, arguments.keep, progress=show)
            found = kept.simulation
    if arguments.json:
        _say_json(precision_facts(found, kept))
    else:
        say_precision(found, kept)
    return DONE if kept is None or kept.reached else DIFFERENT


def _convert(arguments: argparse.Namespace) -> int:
    from engine.conversion.failures import find_ncnn_losses

    conversion = _make_conversion(arguments)
    losses = find_ncnn_losses(conversion.log)
    if not arguments.json:
        for line in conversion.log:
            say(line)
        tell_notes(conversion)
        if losses:
            complain(losses)
    try:
        written = conversion.copy_to(Path(arguments.output), overwrite=arguments.overwrite)
    except FileExistsError as exc:
        raise ExportError(f"{exc}; choose another folder or use --overwrite") from exc
    if arguments.json:
        notes = [*conversion.notes, *filter(None, [losses])]
        files = [str(path) for path in written]
        _say_json({"written": files, "notes": notes, "log": list(conversion.log)})
        return DONE
    for path in written:
        say(f"written to {path}")
    return DONE


def _make_conversion(arguments: argparse.Namespace) -> Conversion:
    """Convert a model as it is opened, perhaps with fewer joined operators."""
    from engine.conversion.convert import convert
    from engine.runtime import load

    asked = tuple(arguments.shape)
    options = settle_conversion(arguments)
    if asked:  # --shape overrides the sizes in the file
        options = replace(options, shapes=asked)
    try:
        found = None
        if is_source(Path(arguments.model)):
            found = load(arguments.model, conversion=options).conversion
        return found or convert(arguments.model, options)
    except ConversionError as exc:
        for line in () if arguments.json else exc.log:
            say(line)
        raise


def _compare(arguments: argparse.Namespace) -> int:
    from engine.comparison import Tolerances, compare, open_reference_for
    from engine.errors import InferenceError
    from engine.inputs import parse_source, source_images
    from kuiper_studio.cli.compare import say_comparison

    if arguments.report is not None:
        _check_output(Path(arguments.report), (".html",))
    session, source = make_referenced_session(arguments)
    ended = ""
    try:
        run_session(session, len(session.graph.operators), arguments)
    except InferenceError as exc:
        ended = str(exc)  # the operators that ran can still be compared
    else:
        outputs = [operator for operator in session.graph.operators if operator.is_output]
        for operator in _not_executed(session, outputs)[:1]:
            ended = _reason(session, operator)
    reference = open_reference_for(session, source)
    tolerances = Tolerances(float32=arguments.tolerance)
    sources = [parse_source(text) for text in arguments.input]
    images = source_images(sources, session.graph.input_operands, image_options(arguments))
    with progress_shown("comparing", "operators") as show:
        found = compare(session, reference, tolerances, images=images, progress=show)
    if arguments.json:
        _say_json(found.to_json())
    else:
        if ended:
            say(f"the model did not run to its end: {ended}")
        say_comparison(found, everything=arguments.all)
    if arguments.report is not None:
        from engine.comparison.report import write_report

        command = ["kuiper-studio", *sys.argv[1:]]
        written = write_report(found, session, reference, arguments.report, command=command)
        if not arguments.json:
            say(f"written to {written}")
    return DONE if found.verdict == "same" else DIFFERENT


def _sweep(arguments: argparse.Namespace) -> int:
    from kuiper_studio.cli.sweep import run_sweep, say_sweep, sweep_facts

    found, studies = run_sweep(arguments)
    if arguments.json:
        _say_json(sweep_facts(found, studies))
    else:
        say_sweep(found, studies)
    return DONE if studies.reached else DIFFERENT


def _recorder(arguments: argparse.Namespace) -> int:
    from engine.comparison.recorders import recorder_script

    output = Path(arguments.output or f"{arguments.library}_recorder.py")
    _check_output(output, (".py",))
    with written_beside(output) as partial:
        partial.write_text(recorder_script(arguments.library), encoding="utf-8")
    say(f"written to {output}; its first lines explain how to use it")
    return DONE


def _render(arguments: argparse.Namespace) -> int:
    output = Path(arguments.output)
    form = _form_of_graph(output, arguments.format)
    if arguments.shape and not is_source(Path(arguments.model)):
        raise EngineError(
            "--shape of render applies only to a .pt or .onnx, for its conversion"
        )
    graph = load_graph(arguments)
    _spare_model(output, graph)
    os.environ["QT_QPA_PLATFORM"] = "offscreen"  # overrides a setting that needs a display
    from kuiper_studio.app import make_application
    from kuiper_studio.graph_view.render import Size, render_graph, write_layout
    from kuiper_studio.resource_paths import load_fonts
    from kuiper_studio.theme import Scheme, Theme

    make_application()
    load_fonts()
    if form not in PICTURE_FORMATS:
        if arguments.scale is not None or arguments.width is not None:
            raise ExportError("--scale and --width apply only to pictures")
        write_layout(graph, output, form, arguments.orientation)
        say(f"written to {output}, {format_count(len(graph.operators), 'operator')}")
        return DONE
    theme = Theme(Scheme(arguments.theme))
    with progress_shown("drawing", "stages") as show:
        rendered = render_graph(
            graph, output, theme, arguments.orientation, form=form, progress=show,
            size=Size(arguments.scale, arguments.width),
        )  # fmt: skip
    say(f"written to {rendered.path}, {rendered.width}×{rendered.height}")
    if rendered.note:
        say(rendered.note)
    return DONE


def _ops(arguments: argparse.Namespace) -> int:
    from kuiper_studio.cli.operator_types import find_notes, note_facts, say_note, say_notes

    load_user_layers(arguments)
    notes = find_notes(arguments.types)
    if arguments.json:
        _say_json([note_facts(note) for note in notes])
    elif arguments.types and len(notes) == 1:
        say_note(notes[0])
    else:
        say_notes(notes)
    return DONE


def _open_window(arguments: argparse.Namespace) -> int:
    if arguments.version:
        from importlib.metadata import version

        say(f"kuiper-studio {version('kuiper-studio')}")
        return DONE
    from kuiper_studio.engine_service.transport import start_early

    _require_no_command(arguments.model)
    if arguments.sample and arguments.model is not None:
        raise UsageError(
            f"--sample opens the sample model, not {arguments.model}; leave one out"
        )
    if not arguments.demo:
        _require_display()
    require_installed(arguments.backend)
    # The engine imports what it needs and reads the model while this process imports.
    model, bin_path = (Path(p) if p is not None else None for p in _files_of(arguments))
    start_early(model, bin_path)
    if model is not None and is_source(model):
        with suppress(ConversionError):  # the engine meets it again, and the window shows it
            arguments.conversion = replace(
                settle_conversion(arguments), asks=not arguments.demo
            )
    import_window()
    from kuiper_studio.app import run_demo, run_window

    start = run_demo if arguments.demo else run_window
    return start(arguments, image_options(arguments))


def import_window() -> None:
    """Import the window and all it consists of.

    Plain imports make the start 50 ms faster, and the first use of a panel or dialog a third.
    """
    import_plainly()
    with collector_paused():
        import_module("kuiper_studio.app")
        # The collector would look at all that was made; `make_application` says how much.
        gc.freeze()


def _files_of(arguments: argparse.Namespace) -> tuple[str | Path | None, str | None]:
    """Return the files that the window opens first, as its session will name them."""
    if arguments.sample:
        from kuiper_studio.sample_models import default_sample

        return default_sample().param, None
    return arguments.model, arguments.bin


_COMMANDS: Final[Mapping[str, Callable[[argparse.Namespace], int]]] = {
    "info": _info,
    "run": _run,
    "dump": _dump,
    "check": _check,
    "precision": _precision,
    "convert": _convert,
    "compare": _compare,
    "sweep": _sweep,
    "recorder": _recorder,
    "reproduce": _reproduce,
    "render": _render,
    "ops": _ops,
}


# Checks


def _check_output(path: Path, suffixes: Sequence[str]) -> None:
    """Check before the work that the output can be written."""
    if path.suffix.lower() not in suffixes:
        raise ExportError(f"{path} cannot be written: name a {_one_of(suffixes)} file")
    _check_place(path, suffixes)


def _check_place(path: Path, suffixes: Sequence[str]) -> None:
    if not path.parent.is_dir():
        raise ExportError(f"{path.parent} is not a folder; create it, or choose another one")
    if path.is_dir():
        raise ExportError(f"{path} is a folder; name a {_one_of(suffixes)} file")


def _one_of(words: Sequence[str]) -> str:
    return " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _form_of_graph(output: Path, asked: str | None) -> str:
    """Return the format that ``render`` writes: by ``--format``, or by the suffix."""
    from kuiper_studio.layout.files import FILE_FORMATS

    forms = (*PICTURE_FORMATS, *FILE_FORMATS)
    named = output.suffix.lower().removeprefix(".")
    if asked is None:
        _check_output(output, [f".{form}" for form in forms])
        return named
    if named in forms and named != asked:
        raise ExportError(
            f"{output} ends in .{named}, but the format is {asked}; change the name or the "
            "format"
        )
    _check_place(output, [f".{asked}"])
    return asked


def _spare_model(output: Path, graph: RuntimeGraph) -> None:
    """Refuse to write over the model's own files."""
    for own in (graph.source_path, graph.param_path, graph.bin_path):
        if own is not None and own.exists() and output.exists() and output.samefile(own):
            raise ExportError(f"{output} is the model itself; choose another name")


def _check_dump(path: Path, session: Session, options: DumpOptions) -> None:
    from engine.dump import check_destination

    check_destination(path, session.graph, options)
    if options.weights and not session.graph.has_weights:
        raise ExportError("there are no weights to write, because the model has no .bin file")


def _dump_options(arguments: argparse.Namespace) -> DumpOptions:
    from engine.dump import FORMAT_OF_SUFFIX, DumpOptions

    suffix = Path(arguments.output).suffix.lower()
    return DumpOptions(
        format=arguments.format or FORMAT_OF_SUFFIX.get(suffix, "folder"),
        operators=tuple(arguments.operators) if arguments.operators else None,
        inputs=not arguments.no_inputs,
        outputs=not arguments.no_outputs,
        weights=arguments.weights,
        statistics_only=arguments.statistics_only,
        overwrite=arguments.overwrite,
        sha256=arguments.sha256,
    )


def _require_no_command(model: str | None) -> None:
    """Raise `UsageError` for a misspelled command."""
    if model is not None and model.isalpha() and not Path(model).exists():
        from engine.model_files import pair

        if pair(model)[0].exists():  # its name without suffixes
            return
        raise UsageError(
            f"{model!r} is neither a model nor a command; the commands are "
            f"{', '.join(_COMMANDS)}"
        )


def _require_display() -> None:
    """Raise an error if there is no display: Qt would end the process with a signal."""
    if sys.platform != "linux" or os.environ.get("QT_QPA_PLATFORM"):
        return
    if not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        raise EngineError(
            f"there is no display for the window; use --demo DIR, or a command without a "
            f"window: {', '.join(_COMMANDS)}"
        )


def _not_executed(
    session: Session, operators: Sequence[RuntimeOperator]
) -> list[RuntimeOperator]:
    from engine.states import OperatorStatus

    done = OperatorStatus.EXECUTED
    return [operator for operator in operators if session.status(operator.name) is not done]


def _reason(session: Session, operator: RuntimeOperator) -> str:
    """Return why an operator did not run: the reason of the first upstream one that cannot."""
    from engine.states import OperatorStatus
    from kuiper_studio.cli.report import is_unknown

    while session.status(operator.name) is OperatorStatus.BLOCKED:
        above = (o.producer for o in operator.inputs if not session.has_value(o.name))
        operator = next(producer for producer in above if producer is not None)
    advice = "; --layers FILE loads your own layers" if is_unknown(operator) else ""
    others = len(session.graph.unsupported) - 1
    more = f"; info lists {others} more that cannot run" if others > 0 else ""
    return f"{operator.reason}{advice}{more}"


# Results


def _say_json(facts: object) -> None:
    """Print strict JSON in ASCII."""
    say(json.dumps(facts, allow_nan=False))
