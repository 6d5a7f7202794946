from __future__ import annotations

import dataclasses

import pytest

from kuiper_studio.families import FAMILIES, family_of
from kuiper_studio.theme import Tokens


@pytest.mark.parametrize(
    ("operator_type", "token", "label"),
    [
        ("pnnx.Input", "io", "I/O"),
        ("pnnx.Output", "io", "I/O"),
        ("pnnx.Attribute", "io", "I/O"),
        ("nn.Conv2d", "conv", "CONV"),
        ("nn.ConvTranspose3d", "conv", "CONV"),
        ("F.conv2d", "conv", "CONV"),
        ("nn.Linear", "lin", "LIN"),
        ("torch.matmul", "lin", "LIN"),
        ("torch.bmm", "lin", "LIN"),
        ("nn.ReLU", "act", "ACT"),
        ("nn.ReLU6", "act", "ACT"),
        ("nn.LeakyReLU", "act", "ACT"),
        ("F.silu", "act", "ACT"),
        ("nn.GELU", "act", "ACT"),
        ("F.softmax", "act", "ACT"),
        ("F.dropout2d", "act", "ACT"),
        ("F.dropoutnd", "act", "ACT"),
        ("aten::native_dropout", "act", "ACT"),
        ("nn.FeatureAlphaDropout", "act", "ACT"),
        ("nn.BatchNorm2d", "norm", "NORM"),
        ("nn.LayerNorm", "norm", "NORM"),
        ("F.group_norm", "norm", "NORM"),
        ("nn.MaxPool2d", "pool", "POOL"),
        ("F.adaptive_avg_pool2d", "pool", "POOL"),
        ("nn.Upsample", "pool", "POOL"),
        ("F.interpolate", "pool", "POOL"),
        ("pnnx.Expression", "expr", "EXPR"),
        ("torch.add", "expr", "EXPR"),
        ("Tensor.view", "shape", "SHAPE"),
        ("torch.permute", "shape", "SHAPE"),
        ("torch.flatten", "shape", "SHAPE"),
        ("torch.cat", "shape", "SHAPE"),
        ("Tensor.slice", "shape", "SHAPE"),
        ("F.pad", "shape", "SHAPE"),
        ("nn.ZeroPad2d", "shape", "SHAPE"),
        ("nn.MultiheadAttention", "attn", "ATTN"),
        ("F.scaled_dot_product_attention", "attn", "ATTN"),
        ("torch.mean", "red", "RED"),
        ("torch.argmax", "red", "RED"),
        ("torch.norm", "red", "RED"),
        ("models.yolo.Detect", "other", "DETEC"),
        ("ncnn.MemoryData", "io", "I/O"),
        ("ncnn.DeconvolutionDepthWise1D", "conv", "CONV"),
        ("ncnn.DeformableConv2D", "conv", "CONV"),
        ("ncnn.InnerProduct", "lin", "LIN"),
        ("ncnn.Pooling", "pool", "POOL"),
        ("ncnn.ROIPooling", "pool", "POOL"),
        ("ncnn.Interp", "pool", "POOL"),
        ("ncnn.Swish", "act", "ACT"),
        ("ncnn.MVN", "norm", "NORM"),
        ("ncnn.SDPA", "attn", "ATTN"),
        ("ncnn.Reduction", "red", "RED"),
        ("ncnn.Padding", "shape", "SHAPE"),
        ("ncnn.ShuffleChannel", "shape", "SHAPE"),
        ("ncnn.BinaryOp", "expr", "EXPR"),
        ("ncnn.Eltwise", "expr", "EXPR"),
        ("aten::add", "expr", "EXPR"),
        ("", "other", "OTHER"),
        ("...", "other", "OTHER"),
    ],
)
def test_family_of(operator_type: str, token: str, label: str) -> None:
    family = family_of(operator_type)
    assert (family.token, family.label) == (token, label)


def test_every_family_has_a_colour() -> None:
    colours = {field.name for field in dataclasses.fields(Tokens)}
    assert FAMILIES.keys() | {"other"} <= colours


def test_labels_fit_the_box() -> None:
    assert all(3 <= len(family.label) <= 5 for family in FAMILIES.values())
