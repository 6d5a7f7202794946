"""Makes int8 pairs of ncnn from float ones, by the rules of ncnn's ``ncnn2int8``."""

from __future__ import annotations

import numpy as np
from ncnn_files import INT8, f32, tagged, write_pair

import engine

QUANTISED = {
    # Type: the identifiers of int8_scale_term and of the group, and the term.
    "Convolution": (8, None, 2),
    "ConvolutionDepthWise": (8, 7, 1),
    "InnerProduct": (8, None, 2),
}


def round_away(x):
    """Round halves away from zero, to -127 to 127."""
    whole = np.trunc(x + np.copysign(0.5, x))
    return np.clip(whole, -127, 127).astype(np.int8)


def scales_of(weight, groups):
    """One scale per group of output channels: 127 steps up to its largest number."""
    largest = np.abs(weight.reshape(groups, -1)).max(1)
    return np.where(largest > 0, 127 / np.maximum(largest, 1e-30), 1).astype(np.float32)


def write_int8_pair(
    param, inputs, folder, name="int8.ncnn", change=None, skip=(), requantised=()
):
    """Quantise a pair; its activations are calibrated on one input.

    Parameters
    ----------
    param : Path
        The float pair.
    inputs : sequence of ndarray
    folder : Path
        Existing.
    name : str
        Of the new pair.
    change : callable, optional
        Takes the name of a layer and a dict of its arrays, to be changed in place.
    skip : collection of str
        Layers to leave in float32.
    requantised : collection of str
        Layers whose results are int8, in the steps of the next layer's input.

    Returns
    -------
    Path
        The new ``.param``.
    """
    graph = engine.load(param)
    session = engine.Session(graph, backend="numpy")
    session.feed(inputs)
    session.run()
    lines, data = [], b""
    for line in param.read_text().splitlines()[2:]:
        kind, layer, *_ = line.split()
        operator = graph.operator(layer)
        arrays = {key: np.array(a.array) for key, a in operator.attributes.items()}
        term, group, value = QUANTISED.get(kind, (None, None, 0))
        if term is not None and layer not in skip and "weight" in arrays:
            weight = arrays["weight"].astype(np.float32)
            groups = weight.shape[0]
            if group is not None:
                words = dict(word.split("=") for word in line.split() if "=" in word)
                groups = int(words.get(str(group), 1))
            x = session.value(operator.inputs[0].name)
            arrays["scales"] = scales_of(weight, groups)
            arrays["input"] = np.float32([127 / max(float(np.abs(x).max()), 1e-30)])
            arrays["weight"] = weight
            if layer in requantised:
                largest = float(np.abs(session.value(operator.outputs[0].name)).max())
                arrays["top"] = np.float32([127 / largest])
                value += 100
            if change is not None:
                change(layer, arrays)
            steps = np.repeat(arrays["scales"], weight.shape[0] // groups)
            steps = steps.reshape(-1, *(1,) * (weight.ndim - 1))
            data += tagged(round_away(arrays["weight"] * steps), INT8)
            data += f32(arrays["bias"]) if "bias" in arrays else b""
            data += f32(arrays["scales"]) + f32(arrays["input"])
            data += f32(arrays["top"]) if "top" in arrays else b""
            lines.append(f"{line} {term}={value}")
        else:
            assert set(arrays) <= {"weight", "bias"}, (layer, set(arrays))
            data += tagged(arrays["weight"].astype(np.float32)) if "weight" in arrays else b""
            data += f32(arrays["bias"]) if "bias" in arrays else b""
            lines.append(line)
    return write_pair(folder, lines, data, name)
