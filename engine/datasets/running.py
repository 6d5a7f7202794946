"""Runs a data set through a model: here, on processes of this machine, or on a scheduler."""

from __future__ import annotations

import hashlib
import json
import shutil
from contextlib import contextmanager
from dataclasses import asdict, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from engine.atomic import format_os_error, write_file
from engine.datasets.dump import DUMP, array_names, create_dump
from engine.datasets.extra import require_extra
from engine.datasets.failures import FAILURES, unpack_failures
from engine.datasets.inputs import LISTED, InputReader, find_inputs
from engine.datasets.model import LoadedModel, once, own_batch, picture_size, repeated
from engine.datasets.options import SweepOptions, describe_model
from engine.datasets.plan import SHARDS, MergeTree, SweepPlan, merge_results
from engine.datasets.pool import WorkerPool, pool_of
from engine.datasets.progress import Run
from engine.datasets.results import SUMMARY, SUMMARY_VERSION, Sweep, open_sweep, summaries_of
from engine.datasets.shard import ShardRunner, write_arrays
from engine.datasets.statistics import STATISTICS, StatisticsStudy, sample_size
from engine.datasets.studies import ReadsFiles
from engine.datasets.unguarded import leave_importing_worker
from engine.dump import select_operators
from engine.dump.manifest import file_hash, tool_version
from engine.errors import EngineError, SweepError
from engine.file_lock import locked
from engine.inputs import IMAGE_SUFFIXES
from engine.leftovers import find_leftovers
from engine.plain import plain
from engine.runtime import RuntimeGraph, load
from engine.text import format_count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from engine.datasets.inputs import InputSet
    from engine.datasets.model import ModelSpec, OperandFacts
    from engine.datasets.plan import Result
    from engine.datasets.studies import Study
    from engine.values import Array

    _Hashes: TypeAlias = tuple[str, str | None]  # of the .param and the .bin

__all__ = ["sweep"]

_LOCK: Final = ".lock"
_PLANNED: Final = ".planned"  # the listing of inputs, until it is known that they can be run
_TRIED: Final = 16  # inputs, until one can be read
_SHARDS: Final = 64  # of a data set, about
_SHARD: Final = (16, 1024)  # least and most inputs of a task
_DUMPED: Final = 256 << 20  # bytes of a task's tensors, which are in memory together
_BATCHED: Final = 96 << 20  # bytes of all values of a batch
_LARGEST_BATCH: Final = 32
_REPEATED: Final = "the model takes several inputs at once; each input fills its batch alone"
_OWN_SIZES: Final = (
    "the model's file has no size of its inputs, so each picture keeps its own; give a size if "
    "all should have the same"
)


