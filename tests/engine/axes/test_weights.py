"""Meanings of weights, by the documents of PyTorch and ncnn."""

from __future__ import annotations

import numpy as np
import pytest

from engine.axes import plan_view, weight_layout


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


@pytest.mark.parametrize(
    ("name", "shape", "split"),
    [
        ("in_proj_weight", (24, 8), (3, 2, 4, 8)),
        ("q_proj_weight", (8, 5), (2, 4, 5)),
        ("q_weight", (8, 8), (2, 4, 8)),  # of ncnn
    ],
)
def test_heads_of_projections_are_pictures_of_their_own(name, shape, split):
    weight = np.random.default_rng(0).normal(size=shape)
    layout = weight_layout("nn.MultiheadAttention", name, shape, heads=2)
    plan = plan_view(layout, shape)
    np.testing.assert_array_equal(plan.fold(weight), weight.reshape(split))
    assert plan.has_channels
    assert [role.name for role in plan.roles][-3:] == ["heads", "features", "inputs"]


def test_heads_of_the_output_projection():
    """The results of the heads are joined along its inputs."""
    weight = np.random.default_rng(0).normal(size=(6, 8))
    layout = weight_layout("nn.MultiheadAttention", "out_proj.weight", (6, 8), heads=2)
    folded = plan_view(layout, (6, 8)).fold(weight)
    for head in range(2):
        np.testing.assert_array_equal(folded[head], weight[:, 4 * head : 4 * head + 4])


@pytest.mark.parametrize(("name", "shape", "heads"), [
    ("in_proj_weight", (24, 8), 1), ("in_proj_weight", (25, 8), 2), ("in_proj_bias", (24,), 2),
    ("bias_k", (8, 8), 2),
])  # fmt: skip
def test_weights_without_heads(name, shape, heads):
    layout = weight_layout("nn.MultiheadAttention", name, shape, heads)
    assert layout is None or plan_view(layout, shape) is None
