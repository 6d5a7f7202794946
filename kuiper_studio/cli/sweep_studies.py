"""What the command ``sweep`` does beside statistics: calibration and comparison."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from engine.errors import SweepError
from engine.memory_bound import default_bound
from engine.text import format_brief, format_count
from engine.threads import thread_count
from kuiper_studio.cli.terminal import complain, progress_shown, say, say_table

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping
    from pathlib import Path

    from engine.datasets import Study, Sweep, SweepOptions, WorkerPool
    from engine.datasets.against import AgainstStudy, OtherSpec
    from engine.datasets.calibration import CalibrationStudy
    from engine.runtime import RuntimeGraph

__all__ = ["SweepStudies", "say_against", "say_calibration"]

_SHOWN = 30  # rows of a table
_WORST = 5


class SweepStudies:
    """The studies of a command line.

    Parameters
    ----------
    arguments : argparse.Namespace
    graph : RuntimeGraph
        The model of the command line.
    options : SweepOptions
        Of the sweep, still without studies.

    Attributes
    ----------
    graph : RuntimeGraph
        The model to sweep: to calibrate, ncnn's pair beside a PNNX model.
    options : SweepOptions
        Those given; pictures for ncnn's pair have the size of the PNNX model.
    facts : dict of str to dict
        Results by study, as JSON; empty until `conclude`.

    Raises
    ------
    EngineError
        If the model cannot be calibrated, or matches nothing of the other.
    """

    def __init__(
        self, arguments: argparse.Namespace, graph: RuntimeGraph, options: SweepOptions
    ) -> None:
        self.graph, self.options = graph, options
        self.facts: dict[str, dict[str, Any]] = {}
        self._arguments = arguments
        self._calibration: CalibrationStudy | None = None
        self._against: AgainstStudy | None = None
        if arguments.calibrate is not None:
            self._calibration = self._make_calibration()
        if arguments.labels is not None and not (arguments.against or arguments.reference):
            raise SweepError("--labels needs --against or --reference")
        if arguments.against is not None or arguments.reference is not None:
            self._against = self._make_against(self.options)

    @property
    def studies(self) -> tuple[Study, ...]:
        """The studies, for `SweepOptions`."""
        return tuple(each for each in (self._calibration, self._against) if each is not None)

    @property
    def reached(self) -> bool:
        """Whether no output is off by more than was wanted."""
        keep = self.facts.get("calibration", {}).get("keep_float32")
        return keep is None or bool(keep["reached"])

    def conclude(self, found: Sweep, pool: WorkerPool) -> None:
        """Calculate and write the results of the studies of a finished sweep.

        Parameters
        ----------
        found : Sweep
        pool : WorkerPool
            The workers of the sweep.
        """
        if self._calibration is not None:
            self.facts["calibration"] = self._calibrate(found, self._calibration, pool)
        if self._against is not None:
            from engine.datasets.against import write_against

            self.facts["against"] = write_against(found, self._against)

    def _make_calibration(self) -> CalibrationStudy:
        from engine.datasets.calibration import CalibrationStudy, ncnn_pair_of
        from engine.datasets.model import picture_size

        pair = ncnn_pair_of(self.graph)
        if pair is not self.graph:
            told = f"calibrating {pair.param_path.name}, the pair of ncnn beside the model"
            size, images = picture_size(self.graph), self.options.images
            if size is not None and images.size is None and not self.options.shapes:
                self.options = replace(self.options, images=replace(images, size=size))
                told += f", with pictures of {size[0]}×{size[1]}"
            complain(told)
        self.graph = pair
        return CalibrationStudy(self._arguments.held_out)

    def _make_against(self, options: SweepOptions) -> AgainstStudy:
        from engine.datasets.against import dump_spec, model_spec, prepare_against

        arguments = self._arguments
        # Both models run in each worker.
        workers = thread_count() if arguments.workers is None else max(1, arguments.workers)
        bound = options.memory_bound or default_bound() // workers
        other: OtherSpec
        if arguments.against is not None:
            other = model_spec(
                arguments.against, options.backend, options.ncnn_options, options.seed, bound,
            )  # fmt: skip
        else:
            other = dump_spec(arguments.reference)
        return prepare_against(self.graph, arguments.inputs, other, options, arguments.labels)

    def _calibrate(
        self, found: Sweep, study: CalibrationStudy, pool: WorkerPool
    ) -> dict[str, Any]:
        from engine.datasets.calibration import CalibrationOptions, calibrate_sweep

        arguments, options = self._arguments, self.options
        chosen = CalibrationOptions(
            arguments.calibrate,
            arguments.percentile,
            arguments.keep,
            not arguments.no_winograd,
            options.backend,
        )
        with progress_shown("measuring", "runs") as show:
            calibration = calibrate_sweep(
                found, self.graph, study, options, chosen, lambda done: show(done, done + 1),
                workers=pool,
            )  # fmt: skip
        return calibration.to_json()


def say_calibration(facts: Mapping[str, Any], folder: Path) -> None:
    """Print the thresholds of a calibration and their errors."""
    methods = list(facts["output"])
    rows = [["layer", "type", "largest", "bits", *(f"{m} dB" for m in methods), "output dB"]]
    layers = sorted(facts["layers"], key=lambda each: -float(each["output_alone"]["relative"]))
    for each in layers[:_SHOWN]:
        thresholds = each["thresholds"]
        rows.append([
            each["name"],
            each["type"].removeprefix("ncnn."),
            format_brief(each["largest"]),
            str(each["weight_bits"]),
            *(
                f"{format_brief(thresholds[m]['threshold'])}: {_decibels(thresholds[m])}"
                for m in methods
            ),
            _decibels(each["output_alone"]),
        ])  # fmt: skip
    say_table(rows, right=set(range(2, len(rows[0]))))
    if len(layers) > _SHOWN:
        say(f"and {format_count(len(layers) - _SHOWN, 'layer')} with smaller errors")
    for name, reason in facts["left_in_float32"].items():
        complain(f"layer {name} stays in float32: {reason}")
    say()
    for method, each in facts["output"].items():
        say(f"all layers in int8, {method}: {_agreement(each)}")
    best = min(facts["output"], key=lambda m: float(facts["output"][m]["relative"]))
    if best != facts["method"]:
        say(f"{best} has a smaller error at the output than {facts['method']}")
    keep = facts["keep_float32"]
    if keep is not None:
        names = ", ".join(keep["layers"]) or "nothing"
        outcome = "within" if keep["reached"] else "more than"
        say(
            f"keep in float32: {names}; {_agreement(keep['output'])}; {outcome} the wanted "
            f"{format_brief(keep['wanted_error'])}"
        )
    for name, each in (facts["ncnn"] or {}).items():
        what = "the int8 pair" if name == "int8" else "the model as it is"
        say(f"ncnn as deployed, {what}: {_agreement(each)}")
    for name, threshold in (facts["ncnn2table"] or {}).items():
        say(f"ncnn2table: {name} {format_brief(threshold)}")
    for remark in facts["remarks"]:
        complain(remark)
    say(f"table written to {folder / 'calibration.table'}")


def _decibels(loss: Mapping[str, Any]) -> str:
    return f"{float(loss['snr_db']):.1f}"


def _agreement(each: Mapping[str, Any]) -> str:
    return (
        f"{_decibels(each)} dB, off by {format_brief(float(each['relative']), 2)} of its "
        f"largest element, cosine {each['cosine']:.4f}, same top-1 in {each['same_top1']} of "
        f"{format_count(each['inputs'], 'input')}"
    )


def say_against(facts: Mapping[str, Any]) -> None:
    """Print the rows of a comparison over a data set, and its worst inputs."""
    rows = [["operand", "operator", "reference", "median", "p99", "max", "median dB", "worst"]]
    for row in facts["rows"]:
        if row["compared"]:
            relative = row["relative"]
            rows.append([
                row["operand"], row["operator"], row["reference"],
                *(format_brief(float(relative[n]), 2) for n in ("median", "p99", "max")),
                f"{float(row['snr_db']['median']):.1f}",
                str(row["worst"][0]["input"]) if row["worst"] else "",
            ])  # fmt: skip
    say_table(rows, right=set(range(3, 8)))
    say()
    for worst in facts["worst"][:_WORST]:
        say(f"worst: {worst['name']}, {format_brief(float(worst['relative']), 2)}")
    top1 = facts["top1"]
    if top1["inputs"]:
        say(f"same top-1 in {top1['same']} of {format_count(top1['inputs'], 'input')}")
    else:
        say("the reference does not have the first output, so no top-1 is compared")
    accuracy = facts["accuracy"]
    if accuracy is not None:
        count = accuracy["labelled"]
        say(
            f"right: {accuracy['right'] / count:.2%}, the reference "
            f"{accuracy['right_reference'] / count:.2%}, of "
            f"{format_count(count, 'labelled input')}"
        )
    if facts["failed"]:
        complain(f"the reference has nothing for {format_count(facts['failed'], 'input')}")