def sweep(
    model: str | Path | RuntimeGraph,
    inputs: str | Path,
    output: str | Path,
    options: SweepOptions | None = None,
    *,
    workers: int | WorkerPool | None = None,
    scheduler: str | None = None,
    resume: bool = False,
    overwrite: bool = False,
    progress: Callable[[int, int], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
    note: Callable[[str], None] | None = None,
    command: Sequence[str] = (),
) -> Sweep:
    """Run a data set through a model and gather what its operands hold.

    Parameters
    ----------
    model : path or RuntimeGraph
        A model, or a loaded one.
    inputs : path
        A folder, a pattern of files, a ``.txt`` with a file a line, or an ``.npy`` or
        ``.zarr`` whose first axis are the inputs.
    output : path
        Folder of the results; created.
    options : SweepOptions, optional
    workers : int or WorkerPool, optional
        Processes on this machine; one a processor by default. With 0 everything runs in this
        process, without Dask. A pool keeps its workers for what comes after the sweep.
    scheduler : str, optional
        Address of a Dask scheduler, such as ``tcp://host:8786``, whose workers are used.
        They read model and inputs, and write results, at the paths given here.
    resume : bool, optional
        Continue an earlier sweep into the folder: results of the same inputs, model and
        options, found by their content, are not computed again.
    overwrite : bool, optional
        Replace an earlier sweep.
    progress : callable, optional
        Called with the inputs that are done, and all of them.
    cancelled : callable, optional
        Called now and then; True ends the sweep.
    note : callable, optional
        Called with a sentence for the user, such as the address of Dask's dashboard.
    command : sequence of str, optional
        The command line that repeats the sweep, for the page of the results.

    Returns
    -------
    Sweep
        The results, also readable by `engine.open_sweep` later.

    Raises
    ------
    SweepError
        If the inputs, the output or the workers cannot be used, no input can be run, or it was
        cancelled. Finished tasks are kept for a resumption. An earlier sweep is left as it was
        if this one cannot begin, or reads what lies in its folder.
    EngineError
        If the model cannot be loaded.
    """
    leave_importing_worker()
    asked = options or SweepOptions()
    require_extra()
    with pool_of(workers, scheduler) as pool:
        folder = _make_folder(Path(output))
        try:
            with locked(folder / _LOCK, 0.0) as held:
                if not held:
                    raise SweepError(f"another process runs a sweep into {folder}")
                _require_ours(folder, replaced=resume or overwrite)
                _require_apart(folder, asked.studies)
                graph = model if isinstance(model, RuntimeGraph) else _load_model(model, asked)
                run = Run(0, progress, cancelled, note)
                _sweep_into(folder, graph, inputs, asked, pool, run, overwrite=overwrite)
                found = open_sweep(folder)
                # Imported only here: workers import this module and draw no page.
                from engine.datasets.page import write_summary_page

                write_summary_page(found, command=command)
        except OSError as exc:
            raise SweepError(
                f"{exc.filename or folder} cannot be written: {format_os_error(exc)}; what is "
                "finished is kept"
            ) from exc
    return found


def _sweep_into(
    folder: Path,
    graph: RuntimeGraph,
    inputs: str | Path,
    asked: SweepOptions,
    pool: WorkerPool,
    run: Run,
    *,
    overwrite: bool,
) -> None:
    """Run all inputs, and write the results but for the page."""
    hashes = _hashes(graph)
    with _planned_in(folder) as planned:
        plan = _make_plan(graph, hashes, inputs, folder, planned, asked, pool.sharing)
        client = None if pool.is_here else pool.client(folder, run)
        # Nothing of an earlier sweep is touched before this.
        _remove_earlier(folder, overwrite=overwrite)
        plan = _settled(plan, folder)
    with _nothing_left_unless_begun(folder):
        if plan.dump:
            attributes = _attributes(graph, hashes, plan)
            create_dump(folder, plan.model.operands, plan.inputs.count, plan.shard, attributes)
        run.total = plan.inputs.count
        remarks = _remarks(graph, plan)
        for remark in remarks:
            run.tell(remark)
        if client is None:
            result = _run_here(plan, graph, run)
        else:
            from engine.datasets.cluster import run_on_cluster

            result = run_on_cluster(plan, client, pool.scheduler, run)
    find_leftovers()  # removes what workers that were killed had begun to write
    _write_results(plan, graph, hashes, asked, result, remarks)


# The folder


def _make_folder(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        raise SweepError(f"{folder} cannot be created: {format_os_error(exc)}") from exc
    return folder


def _require_ours(folder: Path, *, replaced: bool) -> None:
    """Check that a folder is ours to write to, and that an earlier sweep may be replaced."""
    there = {path.name for path in folder.iterdir()} - {_LOCK, _PLANNED}
    if not there:
        return
    if not there & {SUMMARY, SHARDS, DUMP, *LISTED}:
        raise SweepError(f"{folder} has other files; choose a folder of its own")
    if not replaced:
        raise SweepError(
            f"{folder} holds a sweep already: --resume continues it, --overwrite replaces it"
        )


def _require_apart(folder: Path, studies: Sequence[Study]) -> None:
    """Check that no study reads what the sweep may write over or remove."""
    for study in studies:
        for path in study.reads if isinstance(study, ReadsFiles) else ():
            if Path(path).resolve().is_relative_to(folder.resolve()):
                raise SweepError(
                    f"the reference {path} is in the folder of the results: choose another "
                    "--output"
                )


@contextmanager
def _planned_in(folder: Path) -> Iterator[Path]:
    """Give a folder for the listing of inputs, beside that of an earlier sweep."""
    planned = folder / _PLANNED
    shutil.rmtree(planned, ignore_errors=True)  # of a killed process
    planned.mkdir()
    try:
        yield planned
    finally:
        shutil.rmtree(planned, ignore_errors=True)


def _settled(plan: SweepPlan, folder: Path) -> SweepPlan:
    """Move the listing of inputs to its place."""
    inputs = plan.inputs
    if inputs.kind != "files":
        return plan
    for name in LISTED:
        (Path(inputs.path) / name).replace(folder / name)
    return replace(plan, inputs=replace(inputs, path=plan.output))


def _remove_earlier(folder: Path, *, overwrite: bool) -> None:
    (folder / SUMMARY).unlink(missing_ok=True)  # it is not finished now
    if overwrite:
        for name in (SHARDS, DUMP):
            shutil.rmtree(folder / name, ignore_errors=True)


@contextmanager
def _nothing_left_unless_begun(folder: Path) -> Iterator[None]:
    """Remove the names of the inputs, and a new dump, if it ends before a result is kept.

    So the command can be put right, or workers started, and it be given again. A dump that was
    there before stays: it may be a whole one, whose kept results were removed.
    """
    had_dump = (folder / DUMP).exists()
    try:
        yield
    except (EngineError, OSError, KeyboardInterrupt):
        if not (folder / SHARDS).exists():
            for name in LISTED:
                (folder / name).unlink(missing_ok=True)
            if not had_dump:
                shutil.rmtree(folder / DUMP, ignore_errors=True)
        raise


# The plan


def _make_plan(
    graph: RuntimeGraph,
    hashes: _Hashes,
    inputs: str | Path,
    folder: Path,
    planned: Path,
    options: SweepOptions,
    workers: int,
) -> SweepPlan:
    found = find_inputs(inputs, planned, options.limit)
    if Path(found.path).resolve().is_relative_to((folder / DUMP).resolve()):
        raise SweepError(f"inputs {found.source!r}: they are in the dump that is to be written")
    spec = describe_model(graph, options, workers)
    loaded = LoadedModel(spec, graph)
    with InputReader(found) as reader:
        spec = _probed(loaded, reader, options)
    studies: list[Study] = list(options.studies)
    if options.statistics:
        study = StatisticsStudy(
            options.top, options.histograms, options.covariance, sample_size(found.count)
        )
        studies.insert(0, study)
    if not studies and not options.dump:
        raise SweepError("there is nothing to gather: ask for statistics, a dump or a study")
    shard = _choose_shard(found, spec, options)
    return SweepPlan(
        str(folder.absolute()),
        spec,
        found,
        tuple(studies),
        shard,
        _key_of(hashes, spec, options, found, studies),
        dump=options.dump,
        strict=options.strict,
    )


def _load_model(path: str | Path, options: SweepOptions) -> RuntimeGraph:
    if options.layers:
        from engine.layers import load_layers

        for each in options.layers:
            load_layers(each)
    return load(path)


def _filled(
    model: LoadedModel, runs: Sequence[Mapping[str, Array]], options: SweepOptions
) -> ModelSpec | None:
    """Look whether different inputs can fill the batch that the model takes; None if not."""
    batch = own_batch(model.graph, model.spec)
    if batch == 1 or options.studies:  # a study may run another model, input by input
        return None
    try:
        inputs = [once(each, batch) for each in runs]
    except EngineError:
        return None
    if not model.can_fill([inputs[0], inputs[-1]]):
        return None
    facts = model.describe(model.run(repeated(inputs[0], batch)), batch)
    spec = replace(model.spec, operands=facts, batch=batch, fixed_batch=batch)
    return spec if _all_batched(spec) else None


def _probed(model: LoadedModel, reader: InputReader, options: SweepOptions) -> ModelSpec:
    """Run the first input that can be run, to know what the operands are like."""
    runs: list[dict[str, Array]] = []
    failure: EngineError | None = None
    facts: tuple[OperandFacts, ...] = ()
    for index in range(min(_TRIED, reader.inputs.count)):
        try:
            with model.session.within_bound():
                loaded = reader.load(index, model.inputs, options.images, model.shapes)
            if not runs:
                facts = _facts_of(model, loaded, options)
        except EngineError as exc:
            failure = failure or exc
            continue
        # One of another size is no run beside the first. It may be damaged, and once it is
        # mended nothing else may have changed.
        if not runs or _shapes_of(loaded) == _shapes_of(runs[0]):
            runs.append(loaded)
        if len(runs) == 2:
            break
    if not runs:
        raise SweepError(f"none of the first inputs can be run: {failure}")
    filled = _filled(model, runs, options)
    if filled is not None:
        return filled
    try:
        spec = replace(model.spec, operands=facts or model.describe(model.run(runs[0])))
    except EngineError as exc:
        raise SweepError(f"none of the first inputs can be run: {exc}") from exc
    batch = _choose_batch(spec, options)
    if batch > 1 and len(runs) == 2 and _all_batched(spec) and model.allows_batches(runs):
        return replace(spec, batch=batch)
    return spec


def _facts_of(
    model: LoadedModel, loaded: Mapping[str, Array], options: SweepOptions
) -> tuple[OperandFacts, ...]:
    """Run an input; without a result if it runs only repeated, to fill the model's batch."""
    batch = own_batch(model.graph, model.spec)
    try:
        return model.describe(model.run(loaded))
    except EngineError:
        if batch == 1 or options.studies:
            raise
        model.run(repeated(once(loaded, batch), batch))
        return ()


def _shapes_of(inputs: Mapping[str, Array]) -> dict[str, tuple[int, ...]]:
    return {name: array.shape for name, array in inputs.items()}


def _all_batched(spec: ModelSpec) -> bool:
    return all(facts.batched for facts in spec.operands)


def _choose_batch(spec: ModelSpec, options: SweepOptions) -> int:
    if options.batch is not None:
        return options.batch
    return max(1, min(_LARGEST_BATCH, _BATCHED // max(spec.input_bytes, 1)))


def _choose_shard(inputs: InputSet, spec: ModelSpec, options: SweepOptions) -> int:
    """Choose the inputs of a task, by what does not depend on the number of workers."""
    least, most = _SHARD
    size = options.shard or max(least, min(-(-inputs.count // _SHARDS), most))
    if options.dump and options.shard is None:
        size = min(size, max(1, _DUMPED // max(spec.input_bytes, 1)))
    return -(-size // spec.batch) * spec.batch


def _key_of(
    hashes: _Hashes,
    spec: ModelSpec,
    options: SweepOptions,
    inputs: InputSet,
    studies: Sequence[Study],
) -> str:
    """Return a hash of everything but the inputs that results depend on."""
    facts = [
        *(digest or "" for digest in hashes),
        options.digest(tuple(Path(path) for path in options.layers)),
        str(spec.batch),
        repr(spec.operands),
        *(f"{study.name} {study.key}" for study in studies),
        # The arrays of a dump are as long as the data set.
        str(inputs.count) if options.dump else "",
        tool_version(),
    ]
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()


def _hashes(graph: RuntimeGraph) -> _Hashes:
    weights = graph.bin_path
    param = file_hash(graph.param_path, _go_on)
    return param, file_hash(weights, _go_on) if weights is not None else None


def _go_on() -> None:
    """Nothing cancels the hashing of a model."""


def _remarks(graph: RuntimeGraph, plan: SweepPlan) -> list[str]:
    """Return sentences on how the inputs run that the user should know."""
    spec = plan.model
    remarks = [_REPEATED] if spec.fixed_batch < own_batch(graph, spec) else []
    selected = select_operators(graph, spec.operators)
    lacking = [operator for operator in selected if operator.reason]
    if lacking:
        count = format_count(len(lacking), "operator")
        remarks.append(
            f"{count} cannot run, and what needs the results is left out: {lacking[0].reason}"
        )
    if picture_size(graph) is None and not spec.shapes and spec.images.size is None:
        with InputReader(plan.inputs) as reader:
            if reader.name(0).lower().endswith(IMAGE_SUFFIXES):
                remarks.append(_OWN_SIZES)
    return remarks


def _attributes(graph: RuntimeGraph, hashes: _Hashes, plan: SweepPlan) -> dict[str, Any]:
    spec, inputs = plan.model, plan.inputs
    names = array_names(spec.operands)
    param, weights = hashes
    return {
        "kuiper_studio": {
            "version": tool_version(),
            "model": str(graph.source_path),
            "sha256": param,
            "bin_sha256": weights,
            "inputs": inputs.count,
            "source": inputs.source,
            "arrays": [
                {
                    "array": names[each.name],
                    "operand": each.name,
                    "operator": each.operator,
                    "type": each.type,
                }
                for each in spec.operands
            ],
            "outputs": [operand.name for operand in graph.output_operands],
        }
    }


# Running and results


def _run_here(plan: SweepPlan, graph: RuntimeGraph, run: Run) -> Result:
    runner = ShardRunner(plan, graph)
    tree: MergeTree[Result] = MergeTree(partial(merge_results, plan.studies))
    try:
        for number in range(plan.shards):
            run.check()
            tree.push(runner.run(number))
            run.advance(len(plan.range_of(number)))
    finally:
        runner.close()
    return tree.finish()


def _write_results(
    plan: SweepPlan,
    graph: RuntimeGraph,
    hashes: _Hashes,
    options: SweepOptions,
    result: Result,
    remarks: Sequence[str],
) -> None:
    folder = Path(plan.output)
    failed, done, listed = unpack_failures(result[FAILURES])
    if not done:
        raise SweepError(f"none of the inputs could be run: {listed[0].reason}")
    for study in plan.studies:
        write_arrays(folder / f"{study.name}.npz", result[study.name])
    param, weights = hashes
    summary = {
        "sweep": SUMMARY_VERSION,
        "version": tool_version(),
        "model": {
            "name": graph.source_path.name,
            "param": plan.model.param,
            "bin": plan.model.bin,
            "sha256": param,
            "bin_sha256": weights,
            "operators": len(graph.operators),
        },
        "options": plain(_options_of(options)),
        "studies": [study.name for study in plan.studies],
        "shard": plan.shard,
        "batch": plan.model.batch,
        "inputs": {
            "set": asdict(plan.inputs),
            "done": done,
            "failed_count": failed,
            "failed": [asdict(each) for each in listed],
        },
        "remarks": list(remarks),
        "operands": _operand_rows(plan, result),
    }
    write_file(folder / SUMMARY, json.dumps(summary, allow_nan=False).encode())


def _options_of(options: SweepOptions) -> dict[str, Any]:
    return {
        each.name: asdict(options.images)
        if each.name == "images"
        else getattr(options, each.name)
        for each in fields(options)
        if each.name != "studies"
    }


def _operand_rows(plan: SweepPlan, result: Result) -> dict[str, Any]:
    facts = list(plan.model.operands)
    numbers: dict[str, dict[str, Any]] = {}
    if STATISTICS in result:
        for each in summaries_of(facts, result[STATISTICS]):
            numbers[each.name] = {
                name: plain(getattr(each, name))
                for name in ("count", "min", "max", "mean", "std", "nan", "inf", "zeros")
            }
    return {
        each.name: {
            "operator": each.operator,
            "type": each.type,
            "shape": list(each.shape),
            "dtype": each.dtype,
            "batched": each.batched,
            "axis": each.axis,
            "dimensions": list(each.dimensions),
            "constant": each.constant,
        }
        | numbers.get(each.name, {})
        for each in facts
    }
