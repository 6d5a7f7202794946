"""A small network and what it computes, by definition."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["LINES", "conv3x3", "make_weights", "truth"]

LINES = tuple(
    """\
pnnx.Input in0 0 1 0 #0=(1,3,8,8)f32
nn.Conv2d conv 1 1 0 1 bias=True dilation=(1,1) groups=1 in_channels=3 kernel_size=(3,3) \
out_channels=4 padding=(1,1) padding_mode=zeros stride=(1,1) @bias=(4)f32 \
@weight=(4,3,3,3)f32 $input=0 #0=(1,3,8,8)f32 #1=(1,4,8,8)f32
nn.ReLU act 1 1 1 2 #1=(1,4,8,8)f32 #2=(1,4,8,8)f32
nn.Conv2d mix 1 1 2 3 bias=True dilation=(1,1) groups=1 in_channels=4 kernel_size=(1,1) \
out_channels=4 padding=(0,0) padding_mode=zeros stride=(1,1) @bias=(4)f32 \
@weight=(4,4,1,1)f32 $input=2 #2=(1,4,8,8)f32 #3=(1,4,8,8)f32
pnnx.Expression sum 2 1 3 2 4 expr=add(@0,@1) #3=(1,4,8,8)f32 #2=(1,4,8,8)f32 #4=(1,4,8,8)f32
nn.ReLU last 1 1 4 5 #4=(1,4,8,8)f32 #5=(1,4,8,8)f32
torch.flatten flat 1 1 5 6 end_dim=-1 start_dim=1 $input=5 #5=(1,4,8,8)f32 #6=(1,256)f32
nn.Linear fc 1 1 6 7 bias=True in_features=256 out_features=5 @bias=(5)f32 @weight=(5,256)f32 \
#6=(1,256)f32 #7=(1,5)f32
pnnx.Output out0 1 0 7 #7=(1,5)f32
""".splitlines()
)


def make_weights() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(5)
    shapes = {
        "conv.weight": (4, 3, 3, 3), "conv.bias": (4,), "mix.weight": (4, 4, 1, 1),
        "mix.bias": (4,), "fc.weight": (5, 256), "fc.bias": (5,),
    }  # fmt: skip
    return {key: rng.standard_normal(s).astype(np.float32) for key, s in shapes.items()}


def conv3x3(x: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """A convolution by its definition, padded by 1."""
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))).astype(np.float64)
    result = np.zeros((1, len(weight), *x.shape[2:]))
    for row in range(3):
        for column in range(3):
            part = padded[:, :, row : row + x.shape[2], column : column + x.shape[3]]
            result += np.tensordot(weight[:, :, row, column], part, (1, 1)).transpose(
                1, 0, 2, 3
            )
    return result + bias[:, None, None]


def truth(x: np.ndarray, w: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Every tensor of the network, by operand, by definition."""
    conv = conv3x3(x, w["conv.weight"], w["conv.bias"])
    act = np.maximum(conv, 0)
    mix = np.tensordot(w["mix.weight"][:, :, 0, 0], act, (1, 1)).transpose(1, 0, 2, 3)
    mix = mix + w["mix.bias"][:, None, None]
    last = np.maximum(mix + act, 0)
    flat = last.reshape(1, -1)
    fc = flat @ w["fc.weight"].T + w["fc.bias"]
    tensors = {"0": x, "1": conv, "2": act, "3": mix, "4": mix + act, "5": last, "6": flat,
               "7": fc}  # fmt: skip
    return {key: array.astype(np.float32) for key, array in tensors.items()}
