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
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

from engine.comparison.recorders.writer import Writer, hash_of, main

_AT_ONCE = 64  # outputs per run, which bounds the memory
_NUMBERS = "?biufc"  # kinds of dtypes that are recorded
_LARGEST = (1 << 31) - (1 << 20)  # bytes of a model without files beside it


def record(onnx_path, inputs, folder, providers=("CPUExecutionProvider",)):
    """Run a model and record it.

    Parameters
    ----------
    onnx_path : path
    inputs : sequence of ndarray, or dict of str to ndarray
        In the model's order, or by name; or one array.
    folder : path
        Folder to write to; new or empty.
    providers : sequence of str, optional
        ONNX Runtime's execution providers.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    ValueError
        If the model takes other inputs; then nothing is written.
    """
    model = onnx.load(str(onnx_path))
    graph = model.graph
    weights = {each.name: each for each in graph.initializer}
    outputs = [each.name for each in graph.output]
    inputs = _fit(inputs, graph, weights)
    weights = {name: each for name, each in weights.items() if name not in inputs}
    session, fetched = _exposing(model, list(providers))
    writer = Writer(folder, f"onnxruntime {onnxruntime.__version__}")
    keys = {
        name: writer.tensor(array, name, "input")
        for name, array in inputs.items()
        if array.dtype.kind in _NUMBERS
    }
    writer.inputs += keys.values()
    keys.update(_write_constants(writer, graph, weights))
    keys.update(_write_results(writer, session, fetched, inputs))
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


def _write_results(writer, session, fetched, inputs):
    """Run a model and write what every node gives; return the keys by name."""
    keys, names = {}, list(fetched)
    for start in range(0, len(names), _AT_ONCE):
        part = names[start : start + _AT_ONCE]
        for name, value in zip(part, session.run([fetched[n] for n in part], inputs)):
            if isinstance(value, np.ndarray) and value.dtype.kind in _NUMBERS:
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


def _fit(inputs, graph, weights):
    """Return the inputs by name, in the dtypes of the model; an error says what it takes."""
    taken = {each.name: each.type for each in graph.input}
    fed = [name for name in taken if name not in weights]
    if isinstance(inputs, np.ndarray):
        inputs = [inputs]
    if not isinstance(inputs, dict):
        if len(inputs) != len(fed):
            given = f"{len(inputs)} were given"
            raise ValueError(f"the model has the inputs {', '.join(fed)}, but {given}")
        inputs = dict(zip(fed, inputs))
    if wrong := [*sorted(set(fed) - set(inputs)), *sorted(set(inputs) - set(taken))]:
        reason = "is missing" if wrong[0] in taken else "is none of them"
        raise ValueError(f"the model has the inputs {', '.join(fed)}; {wrong[0]!r} {reason}")
    fitting = {}
    for name, value in inputs.items():
        kind = taken[name].tensor_type
        if not kind.elem_type:
            raise ValueError(f"the input {name!r} is no tensor, which cannot be recorded")
        array = np.asarray(value)
        dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type))
        if array.dtype != dtype and not np.can_cast(array.dtype, dtype, "same_kind"):
            raise ValueError(f"the input {name!r} takes {dtype}, not {array.dtype}")
        sizes = [dim.dim_value or dim.dim_param or "?" for dim in kind.shape.dim]
        fits = len(sizes) == array.ndim and all(
            isinstance(size, str) or size == actual for size, actual in zip(sizes, array.shape)
        )
        if kind.HasField("shape") and not fits:
            wanted = ", ".join(map(str, sizes))
            raise ValueError(f"the input {name!r} takes ({wanted}), not {array.shape}")
        fitting[name] = array.astype(dtype, copy=False)
    return fitting


def _exposing(model, providers):
    """Return a session whose outputs are all tensors of nodes, and their names in it."""
    graph = model.graph
    count, names = len(graph.node), [n for node in graph.node for n in node.output if n]
    known = {each.name for each in graph.output}
    graph.output.extend(onnx.ValueInfoProto(name=n) for n in names if n not in known)
    session = _session(model, providers)
    fetched = {name: name for name in names}
    for each in session.get_outputs():  # NumPy does not have these types
        if each.name in fetched and each.type.startswith(("tensor(bfloat16", "tensor(float8")):
            wide = fetched[each.name] = f"{each.name}/float32"
            to = onnx.TensorProto.FLOAT
            graph.node.append(onnx.helper.make_node("Cast", [each.name], [wide], to=to))
            graph.output.append(onnx.ValueInfoProto(name=wide))
    if len(graph.node) > count:
        session = _session(model, providers)
        del graph.node[count:]
    return session, fetched


def _session(model, providers):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    if model.ByteSize() <= _LARGEST:
        data = model.SerializeToString()
        return onnxruntime.InferenceSession(data, options, providers=providers)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "model.onnx"))
        copy = onnx.ModelProto()
        copy.CopyFrom(model)  # saving takes the weights out
        onnx.save(copy, path, save_as_external_data=True, location="weights")
        return onnxruntime.InferenceSession(path, options, providers=providers)


if __name__ == "__main__":
    sys.exit(main(record, "MODEL.onnx", sys.argv))
