"""Meanings of arguments that are the same in all operators, for the notes.

A docstring's own text has precedence.
"""

from __future__ import annotations

from typing import Final

__all__ = ["COMMON"]

_ONE_DEVICE: Final = "No effect: tensors are NumPy arrays in main memory."
_INFERENCE: Final = "No effect at inference."
_EACH_AXIS: Final = "one number per axis, or one for all."

COMMON: Final[dict[str, str]] = {
    "affine": "Whether there is a weight and a bias.",
    "axes": "Dimensions to reduce or transform; all by default.",
    "axis": "The dimension of the channels.",
    "batch_first": "Whether the batch dimension is before the steps.",
    "bias": "Whether there is a bias, or the bias itself.",
    "bidirectional": "Whether a second pass runs from the last step to the first.",
    "device": _ONE_DEVICE,
    "dilation": f"Distance of the window's taps: {_EACH_AXIS}",
    "dilation_h": "Distance of the kernel's taps, in rows.",
    "dilation_w": "Distance of the kernel's taps, in columns.",
    "dim": "The dimension; negative ones count from the last.",
    "dims": "The dimensions; negative ones count from the last.",
    "dropout": _INFERENCE,
    "dtype": "Data type of the result.",
    "elementwise_affine": "Whether there is a weight, and a bias if the type has one.",
    "embed_dim": "Number of features of a query.",
    "eps": "A small number that prevents a division by 0 or a logarithm of 0.",
    "generator": "No effect: the session's random seed is used.",
    "groups": "Number of independent groups of channels.",
    "has_biases": "Whether there are biases.",
    "hidden_size": "Number of features of the state.",
    "high": "Upper bound of the random numbers, exclusive.",
    "hx": "The initial state; zeros by default.",
    "in_channels": "Number of channels of the input.",
    "in_features": "Length of the input's last dimension.",
    "input_size": "Number of features of the input.",
    "keepdim": "Whether the dimensions that are reduced stay, with size 1.",
    "keepdims": "Whether the dimensions that are reduced stay, with size 1.",
    "kernel_size": f"Size of the window: {_EACH_AXIS}",
    "layout": _ONE_DEVICE,
    "low": "Lower bound of the random numbers, inclusive.",
    "memory_format": _ONE_DEVICE,
    "momentum": _INFERENCE,
    "non_blocking": _ONE_DEVICE,
    "noop_with_empty_axes": "Whether empty axes mean no reduction.",
    "norm_first": "Whether to normalise before attention and the linear layers, not after.",
    "num_channels": "Number of channels of the input.",
    "num_features": "Number of channels of the input.",
    "num_head": "Number of heads; they share the features.",
    "num_heads": "Number of heads; they share the features.",
    "num_layers": "Number of stacked recurrent layers.",
    "num_parameters": "Length of the weight.",
    "offset_groups": "Number of groups of channels with their own offsets.",
    "out_channels": "Number of channels of the output.",
    "out_features": "Length of the output's last dimension.",
    "output_size": f"Size of the result: {_EACH_AXIS}",
    "p": "Order of the norm: 2 is the root of the sum of squares.",
    "pad_h": "Rows of zeros above and below.",
    "pad_w": "Columns of zeros on both sides.",
    "padding": f"Padding on both sides: {_EACH_AXIS}",
    "params": "Weights and biases of all layers, in order.",
    "pin_memory": _ONE_DEVICE,
    "pooled_height": "Rows of the result.",
    "pooled_width": "Columns of the result.",
    "quant_max": "The largest quantised number.",
    "quant_min": "The smallest quantised number.",
    "reduction": "Reduction of the losses: ``mean``, ``sum`` or ``none``.",
    "requires_grad": "No effect: there are no gradients.",
    "scale": "Scale of the quantisation, a factor of quantised numbers.",
    "scale_factor": "Factor of the spatial sizes.",
    "size": "Sizes of the result's dimensions.",
    "stride": f"Distance of the windows: {_EACH_AXIS}",
    "stride_h": "Distance of the windows, in rows.",
    "stride_w": "Distance of the windows, in columns.",
    "track_running_stats": "Whether there are stored statistics.",
    "train": _INFERENCE,
    "training": "Whether to run as in training; False at inference.",
    "use_mask": "Whether the mask is used.",
    "zero_point": "The quantised number of 0.",
}
