"""How a reference's input was made otherwise than ours."""

from __future__ import annotations

import numpy as np
import pytest

from engine.comparison.reasons import diagnose_input, find_explanation, make_case
from engine.inputs import ImageOptions
from engine.memory_bound import Room, bounded
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
    assert "ours holds pixels of 0 to 1, normalised by ImageNet's mean" in reason.text
    assert "Set mean=0 and std=1" in reason.text


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


def test_an_input_of_one_number(pixels):
    (reason,) = diagnose_input(pixels, np.zeros_like(pixels))
    assert reason.text == "Every element of the reference's input is 0. Use the same input."
    (reason,) = diagnose_input(np.full_like(pixels, 0.5), pixels)
    assert reason.text == "Every element of our input is 0.5. Use the same input."


def test_rounding_has_no_reason(pixels):
    assert kinds(pixels, pixels * np.float32(1 + 1e-7)) == []


@pytest.mark.parametrize("axes", [(2,), (3,), (2, 3)])
def test_a_turned_picture(pixels, axes):
    (reason,) = diagnose_input(pixels, np.flip(pixels, axes).copy())
    assert reason.kind == "input_layout"
    words = {(2,): "rows in reverse", (3,): "columns in reverse", (2, 3): "upside down"}
    assert words[axes] in reason.text


def test_a_picture_turned_by_90_degrees():
    square = RNG.integers(0, 256, (1, 3, 9, 9)).astype(np.float32)
    left = np.stack([[plane[:, 8 - row] for row in range(9)] for plane in square[0]])
    (reason,) = diagnose_input(square, left[np.newaxis])
    assert "turned by 90° to the left" in reason.text


def test_the_order_of_normalised_channels_has_their_mean_with_it(pixels):
    """Whoever sets order=BGR alone would take the mean of red from blue."""
    ours = (pixels / 255 - MEAN) / STD
    order, mean_std = diagnose_input(ours, ours[:, ::-1].copy())
    assert order.kind == "channel_order"
    assert "Set mean=(0.406, 0.456, 0.485) and std=(0.225, 0.224, 0.229)" in mean_std.text
    # Pixels that are exchanged first have their mean and std by place.
    assert kinds(ours, (pixels[:, ::-1] / 255 - MEAN) / STD) == ["channel_order"]


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        (
            lambda p: (p / 255 - MEAN) / STD,
            "normalised by ImageNet's mean=(0.485, 0.456, 0.406)",
        ),
        (lambda p: (p - MEAN) / STD, "pixels of 0 to 255, normalised by ImageNet's"),
        (lambda p: p / 127.5 - 1, "pixels of 0 to 1, normalised by Inception's"),
        (lambda p: p - 128, "pixels of 0 to 255 less mean=128;"),
        (lambda p: p - np.float32([123, 117, 104]).reshape(3, 1, 1), "less Caffe's mean"),
        (lambda p: p / 255 / 255, "scaled by 1/255 twice"),
        (lambda p: p, "holds pixels of 0 to 255;"),
    ],
)
def test_both_sides_are_told_in_pixels(pixels, reference, words):
    ours = (pixels / 255 - 0.4) / 0.3  # nothing well-known
    options = ImageOptions(mean=(0.4,), std=(0.3,))
    (reason,) = diagnose_input(ours, reference(pixels).astype(np.float32), options=options)
    assert words in reason.text
    assert "ours holds pixels of 0 to 1, normalised by mean=0.4 and std=0.3" in reason.text


# Ways of resizing

Image = pytest.importorskip("PIL.Image")
SIZE = 24


@pytest.fixture(scope="module")
def photograph():
    """Smooth colours with some grain, 60 rows and 90 columns."""
    rows, columns = np.mgrid[:60, :90]
    wave = np.stack([np.sin(rows / 3) + np.cos(columns / 5), rows / 30, np.sin(columns / 4)])
    grain = np.random.default_rng(5).normal(0, 12, (60, 90, 3))
    image = wave.transpose(1, 2, 0) * 60 + 100 + grain
    return np.clip(image, 0, 255).astype(np.uint8)


