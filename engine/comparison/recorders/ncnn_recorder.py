"""Records what ncnn computes, for `kuiper-studio compare --reference FOLDER`.

    from ncnn_recorder import record
    record("model.ncnn.param", [image], "recording")

or on the command line, with inputs as .npy and without a batch axis:

    python ncnn_recorder.py model.ncnn.param recording input.npy

The command survives a layer at which ncnn crashes, and names it.

Every blob is recorded, with options for exact numbers; quantised layers compute in int8. Change
`OPTIONS` to your deployed ones.
Needs NumPy and ncnn.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import ncnn
import numpy as np

from engine.comparison.recorders.writer import Writer, main

OPTIONS = {
    "use_fp16_packed": False,
    "use_fp16_storage": False,
    "use_fp16_arithmetic": False,
    "use_bf16_storage": False,
    "use_winograd_convolution": False,
    "use_sgemm_convolution": False,
    "use_packing_layout": False,
    "use_int8_inference": True,  # without it ncnn reads int8 weights as float32
    "use_vulkan_compute": False,
}
WATCHED = "NCNN_RECORDER_IS_WATCHED"  # variable of the environment of the process that computes
REACHED = "computing.txt"  # the layer that ncnn computes, in the folder


def record(param_path, inputs, folder, options=None):
    """Run a model and record it.

    Parameters
    ----------
    param_path : path
        The .param; its .bin has the same name.
    inputs : sequence of ndarray
        At most 4 axes; of 4 axes the first is dropped if its size is 1, because it is the
        batch.
    folder : path
        Folder to write to; new or empty.
    options : dict of str to bool, optional
        Instead of `OPTIONS`.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    ValueError
        If ncnn cannot run the model, or takes other inputs.
    """
    net = load(Path(param_path), OPTIONS if options is None else options)
    blobs, layers = net.blobs(), net.layers()
    fed = [blobs[index].name for index in net.input_indexes()]
    if len(fed) != len(inputs):
        wanted = ", ".join(fed)
        raise ValueError(f"{param_path} has {len(fed)} inputs ({wanted}), not {len(inputs)}")
    writer = Writer(folder, f"ncnn {ncnn.__version__}")
    extractor = net.create_extractor()
    keys, held, missing = {}, [], []
    reached = Path(folder, REACHED)
    for name, value in zip(fed, inputs):
        array = np.ascontiguousarray(value)
        if array.ndim > 3 and array.shape[0] == 1:
            array = array[0]
        # A layer of ncnn takes 4 bytes for each element, whatever the array has.
        array = array.astype(np.int32 if array.dtype.kind in "biu" else np.float32, copy=False)
        keys[name] = writer.tensor(array, name, "input")
        writer.inputs.append(keys[name])
        held.append(array)
        extractor.input(name, ncnn.Mat(array).clone())
    last = set(net.output_indexes())
    for index, blob in enumerate(blobs):
        if blob.name in keys:
            continue
        producer = f"{layers[blob.producer].name} ({layers[blob.producer].type})"
        reached.write_text(producer, encoding="utf-8")
        failed, value = extractor.extract(blob.name)
        if failed or value.empty():
            missing.append(producer)
            continue
        keys[blob.name] = writer.tensor(np.array(value), blob.name)
        if index in last:
            writer.outputs.append(keys[blob.name])
    for layer in layers:
        writer.operator(
            layer.name,
            layer.type,
            [keys[blobs[i].name] for i in layer.bottoms if blobs[i].name in keys],
            [keys[blobs[i].name] for i in layer.tops if blobs[i].name in keys],
        )
    reached.unlink(missing_ok=True)
    if missing:
        text = f"ncnn returns nothing for {missing[0]}, so {len(missing)} blobs are missing"
        print(text, file=sys.stderr)
    return writer.close()


def load(path, options):
    """Load a pair; an error names the layers that ncnn does not have."""
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()[2:]
    words = [line.split()[:2] for line in lines if len(line.split()) > 1]
    unknown = {kind: layer for kind, layer in words if ncnn.layer_to_index(kind) < 0}
    if unknown:
        named = ", ".join(f"{kind} ({layer})" for kind, layer in unknown.items())
        raise ValueError(
            f"ncnn cannot run {path}, because it does not have the layers {named}: "
            "record PyTorch or ONNX Runtime instead"
        )
    net = ncnn.Net()
    for name, value in options.items():
        setattr(net.opt, name, value)
    net.opt.lightmode = False
    if net.load_param(str(path)) or net.load_model(str(path.with_suffix(".bin"))):
        raise ValueError(f"{path} and its .bin cannot be loaded")
    return net


def watch(arguments):
    """Run the command line in a process of its own, because ncnn crashes at wrong sizes."""
    if WATCHED in os.environ:
        return main(record, "MODEL.ncnn.param", arguments)
    status = subprocess.run(  # noqa: S603 - the same command, with the same arguments
        [sys.executable, *arguments], env={**os.environ, WATCHED: "1"}, check=False
    ).returncode
    if status in (0, 1, 2):
        return status
    reached = Path(arguments[2], REACHED)
    at = f"at {reached.read_text(encoding='utf-8')}" if reached.exists() else "on loading it"
    print(
        f"ncnn cannot run {arguments[1]} with these inputs: it crashes {at}: the sizes of the "
        "blobs and weights there do not fit each other",
        file=sys.stderr,
    )
    return 2


if __name__ == "__main__":
    sys.exit(watch(sys.argv))
