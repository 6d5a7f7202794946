"""Make the sample models.

usage: python samples/make_samples.py [NAME ...] [--output DIR]

Needs the ``samples`` extra (PyTorch, pnnx, scikit-learn). Everything is seeded and runs in
one thread: a second run on the same machine writes the same weights.
"""

from __future__ import annotations

import os

# Before torch starts its threads: the order of summation decides the last bits.
os.environ["OMP_NUM_THREADS"] = "1"

import argparse
import json
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from golden import Value, as_arrays, flatten, read_pair, run_pair
from recipes import RECIPES

if TYPE_CHECKING:
    from golden import Node
    from recipes import Sample

# Fused batch norms and constants printed with few digits are allowed this much.
TOLERANCE = 1e-4


def export(sample: Sample, param: Path, weights: Path) -> None:
    """Export the model with pnnx."""
    pnnx = shutil.which("pnnx", path=sysconfig.get_path("scripts")) or shutil.which("pnnx")
    if pnnx is None:
        raise FileNotFoundError("pnnx is not installed; install the extra 'samples'")
    arguments = ["inputshape=" + _shapes([tuple(x.shape) for x in sample.golden_inputs])]
    if sample.other_shapes is not None:
        arguments.append("inputshape2=" + _shapes(sample.other_shapes))
    with tempfile.TemporaryDirectory() as scratch:
        with torch.no_grad():
            traced = torch.jit.trace(sample.model, tuple(sample.golden_inputs))
        traced.save(str(Path(scratch, "net.pt")))
        subprocess.run(
            [pnnx, "net.pt", *arguments, "fp16=0"],
            cwd=scratch,
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        shutil.copyfile(Path(scratch, "net.pnnx.param"), param)
        shutil.copyfile(Path(scratch, "net.pnnx.bin"), weights)


def _shapes(shapes: list[tuple[int, ...]]) -> str:
    return ",".join("[" + ",".join(map(str, shape)) + "]" for shape in shapes)


def golden_values(sample: Sample, param: Path, weights: Path) -> dict[str, Value]:
    """Run the exported pair with PyTorch, and hold its outputs against the module's own."""
    with torch.no_grad():
        values, outputs = run_pair(param, weights, sample.golden_inputs)
        expected = flatten([sample.model(*sample.golden_inputs)])
    for got, want in zip(outputs, expected, strict=True):
        torch.testing.assert_close(got, want, rtol=TOLERANCE, atol=TOLERANCE)
    return values


def write(path: Path, content: Any) -> None:
    """Write a file as its suffix says."""
    match path.suffix:
        case ".png":
            content.save(path, optimize=True)
        case ".npy":
            np.save(path, content, allow_pickle=False)
        case ".npz":
            np.savez_compressed(path, **content)
        case ".txt":
            path.write_text("\n".join(content) + "\n", encoding="utf-8")
        case ".json":
            text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
            path.write_text(text + "\n", encoding="utf-8")
        case _:
            raise ValueError(f"{path}: no writer for {path.suffix}")


def description(sample: Sample, files: list[str], nodes: list[Node]) -> dict[str, Any]:
    """What the application reads: the content of ``sample.json``."""
    operands = [node.outputs[0] for node in nodes if node.type == "pnnx.Input"]
    inputs = [
        {"index": i, "operand": name, "file": x.file, "alternatives": list(x.alternatives)}
        for i, (name, x) in enumerate(zip(operands, sample.inputs, strict=True))
    ]
    return {
        "format": 1,
        "name": sample.name,
        "title": sample.title,
        "description": sample.description,
        "model": f"{sample.name}.pnnx.param",
        "weights": f"{sample.name}.pnnx.bin",
        "inputs": inputs,
        "image": None if sample.image is None else asdict(sample.image),
        "labels": "labels.txt" if sample.labels else None,
        "golden": "golden.npz",
        "facts": {"operators": len(nodes), **sample.facts},
        "files": sorted(files),
    }


def make(name: str, output: Path) -> None:
    """Make one sample's folder, replacing what was there."""
    torch.manual_seed(0)
    started = time.perf_counter()
    print(name, flush=True)
    sample = RECIPES[name]()
    with tempfile.TemporaryDirectory(dir=output) as scratch:
        folder = Path(scratch, name)
        folder.mkdir()
        param, weights = folder / f"{name}.pnnx.param", folder / f"{name}.pnnx.bin"
        export(sample, param, weights)
        values = as_arrays(golden_values(sample, param, weights))
        contents = {**sample.files, "golden.npz": values}
        if sample.labels:
            contents["labels.txt"] = sample.labels
        for file, content in contents.items():
            write(folder / file, content)
        nodes = read_pair(param, weights)
        names = [*contents, param.name, weights.name, "sample.json"]
        write(folder / "sample.json", description(sample, names, nodes))
        shutil.rmtree(output / name, ignore_errors=True)
        folder.rename(output / name)
    size = sum(f.stat().st_size for f in (output / name).iterdir())
    seconds = time.perf_counter() - started
    print(f"  {size // 1024} KiB in {seconds:.0f} s; {json.dumps(sample.facts)}")


def main(arguments: list[str]) -> None:
    """Make the samples that the command line names, or all."""
    parser = argparse.ArgumentParser(description="Make the sample models.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(RECIPES)}")
    parser.add_argument("--output", type=Path, default=Path(__file__).resolve().parent)
    options = parser.parse_args(arguments)
    unknown = set(options.names) - set(RECIPES)
    if unknown:
        parser.error(f"no such sample: {', '.join(sorted(unknown))}")
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    options.output.mkdir(parents=True, exist_ok=True)
    for name in options.names or RECIPES:
        make(name, options.output.resolve())


if __name__ == "__main__":
    main(sys.argv[1:])
