"""Explains in one sentence why the exporter failed, and what to do."""

from __future__ import annotations

import re
import signal
from typing import TYPE_CHECKING, Final

from engine.text import format_count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.conversion.inspection import SourceFile
    from engine.conversion.running import Run

__all__ = ["explain", "find_ncnn_losses", "find_notes"]

_DAMAGED: Final = "it is incomplete or damaged; copy or export it again"
_NO_OPERATOR: Final = (
    "it uses the operator {0}, which pnnx does not support; export the model without it, or "
    "replace it by operators of PyTorch"
)
_REFUSED: Final = "ort CreateSession failed"
# Outputs of the exporter and their meanings; the first match counts.
_PATTERNS: Final = tuple(
    (re.compile(pattern), sentence)
    for pattern, sentence in (
        (
            r"input_shapes\[(\d+)\] expect \[(\S+)\]([a-z]\w*) but got \[\2\]([a-z]\w*)",
            "input {0} takes {2}, not {3}; give its size as {1}{2}",
        ),
        (
            r"input_shapes\[(\d+)\] expect (\S+) but got (\S+)",
            "input {0} was exported at {1}, not {2}; give no size, or {2} as the second size",
        ),
        (
            r"input_shape2? expect (\d+) tensors but got (\d+)",
            "it has {0} inputs, but {1} sizes were given; give one for each",
        ),
        (
            r"prim::ConstantMKLDNNTensor",
            "torch.jit.optimize_for_inference wrote it for one processor; save it without that",
        ),
        (
            r"Unknown qengine",
            (
                "it has quantised weights of PyTorch, which pnnx cannot read; trace the model "
                "in float32"
            ),
        ),
        (
            r"(?:scalar type|same dtype, but got) (Half|BFloat16) (?:but found|and) Float",
            (
                "it computes in {0}, which pnnx cannot run; trace model.float(), and simulate "
                "the precision here"
            ),
        ),
        (
            r"Invalid tensor data type 0",
            (
                "it has an input of a type that pnnx cannot read, such as text; export it with "
                "float32 or int64 there, and a cast behind it"
            ),
        ),
        (
            r"forward\(\) is missing value for argument '([^'.]+)",
            (
                "its forward takes {0}, which is no tensor, so pnnx cannot give it; trace the "
                "model with a value for it"
            ),
        ),
        (
            r"Expected at most \d+ argument\(s\) for operator 'forward'",
            (
                "its forward takes fewer tensors than sizes were given, or a list of them, "
                "which pnnx cannot give; trace a module that makes the list of tensors"
            ),
        ),
        (r"Unknown builtin op: (\S+?)\.?$", _NO_OPERATOR),
        (r"Fatal error: (\S+?)\(-?\d+\) is not a registered function/op", _NO_OPERATOR),
        (r"No Op registered for (\S+)", _NO_OPERATOR),
        (r"(?i)std::bad_alloc|cannot allocate memory|not enough memory", "memory ran out"),
        (r"No space left on device", "the disk is full"),
        (r"failed finding central directory|read_proto_from_binary failed", _DAMAGED),
        (r"Load torchscript failed: (.*)", "PyTorch's reader refuses it: {0}"),
        (
            rf"{_REFUSED} (.*)",
            "ONNX Runtime refuses it: {0}; repair the model, or export it as TorchScript",
        ),
        (
            r"^(?:RuntimeError|IndexError|ValueError): (.*)",
            "it cannot be run at these sizes: {0}; give the sizes that the model takes",
        ),
    )
)
_EXCEPTION: Final = re.compile(r"what\(\):\s+(.*)")
_STAGE: Final = re.compile(r"^#+ (pass_\w+)")
_UNCONVERTED: Final = re.compile(r"^ignore (\S+) (\S+) param (\S+)")
_CUSTOM: Final = re.compile(r"^custom op = (\S+)")
_UNREAD: Final = re.compile(
    r"^unknown Attribute tensor scalar type|^FATAL ERROR .*external data"
)
_LONGEST: Final = 300  # most characters to quote from the exporter


