"""Classes, label maps and pictures, read from outputs made by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from reading_tools import best_of, ends_of, read

from engine.errors import MeaningError
from engine.meanings import find_reading
from engine.meanings.ends import Ends, OutputEnd
from engine.meanings.masks import Match, match_mask
from engine.meanings.names import class_names, data_set
from engine.meanings.results import LabelMap, Row

RNG = np.random.default_rng(3)


# Classes


def test_scores_become_probabilities_with_the_names_of_imagenet():
    scores = np.zeros((1, 1000), np.float32)
    scores[0, [817, 751]] = 9, 8
    assert best_of(ends_of(scores, types=(("nn.Linear",),))) == ("classification", 0.9)
    found = read("classification", scores, top=2)
    total = np.exp(9) + np.exp(8) + 998
    assert [(row.entry, row.name) for row in found.rows] == [
        (817, "sports car"), (751, "racer")
    ]  # fmt: skip
    assert [row.share for row in found.rows] == pytest.approx(
        [np.exp(9) / total, np.exp(8) / total]
    )
    assert found.rows[0].text == f"{100 * np.exp(9) / total:.1f} %"
    assert found.rows[0].detail == "9"


def test_probabilities_and_independent_scores_stay():
    scores = np.array([[0.25, 0.75, 0]], np.float32)
    assert read("classification", scores).rows[0].text == "75.0 %"
    several = np.array([[0.9, 0.8, 0.1]], np.float32)
    ends = ends_of(several, types=(("F.sigmoid", "nn.Linear"),))
    assert [row.text for row in read("classification", several, ends=ends).rows] == [
        "0.9", "0.8", "0.1"
    ]  # fmt: skip


def test_labels_of_the_user_come_first():
    scores = np.array([[1, 3, 2]], np.float32)
    found = read("classification", scores, labels=("cat", "dog", "ant"))
    assert [row.name for row in found.rows] == ["dog", "ant", "cat"]
    assert [row.name for row in read("classification", scores).rows] == ["1", "2", "0"]


def test_the_sample_is_chosen():
    scores = np.array([[5, 0], [0, 5]], np.float32)
    assert read("classification", scores, sample=1).rows[0].entry == 1
    assert read("classification", scores, sample=9).rows[0].entry == 1


def test_features_are_not_offered_as_classes():
    ends = ends_of(np.zeros((1, 768), np.float32), types=(("nn.LayerNorm",),))
    assert best_of(ends)[1] < 0.5


@pytest.mark.parametrize(
    "types", [("nn.Tanh", "nn.Linear"), ("torch.cat", "nn.Tanh", "nn.Linear")]
)
def test_what_a_pooler_gives_are_no_classes(types):
    """LXMERT and BridgeTower end with a bounded vector of the first token."""
    ends = ends_of(np.zeros((1, 96), np.float32), types=(types,))
    assert best_of(ends)[1] < 0.5
    last = ends_of(np.zeros((1, 96), np.float32), types=(("nn.Linear", "nn.Tanh"),))
    assert best_of(last) == ("classification", 0.9)


def test_a_number_for_each_token_is_no_class():
    """TAPAS scores the tokens of a table."""
    values = np.zeros((1, 24), np.float32)
    ends = ends_of(values, types=(("torch.einsum",),), inputs=((1, 24), (1, 24, 7)))
    assert best_of(replace(ends, integers=True))[1] < 0.5
    assert best_of(ends) == ("classification", 0.6)


def test_names_of_data_sets():
    assert [len(data_set(each)) for each in ("ImageNet", "COCO", "COCO 91", "VOC")] == [
        1000, 80, 91, 21
    ]  # fmt: skip
    assert class_names(80)[5] == class_names(91)[6] == "bus"
    assert class_names(20)[0] == "aeroplane"
    assert class_names(3, (), "VOC") == ("background", "aeroplane", "bicycle")
    assert class_names(2, (), "numbers") == ("0", "1")


# Label maps


def test_masks_of_queries_add_up_to_classes():
    """MaskFormer: each query has a class, or none, and a mask; a slow loop over both."""
    logits = RNG.standard_normal((1, 5, 4)).astype(np.float32) * 2
    masks = RNG.standard_normal((1, 5, 6, 8)).astype(np.float32) * 2
    ends = ends_of(logits, masks, inputs=((1, 3, 24, 32),))
    assert best_of(ends) == ("masks", 0.9)
    found = read("masks", logits, masks, ends=ends)
    for y in range(6):
        for x in range(8):
            scores = [0.0, 0.0, 0.0]
            for query in range(5):
                powers = [np.exp(each) for each in logits[0, query].tolist()]
                inside = 1 / (1 + np.exp(-masks[0, query, y, x]))
                for entry in range(3):  # the last class is for no object
                    scores[entry] += powers[entry] / sum(powers) * inside
            assert found.labels[y, x] == scores.index(max(scores))
    assert found.count == 3
    assert sum(row.share for row in found.rows) == pytest.approx(1)
    assert best_of(ends_of(logits, masks, inputs=((1, 9),)))[1] < 0.5


def test_a_mask_that_a_text_asks_for():
    """CLIPSeg gives one score for each pixel, which is no depth."""
    scores = np.array([[[-2.0, 3.0], [0.5, -0.5]]], np.float32)
    ends = ends_of(scores, inputs=((1, 9), (1, 3, 2, 2)), integers=True)
    assert best_of(ends) == ("segmentation", 0.6)
    found = read("segmentation", scores, ends=ends)
    np.testing.assert_array_equal(found.labels, [[0, 1], [1, 0]])
    assert [option.name for option in find_reading("segmentation").options_for(ends)] == [
        "threshold", "names", "mask",
    ]  # fmt: skip
    alone = ends_of(scores, inputs=((1, 3, 2, 2),))
    assert best_of(alone)[0] == "depth"


def test_the_best_class_of_each_pixel():
    scores = RNG.standard_normal((1, 21, 12, 10)).astype(np.float32)
    ends = ends_of(scores, inputs=((1, 3, 12, 10),))
    assert best_of(ends) == ("segmentation", 0.8)
    found = read("segmentation", scores, ends=ends)
    for y in range(12):
        for x in range(10):
            assert found.labels[y, x] == max(range(21), key=lambda c: scores[0, c, y, x])
    most = found.rows[0]
    assert most.share == pytest.approx((found.labels == most.entry).mean())
    assert most.name == data_set("VOC")[most.entry]


def test_overlap_with_a_mask(tmp_path):
    labels = np.zeros((1, 4, 4), np.int64)
    labels[0, :2] = 1
    expected = np.zeros((8, 8), np.uint8)  # twice the size of the map
    expected[:, :4] = 1
    expected[6:, 6:] = 255  # not known
    np.save(tmp_path / "mask.npy", expected)
    ends = ends_of(labels, inputs=((1, 3, 4, 4),))
    found = read("segmentation", labels, ends=ends, mask=str(tmp_path / "mask.npy"))
    # Class 1 shares 4 of 12 pixels; class 0 shares 3 of 11.
    details = {row.entry: row.detail for row in found.rows}
    assert details == {1: "IoU 0.333", 0: "IoU 0.273"}
    assert found.note.startswith("mean IoU 0.303 over 2 classes; 46.7 % of pixels")


def test_where_a_mask_is_met():
    labels = np.array([[0, 1, 1, 2], [2, 0, 1, 1]], np.int32)
    expected = np.array([[0, 1, 0, 1], [2, 1, -1, 1]], np.int32)
    rows = tuple(Row(entry, name, "") for entry, name in enumerate(("background", "a", "b")))
    found = LabelMap(labels, rows, 3, expected)
    assert match_mask(found).tolist() == [
        [Match.NEITHER, Match.AGREEMENT, Match.FALSE, Match.OTHER],
        [Match.AGREEMENT, Match.MISSED, Match.NEITHER, Match.AGREEMENT],
    ]
    assert match_mask(found, 1).tolist() == [
        [Match.NEITHER, Match.AGREEMENT, Match.FALSE, Match.MISSED],
        [Match.NEITHER, Match.MISSED, Match.NEITHER, Match.AGREEMENT],
    ]
    # Without a background every pixel has a class.
    named = replace(found, rows=(Row(0, "road", ""),))
    assert match_mask(named)[0].tolist() == [
        Match.AGREEMENT, Match.AGREEMENT, Match.OTHER, Match.OTHER,
    ]  # fmt: skip
    with pytest.raises(MeaningError, match="no mask"):
        match_mask(replace(found, expected=None))


def test_a_mask_as_a_picture(tmp_path):
    from PIL import Image

    mask = Image.fromarray(np.array([[0, 1], [1, 0]], np.uint8))
    mask.save(tmp_path / "mask.png")
    labels = np.array([[[0, 1], [1, 0]]], np.int64)
    ends = ends_of(labels, inputs=((1, 3, 2, 2),))
    found = read("segmentation", labels, ends=ends, mask=str(tmp_path / "mask.png"))
    assert [row.detail for row in found.rows] == ["IoU 1.000", "IoU 1.000"]
    Image.new("RGB", (2, 2)).save(tmp_path / "colour.png")
    with pytest.raises(MeaningError, match="is a picture in colour"):
        read("segmentation", labels, ends=ends, mask=str(tmp_path / "colour.png"))
    (tmp_path / "bad.png").write_bytes(b"no picture")
    with pytest.raises(MeaningError, match="cannot be read as a mask"):
        read("segmentation", labels, ends=ends, mask=str(tmp_path / "bad.png"))


def test_one_class_by_a_threshold():
    scores = np.array([[[[0.1, 0.6], [0.9, np.nan]]]], np.float32)
    ends = ends_of(scores, types=(("F.sigmoid",),), inputs=((1, 3, 2, 2),))
    assert best_of(ends)[0] == "segmentation"
    found = read("segmentation", scores, ends=ends)
    assert found.labels.tolist() == [[0, 1], [1, 0]]
    assert read("segmentation", scores, ends=ends, threshold=0.7).labels.sum() == 1
    assert {row.name for row in found.rows} == {"background", "foreground"}


def test_numbers_that_are_no_classes_are_refused():
    labels = np.array([[[0, -3], [0, 2**40]]], np.int64)
    with pytest.raises(MeaningError, match="no classes"):
        read("segmentation", labels, ends=ends_of(labels, inputs=((1, 3, 2, 2),)))


# Pictures


@pytest.mark.parametrize(("low", "high"), [(0, 1), (-1, 1), (0, 255)])
def test_the_range_of_a_picture(low, high):
    shades = RNG.integers(0, 256, (1, 3, 32, 40))
    values = (low + shades / 255 * (high - low)).astype(np.float32)
    ends = ends_of(values, inputs=((1, 3, 16, 20),))
    assert best_of(ends) == ("picture", 0.9)
    found = read("picture", values, ends=ends)
    np.testing.assert_array_equal(found.pixels, np.moveaxis(shades[0], 0, 2))
    assert (found.low, found.high, found.scale) == (low, high, (2, 2))
    swapped = read("picture", values, ends=ends, order="BGR")
    np.testing.assert_array_equal(swapped.pixels, found.pixels[..., ::-1])


def test_a_picture_with_other_numbers_is_stretched():
    values = np.linspace(-30, 500, 64, dtype=np.float32).reshape(1, 1, 8, 8).repeat(3, 1)
    values[0, :, 0, 0] = np.nan
    found = read("picture", values, ends=ends_of(values, inputs=((1, 3, 8, 8),)))
    assert found.pixels[7, 7].tolist() == [255] * 3
    assert found.high == 500
    assert found.pixels[0, 0].tolist() == [0] * 3


def test_features_and_noise_are_no_classes_of_pixels():
    """A diffusion transformer takes the number of its step; SAM's encoder ends with a norm."""
    noise = np.zeros((2, 8, 12, 16), np.float32)
    picture = (2, 4, 12, 16)
    assert best_of(ends_of(noise, inputs=(picture,)))[0] == "segmentation"
    assert best_of(ends_of(noise, inputs=(picture, (2,))))[1] < 0.5
    features = np.zeros((1, 32, 8, 8), np.float32)
    types = (("Tensor.permute", "nn.LayerNorm", "Tensor.permute", "nn.Conv2d"),)
    assert best_of(ends_of(features, types=types, inputs=((1, 3, 64, 64),)))[1] < 0.5
    heads = (("nn.Conv2d", "nn.LayerNorm"),)
    ends = ends_of(features, types=heads, inputs=((1, 3, 64, 64),))
    assert best_of(ends)[0] == "segmentation"


