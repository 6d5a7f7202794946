"""Depth, flow, key points, tokens and sound, read from outputs made by hand."""

from __future__ import annotations

import json

import numpy as np
import pytest
from reading_tools import best_of, ends_of, read

import engine
from engine.errors import MeaningError
from engine.meanings import find_reading
from engine.meanings.vocabulary import read_vocabulary
from engine.output_reading import read_output

RNG = np.random.default_rng(8)


def test_depth():
    values = RNG.uniform(1, 9, (1, 24, 32)).astype(np.float32)
    values[0, 0, 0] = np.inf
    ends = ends_of(values, inputs=((1, 3, 24, 32),))
    assert best_of(ends) == ("depth", 0.7)
    found = read("depth", values, ends=ends)
    finite = np.sort(values[np.isfinite(values)])
    assert (found.low, found.high) == (finite[0], finite[-1])
    assert read("depth", values, ends=ends, range="0 … greatest").low == 0
    np.testing.assert_array_equal(found.values, values[0])


def test_one_channel_after_a_relu_is_depth_and_after_a_sigmoid_foreground():
    values = np.zeros((1, 1, 24, 32), np.float32)
    for kind, name in (("nn.ReLU", "depth"), ("F.sigmoid", "segmentation")):
        ends = ends_of(values, types=((kind,),), inputs=((1, 3, 24, 32),))
        assert best_of(ends)[0] == name


def test_peaks_are_no_depth():
    """SuperPoint keeps scores that are the greatest of those around them."""
    values = np.zeros((1, 24, 32), np.float32)
    types = ("torch.where", "pnnx.Expression", "torch.eq", "Tensor.reshape")
    ends = ends_of(values, types=(types,), inputs=((1, 3, 24, 32),))
    assert best_of(ends)[1] < 0.5
    masked = ends_of(values, types=(("torch.where", "nn.Conv2d"),), inputs=((1, 3, 24, 32),))
    assert best_of(masked) == ("depth", 0.7)


def test_limbs_and_points_of_a_body():
    """OpenPose gives 38 numbers of 19 limbs, and 18 points and the background."""
    limbs = np.zeros((1, 38, 8, 8), np.float32)
    points = np.zeros((1, 19, 8, 8), np.float32)
    points[0, 4, 2, 5] = 1
    for outputs in ((limbs, points), (points, limbs)):
        ends = ends_of(*outputs, inputs=((1, 3, 32, 32),))
        assert best_of(ends) == ("heatmaps", 0.7)
        found = read("heatmaps", *outputs, ends=ends)
        assert len(found.points) == 19
        assert found.points[4].tolist() == [22, 10, 1]
    others = ends_of(points, limbs[:, :37], inputs=((1, 3, 32, 32),))
    assert best_of(others)[0] == "segmentation"


def test_flow_of_two_pictures():
    values = RNG.standard_normal((1, 2, 6, 8)).astype(np.float32)
    ends = ends_of(values, inputs=((1, 3, 24, 32), (1, 3, 24, 32)))
    assert best_of(ends) == ("flow", 0.9)
    found = read("flow", values, ends=ends)
    speeds = [np.hypot(*values[0, :, y, x]) for y in range(6) for x in range(8)]
    assert found.most == pytest.approx(max(speeds))
    assert found.mean == pytest.approx(np.mean(speeds))


def test_key_points_are_where_maps_are_greatest():
    maps = RNG.uniform(0, 0.1, (1, 17, 64, 48)).astype(np.float32)
    maps[0, :, 20, 30] = 0.8
    maps[0, :, 20, 31], maps[0, :, 20, 29] = 0.5, 0.2  # a quarter to the right
    maps[0, :, 19, 30], maps[0, :, 21, 30] = 0.5, 0.2  # and up
    ends = ends_of(maps, inputs=((1, 3, 256, 192),))
    assert best_of(ends) == ("heatmaps", 0.85)
    found = read("heatmaps", maps, ends=ends)
    expected = [(30 + 0.5 + 0.25) * 4, (20 + 0.5 - 0.25) * 4, np.float32(0.8)]
    np.testing.assert_allclose(found.points, [expected] * 17)
    plain = read("heatmaps", maps, ends=ends, refine="no")
    np.testing.assert_allclose(plain.points[0], [122, 82, np.float32(0.8)])
    assert found.names[0] == "nose"