def explain(
    run: Run, source: SourceFile, time_limit: float, *, has_sizes: bool, control_flow: str = ""
) -> str:
    """Explain why there is no pair.

    Parameters
    ----------
    run : Run
    source : SourceFile
    time_limit : float
        Seconds that the exporter had.
    has_sizes : bool
        Whether sizes of the inputs were known.
    control_flow : str, optional
        Type of a node with branches, such as ``If``.
    """
    if run.timed_out:
        return (
            f"pnnx did not finish within {time_limit:g} s{_behind(run.lines)} and was stopped; "
            "convert it by hand, and open the .pnnx.param"
        )
    if control_flow and any(_REFUSED in line for line in run.lines):
        return (
            f"it has branches, of the operator {control_flow}, that read values from outside "
            "of them, which pnnx cannot convert; if their condition is constant, remove them "
            "with onnxsim, else trace the model with torch.jit.trace, which follows those that "
            "the example takes"
        )
    for pattern, sentence in _PATTERNS:
        for line in run.lines:
            if found := pattern.search(line):
                return sentence.format(*(part[:_LONGEST] for part in found.groups()))
    if source.kind == "torchscript" and not source.is_traced:
        advice = "trace the model instead of scripting it, or save torch.jit.freeze(scripted)"
        if not has_sizes:
            advice = f"give the sizes of its inputs, or {advice}"
    elif source.kind == "onnx":
        advice = "export the model as TorchScript instead, or with another opset"
    else:
        advice = "save torch.jit.freeze(traced) instead, or export the model as ONNX"
    ended = f"pnnx {_end_of(run.status)}{_behind(run.lines)} without a result"
    thrown = [found[1][:_LONGEST] for line in run.lines if (found := _EXCEPTION.search(line))]
    return f"{ended}{f' ({thrown[0]})' if thrown else ''}; {advice}"


def find_notes(
    run: Run,
    source: SourceFile,
    output_count: int,
    *,
    control_flow: str = "",
    folded_count: int = 0,
) -> tuple[str, ...]:
    """Return remarks on a conversion that gave a pair.

    Parameters
    ----------
    run : Run
    source : SourceFile
    output_count : int
        Outputs of the pair.
    control_flow : str, optional
        Type of a node with branches that is left in it.
    folded_count : int, optional
        Constants in it that pnnx computed.
    """
    notes: list[str] = []
    if control_flow:
        notes.append(
            f"the operator {control_flow} has branches that depend on values, and is not "
            "computed; trace the model with torch.jit.trace, which follows those that the "
            "example takes"
        )
    if source.trains:
        notes.append(
            "it was traced in training mode, and pnnx takes BatchNorm and Dropout as in "
            "evaluation; call model.eval() before torch.jit.trace"
        )
    if source.branches and folded_count:
        notes.append(
            f"it was scripted, and pnnx kept {format_count(folded_count, 'result')} of one run "
            "as constants, also those of branches and loops; trace the model instead"
        )
    wanted = source.output_count or output_count
    if output_count < wanted:
        notes.append(
            f"pnnx left out {wanted - output_count} of {format_count(wanted, 'output')}; it "
            "keeps none that is a constant of the file"
        )
    if run.timed_out:
        notes.append(f"pnnx took too long{_behind(run.lines)}: there is no ncnn model")
    elif run.status:
        notes.append(f"pnnx {_end_of(run.status)}{_behind(run.lines)}: there is no ncnn model")
    custom = dict.fromkeys(f[1] for line in run.lines if (f := _CUSTOM.match(line)))
    if custom:
        notes.append(f"pnnx does not know {', '.join(custom)} and keeps it unchanged")
    if any(map(_UNREAD.match, run.lines)):
        notes.append(
            "pnnx could not read a weight, and what follows from it is wrong; store the "
            "weights of the ONNX file as bytes, with onnx.numpy_helper.from_array"
        )
    return tuple(notes)


def find_ncnn_losses(lines: Sequence[str]) -> str:
    """Describe which operators lost parameters in the ncnn model; ``""`` for none."""
    lossy = dict.fromkeys(f[2] for line in lines if (f := _UNCONVERTED.match(line)))
    if not lossy:
        return ""
    more = f" and {len(lossy) - 1} more" if len(lossy) > 1 else ""
    return (
        f"the ncnn model lacks parameters of {format_count(len(lossy), 'operator')}: "
        f"{next(iter(lossy))}{more}"
    )


def _behind(lines: Sequence[str]) -> str:
    """Return the last stage that the exporter reported, as `` in pass_...``."""
    stages = [found[1] for line in lines if (found := _STAGE.match(line))]
    return f" in {stages[-1]}" if stages else ""


def _end_of(status: int) -> str:
    if status >= 0:
        return f"ended with status {status}"
    try:
        return f"crashed ({signal.Signals(-status).name})"
    except ValueError:
        return f"crashed (signal {-status})"