def as_tensor(picture):
    return np.asarray(picture).astype(np.float32).transpose(2, 0, 1)[np.newaxis] / 255


def stretched(image, way=Image.Resampling.BILINEAR):
    return np.asarray(Image.fromarray(image).resize((SIZE, SIZE), way))


def bilinear(image, rows, columns):
    """Resize without averaging: between the four pixels around each centre."""
    found = np.empty((rows, columns, 3))
    height, width = image.shape[:2]
    for row in range(rows):
        for column in range(columns):
            y = min(max((row + 0.5) * height / rows - 0.5, 0), height - 1)
            x = min(max((column + 0.5) * width / columns - 0.5, 0), width - 1)
            top, left = int(y), int(x)
            below, right = min(top + 1, height - 1), min(left + 1, width - 1)
            upper = image[top, left] * (1 - x + left) + image[top, right] * (x - left)
            lower = image[below, left] * (1 - x + left) + image[below, right] * (x - left)
            found[row, column] = upper * (1 - y + top) + lower * (y - top)
    return found


def first_of(image, reference, **options):
    ours = as_tensor(stretched(image))
    reasons = diagnose_input(ours, reference, image=image, options=ImageOptions(**options))
    assert reasons[0].kind == "resizing"
    assert reasons[0].explains > 0.99
    return reasons


def test_resizing_with_and_without_averaging(photograph):
    (reason,) = first_of(photograph, as_tensor(bilinear(photograph, SIZE, SIZE)))
    assert "stretched to 24×24, bilinear as in OpenCV" in reason.text
    rounded = np.rint(bilinear(photograph, SIZE, SIZE))
    assert first_of(photograph, as_tensor(rounded))[0].text == reason.text


