"""Meanings of weights, by the documents of PyTorch and ncnn."""

from __future__ import annotations

import pytest

from engine.axes import weight_layout


@pytest.mark.parametrize(
    ("type_", "name", "shape", "words"),
    [
        ("nn.Conv2d", "weight", (64, 3, 7, 7), "filters × channels × rows × columns"),
        ("nn.Conv2d", "bias", (64,), "filters"),
        ("nn.Conv1d", "weight", (8, 4, 3), "filters × channels × columns"),
        ("F.conv3d", "weight", (8, 4, 3, 3, 3), "filters × channels × planes × rows × columns"),
        ("nn.ConvTranspose2d", "weight", (4, 8, 2, 2), "channels × filters × rows × columns"),
        ("nn.ConvTranspose2d", "bias", (8,), "filters"),
        ("ConvolutionDepthWise", "weight", (8, 4, 3, 3), "filters × channels × rows × columns"),
        ("Deconvolution", "weight", (4, 8, 2, 2), "channels × filters × rows × columns"),
        ("nn.Linear", "weight", (10, 20), "outputs × inputs"),
        ("nn.Linear", "bias", (10,), "outputs"),
        ("InnerProduct", "weight", (10, 20), "outputs × inputs"),
        ("nn.MultiheadAttention", "in_proj_weight", (48, 16), "outputs × inputs"),
        ("nn.LSTM", "weight_ih_l0", (48, 16), "outputs × inputs"),
        ("nn.Embedding", "weight", (100, 16), "vocabulary × features"),
        ("nn.BatchNorm2d", "running_var", (16,), "channels"),
        ("nn.LayerNorm", "weight", (16,), "features"),
    ],
)
def test_words(type_, name, shape, words):
    layout = weight_layout(type_, name, shape)
    assert layout is not None
    assert layout.shape == shape
    assert layout.text() == words


@pytest.mark.parametrize(
    ("type_", "name", "shape"),
    [
        ("nn.Mystery", "weight", (2, 2)),
        ("nn.Linear", "weight", (2, 2, 2)),
        ("nn.Conv2d", "weight", (2, 2)),
        ("nn.Embedding", "weight", (9,)),
        ("nn.Conv2d", "weight", ()),
    ],
)
def test_what_is_not_known_has_no_words(type_, name, shape):
    assert weight_layout(type_, name, shape) is None