# Language


def test_the_next_token(tmp_path):
    scores = np.zeros((1, 6, 5000), np.float32)
    scores[0, 5, 3], scores[0, 2, 4] = 9, 9
    ends = ends_of(scores, inputs=((1, 6),), integers=True)
    assert best_of(ends)[0] == "tokens"
    found = read("tokens", scores, ends=ends, top=2)
    share = np.exp(9) / (np.exp(9) + 4999)
    assert (found.position, found.rows[0].entry) == (5, 3)
    assert found.rows[0].share == pytest.approx(share)
    path = tmp_path / "vocab.json"
    path.write_text(json.dumps({"a": 0, "\u0120the": 3, "\u010a": 4}))
    named = read("tokens", scores, ends=ends, vocabulary=str(path))
    assert named.rows[0].name == "␣the"
    assert (
        read("tokens", scores, ends=ends, vocabulary=str(path), position=2).rows[0].name == "⏎"
    )


@pytest.mark.parametrize(
    ("words", "best"),
    [pytest.param(65, "tokens", id="letters"), pytest.param(9, "", id="names")],
)
def test_letters_are_a_vocabulary_and_kinds_of_names_are_not(make_pair, words, best):
    """Scores of as many numbers as the table of the input has are the next letter's."""
    lines = (
        "pnnx.Input in 0 1 a #a=(1,4)i64",
        (
            "nn.Embedding table 1 1 a b embedding_dim=6 num_embeddings=65 @weight=(65,6)f32 "
            "#b=(1,4,6)f32"
        ),
        (
            f"nn.Linear head 1 1 b c bias=False in_features=6 out_features={words} "
            f"@weight=({words},6)f32 #c=(1,4,{words})f32"
        ),
        "pnnx.Output out 1 0 c",
    )
    tables = (np.eye(rows, 6, dtype=np.float32) for rows in (65, words))
    weights = dict(zip(("table.weight", "head.weight"), tables, strict=True))
    session = engine.Session(engine.load(make_pair(*lines, weights=weights)))
    session.feed([np.array([[3, 1, 4, 5]])])
    session.run()
    found = read_output(session)
    assert found.reading == best
    if best:
        assert found.result.rows[0].entry == 5  # the identity gives the letter itself


def test_labels_name_tokens(tmp_path):
    """A vocabulary that was opened as labels does, also of a model with padding tokens."""
    scores = np.zeros((1, 6, 5000), np.float32)
    scores[0, 5, 3], scores[0, 5, 4999] = 9, 8
    ends = ends_of(scores, inputs=((1, 6),), integers=True)
    labels = tuple(f"word {place}" for place in range(4990))
    found = read("tokens", scores, ends=ends, labels=labels, top=2)
    assert [row.name for row in found.rows] == ["word␣3", "4999"]
    assert not found.note
    few = read("tokens", scores, ends=ends, labels=labels[:1000], top=1)
    assert few.rows[0].name == "3"
    assert "choose a vocabulary" in few.note
    path = tmp_path / "vocab.json"
    path.write_text(json.dumps({"a": 0, "the": 3}))
    chosen = read("tokens", scores, ends=ends, labels=labels, top=1, vocabulary=str(path))
    assert chosen.rows[0].name == "the"


