"""CTC and embeddings, from outputs made by hand."""

from __future__ import annotations

from itertools import groupby

import numpy as np
import pytest
from reading_tools import best_of, ends_of, read

from engine.errors import MeaningError
from engine.meanings import Ends, OutputEnd

RNG = np.random.default_rng(7)
LETTERS = ("<pad>", "|", "h", "e", "l", "o", "w", "r", "d", "x")
# Blanks stand between the two l, and the same letter at several frames is one.
FRAMES = (0, 2, 2, 3, 4, 4, 0, 4, 5, 0, 1, 6, 5, 7, 4, 8, 0)
TYPES = (("F.log_softmax", "nn.Linear"),)


def logits_of(frames):
    """Logarithms of probabilities, (1, frames, tokens)."""
    raw = np.zeros((1, len(frames), len(LETTERS)))
    raw[0, range(len(frames)), frames] = 6.0
    return (raw - np.log(np.exp(raw).sum(-1, keepdims=True))).astype(np.float32)


@pytest.fixture
def vocabulary(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join(LETTERS) + "\n", "utf-8")
    return str(path)


def test_greedy_decoding(vocabulary):
    values = logits_of(FRAMES)
    ends = ends_of(values, types=TYPES, inputs=((1, 16000),))
    assert best_of(ends) == ("ctc", 0.85)
    found = read("ctc", values, ends=ends, vocabulary=vocabulary, step=20)
    slow = [token for token, _ in groupby(FRAMES) if token != 0]
    assert [row.entry for row in found.rows] == slow
    assert found.text == "hello world"
    assert found.rows[0].detail == "0.02–0.06 s"
    assert found.spans[0].tolist() == [1, 3]
    probability = np.exp(6) / (np.exp(6) + len(LETTERS) - 1)
    np.testing.assert_allclose(found.sure, probability, rtol=1e-5)
    assert found.rows[0].text == f"{100 * probability:.1f} %"


def test_time_first_and_the_last_token_as_blank():
    frames = (9, 9, 9, 3, 9, 3, 3, 9, 9)
    values = np.moveaxis(logits_of(frames), 1, 0)
    ends = ends_of(values, types=TYPES, inputs=((1, 1, 32, 100),))
    assert best_of(ends)[0] == "ctc"
    found = read("ctc", values, ends=ends)
    assert (found.blank, found.text) == (9, "3 3")
    assert read("ctc", values, ends=ends, blank=3).text == "9 9 9"
    with pytest.raises(MeaningError, match="below 10"):
        read("ctc", values, ends=ends, blank=10)


def test_a_convolution_gives_the_text_of_a_spectrogram():
    """Parakeet takes one of eight moments, and its head is a convolution of single frames."""
    values = logits_of(FRAMES)
    moments = 8 * values.shape[1]
    types = (("torch.transpose", "nn.Conv1d"),)
    assert best_of(ends_of(values, types=types, inputs=((1, moments, 80),))) == ("ctc", 0.7)
    for shape in ((1, values.shape[1], 80), (1, moments, 7), (1, 3, 64, 64)):
        assert best_of(ends_of(values, types=types, inputs=(shape,)))[1] < 0.5


def test_frames_without_tokens_and_not_finite():
    values = logits_of((0,) * 12)
    assert read("ctc", values).text == ""
    values[:] = np.nan
    with np.errstate(all="ignore"):
        assert len(read("ctc", values).best) == 12


def test_embeddings_are_no_classes():
    """CLIP gives vectors of a picture and of texts, projected without a bias."""
    picture, texts = (RNG.normal(size=(n, 512)).astype(np.float32) for n in (1, 3))
    texts[2] = picture[0] * 2
    ends = ends_of(picture, texts)
    assert best_of(ends) == ("embedding", 0.75)
    found = read("embedding", picture, texts, ends=ends)
    assert found.rows[0].text.startswith(f"{np.linalg.norm(picture):.2f}"[:4])
    assert (found.rows[3].name, found.rows[3].text) == ("out1 [2]", "1.0000")
    cosines = [
        float(text @ picture[0] / np.linalg.norm(text) / np.linalg.norm(picture[0]))
        for text in texts
    ]
    expected = [f"{cosine:.4f}" for cosine in sorted(cosines, reverse=True)]
    assert [row.text for row in found.rows[3:]] == expected


def test_a_projection_is_an_embedding_and_a_head_is_not():
    def alone(*, is_projection, count=512):
        types = ("nn.Linear",)
        end = OutputEnd("out", (1, count), "float32", types, (), is_projection)
        return best_of(Ends((end,), ((1, 3, 64, 64),)))[0]

    assert alone(is_projection=True) == "embedding"
    assert alone(is_projection=False) == "classification"
    assert alone(is_projection=True, count=1000) == "classification"
