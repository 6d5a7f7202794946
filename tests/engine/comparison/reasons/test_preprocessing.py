"""How a reference's input was made otherwise than ours."""

from __future__ import annotations

import numpy as np
import pytest

from engine.comparison.reasons import diagnose_input, find_explanation, make_case
from reasons.operators import make_operator

RNG = np.random.default_rng(11)
MEAN = np.float32([0.485, 0.456, 0.406]).reshape(3, 1, 1)
STD = np.float32([0.229, 0.224, 0.225]).reshape(3, 1, 1)


@pytest.fixture
def pixels():
    return RNG.integers(0, 256, (1, 3, 12, 14)).astype(np.float32)


def kinds(ours, reference, **more):
    return [reason.kind for reason in diagnose_input(ours, reference, **more)]


def test_channel_order(pixels):
    assert kinds(pixels, pixels[:, ::-1].copy()) == ["channel_order"]


def test_other_channel_order(pixels):
    (reason,) = diagnose_input(pixels, pixels[:, [1, 2, 0]])
    assert reason.changes[0].value == (1, 2, 0)


@pytest.mark.parametrize("factor", [1 / 255, 255, 1 / 127.5])
def test_scale(pixels, factor):
    (reason,) = diagnose_input(pixels, (pixels * factor).astype(np.float32))
    assert reason.kind == "scale"
    assert reason.changes[0].value == pytest.approx(factor)
    assert reason.explains == pytest.approx(1)


def test_scale_is_stated_as_a_fraction(pixels):
    (reason,) = diagnose_input(pixels, pixels / np.float32(255))
    assert "1/255" in reason.text


def test_known_mean_and_std(pixels):
    ours = pixels / 255
    (reason,) = diagnose_input(ours, (ours - MEAN) / STD)
    assert reason.kind == "mean_std"
    assert "ImageNet" in reason.text
    assert reason.changes[0].value == pytest.approx((0.485, 0.456, 0.406))


def test_known_mean_and_std_of_pixels(pixels):
    (reason,) = diagnose_input(pixels, (pixels / 255 - MEAN) / STD)
    assert [change.name for change in reason.changes] == ["scale", "mean", "std"]


def test_only_our_input_is_normalised(pixels):
    (reason,) = diagnose_input((pixels / 255 - MEAN) / STD, pixels / 255)
    assert "Our input is normalised" in reason.text


def test_fitted_mean_and_std(pixels):
    mean, std = (
        np.float32([10, 20, 30]).reshape(3, 1, 1),
        np.float32([2, 3, 5]).reshape(3, 1, 1),
    )
    (reason,) = diagnose_input(pixels, (pixels - mean) / std)
    assert reason.kind == "mean_std"
    values = {change.name: change.value for change in reason.changes}
    assert values["mean"] == pytest.approx((10, 20, 30), rel=1e-3)
    assert values["std"] == pytest.approx((2, 3, 5), rel=1e-3)


def test_order_and_mean_together(pixels):
    ours = pixels / 255
    assert kinds(ours, ((ours - MEAN) / STD)[:, ::-1].copy()) == ["channel_order", "mean_std"]


def test_layout_by_the_shape(pixels):
    assert kinds(pixels, pixels.transpose(0, 2, 3, 1)) == ["input_layout"]
    assert kinds(pixels.transpose(0, 2, 3, 1), pixels) == ["input_layout"]


def test_layout_and_scale(pixels):
    assert kinds(pixels, pixels.transpose(0, 2, 3, 1) / 255) == ["input_layout", "scale"]


def test_layout_by_the_memory(pixels):
    other = pixels.transpose(0, 2, 3, 1).reshape(pixels.shape)
    assert kinds(pixels, other) == ["input_layout"]


def test_flipped(pixels):
    assert kinds(pixels, pixels[..., ::-1].copy()) == ["input_layout"]


def test_nothing_explains_another_image(pixels):
    assert kinds(pixels, RNG.permutation(pixels.reshape(-1)).reshape(pixels.shape)) == []


def test_rounding_has_no_reason(pixels):
    assert kinds(pixels, pixels * np.float32(1 + 1e-7)) == []


def test_the_resizing_of_the_image_is_found():
    Image = pytest.importorskip("PIL.Image")  # noqa: N806
    rows, columns = np.mgrid[:40, :60]
    wave = np.stack([np.sin(rows / 3) + np.cos(columns / 5), rows / 20, columns / 30])
    image = np.clip(wave * 100 + 60, 0, 255).astype(np.uint8).transpose(1, 2, 0).copy()
    picture = Image.fromarray(image)

    def tensor(resized):
        return np.asarray(resized).astype(np.float32).transpose(2, 0, 1)[np.newaxis] / 255

    ours = tensor(picture.resize((24, 24), Image.Resampling.BILINEAR))
    nearest = tensor(picture.resize((24, 24), Image.Resampling.NEAREST))
    reasons = diagnose_input(ours, nearest, image=image)
    assert "nearest" in reasons[0].text
    # The middle 40 columns, as a crop of the shorter side.
    crop = picture.crop((10, 0, 50, 40)).resize((24, 24), Image.Resampling.BILINEAR)
    reasons = diagnose_input(ours, tensor(crop), image=image)
    assert reasons[0].changes[0].value == "crop"
    inner = np.asarray(picture.resize((24, 16), Image.Resampling.BILINEAR))
    boxed = np.full((24, 24, 3), 114, np.uint8)
    boxed[4:20] = inner
    reasons = diagnose_input(ours, tensor(boxed), image=image)
    assert "letterboxed" in reasons[0].text


def test_the_input_is_explained_from_the_first_activation(pixels):
    x = pixels / 255
    weight = RNG.standard_normal((4, 3, 3, 3)).astype(np.float32)
    params = {"in_channels": 3, "out_channels": 4, "kernel_size": (3, 3), "bias": False}
    operator = make_operator("nn.Conv2d", params, {"weight": weight}, [x])

    def first(image):
        windows = np.lib.stride_tricks.sliding_window_view(image, (3, 3), (2, 3))
        return np.einsum("nchwij,ocij->nohw", windows, weight).astype(np.float32)

    def reasons(result):
        return find_explanation(make_case(operator, [x], result), "inputs").reasons

    assert reasons(first(x)) == ()
    (reason, *_) = reasons(first(x[:, ::-1]))
    assert reason.kind == "channel_order"
    (reason, *_) = reasons(first((x - MEAN) / STD))
    assert reason.kind == "mean_std"
    assert "ImageNet" in reason.text
    (reason, *_) = reasons(first(x * 255))
    assert reason.kind == "scale"
