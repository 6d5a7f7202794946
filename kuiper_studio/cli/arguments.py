"""The arguments of every command."""

from __future__ import annotations

import argparse
import math
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, NoReturn

from typing_extensions import override

from engine.image_methods import FITS, RESAMPLINGS
from kuiper_studio.cli.commands import COMMANDS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from engine.image_methods import Fit, Resampling
    from engine.inputs import ImageOptions

__all__ = [
    "PARSERS",
    "PICTURE_FORMATS",
    "MemoryLimit",
    "UsageError",
    "image_options",
    "window_parser",
]


PICTURE_FORMATS: Final = ("svg", "png", "pdf")


class UsageError(Exception):
    """A command line that cannot be parsed."""


class MemoryLimit(NamedTuple):
    """A memory limit from the command line; None means no limit."""

    nbytes: int | None


def window_parser() -> argparse.ArgumentParser:
    """Arguments of ``kuiper-studio`` without a command, which opens the window."""
    parser = _Parser(
        prog="kuiper-studio",
        allow_abbrev=False,
        description="A desktop debugger for neural networks in PNNX form.",
        epilog="commands without a display (kuiper-studio COMMAND --help explains them):\n"
        + "\n".join(f"  {name:<11}{summary}" for name, summary in COMMANDS.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_model(parser, required=False)
    parser.set_defaults(conversion=None)
    parser.add_argument("--version", action="store_true", help="print the version")
    parser.add_argument("--sample", action="store_true", help="open the sample model")
    parser.add_argument(
        "--theme",
        choices=("system", "light", "dark"),
        help="colour theme; default the last one used",
    )
    parser.add_argument(
        "--demo", metavar="DIR",
        help="step the model without a display; write its dump and a picture of the window",
    )  # fmt: skip
    _add_inputs(parser, "the last one used, or the seed of the --backend-from dump")
    _add_labels(parser)
    _add_backend(parser)
    _add_memory_limit(parser, "; default the last one used, or none")
    _add_memory_bound(parser, "the last one used, or half of the machine's memory")
    return parser


def info_parser() -> argparse.ArgumentParser:
    """Arguments of ``info``."""
    parser = _parser("info")
    _add_model(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
    _add_shapes(parser, "run once on zeros of these sizes, and list shapes and costs")
    _add_memory_limit(parser, "; for --shape")
    _add_memory_bound(parser)
    return parser


def run_parser() -> argparse.ArgumentParser:
    """Arguments of ``run``."""
    parser = _parser("run")
    _add_model(parser)
    _add_inputs(parser, _SEED_OF_A_RUN)
    _add_labels(parser)
    _add_backend(parser)
    _add_memory_limit(parser)
    _add_memory_bound(parser)
    _add_tune(parser)
    parser.add_argument(
        "--output", metavar="FILE.npz", help="write the outputs as out0, out1, …"
    )
    parser.add_argument(
        "--meaning",
        metavar="NAME",
        nargs="?",
        const="",
        help="say what the outputs mean, as classes, boxes or pixels; NAME is a reading, as "
        "yolov8, and by default the one that fits best",
    )
    parser.add_argument(
        "--meaning-option",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="set an option of the meaning, such as threshold=0.4; may be repeated",
    )
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    return parser


def dump_parser() -> argparse.ArgumentParser:
    """Arguments of ``dump``."""
    from engine.dump import FORMATS

    parser = _parser("dump")
    _add_model(parser)
    _add_inputs(parser, _SEED_OF_A_RUN)
    _add_backend(parser)
    _add_memory_limit(parser)
    _add_memory_bound(parser)
    _add_tune(parser)
    parser.add_argument(
        "--output", metavar="PATH", required=True, help="folder or file of the dump"
    )
    parser.add_argument(
        "--format", choices=FORMATS,
        help="format of the dump; default by the suffix of --output, else folder",
    )  # fmt: skip
    parser.add_argument(
        "--operators", metavar="PATTERN", nargs="+",
        help="operators to dump, by name, type or index, with * and ?; the model runs only as "
        "far as needed",
    )  # fmt: skip
    parser.add_argument("--weights", action="store_true", help="write the weights too")
    parser.add_argument("--no-inputs", action="store_true", help="leave out the inputs")
    parser.add_argument("--no-outputs", action="store_true", help="leave out the operands")
    parser.add_argument(
        "--statistics-only",
        action="store_true",
        help="write the manifest and the summary without arrays",
    )
    parser.add_argument(
        "--sha256", action="store_true",
        help="hash every array, not only the inputs; takes longer",
    )  # fmt: skip
    parser.add_argument("--overwrite", action="store_true", help="replace an earlier dump")
    return parser


def reproduce_parser() -> argparse.ArgumentParser:
    """Arguments of ``reproduce``."""
    parser = _parser(
        "reproduce",
        "The folder has the inputs, the expected outputs and a script that checks them with "
        "NumPy, Kuiper Studio, PyTorch and ncnn, as far as they are installed.",
    )
    _add_model(parser)
    _add_inputs(parser, _SEED_OF_A_RUN)
    _add_backend(parser)
    _add_memory_limit(parser)
    _add_memory_bound(parser)
    parser.add_argument("--output", metavar="DIR", required=True, help="folder to write")
    parser.add_argument(
        "--operators", metavar="PATTERN", nargs="+", required=True,
        help="operators to write, by name, type or index, with * and ?, or joined by commas; "
        "without --reference the model runs only as far as needed",
    )  # fmt: skip
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "--expected", metavar="FILE.npz",
        help="expected outputs by operand name; default the outputs that the model computes",
    )  # fmt: skip
    _add_reference(
        group, "take the expected outputs from it, after comparing the whole model: "
    )
    parser.add_argument(
        "--overwrite", action="store_true", help="replace an earlier reproducer"
    )
    return parser


def check_parser() -> argparse.ArgumentParser:
    """Arguments of ``check``."""
    from engine.differences import TOLERANCE

    parser = _parser(
        "check",
        "Run the model with NumPy, run each operator with every other backend on the same "
        "inputs, and list the operators that differ.",
    )
    parser.epilog = "Exit status: 0 all agree, 1 differences, 2 error."
    _add_model(parser)
    _add_inputs(parser, "0")
    _add_memory_limit(parser)
    _add_memory_bound(parser)
    _add_tune(parser)
    parser.set_defaults(backend="numpy", backend_from=None, ncnn_options="exact")
    parser.add_argument(
        "--tolerance", metavar="NUMBER", type=_tolerance, default=TOLERANCE,
        help="largest allowed difference relative to each element; operators that sum may also "
        "differ by this fraction of their largest element, or of 1 if that is smaller; "
        "default %(default)s",
    )  # fmt: skip
    parser.add_argument("--all", action="store_true", help="list operators that agree too")
    parser.add_argument("--json", action="store_true", help="print all results as JSON")
    return parser


def compare_parser() -> argparse.ArgumentParser:
    """Arguments of ``compare``."""
    from engine.comparison import Tolerances

    parser = _parser(
        "compare",
        "Each operator also runs on the reference's tensors. This separates a difference that "
        "is born in an operator from one that it inherits.",
    )
    parser.epilog = "Exit status: 0 same, 1 differs or nothing compared, 2 error."
    _add_model(parser)
    _add_inputs(parser, _SEED_OF_A_RUN)
    _add_backend(parser)
    _add_memory_limit(parser)
    _add_memory_bound(parser)
    _add_reference(parser, required=True)
    parser.add_argument(
        "--tolerance", metavar="NUMBER", type=_tolerance, default=Tolerances().float32,
        help="largest difference that counts as the same, relative to the reference's largest "
        "element; default %(default)s",
    )  # fmt: skip
    parser.add_argument(
        "--report", metavar="FILE.html",
        help="also write a report: one HTML page with all results and pictures of the "
        "differences",
    )  # fmt: skip
    parser.add_argument("--all", action="store_true", help="list operands that agree too")
    parser.add_argument("--json", action="store_true", help="print all results as JSON")
    return parser


def sweep_parser() -> argparse.ArgumentParser:
    """Arguments of ``sweep``."""
    parser = _parser(
        "sweep",
        "The work is spread over processes of this machine, or over the workers of a Dask "
        "scheduler. The results are a folder, with summary.json and what was asked for.",
    )
    _add_model(parser)
    group = parser.add_argument_group("inputs")
    group.add_argument(
        "--inputs", metavar="SOURCE", required=True,
        help="a folder of images, .npy or .npz; a pattern such as 'set/*.png'; a .txt with a "
        "file a line; or an .npy or .zarr whose first axis are the inputs",
    )  # fmt: skip
    group.add_argument("--limit", metavar="N", type=_count, help="take only the first N inputs")
    _add_shapes(group, "input sizes; default the model's")
    _add_images(group)
    group.add_argument(
        "--strict", action="store_true",
        help="stop at an input that cannot be read or run, instead of passing it over",
    )  # fmt: skip
    group.add_argument("--seed", metavar="N", type=_wrap_converter(_seed), default=0,
                       help="random seed of each run; default %(default)s")  # fmt: skip
    group = parser.add_argument_group("results")
    group.add_argument("--output", metavar="DIR", required=True, help="folder of the results")
    group.add_argument(
        "--operators", metavar="PATTERN", nargs="+",
        help="operators whose outputs count, by name, type or index, with * and ?; the model "
        "runs only as far as needed",
    )  # fmt: skip
    group.add_argument(
        "--statistics", action="store_true",
        help="gather statistics of operands and channels; the default unless --dump is given",
    )  # fmt: skip
    group.add_argument(
        "--dump", action="store_true",
        help="write the tensors to DIR/dump.zarr, an array for each operand",
    )  # fmt: skip
    group.add_argument(
        "--top", metavar="N", type=_count, default=8,
        help="inputs to keep for each channel, of those that excite it most and least; default "
        "%(default)s",
    )  # fmt: skip
    group.add_argument(
        "--exact-histograms", action="store_true",
        help="count all elements of large operands too, which takes longer, and not a sample",
    )  # fmt: skip
    group.add_argument(
        "--covariance", action="store_true", help="gather the covariance of channels"
    )
    existing = group.add_mutually_exclusive_group()
    existing.add_argument(
        "--resume", action="store_true",
        help="continue an earlier sweep into the folder: what is finished, with the same "
        "content of inputs, model and options, is not computed again",
    )  # fmt: skip
    existing.add_argument(
        "--overwrite", action="store_true", help="replace an earlier sweep in the folder"
    )
    group.add_argument("--json", action="store_true", help="print the summary as JSON")
    _add_calibration(parser)
    _add_against(parser)
    parser.epilog = "Exit status: 0 done, 1 more error than --keep allows, 2 error."
    group = parser.add_argument_group("work")
    where = group.add_mutually_exclusive_group()
    where.add_argument(
        "--workers", metavar="N", type=_whole,
        help="processes on this machine; default one for each processor; 0 runs everything in "
        "one process without Dask",
    )  # fmt: skip
    where.add_argument(
        "--scheduler", metavar="ADDRESS",
        help="use the workers of this Dask scheduler, such as tcp://host:8786; they read and "
        "write the same paths",
    )  # fmt: skip
    group.add_argument(
        "--shard", metavar="N", type=_count,
        help="inputs of a task, the most that a worker may lose; default by their number",
    )  # fmt: skip
    group.add_argument(
        "--batch", metavar="N", type=_count,
        help="most inputs that run at once, if the model gives the same results; default by "
        "their size",
    )  # fmt: skip
    _add_backend(group, recorded=False)
    _add_memory_bound(group, "half of the machine's memory, divided among the workers")
    return parser


def _add_calibration(parser: argparse.ArgumentParser) -> None:
    from engine.datasets.calibration.thresholds import METHODS, PERCENTILE

    group = parser.add_argument_group("int8 of ncnn")
    group.add_argument(
        "--calibrate", metavar="METHOD", choices=METHODS,
        help="write the table that ncnn2int8 takes, an int8 pair and the errors of all "
        "thresholds, for a model in ncnn's format or the pair beside a PNNX model: kl, aciq, "
        "minmax or percentile",
    )  # fmt: skip
    group.add_argument(
        "--percentile", metavar="P", type=_wrap_converter(_percentile), default=PERCENTILE,
        help="of the absolute values, for that method; default %(default)s",
    )  # fmt: skip
    group.add_argument(
        "--held-out", metavar="N", type=_count, default=10,
        help="do not count every Nth input, but measure errors on it; default %(default)s",
    )  # fmt: skip
    group.add_argument(
        "--keep", metavar="ERROR", type=_tolerance, default=None,
        help="choose layers to keep in float32, so that no output is off by more than this "
        "share of its largest element, and comment them out in the table",
    )  # fmt: skip
    group.add_argument(
        "--no-winograd", action="store_true",
        help="8 bits for the weights of 3x3 convolutions too: more exact, but ncnn must then "
        "compute them without Winograd's transform",
    )  # fmt: skip


def _add_against(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("comparison")
    other = group.add_mutually_exclusive_group()
    other.add_argument(
        "--against", metavar="MODEL2",
        help="run every input through this model too, and measure each matched operand",
    )  # fmt: skip
    other.add_argument(
        "--reference", metavar="DUMP",
        help="the same against the dump of another sweep over the same inputs",
    )  # fmt: skip
    group.add_argument(
        "--labels", metavar="FILE",
        help="class of each input, to count right ones: a CSV with a name and a label a line, "
        "or a folder with one for each class",
    )  # fmt: skip


def recorder_parser() -> argparse.ArgumentParser:
    """Arguments of ``recorder``."""
    from engine.comparison.recorders import RECORDERS

    parser = _parser("recorder", "The script needs only NumPy and that library.")
    parser.add_argument(
        "library", metavar="LIBRARY", choices=RECORDERS, help=_one_of(RECORDERS)
    )
    parser.add_argument(
        "--output", metavar="FILE", help="default LIBRARY_recorder.py in the current folder"
    )
    return parser


def precision_parser() -> argparse.ArgumentParser:
    """Arguments of ``precision``."""
    from engine.precision import FORMATS

    parser = _parser(
        "precision",
        "Weights and outputs are rounded to the format; operators compute in float32.",
    )
    _add_model(parser)
    _add_inputs(parser, "0")
    _add_memory_limit(parser)
    _add_memory_bound(parser)
    parser.epilog = "Exit status: 0 done, 1 more error than --keep allows, 2 error."
    parser.set_defaults(backend="numpy", backend_from=None, ncnn_options="exact")
    parser.add_argument(
        "--format", choices=FORMATS, default="float16",
        help="int8 has one scale per tensor, int8-per-channel one per output channel of a "
        "weight; default %(default)s",
    )  # fmt: skip
    parser.add_argument(
        "--keep", metavar="ERROR", type=_tolerance, default=None,
        help="choose operators to keep in float32, so that no output is off by more than this "
        "fraction of its largest element, and print the settings for ncnn",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print all results as JSON")
    return parser


def render_parser() -> argparse.ArgumentParser:
    """Arguments of ``render``."""
    from kuiper_studio.layout.files import FILE_FORMATS

    parser = _parser("render")
    _add_model(parser)
    parser.add_argument(
        "--output",
        metavar="FILE",
        required=True,
        help="file to write: .svg, .png or .pdf for a picture, .graphml or .json for the "
        "layout",
    )
    parser.add_argument(
        "--format",
        choices=(*PICTURE_FORMATS, *FILE_FORMATS),
        help="graphml and json hold the position and layer of every operator and the route of "
        "every edge, for networkx; default by the suffix of --output",
    )
    parser.add_argument(
        "--theme",
        choices=("light", "dark"),
        default="light",
        help="colours of a picture; default %(default)s",
    )
    parser.add_argument(
        "--orientation", choices=("left-right", "top-down"), default="left-right",
        help="direction of the graph; default %(default)s",
    )  # fmt: skip
    size = parser.add_mutually_exclusive_group()
    size.add_argument(
        "--scale", metavar="FACTOR", type=_scale, default=None,
        help="size of a picture: pixels for each unit of the drawing, where texts are 9 to 12 "
        "units high; default 1, and 2 for a .png unless it would be too large for viewers",
    )  # fmt: skip
    size.add_argument(
        "--width", metavar="PIXELS", type=_pixel_count, default=None,
        help="width of a picture instead; 96 pixels are an inch",
    )  # fmt: skip
    _add_shapes(parser, "input sizes for converting a .pt or .onnx that lacks them")
    return parser


def convert_parser() -> argparse.ArgumentParser:
    """Arguments of ``convert``."""
    parser = _parser(
        "convert",
        "Write its PNNX pair, its ncnn pair and the output of pnnx.",
    )
    parser.add_argument("model", metavar="MODEL", help="the .pt or .onnx file")
    parser.add_argument(
        "--output", metavar="DIR", required=True, help="folder to write to; created if missing"
    )
    parser.add_argument(
        "--overwrite", action="store_true", help="replace files of the same names"
    )
    _add_shapes(parser, "input sizes; default those in the file")
    _add_second_shapes(parser)
    parser.add_argument(
        "--input", metavar="FILE", nargs="+", action="extend", default=[],
        help="images, .npy or .npz that give the input sizes where the model file lacks them",
    )  # fmt: skip
    parser.add_argument(
        "--json", action="store_true",
        help="print the written files, notes and the output of pnnx as JSON",
    )  # fmt: skip
    return parser


def ops_parser() -> argparse.ArgumentParser:
    """Arguments of ``ops``."""
    parser = _parser("ops")
    parser.add_argument(
        "types", metavar="TYPE", nargs="*",
        help="operator types, with * and ?; a single type is explained in full",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print JSON")
    _add_layers(parser)
    return parser


def image_options(arguments: argparse.Namespace) -> ImageOptions:
    """Return the image preprocessing that the command line asks for."""
    from engine.inputs import ImageOptions

    fit: Fit = arguments.fit
    resampling: Resampling = arguments.resampling
    order: Literal["RGB", "BGR"] = arguments.order
    return ImageOptions(
        size=arguments.size,
        fit=fit,
        shorter_side=arguments.shorter_side,
        border=arguments.border,
        resampling=resampling,
        order=order,
        scale=arguments.scale,
        mean=arguments.mean,
        std=arguments.std,
    )


PARSERS: Final[Mapping[str, Callable[[], argparse.ArgumentParser]]] = {
    "info": info_parser,
    "run": run_parser,
    "dump": dump_parser,
    "check": check_parser,
    "precision": precision_parser,
    "convert": convert_parser,
    "compare": compare_parser,
    "sweep": sweep_parser,
    "recorder": recorder_parser,
    "reproduce": reproduce_parser,
    "render": render_parser,
    "ops": ops_parser,
}

_SEED_OF_A_RUN: Final = "0, or the seed of the --backend-from dump"


class _Parser(argparse.ArgumentParser):
    """Reports an error in one sentence, as the other commands do."""

    @override
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; {self.prog} --help lists the arguments")


def _one_of(words: Sequence[str]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"


def _parser(command: str, details: str = "") -> argparse.ArgumentParser:
    return _Parser(
        prog=f"kuiper-studio {command}",
        description=f"{COMMANDS[command]} {details}",
        epilog="Exit status: 0 done, 2 error.",
        allow_abbrev=False,
    )


def _add_model(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    parser.add_argument(
        "model", metavar="MODEL", nargs=None if required else "?",
        help="a .param file, its .bin or their folder; or a .pt or .onnx file, which pnnx "
        "converts",
    )  # fmt: skip
    parser.add_argument(
        "--bin", metavar="FILE", help="weights file; default the .bin that fits the .param"
    )
    _add_second_shapes(parser)
    _add_layers(parser)


def _add_layers(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--layers", metavar="FILE", nargs="+", action="extend", default=[],
        help="Python files with your own layers; they are executed",
    )  # fmt: skip


def _add_inputs(parser: argparse.ArgumentParser, seed: str) -> None:
    """Add the options for inputs; `seed` describes the default seed."""
    group = parser.add_argument_group("inputs")
    group.add_argument(
        "--input", metavar="SOURCE", nargs="+", action="extend", default=[],
        help="one per input: an image, .npy, .npz, random[:SEED], ones, zeros, constant:VALUE; "
        "a single .npz, random or constant serves all inputs",
    )  # fmt: skip
    _add_shapes(group, "input sizes; default the model's")
    _add_images(group)
    parser.add_argument(
        "--supply", metavar="NAME=FILE", nargs="+", action="extend", default=[],
        help="override an operand, or all outputs of an operator, with a .npy or .npz",
    )  # fmt: skip
    parser.add_argument(
        "--seed", metavar="N", type=_wrap_converter(_seed),
        help=f"random seed; default {seed}",
    )  # fmt: skip


def _add_images(group: argparse._ActionsContainer) -> None:
    """Add the options of how images become tensors."""
    group.add_argument(
        "--size", metavar="ROWSxCOLUMNS", type=_size, help="size of images; default the model's"
    )
    group.add_argument(
        "--fit", choices=tuple(FITS), default="resize",
        help="how images of another size fit: stretch them, cut the centre out, or add a "
        "border; default %(default)s",
    )  # fmt: skip
    group.add_argument(
        "--shorter-side", metavar="PIXELS", type=_count,
        help="shorter side of images before the centre is cut out, e.g. 256 for 224x224; "
        "default the fewest that fill the size",
    )  # fmt: skip
    group.add_argument(
        "--border", metavar="PIXEL", type=_pixel, default="114",
        help="border of a letterbox, 0 to 255; default %(default)s",
    )  # fmt: skip
    group.add_argument(
        "--resampling", choices=tuple(RESAMPLINGS), default="bilinear",
        help="how images are resized: as Pillow does, or as OpenCV does, which takes no means "
        "where they shrink; default %(default)s",
    )  # fmt: skip
    group.add_argument(
        "--order", choices=("RGB", "BGR"), default="RGB",
        help="channel order of images; default %(default)s",
    )  # fmt: skip
    group.add_argument(
        "--scale", metavar="NUMBER", type=_wrap_converter(_number), default="1/255",
        help="factor for pixels of 0 to 255; default %(default)s",
    )  # fmt: skip
    group.add_argument(
        "--mean", metavar="NUMBERS", type=_wrap_converter(_numbers), default="0",
        help="mean to subtract, e.g. 0.485,0.456,0.406; default %(default)s",
    )  # fmt: skip
    group.add_argument(
        "--std", metavar="NUMBERS", type=_wrap_converter(_numbers), default="1",
        help="standard deviation to divide by, e.g. 0.229,0.224,0.225; default %(default)s",
    )  # fmt: skip


def _add_labels(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--labels", metavar="FILE", help="class names, one per line")


def _add_backend(parser: argparse._ActionsContainer, *, recorded: bool = True) -> None:
    """Add the options of kernels; `recorded` allows those of a dump."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "--backend", metavar="NAME", default="auto",
        help="auto (the fastest kernel for each operator), numpy (the reference), "
        "onnxruntime or ncnn (NumPy computes what they cannot)",
    )  # fmt: skip
    if recorded:
        group.add_argument(
            "--backend-from", metavar="DUMP",
            help="use the kernels of an earlier dump, to reproduce its numbers",
        )  # fmt: skip
    parser.add_argument(
        "--ncnn-options", metavar="NAMES", default="exact",
        help="options for models in ncnn's format: exact (float32), deployed (ncnn's "
        "defaults), or some of fp16,bf16,packing,winograd,sgemm; default exact",
    )  # fmt: skip


def _add_memory_limit(parser: argparse.ArgumentParser, default: str = "") -> None:
    parser.add_argument(
        "--memory-limit", metavar="SIZE", type=_wrap_converter(_memory_limit), default=None,
        help="memory for computed values, e.g. 500MB, 2GiB or none: beyond it, old values are "
        f"evicted, and recomputed when needed{default}",
    )  # fmt: skip


def _add_memory_bound(
    parser: argparse._ActionsContainer, default: str = "half of the machine's memory"
) -> None:
    parser.add_argument(
        "--memory-bound", metavar="SIZE", type=_wrap_converter(_memory_bound), default=None,
        help="most memory that values may take: an operator that needs more fails "
        f"(--memory-limit evicts old values instead); default {default}",
    )  # fmt: skip


def _add_reference(
    group: argparse._ActionsContainer, purpose: str = "", *, required: bool = False
) -> None:
    group.add_argument(
        "--reference", metavar="REF", required=required,
        help=f"{purpose}a dump, a recording, a folder of .npy, an .npz or .safetensors, or "
        "another model to run on the same inputs; without --input the reference's inputs are "
        "used",
    )  # fmt: skip


def _add_tune(parser: argparse.ArgumentParser) -> None:
    # Off by default: tuning takes longer than most runs, and only later runs profit.
    parser.add_argument(
        "--tune", metavar="SECONDS", type=_seconds, default=0.0,
        help="after the run, measure for this long which kernels are fastest; later runs with "
        "--backend auto use them; default 0 (no tuning)",
    )  # fmt: skip


def _add_shapes(group: argparse._ActionsContainer, purpose: str) -> None:
    group.add_argument(
        "--shape", metavar="SHAPE", nargs="+", action="extend", default=[],
        help=f"{purpose}: 1,3,320,320 for the next input, in0=1,3,320,320 for the input in0, "
        "1,128i64 with its type, which a .pt may lack, h=320 for the symbol %%h",
    )  # fmt: skip


def _add_second_shapes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--shape2", metavar="SHAPE", nargs="+", action="extend", default=[],
        help="second input sizes for converting a .pt or .onnx: dimensions that differ from "
        "the first become dynamic",
    )  # fmt: skip


# Argparse puts the converter's name into its message unless the converter raises its own.


def _wrap_converter(convert: Callable[[str], object]) -> Callable[[str], object]:
    def converter(text: str) -> object:
        try:
            return convert(text)
        except ValueError as exc:
            raise argparse.ArgumentTypeError(str(exc)) from exc

    return converter


def _number(text: str) -> float:
    from engine.inputs import parse_number

    return parse_number(text)


def _numbers(text: str) -> tuple[float, ...]:
    return tuple(_number(part) for part in text.split(","))


def _seed(text: str) -> int:
    from engine.inputs import parse_seed

    return parse_seed(text)


def _memory_limit(text: str) -> MemoryLimit:
    from engine.text import parse_bytes

    return MemoryLimit(None if text.lower() == "none" else parse_bytes(text))


def _memory_bound(text: str) -> int:
    from engine.text import parse_bytes

    return parse_bytes(text)


def _size(text: str) -> tuple[int, int]:
    rows, _, columns = text.lower().partition("x")
    if not (rows.isdecimal() and columns.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r} is not a size like 224x224")
    return int(rows), int(columns)


def _seconds(text: str) -> float:
    return _not_negative(text, "the number of seconds")


def _scale(text: str) -> float:
    scale = _not_negative(text, "the scale")
    if not 0 < scale < math.inf:
        raise argparse.ArgumentTypeError(f"a scale of {text} draws nothing")
    return scale


def _pixel_count(text: str) -> int:
    if not text.isdecimal() or len(text) > len("1000000000") or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text} is no number of pixels that a picture has")
    return int(text)


def _pixel(text: str) -> int:
    pixel = _whole(text)
    if pixel > 255:
        raise argparse.ArgumentTypeError(f"a pixel of {text} is not from 0 to 255")
    return pixel


def _count(text: str) -> int:
    count = _whole(text)
    if not count:
        raise argparse.ArgumentTypeError("0 are too few")
    return count


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= len("1000000000")):
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number such as 8")
    return int(text)


def _percentile(text: str) -> float:
    value = _not_negative(text, "the percentile")
    if not 0 < value <= 100:
        raise argparse.ArgumentTypeError(f"{text!r} is not above 0 and at most 100")
    return value


def _tolerance(text: str) -> float:
    return _not_negative(text, "the tolerance")


def _not_negative(text: str, what: str) -> float:
    number = _wrap_converter(_number)(text)
    if not isinstance(number, float) or number < 0:
        raise argparse.ArgumentTypeError(f"{what} {text} is negative")
    return number