def test_a_sum_of_a_layer_and_its_input_is_no_class():
    """SigLIP pools by an attention, and adds a perceptron to it."""
    vector = np.zeros((1, 96), np.float32)
    types = (("torch.unbind", "pnnx.Expression", "nn.MultiheadAttention"),)
    assert best_of(ends_of(vector, types=types))[1] < 0.5
    convolved = (("torch.flatten", "nn.AdaptiveAvgPool2d", "nn.ReLU", "nn.Conv2d"),)
    assert best_of(ends_of(vector, types=convolved)) == ("classification", 0.6)


# The choice


def test_nothing_fits():
    assert best_of(ends_of(np.zeros((1, 50, 768), np.float32)))[1] < 0.5
    assert best_of(ends_of(inputs=()))[1] == 0


@pytest.mark.parametrize(
    ("outputs", "inputs"),
    [
        ([(1, 50, 32)], [(), (1, 50, 80)]),  # such as the step of a diffusion
        ([(1, 20, 0)], [(1, 3, 32, 32)]),
        ([(0,), ()], [(1, 3, 32, 32)]),
    ],
)
def test_sizes_that_say_nothing_are_harmless(outputs, inputs):
    ends = tuple(OutputEnd(f"out{place}", shape) for place, shape in enumerate(outputs))
    assert best_of(Ends(ends, tuple(inputs)))[1] < 0.5


def test_options_are_checked():
    from engine.meanings import find_reading

    threshold = next(
        each for each in find_reading("yolov8").options if each.name == "threshold"
    )
    assert threshold.check("0.5") == 0.5
    for wrong in (2, "much", float("nan")):
        with pytest.raises(MeaningError, match="threshold must be"):
            threshold.check(wrong)
    with pytest.raises(MeaningError, match="there is no reading 'nonsense'"):
        find_reading("nonsense")
