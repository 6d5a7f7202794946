"""Finding by a few letters."""

from __future__ import annotations

import pytest

from kuiper_studio.dialogs.fuzzy import Tier, fuzzy_match


@pytest.mark.parametrize(
    ("pattern", "text", "tier", "places"),
    [
        pytest.param("", "Step", Tier.START, (), id="nothing"),
        pytest.param("st", "Step back", Tier.START, (0, 1), id="start"),
        pytest.param("ST", "step", Tier.START, (0, 1), id="case"),
        pytest.param("back", "Step back", Tier.WORD, (5, 6, 7, 8), id="word"),
        pytest.param("conv", "nn.Conv2d", Tier.WORD, (3, 4, 5, 6), id="word-after-dot"),
        pytest.param("pool", "nn.MaxPool2d", Tier.WORD, (6, 7, 8, 9), id="word-after-hump"),
        pytest.param("tep", "Step", Tier.INSIDE, (1, 2, 3), id="inside"),
        pytest.param("l", "Toggle all", Tier.INSIDE, (4,), id="first-inside"),
        pytest.param("rl", "Reset layout", Tier.LETTERS, (0, 6), id="initials"),
        pytest.param("stb", "Step back", Tier.LETTERS, (0, 1, 5), id="letters"),
        pytest.param("stp", "Stop", Tier.LETTERS, (0, 1, 3), id="left-out"),
        pytest.param("rtose", "Run to selected", Tier.LETTERS, (0, 4, 5, 7, 8), id="mixed"),
        pytest.param("abc", "axbyc abxc", Tier.LETTERS, (6, 7, 9), id="fewest-gaps"),
        pytest.param("ba st", "Step back", Tier.WORD, (0, 1, 5, 6), id="words-any-order"),
        pytest.param("i", "İstanbul i", Tier.START, (0,), id="odd-small-letter"),
    ],
)
def test_match(pattern, text, tier, places):
    found = fuzzy_match(pattern, text)
    assert (found.tier, found.places) == (tier, places)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        pytest.param("x", "Step", id="no-letter"),
        pytest.param("pets", "Step", id="wrong-order"),
        pytest.param("step zz", "Step", id="one-word-missing"),
        pytest.param("tpx", "a tp", id="too-long"),
        pytest.param("ep", "e mp", id="two-letters-that-mean-nothing"),
        pytest.param("epb", "Step back", id="does-not-begin-a-word"),
    ],
)
def test_no_match(pattern, text):
    assert fuzzy_match(pattern, text) is None


def test_other_words():
    words = "meaning prediction Top"
    text = "What the output means"
    found = fuzzy_match("predict", text, other_words=words)
    assert (found.tier, found.places) == (Tier.OTHER_WORDS, ())
    assert fuzzy_match("meaning", text, other_words=words).score > found.score
    assert fuzzy_match("top", text, other_words=words).tier is Tier.OTHER_WORDS
    assert fuzzy_match("to", text, other_words=words).tier is Tier.LETTERS  # the o of output
    assert fuzzy_match("means top", text, other_words=words).places == (16, 17, 18, 19, 20)
    assert fuzzy_match("ediction", text, other_words=words) is None
    assert fuzzy_match("output", text, other_words="output").tier is Tier.WORD


def test_field_counts_as_start():
    assert fuzzy_match("conv", "nn.ReLU  conv_1").tier is Tier.WORD
    assert fuzzy_match("conv", "nn.ReLU  conv_1", (9,)).tier is Tier.START


def test_fewer_gaps_then_shorter_text_score_more():
    scores = [
        fuzzy_match("stba", text).score
        for text in ("Step back", "Step bask around", "Some text back around")
    ]
    assert scores == sorted(scores, reverse=True)
    assert len(set(scores)) == 3
