"""Records what ncnn computes, for `kuiper-studio compare --reference FOLDER`.

    from ncnn_recorder import record
    record("model.ncnn.param", [image], "recording")

or on the command line, with inputs as .npy and without a batch axis:

    python ncnn_recorder.py model.ncnn.param recording input.npy

Every blob is recorded, with options for exact numbers; quantised layers compute in int8. Change
`OPTIONS` to your deployed ones.
Needs NumPy and ncnn.
"""

from __future__ import annotations

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
    """
    net = ncnn.Net()
    for name, value in (OPTIONS if options is None else options).items():
        setattr(net.opt, name, value)
    net.opt.lightmode = False
    path = Path(param_path)
    if net.load_param(str(path)) or net.load_model(str(path.with_suffix(".bin"))):
        raise ValueError(f"{path} and its .bin cannot be loaded")
    blobs, layers = net.blobs(), net.layers()
    fed = [blobs[index].name for index in net.input_indexes()]
    writer = Writer(folder, f"ncnn {ncnn.__version__}")
    extractor = net.create_extractor()
    keys, held = {}, []
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
        failed, value = extractor.extract(blob.name)
        if failed:
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
    return writer.close()


if __name__ == "__main__":
    sys.exit(main(record, "MODEL.ncnn.param", sys.argv))
