"""Arguments that mean the same wherever they come, for the notes.

What a docstring says of its own argument goes before.
"""

from __future__ import annotations

from typing import Final

__all__ = ["COMMON"]

_ONE_DEVICE: Final = "Of no effect: tensors are NumPy's, in the processor's memory."
_INFERENCE: Final = "Of no effect at inference."
_EACH_AXIS: Final = "one number for each axis, or one for all."

COMMON: Final[dict[str, str]] = {
    "affine": "Whether there are a weight and a bias.",
    "axes": "Dimensions to work along; all of them by default.",
    "axis": "The dimension of the channels.",
    "batch_first": "Whether the batch comes before the steps.",
    "bias": "Whether there is a bias; or the bias itself, which is added at the end.",
    "bidirectional": "Whether a second pass goes from the last step to the first.",
    "device": _ONE_DEVICE,
    "dilation": f"Positions from one tap of the window to the next: {_EACH_AXIS}",
    "dilation_h": "Rows from one tap of the kernel to the next.",
    "dilation_w": "Columns from one tap of the kernel to the next.",
    "dim": "The dimension to work along; negative ones count from the last.",
    "dims": "The dimensions to work along; negative ones count from the last.",
    "dropout": _INFERENCE,
    "dtype": "What to convert the values to.",
    "elementwise_affine": "Whether there is a weight, and a bias where the type has one.",
    "embed_dim": "Number of features of a query.",
    "eps": "A small number that keeps a divisor or a logarithm's argument from 0.",
    "generator": "Of no effect: the session's seed decides what is drawn.",
    "groups": "Channels fall into so many groups, each on its own.",
    "has_biases": "Whether there are biases.",
    "hidden_size": "Number of features of the state.",
    "high": "What all numbers that are drawn stay below.",
    "hx": "The state to begin with; zeros by default.",
    "in_channels": "Number of channels of the input.",
    "in_features": "Length of the input's last dimension.",
    "input_size": "Number of features of the input.",
    "keepdim": "Whether the dimensions that are reduced stay, with size 1.",
    "keepdims": "Whether the dimensions that are reduced stay, with size 1.",
    "kernel_size": f"Size of the window: {_EACH_AXIS}",
    "layout": _ONE_DEVICE,
    "low": "The smallest number that can be drawn.",
    "memory_format": _ONE_DEVICE,
    "momentum": _INFERENCE,
    "non_blocking": _ONE_DEVICE,
    "noop_with_empty_axes": "Whether nothing is reduced where there are no axes.",
    "norm_first": "Whether to normalise before attention and the linear layers, not behind.",
    "num_channels": "Number of channels of the input.",
    "num_features": "Number of channels of the input.",
    "num_head": "Number of heads; they share the features.",
    "num_heads": "Number of heads; they share the features.",
    "num_layers": "How many recurrent layers follow each other.",
    "num_parameters": "Length of the weight.",
    "offset_groups": "Groups of channels that have offsets of their own.",
    "out_channels": "Number of channels of the output.",
    "out_features": "Length of the output's last dimension.",
    "output_size": f"Size of the result: {_EACH_AXIS}",
    "p": "Which norm: 2 is the root of the sum of squares.",
    "pad_h": "Rows of zeros above and below.",
    "pad_w": "Columns of zeros on both sides.",
    "padding": f"Positions that are added on both sides: {_EACH_AXIS}",
    "params": "Weights and biases of all layers, in order.",
    "pin_memory": _ONE_DEVICE,
    "pooled_height": "Rows of the result.",
    "pooled_width": "Columns of the result.",
    "quant_max": "The largest quantised number.",
    "quant_min": "The smallest quantised number.",
    "reduction": "What becomes of the losses: ``mean``, ``sum`` or ``none``.",
    "requires_grad": "Of no effect: nothing is differentiated here.",
    "scale": "What a quantised number is multiplied by.",
    "scale_factor": "What the spatial sizes are multiplied by.",
    "size": "Sizes of the result's dimensions.",
    "stride": f"Positions from one window to the next: {_EACH_AXIS}",
    "stride_h": "Rows from one window to the next.",
    "stride_w": "Columns from one window to the next.",
    "track_running_stats": "Whether there are stored statistics.",
    "train": _INFERENCE,
    "training": "Whether it runs as in training; not at inference.",
    "use_mask": "Whether the mask counts.",
    "zero_point": "The quantised number that stands for 0.",
}
