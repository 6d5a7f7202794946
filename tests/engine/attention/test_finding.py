"""Attentions of known networks and of small graphs, and the places of their tokens."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from attention_graphs import text_lines, vit_lines, vit_weights

import engine
from engine.attention import (
    find_attentions,
    find_blocks,
    find_heads,
    key_places,
    query_places,
)
from engine.axes import infer_layouts

NETWORKS = Path(__file__).parents[1] / "axes" / "networks"


class Found:
    def __init__(self, name: str) -> None:
        self.graph = engine.load(NETWORKS / f"{name}.pnnx.param")
        self.layouts = infer_layouts(self.graph)
        self.attentions = find_attentions(self.graph)

    def places(self, number: int):
        arguments = self.graph, self.attentions[number], self.layouts.get
        return query_places(*arguments), key_places(*arguments)


# The number of attentions, of heads, samples, queries and keys of one of them, the grids of its
# queries and keys, and how many blocks a rollout up to it has: as the papers have them.
NETWORKS_AND_ATTENTIONS = {
    "vit_b_32": (12, 11, (12, 1, 50, 50), (7, 7), (7, 7), 12),
    "swin_t": (12, 0, (3, 64, 49, 49), (56, 56), (56, 56), 1),
    "swinv2": (4, 3, (6, 16, 64, 64), (32, 32), (32, 32), 4),
    "sam_encoder": (2, 0, (4, 4, 196, 196), (28, 28), (28, 28), 1),
    "sam_hf": (2, 1, (4, 1, 64, 64), (8, 8), (8, 8), 2),
    "dino": (2, 0, (6, 1, 197, 197), (14, 14), (14, 14), 1),
    "segformer": (4, 0, (1, 1, 1024, 16), (32, 32), (4, 4), 1),
    "efficientformer": (1, 0, (8, 1, 49, 49), (7, 7), (7, 7), 1),
    "detr": (2, 1, (4, 1, 20, 16), None, (4, 4), 0),
    "gpt2": (2, 1, (4, 1, 16, 16), None, None, 2),
    "bert": (2, 0, (4, 1, 16, 16), None, None, 1),
    "llama": (2, 1, (4, 1, 16, 16), None, None, 2),
    "whisper": (6, 5, (4, 1, 8, 50), None, None, 0),
    "videomae": (2, 0, (4, 1, 64, 64), (4, 4), (4, 4), 1),
    "diffusion_unet": (8, 1, (8, 1, 256, 7), (16, 16), None, 0),
}


@pytest.mark.parametrize("name", NETWORKS_AND_ATTENTIONS)
def test_networks(name: str) -> None:
    count, number, sizes, query_grid, key_grid, blocks = NETWORKS_AND_ATTENTIONS[name]
    found = Found(name)
    assert len(found.attentions) == count
    attention = found.attentions[number]
    queries, keys = found.places(number)
    heads = find_heads(found.graph, attention, found.layouts.get)
    assert (heads, queries.samples, queries.count, keys.count) == sizes
    assert (queries.grid, keys.grid) == (query_grid, key_grid)
    assert len(find_blocks(found.graph, found.attentions, attention)) == blocks


@pytest.mark.parametrize("name", ["resnet18", "crnn", "yolo_head", "mixer", "mamba"])
def test_networks_without(name: str) -> None:
    assert Found(name).attentions == ()


def test_a_decoder_does_not_mix_tokens_of_its_encoder() -> None:
    found = Found("t5")  # two layers of each; those of the decoder also read the encoder
    order = [found.attentions.index(each) for each in found.attentions]
    assert order == sorted(order)
    sizes = [tuple(p.count for p in found.places(n)) for n in range(6)]
    decoder = [n for n, size in enumerate(sizes) if size == (8, 8)]
    blocks = find_blocks(found.graph, found.attentions, found.attentions[decoder[-1]])
    assert [found.attentions.index(each) for each in blocks] == decoder


def test_tokens_on_the_grid() -> None:
    queries, _ = Found("vit_b_32").places(0)
    assert queries.beside == (0,)
    assert queries.name(0) == "class"
    assert queries.name(26) == "26"
    assert queries.place(0, 26) == (0, 3, 4)  # 25 = 3 * 7 + 4 behind the class token
    assert queries.token_at((0, 3, 4)) == (0, 26)
    picture = queries.fold(0, np.arange(50.0), (0,))
    np.testing.assert_array_equal(picture, np.arange(1, 50).reshape(7, 7))


def test_windows_with_their_shift_undone() -> None:
    found = Found("swin_t")
    plain, _ = found.places(0)
    shifted, _ = found.places(1)
    # Window 9 of 8x8 is the second of the second row; its token 10 is at (1, 3) inside.
    assert plain.place(9, 10) == (7 + 1, 7 + 3)
    # The shift rolls by -3: what is at (8, 10) then was at (11, 13) before.
    assert shifted.place(9, 10) == (7 + 1 + 3, 7 + 3 + 3)
    assert plain.token_at((8, 10)) == (9, 10)
    picture = plain.fold(9, np.arange(49.0), ())
    assert picture.shape == (56, 56)
    np.testing.assert_array_equal(picture[7:14, 7:14], np.arange(49).reshape(7, 7))
    assert np.isnan(picture).sum() == 56 * 56 - 49
    assert plain.is_windowed


def test_registers_have_numbers() -> None:
    queries, _ = Found("dinov2_reg").places(0)
    assert [queries.name(token) for token in range(3)] == ["class", "register 0", "register 1"]
    assert queries.beside == (0, 1, 2, 3, 4)


def test_attention_that_is_written_out(make_pair) -> None:
    graph = engine.load(make_pair(*text_lines()))
    (attention,) = find_attentions(graph)
    assert attention.operator == "soft"
    assert attention.operands == ("q", "kt", "v", "z", "w", "o")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("dim=-1 $input=z", "dim=1 $input=z", id="over-heads"),
        pytest.param("torch.matmul second 2 1 w v", "torch.add second 2 1 w v", id="no-values"),
        pytest.param("torch.matmul first 2 1 q kt", "torch.add first 2 1 q kt", id="no-keys"),
    ],
)
def test_other_softmaxes_are_none(make_pair, old: str, new: str) -> None:
    lines = [line.replace(old, new) for line in text_lines()]
    assert lines != text_lines()
    assert find_attentions(engine.load(make_pair(*lines))) == ()


def test_without_layouts_places_are_not_known(make_pair) -> None:
    graph = engine.load(make_pair(*vit_lines(), weights=vit_weights()))
    (first, _) = find_attentions(graph)
    assert query_places(graph, first, lambda _: None) is None
    assert find_heads(graph, first, lambda _: None) == 2
    layouts = infer_layouts(graph)
    assert query_places(graph, first, layouts.get).grid == (4, 4)
