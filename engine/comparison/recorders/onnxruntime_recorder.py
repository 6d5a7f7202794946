"""Records what ONNX Runtime computes, for `kuiper-studio compare --reference FOLDER`.

    from onnxruntime_recorder import record
    record("model.onnx", [image], "recording")

or on the command line, with inputs as .npy:

    python onnxruntime_recorder.py model.onnx recording input.npy

Every output of every node is exposed, and no node is optimised away. Needs NumPy, ONNX Runtime
and onnx.
"""

from __future__ import annotations

import sys

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

from engine.comparison.recorders.writer import Writer, hash_of, main

_AT_ONCE = 64  # outputs per run, which bounds the memory


def record(onnx_path, inputs, folder):
    """Run a model and record it.

    Parameters
    ----------
    onnx_path : path
    inputs : sequence of ndarray, or dict of str to ndarray
        In the model's order, or by name.
    folder : path
        Folder to write to; new or empty.

    Returns
    -------
    Path
        The folder.
    """
    model = onnx.load(str(onnx_path))
    graph = model.graph
    weights = {each.name: each for each in graph.initializer}
    fed = [each.name for each in graph.input if each.name not in weights]
    outputs = [each.name for each in graph.output]
    if not isinstance(inputs, dict):
        inputs = dict(zip(fed, inputs))
    writer = Writer(folder, f"onnxruntime {onnxruntime.__version__}")
    keys = {name: writer.tensor(np.asarray(inputs[name]), name, "input") for name in fed}
    writer.inputs += keys.values()
    keys.update(_write_constants(writer, graph, weights))
    keys.update(_write_results(writer, model, inputs))
    writer.outputs += [keys[name] for name in outputs if name in keys]
    _write_operators(writer, graph, weights, keys)
    return writer.close()


def _write_constants(writer, graph, weights):
    """Write the constants that nodes compute with; return their keys by name."""
    keys = {}
    for node in graph.node:
        for name in node.input:
            if name in weights and name not in keys and node.op_type not in _WITH_WEIGHTS:
                array = numpy_helper.to_array(weights[name])
                keys[name] = writer.tensor(array, name, "constant")
    return keys


def _write_results(writer, model, inputs):
    """Run a model and write what every node gives; return the keys by name."""
    names = [name for node in model.graph.node for name in node.output if name]
    session = _exposing(model, names)
    keys = {}
    for start in range(0, len(names), _AT_ONCE):
        part = names[start : start + _AT_ONCE]
        for name, value in zip(part, session.run(part, inputs)):
            if isinstance(value, np.ndarray) and value.dtype.kind in "?biufc":
                keys[name] = writer.tensor(value, name)
    return keys


def _write_operators(writer, graph, weights, keys):
    """Write which node computes what from what, with which weights."""
    weights, hashes = dict(weights), {}
    for node in graph.node:  # exporters store equal weights once
        if node.op_type == "Identity" and node.input[0] in weights:
            weights[node.output[0]] = weights[node.input[0]]
    for node in graph.node:
        writer.operator(
            node.name or node.output[0],
            node.op_type,
            [keys[name] for name in node.input if name in keys],
            [keys[name] for name in node.output if name in keys],
            _hashes(node, weights, hashes),
            {each.name: onnx.helper.get_attribute_value(each) for each in node.attribute},
        )


_WITH_WEIGHTS = frozenset(
    [
        "Conv",
        "ConvTranspose",
        "Gemm",
        "MatMul",
        "BatchNormalization",
        "LayerNormalization",
        "InstanceNormalization",
        "GroupNormalization",
        "LSTM",
        "GRU",
        "RNN",
        "Gather",
        "Reshape",
    ]
)


def _hashes(node, weights, known):
    """Return the hashes of a node's weights, by name; `known` keeps them for the next nodes."""
    found = {}
    for place, name in enumerate(node.input):
        if name not in weights:
            continue
        as_linear = place == 1 and _is_transposed(node)
        for key in (name, f"{name} transposed") if as_linear else (name,):
            if key not in known:
                array = numpy_helper.to_array(weights[name])
                array = array if key == name else array.T
                known[key] = hash_of(array) if array.dtype.kind in "fiu" else None
            if known[key] is not None:
                found[key] = known[key]
    return found


def _is_transposed(node):
    """Whether the second input of a node is the transposed weight of a linear layer."""
    if node.op_type == "Gemm":
        return not any(each.name == "transB" and each.i for each in node.attribute)
    return node.op_type == "MatMul"


def _exposing(model, names):
    """Return a session of a model whose outputs are all tensors of its nodes."""
    known = {each.name for each in model.graph.output}
    for name in names:
        if name not in known:
            model.graph.output.append(onnx.ValueInfoProto(name=name))
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


if __name__ == "__main__":
    sys.exit(main(record, "MODEL.onnx", sys.argv))