def test_files_of_vocabularies(tmp_path):
    bert = tmp_path / "vocab.txt"
    bert.write_text("[PAD]\nthe\n##ing\n")
    assert read_vocabulary(str(bert)) == ("[PAD]", "the", "##ing")
    pieces = tmp_path / "tokenizer.json"
    pieces.write_text(
        json.dumps(
            {
                "model": {"vocab": [["<unk>", 0.0], ["\u2581a", -1.5]]},
                "added_tokens": [{"id": 2, "content": "</s>"}],
            }
        )
    )
    assert read_vocabulary(str(pieces)) == ("<unk>", " a", "</s>")
    accents = tmp_path / "accents.json"
    accents.write_text(json.dumps({"caf\u00c3\u00a9": 1}))
    assert read_vocabulary(str(accents)) == ("", "café")


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.json", "{", "is no vocabulary"),
        ("a.json", "{}", "has no tokens"),
        ("a.json", '{"a": 99999999999}', "has no tokens"),
        ("a.json", "[" * 100_000, "is no vocabulary"),
        ("a.txt", "\udcff", "is not UTF-8"),
    ],
)
def test_files_that_are_no_vocabulary(tmp_path, name, content, reason):
    path = tmp_path / name
    path.write_bytes(content.encode(errors="surrogateescape"))
    with pytest.raises(MeaningError, match=reason):
        read_vocabulary(str(path))
    with pytest.raises(MeaningError, match="cannot be read"):
        read_vocabulary(str(tmp_path / "missing.json"))


# Sound


def test_the_strongest_frequency():
    times = np.arange(8000) / 8000
    wave = 0.5 * np.sin(2 * np.pi * 1000 * times)[np.newaxis, np.newaxis].astype(np.float32)
    assert best_of(ends_of(wave, inputs=((1, 80, 32),)))[0] == "sound"
    found = read("sound", wave, rate=8000, window="256")
    assert found.loudest == 1000
    assert found.peak == pytest.approx(0.5, rel=1e-4)
    assert found.decibels.shape == (129, (8000 - 256) // 64 + 1)
    taper = np.hanning(257)[:256]
    frame = wave[0, 0, 640:896].astype(np.float64) * taper
    slow = [
        abs(sum(frame[n] * np.exp(-2j * np.pi * k * n / 256) for n in range(256))) ** 2
        for k in (30, 32, 33)
    ]
    levels = found.decibels[[30, 32, 33], 10]
    np.testing.assert_allclose(
        levels[1:] - levels[1], 10 * np.log10(np.array(slow[1:]) / slow[1]), atol=0.01
    )
    assert levels.max() <= 0


def test_silence_and_too_short_a_sound():
    assert read("sound", np.zeros((1, 2048), np.float32)).decibels.max() <= -119
    with pytest.raises(MeaningError, match="fewer than the window"):
        read("sound", np.zeros((1, 1500), np.float32), window="2048")


def test_one_of_several_sources_of_a_sound():
    """Separation gives two channels of four sources of a sound."""
    times = np.arange(4096) / 8000
    values = np.zeros((1, 4, 2, 4096), np.float32)
    values[0, 2, 1] = np.sin(2 * np.pi * 1500 * times)
    ends = ends_of(values, inputs=((1, 2, 4096),))
    assert best_of(ends)[0] == "sound"
    assert best_of(ends_of(values, inputs=((1, 3, 64, 64),)))[1] < 0.5
    assert read("sound", values, ends=ends, rate=8000, window="256").peak == 0
    found = read("sound", values, ends=ends, rate=8000, window="256", channel=5)
    assert (found.loudest, found.samples) == (1500, 4096)
    with pytest.raises(MeaningError, match="has 8 channels, so there is no 8"):
        read("sound", values, ends=ends, channel=8)
    names = [option.name for option in find_reading("sound").options_for(ends)]
    assert "channel" in names
    alone = ends_of(values[:, 0, 0], inputs=((1, 2, 4096),))
    assert "channel" not in [each.name for each in find_reading("sound").options_for(alone)]
