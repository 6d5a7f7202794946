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


def some(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


SCORES = "torch.matmul first 2 1 q kt s $input=q $other=kt #s=(1,4,6,6)f32"
MIXED = (
    "bias=True in_channels=4 out_channels=4 kernel_size=(1,1) @bias=(4)f32 @weight=(4,4,1,1)f32"
)
LAYER = "bias=True in_features=4 out_features=4 @bias=(4)f32 @weight=(4,4)f32"


@pytest.mark.parametrize(
    "between",
    [
        pytest.param(
            (
                (
                    "torch.where hide 2 1 m s z other=-100.0 $condition=m $input=s "
                    "#m=(1,1,6,6)bool #z=(1,4,6,6)f32"
                ),
            ),
            id="hidden-by-a-mask",  # as GPT-Neo hides keys: the mask is the first operand
        ),
        pytest.param(
            (
                "pnnx.Expression scale 1 1 s y expr=mul(@0,2.0) #y=(1,4,6,6)f32",
                "torch.cat rows 2 1 y m z dim=-1 #m=(1,4,6,1)f32 #z=(1,4,6,7)f32",
            ),
            id="joined",
        ),
        pytest.param((f"nn.Conv2d mix 1 1 s z {MIXED} #z=(1,4,6,6)f32",), id="heads-by-conv"),
        pytest.param(
            (
                "Tensor.permute last 1 1 s x dims=(0,2,3,1) $input=s #x=(1,6,6,4)f32",
                f"nn.Linear mix 1 1 x y {LAYER} #y=(1,6,6,4)f32",
                "Tensor.permute back 1 1 y z dims=(0,3,1,2) $input=y #z=(1,4,6,6)f32",
            ),
            id="heads-by-linear",
        ),
    ],
)
def test_what_stands_between_a_product_and_its_softmax(make_pair, between) -> None:
    masks = [line for line in between if " m " in line]
    shape = masks[0].partition("#m=")[2].split()[0] if masks else "(1)f32"
    lines = (
        f"pnnx.Input in0 0 1 m #m={shape}",
        "pnnx.Input in1 0 1 q #q=(1,4,6,3)f32",
        "pnnx.Input in2 0 1 kt #kt=(1,4,3,6)f32",
        "pnnx.Input in3 0 1 v #v=(1,4,6,3)f32",
        SCORES,
        *between,
        "F.softmax soft 1 1 z w dim=-1 $input=z",
        "torch.matmul second 2 1 w v o $input=w $other=v #o=(1,4,6,3)f32",
        "pnnx.Output out 1 0 o",
    )
    mixed = {
        "mix.bias": some(4),
        "mix.weight": some(4, 4, *([1, 1] if "Conv" in lines[5] else [])),
    }
    weights = mixed if any(" mix " in line for line in between) else {}
    (attention,) = find_attentions(engine.load(make_pair(*lines, weights=weights)))
    assert attention.operands == ("q", "kt", "v", "z", "w", "o")


def test_a_layer_of_features_mixes_no_heads(make_pair) -> None:
    """A router chooses experts by what an attention gave: its softmax is of no attention."""
    lines = (
        "pnnx.Input in0 0 1 q #q=(1,6,3)f32",
        "pnnx.Input in1 0 1 k #k=(1,3,4)f32",
        "pnnx.Input in2 0 1 v #v=(1,4,3)f32",
        "torch.matmul first 2 1 q k s $input=q $other=k #s=(1,6,4)f32",
        f"nn.Linear router 1 1 s z {LAYER} #z=(1,6,4)f32",
        "F.softmax soft 1 1 z w dim=-1 $input=z #w=(1,6,4)f32",
        "torch.matmul second 2 1 w v o $input=w $other=v #o=(1,6,3)f32",
        "pnnx.Output out 1 0 o",
    )
    weights = {"router.bias": some(4), "router.weight": some(4, 4)}
    assert find_attentions(engine.load(make_pair(*lines, weights=weights))) == ()


def test_without_layouts_places_are_not_known(make_pair) -> None:
    graph = engine.load(make_pair(*vit_lines(), weights=vit_weights()))
    (first, _) = find_attentions(graph)
    assert query_places(graph, first, lambda _: None) is None
    assert find_heads(graph, first, lambda _: None) == 2
    layouts = infer_layouts(graph)
    assert query_places(graph, first, layouts.get).grid == (4, 4)
