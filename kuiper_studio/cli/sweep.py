"""The command ``sweep``."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from engine.text import format_count, format_number, format_shape
from kuiper_studio.cli.arguments import image_options
from kuiper_studio.cli.sessions import load_graph
from kuiper_studio.cli.sweep_studies import SweepStudies, say_against, say_calibration
from kuiper_studio.cli.terminal import complain, progress_shown, say, say_table

if TYPE_CHECKING:
    import argparse

    from engine.datasets import Sweep, SweepOptions

__all__ = ["run_sweep", "say_sweep", "sweep_facts"]

_LISTED_FAILURES = 5


def run_sweep(arguments: argparse.Namespace) -> tuple[Sweep, SweepStudies]:
    """Run the sweep of a command line, with a progress bar."""
    from engine.datasets import WorkerPool, require_extra, sweep
    from engine.datasets.page import write_summary_page

    require_extra()  # before the model is loaded or converted
    command = ["kuiper-studio", *sys.argv[1:]]
    with WorkerPool(arguments.workers, arguments.scheduler) as pool:
        studies = SweepStudies(arguments, load_graph(arguments), sweep_options(arguments))
        with progress_shown("sweeping", "inputs") as show:
            found = sweep(
                studies.graph,
                arguments.inputs,
                arguments.output,
                replace(studies.options, studies=studies.studies),
                workers=pool,
                resume=arguments.resume,
                overwrite=arguments.overwrite,
                progress=show,
                note=complain,
                command=command,
            )
        if studies.studies:
            studies.conclude(found, pool)
            write_summary_page(found, command=command)
    return found, studies


def sweep_options(arguments: argparse.Namespace) -> SweepOptions:
    """Return the options of a command line."""
    from engine.datasets import SweepOptions

    return SweepOptions(
        limit=arguments.limit,
        operators=tuple(arguments.operators) if arguments.operators else None,
        statistics=arguments.statistics or not arguments.dump,
        dump=arguments.dump,
        images=image_options(arguments),
        shapes=tuple(arguments.shape),
        backend=arguments.backend,
        ncnn_options=arguments.ncnn_options,
        seed=arguments.seed,
        memory_bound=arguments.memory_bound,
        layers=tuple(arguments.layers),
        top=arguments.top,
        histograms="exact" if arguments.exact_histograms else "sampled",
        covariance=arguments.covariance,
        shard=arguments.shard,
        batch=arguments.batch,
        strict=arguments.strict,
    )


def sweep_facts(found: Sweep, studies: SweepStudies) -> dict[str, Any]:
    """Return the summary, as it is in the folder, and what studies found."""
    facts: dict[str, Any] = json.loads((found.path / "summary.json").read_bytes())
    return facts | studies.facts


def say_sweep(found: Sweep, studies: SweepStudies) -> None:
    """Print the statistics of every operand, what studies found, and what was passed over."""
    if found.operands:
        rows = [["operand", "operator", "shape", "min", "max", "mean", "std", "nan", "inf",
                 "zeros", "dead channels"]]  # fmt: skip
        rows += [
            [
                each.name,
                each.operator,
                format_shape(each.shape),
                *(format_number(value) for value in (each.min, each.max, each.mean, each.std)),
                format_count(each.nan),
                format_count(each.inf),
                f"{each.zeros / max(each.count, 1):.1%}",
                f"{len(each.dead_channels)} of {len(each.channels.dead)}",
            ]
            for each in found.operands.values()
        ]
        say_table(rows, right=set(range(3, 11)))
    if "calibration" in studies.facts:
        say_calibration(studies.facts["calibration"], found.path)
    if "against" in studies.facts:
        say_against(studies.facts["against"])
    inputs = found.inputs
    for each_failed in inputs.failed[:_LISTED_FAILURES]:
        complain(f"passed over: {each_failed.sentence}")
    if inputs.failed_count:
        complain(
            f"{format_count(inputs.failed_count, 'input')} of {format_count(inputs.count)} "
            "could not be run; summary.json lists them"
        )
    say(f"{format_count(inputs.done, 'input')}, written to {found.path}")
