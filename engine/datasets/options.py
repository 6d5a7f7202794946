"""What is asked of a sweep."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from engine.datasets.model import ModelSpec
from engine.inputs import ImageOptions
from engine.memory_bound import default_bound
from engine.ncnn.options import EXACT
from engine.plain import plain

if TYPE_CHECKING:
    from engine.datasets.studies import Study
    from engine.runtime import RuntimeGraph

__all__ = ["SweepOptions", "describe_model"]


@dataclass(frozen=True, slots=True)
class SweepOptions:
    """Options of `sweep`.

    Attributes
    ----------
    limit : int or None
        Take only so many inputs, the first ones.
    operators : tuple of str or None
        Patterns of the operators whose outputs count, as for dumps; None for all.
    statistics : bool
        Gather statistics.
    dump : bool
        Write the tensors to ``dump.zarr``.
    studies : tuple of Study
        What else is gathered.
    images : ImageOptions
        How pictures become tensors.
    shapes : tuple of str
        Input sizes, as `engine.shapes.parse_shapes` takes them.
    backend : str
        Of the sessions.
    ncnn_options : str
        Of the sessions, for a model in ncnn's format.
    seed : int
        Of the sessions.
    memory_bound : int or None
        Of each session; None for half of the machine's memory, divided among the workers.
    layers : tuple of str
        Python files with the user's layers; every worker executes them.
    top : int
        Inputs that are kept for each channel, of those that excite it most and least.
    histograms : {"sampled", "exact"}
        Whether large operands are counted by a sample of their elements.
    covariance : bool
        Gather the covariance of the channels.
    shard : int or None
        Inputs of a task; None chooses it by their number and size.
    batch : int or None
        Inputs that run at once; None chooses it by their size. Where batches do not give the
        results of single runs, inputs run one by one whatever is asked.
    strict : bool
        Whether an input that cannot be read or run ends the sweep.
    """

    limit: int | None = None
    operators: tuple[str, ...] | None = None
    statistics: bool = True
    dump: bool = False
    studies: tuple[Study, ...] = ()
    images: ImageOptions = field(default_factory=ImageOptions)
    shapes: tuple[str, ...] = ()
    backend: str = "auto"
    ncnn_options: str = EXACT.text
    seed: int = 0
    memory_bound: int | None = None
    layers: tuple[str, ...] = ()
    top: int = 8
    histograms: Literal["sampled", "exact"] = "sampled"
    covariance: bool = False
    shard: int | None = None
    batch: int | None = None
    strict: bool = False

    def digest(self, layers: tuple[Path, ...]) -> str:
        """Return a hash of all that changes the results of a shard.

        Parameters
        ----------
        layers : tuple of path
            The user's layers, whose content counts.

        Returns
        -------
        str
            SHA-256 in hexadecimal digits.
        """
        facts = {
            each.name: plain(_facts(getattr(self, each.name)))
            for each in fields(self)
            if each.name not in {"limit", "strict", "studies", "memory_bound", "layers"}
        }
        facts["layers"] = [hashlib.sha256(path.read_bytes()).hexdigest() for path in layers]
        text = json.dumps(facts, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


def _facts(value: object) -> object:
    if isinstance(value, ImageOptions):
        return {each.name: getattr(value, each.name) for each in fields(value)}
    return value


def describe_model(graph: RuntimeGraph, options: SweepOptions, workers: int) -> ModelSpec:
    """Describe a loaded model for workers, still without its operands.

    Parameters
    ----------
    graph : RuntimeGraph
    options : SweepOptions
    workers : int
        On this machine, which share its memory; 0 for those of a scheduler.
    """
    param, weights = graph.param_path.absolute(), graph.bin_path
    bound = options.memory_bound
    return ModelSpec(
        str(param),
        str(weights.absolute()) if weights is not None else None,
        param.stat().st_size,
        weights.stat().st_size if weights is not None else None,
        layers=tuple(str(Path(path).absolute()) for path in options.layers),
        backend=options.backend,
        ncnn_options=options.ncnn_options,
        seed=options.seed,
        memory_bound=default_bound() // max(workers, 1) if bound is None else bound,
        images=options.images,
        shapes=options.shapes,
        operators=options.operators,
    )