def test_resizing_by_the_nearest_pixel(photograph):
    upper_left = photograph[np.arange(SIZE) * 60 // SIZE][:, np.arange(SIZE) * 90 // SIZE]
    (reason,) = first_of(photograph, as_tensor(upper_left))
    assert "nearest as in OpenCV" in reason.text
    (reason,) = first_of(photograph, as_tensor(stretched(photograph, Image.Resampling.NEAREST)))
    assert "nearest as in Pillow" in reason.text


@pytest.mark.parametrize("side", [24, 26, 28])
def test_resized_and_cut(photograph, side):
    columns = int(side * 90 / 60)
    whole = Image.fromarray(photograph).resize((columns, side), Image.Resampling.BICUBIC)
    top, left = round((side - SIZE) / 2), round((columns - SIZE) / 2)
    cut = whole.crop((left, top, left + SIZE, top + SIZE))
    (reason,) = first_of(photograph, as_tensor(cut))
    assert f"until its shorter side is {side}, then cut to 24×24" in reason.text
    assert "bicubic" in reason.text
    assert reason.changes[0].value == "crop"


def test_cut_without_resizing(photograph):
    (reason,) = first_of(photograph, as_tensor(photograph[18:42, 33:57]))
    assert "cut to 24×24 in the centre, not resized" in reason.text


def test_a_large_photograph(photograph):
    """Its place is searched in a shrunk copy, which has other pixels than it."""
    large = Image.fromarray(photograph).resize((900, 600), Image.Resampling.BICUBIC)
    noise = np.random.default_rng(2).integers(-20, 21, (600, 900, 3))
    image = np.clip(np.asarray(large, np.int64) + noise, 0, 255).astype(np.uint8)
    whole = Image.fromarray(image).resize((40, 27), Image.Resampling.LANCZOS)
    (reason,) = first_of(image, as_tensor(whole.crop((8, 1, 32, 25))))
    assert "until its shorter side is 27, then cut to 24×24; Lanczos" in reason.text
    (reason,) = first_of(image, as_tensor(bilinear(image, SIZE, SIZE)))
    assert "stretched to 24×24, bilinear as in OpenCV" in reason.text


@pytest.mark.parametrize(("top", "where"), [(4, "in the centre"), (0, "at the upper left")])
def test_letterboxed(photograph, top, where):
    boxed = np.full((SIZE, SIZE, 3), 114, np.uint8)
    picture = Image.fromarray(photograph).resize((SIZE, 16), Image.Resampling.BILINEAR)
    boxed[top : top + 16] = np.asarray(picture)
    (reason,) = first_of(photograph, as_tensor(boxed))
    assert f"letterboxed: its longer side fits 24×24, {where}" in reason.text
    assert "the border is 114" in reason.text


def test_a_border_that_is_added_after_normalising(photograph):
    reference = np.zeros((1, 3, SIZE, SIZE), np.float32)
    picture = Image.fromarray(photograph).resize((SIZE, 16), Image.Resampling.BILINEAR)
    reference[:, :, :16] = (as_tensor(picture) - MEAN) / STD
    box, mean_std = first_of(photograph, reference)
    assert "the border is 0 after normalising" in box.text
    assert "Set mean=(0.485, 0.456, 0.406) and std=(0.229, 0.224, 0.225)" in mean_std.text


def test_a_grey_picture(photograph):
    grey = Image.fromarray(photograph).convert("L").convert("RGB")
    picture = grey.resize((SIZE, SIZE), Image.Resampling.BILINEAR)
    reasons = first_of(photograph, as_tensor(picture))
    assert any("grey" in reason.text for reason in reasons)


def test_a_grey_file_for_a_network_of_three_channels(photograph):
    grey = np.asarray(Image.fromarray(photograph).convert("L"))
    whole = Image.fromarray(grey).convert("RGB").resize((36, SIZE), Image.Resampling.BILINEAR)
    ours = as_tensor(stretched(np.stack([grey] * 3, axis=2)))
    reference = as_tensor(whole.crop((6, 0, 30, SIZE)))
    (reason,) = diagnose_input(ours, reference, image=grey, options=ImageOptions())
    assert f"until its shorter side is {SIZE}, then cut to 24×24" in reason.text


def test_a_colour_file_for_a_network_of_one_channel(photograph):
    whole = Image.fromarray(photograph).convert("L").resize((36, SIZE))
    ours, reference = (
        np.asarray(each, np.float32)[np.newaxis, np.newaxis] / 255
        for each in (whole.resize((SIZE, SIZE)), whole.crop((6, 0, 30, SIZE)))
    )
    (reason,) = diagnose_input(ours, reference, image=photograph, options=ImageOptions())
    assert f"until its shorter side is {SIZE}, then cut to 24×24" in reason.text


def test_a_long_strip_takes_little_memory():
    """The whole resized strip would have 24 rows of 1.4 million pixels."""
    row = np.repeat(np.random.default_rng(3).integers(0, 256, (1, 6000, 3)), 10, axis=1)
    image = row.astype(np.uint8)
    ours = as_tensor(stretched(image))
    middle = np.repeat(image[:, 30_000:30_001], SIZE, axis=1)
    middle[:, : SIZE // 2] = image[:, 29_999]
    reference = as_tensor(np.repeat(middle, SIZE, axis=0))
    with bounded(Room(16 << 20)):
        reasons = diagnose_input(ours, reference, image=image, options=ImageOptions())
    assert "until its shorter side is 24, then cut to 24×24" in reasons[0].text


def test_the_order_is_told_beside_that_of_the_options(photograph):
    nearest = as_tensor(stretched(photograph, Image.Resampling.NEAREST))
    ours = as_tensor(stretched(photograph))[:, ::-1].copy()
    options = ImageOptions(order="BGR")
    _, order = diagnose_input(ours, nearest, image=photograph, options=options)
    assert order.text == "The reference's input is RGB, ours is BGR. Set order=RGB."
    same = nearest[:, ::-1].copy()
    (reason,) = diagnose_input(ours, same, image=photograph, options=options)
    assert reason.kind == "resizing"


def test_another_photograph_is_not_explained(photograph):
    other = np.random.default_rng(8).integers(0, 256, (SIZE, SIZE, 3))
    ours = as_tensor(stretched(photograph))
    assert diagnose_input(ours, as_tensor(other), image=photograph) == ()


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
