"""Layouts of real networks against what each operand means, written by hand.

The networks are exports of torchvision, timm, transformers, diffusers and mambapy, most of them
with few layers. Only what layouts depend on is left of their files. The table was written from
the papers and the source of the networks: which operator an operand comes from says what its
axes are.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import engine
from engine.axes import infer_layouts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.axes import Layout

NETWORKS = Path(__file__).parent / "networks"

IMAGE = "channels × rows × columns"
LAST = "rows × columns × channels"
TOKENS = "tokens × features"
SCORES = "heads × queries × keys"
CUT = "rows of windows × rows × columns of windows × columns × channels"
ORDERED = "rows of windows × columns of windows × rows × columns × channels"
FILM = "channels × time × rows × columns"

# Network to words to operands.
EXPECTED: dict[str, dict[str, str]] = {
    "resnet18": {IMAGE: "0 1 3 20 46", "channels": "47", "features": "48", "classes": "49"},
    "squeezenet1_1": {IMAGE: "0 1 4 63", "channels": "64", "features": "65"},
    "unet": {IMAGE: "0 1 5 20 30 38"},
    "mobilenet_v3_small": {IMAGE: "0 1 3 10", "channels": "5 6 7 8 9 27"},
    "shufflenet_v2": {IMAGE: "0 1 3", "features": "153", "classes": "154"},
    "convnext_tiny": {IMAGE: "0 1", LAST: "2 3 7 8 9 10 11", "channels": "5 34"},
    "vit_b_32": {
        IMAGE: "0 1",
        "features × 7×7 tokens": "2",
        "7×7 tokens × features": "3",
        "features": "4",
        "class + 7×7 tokens × features": "5 6 7 8 9 10 11 12 13 14 15",
        "classes": "106",
    },
    "vit_s": {
        IMAGE: "0 2",
        "features × 14×14 tokens": "3",
        "14×14 tokens × features": "4",
        "class + 14×14 tokens × features": "1 6 7 8 9 17 18 19 22",
        "class + 14×14 tokens × parts × heads × features": "10",
        "parts × heads × class + 14×14 tokens × features": "11",
        "heads × class + 14×14 tokens × features": "12 13 14 15",
        "class + 14×14 tokens × heads × features": "16",
    },
    "dino": {"class + 14×14 tokens × features": "1 6 7 8", "14×14 tokens × features": "4"},
    "deit_distilled": {
        "class + distillation + 14×14 tokens × features": "1 7 8 9 10 20",
        "heads × class + distillation + 14×14 tokens × features": "13 16",
        "features": "44 45",
        "classes": "46 48",
    },
    "dinov2_reg": {
        "16×16 tokens × features": "1 4 7",
        "class + 4 registers + 16×16 tokens × features": "8 9 19 22 43",
        "heads × class + 4 registers + 16×16 tokens × features": "13 16",
        "features": "20 45",
    },
    "dinov2_hf": {
        "class + 4×4 tokens × features": "5 6 7",
        "4×4 tokens × features": "3 9",
        "class + 4 registers + 4×4 tokens × features": "11 12 16 28",
    },
    "clip": {"class + 4×4 tokens × features": "5 6 7 13 28", "features": "29 30 31"},
    "mixer": {
        "features × 7×7 tokens": "2 5 8",
        "7×7 tokens × features": "3 4 9 10 11 12",
        "features × features": "6 7",
    },
    "sam_encoder": {
        LAST: "1 3 4 5 6 33 34 35",
        CUT: "7 32",
        ORDERED: "8 31",
        "2×2 windows × 14×14 tokens × features": "9 10 29 30",
        "2×2 windows × 14×14 tokens × parts × heads × features": "11",
        "parts × 2×2 windows × heads × 14×14 tokens × features": "12",
        "2×2 windows·heads × 14×14 tokens × features": "14 15 16 26",
        "2×2 windows·heads × rows × columns × rows × columns": "24",
        "2×2 windows·heads × 14×14 queries × 14×14 keys": "25",
        "16×16 tokens × features": "36 37 38 39",
    },
    "sam_hf": {
        CUT: "6 36",
        ORDERED: "7 35",
        "2×2 windows × rows × columns × channels": "8 33 34",
        "2×2 windows·heads × 4×4 queries × 4×4 keys": "18 27 28 29",
        "2×2 windows·heads × 4×4 tokens × features": "13 30",
        "heads × 8×8 queries × 8×8 keys": "54 63",
        LAST: "1 3 37 38 40 69",
    },
    "swin_t": {
        IMAGE: "0 1 216",
        LAST: "2 3 4 12 13 15 20 28 29 30 36 40 42",
        CUT: "5 11 21 27",
        ORDERED: "6 10 22 26",
        "8×8 windows × 7×7 tokens × features": "7 9 23 25",
        "8×8 windows·heads × 7×7 queries × 7×7 keys": "8 24",
        "4×4 windows × 7×7 tokens × features": "46 48 62 64",
        "7×7 tokens × features": "188 190",
        "classes": "219",
    },
    "swinv2": {
        LAST: "2 3 27 29 36 37 65",
        CUT: "4 26 38",
        ORDERED: "5 25 39",
        "8×8 windows × 8×8 tokens × features": "6 7 23 24 40",
        "8×8 windows × 8×8 tokens × parts × heads × features": "8",
        "8×8 windows × heads × 8×8 tokens × features": "10 13 21 44",
        "8×8 windows × heads × 8×8 queries × 8×8 keys": "16 19 20 50 57",
        "heads × 8×8 queries × 8×8 keys": "18",
        "64×64 tokens × features": "30 31 35",
    },
    "video_swin": {
        FILM: "0 1",
        "time × rows × columns × channels": "2 3 12 13 20 28 40 42",
        "2×2 windows × 4×7×7 tokens × features": "7 9 23",
        "2×2 windows·heads × 4×7×7 queries × 4×7×7 keys": "8",
    },
    "video_r3d": {
        FILM: "0 1 12 13 24",
        IMAGE: "45",
        "channels": "46",
        "features": "47",
        "classes": "48",
    },
    "videomae": {FILM: "1 2", "4×4×4 tokens × features": "4 5 6 8 11 22"},
    "volume_unet": {"channels × planes × rows × columns": "1 4 5 7 8 10"},
    "bert": {"tokens": "0", TOKENS: "1 2 3 4 6 10 21"},
    "clip_text": {"tokens": "0", TOKENS: "1 5 10 27"},
    "llama": {
        "tokens": "0",
        TOKENS: "1 3 4 7 10 33 37",
        "tokens × heads × features": "5 8 32",
        "heads × tokens × features": "6 9 18 23 27 30",  # 2 heads of keys, repeated to 4
        "queries × keys": "2",
    },
    "beit": {
        "14×14 tokens × features": "3 43",
        "class + 14×14 tokens × features": "5 7 8 17 41",
        "heads × class + 14×14 queries × class + 14×14 keys": "14 32",
        "features": "6 44",
        "classes": "46",
    },
    "efficientformer": {
        "7×7 tokens × features": "97 99 112 116",
        "heads × 7×7 queries × 7×7 keys": "106 107 108",
        "heads × features × 7×7 tokens": "105",
        "channels": "6",
        "classes": "123",
    },
    "encoder": {"tokens": "0", TOKENS: "1 16 17", "tokens × vocabulary": "18 19"},
    "gpt2": {
        TOKENS: "2 4 6 9 10 11 28 31 79",
        "tokens × heads × features": "15 25",
        "heads × tokens × features": "17 24",
        "heads × features × tokens": "20",
        SCORES: "21 22 23",
        "queries × keys": "5",
        "vocabulary × features": "1",
        "tokens × vocabulary": "84",
    },
    "t5": {
        TOKENS: "3 4 5 20 21 24 52 136",
        "heads × tokens × features": "7 12 18",
        SCORES: "13 15 16 17",
        "queries × keys": "53",
        "vocabulary × features": "2",
        "tokens × vocabulary": "137",
    },
    "whisper": {
        "channels × time": "0 2 4 5",
        "time × features": "6 7 8 9 10 24 27 55 84",
        "time × heads × features": "12",
        "heads × time × features": "13",
        "heads × features × time": "19",
        SCORES: "20 21 71 90 91",
        "tokens": "1",
        TOKENS: "56 58 76 104 144",
        "heads × tokens × features": "69 74 92",
    },
    "wav2vec2": {
        "time": "0",
        "channels × time": "2 5 7 12 13 14",
        "time × features": "9 11 16 22 34",
    },
    "mamba": {
        "time × features": "0 1 4 5 10 20 52 54",
        "channels × time": "7 8 9 19",
    },
    "segformer": {
        IMAGE: "0 1 103 109 122 125",
        "features × 32×32 tokens": "2 6 16",
        "32×32 tokens × features": "3 4 12 15 21",
        "4×4 tokens × features": "10 11",
        LAST: "25",
        "16×16 tokens × features": "29 105",
    },
    "detr": {
        IMAGE: "20 41 69",
        "4×4 tokens × features": "43 71 79 81 84 97",
        "features × 4×4 tokens": "42",
        "rows × columns": "45 46 48",
        LAST: "53 63 68",
        "heads × queries × 4×4 keys": "103 104 105",
        "heads × 4×4 tokens × features": "101",
        "heads × boxes × features": "96 106",
        "boxes × features": "94 108 112 119",
        "boxes × classes": "118",
        "boxes × coordinates": "123 124",
    },
    "yolos": {
        "4×6 tokens × features": "3",
        "class + 4×6 tokens + 10 boxes × features": "6 7 8 10 13 25",
        "boxes × features": "5 26 27",
        "boxes × classes": "31",
        "boxes × coordinates": "36 37",
    },
    "yolo_head": {
        "features × 16×16 tokens": "12",
        "features × 8×8 tokens": "16",
        "features × 16×16 + 8×8 + 4×4 boxes": "21 22 23 28 30 31",
    },
    "crnn": {IMAGE: "1 2", "columns × channels × rows": "3", "columns × features": "4 5"},
    "diffusion_unet": {
        TOKENS: "2",
        "features": "7 14 22",
        "channels": "23",
        LAST: "31 47",
        "16×16 tokens × features": "32 33 34 37 40 45",
        "8×8 tokens × features": "76 84",
    },
    "dit": {
        "8×8 tokens × features": "3 6 7 31 82 98 101 102",
        "features × 8×8 tokens": "5",
        "features": "14 18 24 25",
        IMAGE: "0 4 105",
    },
    "vae_decoder": {
        "features × 8×8 tokens": "10 11 14",
        "8×8 tokens × features": "12 13",
        IMAGE: "0 1",
    },
    "timesformer": {
        "time × channels × rows × columns": "0 2 3",
        "time × features × 4×4 tokens": "4",
        "time × class + 4×4 tokens × features": "7 8 43",
        "4×4 tokens × time × features": "13 17 18 19",
        "4×4 tokens × heads × time × features": "22 23 24",
        "4×4 tokens × heads × queries × keys": "26 27 28",
        "class + 4×4×8 tokens × features": "15 67",
        "time × rows × columns × channels": "41",
        "time × heads × class + 4×4 queries × class + 4×4 keys": "52 53 54",
        "classes": "134",
    },
    "sd3": {
        IMAGE: "0 4 167",
        TOKENS: "1 26",
        "8×8 tokens × features": "6 7 8",
        "heads × 8×8 tokens + 9 tokens × features": "68 69 70",
        ORDERED: "165",
        "channels × rows of windows × rows × columns of windows × columns": "166",
    },
    "rtdetr": {
        IMAGE: "0 1",
        "8×8 tokens × features": "56 58",
        "32×32 + 16×16 + 8×8 boxes × features": "160 163 164",
        "32×32 + 16×16 + 8×8 boxes × coordinates": "161 171",
        "32×32 + 16×16 + 8×8 boxes": "162 173",
        "boxes": "174 175 176",
        "boxes × coordinates": "177 178 181",
        "boxes × features": "179 180 182",
        "32×32 tokens × heads × features": "202",
        "heads × features × rows × columns": "208",
        "boxes × heads × levels × points × coordinates": "193 201",
        "boxes × heads × levels × points": "197",
        "boxes × heads × points × coordinates": "209",
        "heads × features × boxes × points": "214",
        "heads × features × boxes × levels × points": "229",
    },
    "sam_padded": {
        LAST: "2 3 4",
        CUT: "5 32",
        ORDERED: "6 31",
        "3×3 windows × rows × columns × channels": "7 8 29",
        "3×3 windows·heads × 7×7 tokens × features": "12 13 14",
        "3×3 windows·heads × rows × columns × rows": "17",
        "3×3 windows·heads × rows × columns × columns": "18",
        "3×3 windows·heads × rows × columns × rows × columns": "21",
        "3×3 windows × heads × 7×7 queries × 7×7 keys": "22",
        "heads × 16×16 queries × 16×16 keys": "56",
    },
    "whisper_text": {
        "channels × time": "0 3 4",
        "time × features": "7 9 10",
        "tokens": "1",
        TOKENS: "19 20 21",
        "queries × keys": "22 24 36",
        "tokens × vocabulary": "48",
    },
    "bert_masked": {
        "tokens": "0 1 8 9 10",
        TOKENS: "3 4 5 6",
        "queries × keys": "11 12",
        "vocabulary": "53",
        "tokens × vocabulary": "57",
    },
    "hiera": {
        "56×56 tokens × features": "4 5 15 17",
        "rows × columns × rows of windows × columns of windows × channels": "7",
        "2×2 tokens × rows of windows × columns of windows × channels": "8",
        "8×8 tokens × rows of windows × columns of windows × channels": "14",
        "8×8 tokens × 7×7 windows × parts × features": "18",
        "parts × 7×7 windows × 8×8 tokens × features": "19",
        "7×7 windows × 8×8 tokens × features": "20 21 22",
        "8×8 tokens × 7×7 windows × features": "28",
        "8×8 tokens × 7×7 windows × parts × heads × features": "42",
        "4×4 tokens × 7×7 windows × heads × features": "54",
        "heads × 7×7 queries × 14×14 keys": "124 125",
        "7×7 windows × 8×8 queries × 8×8 keys": "25 26",
        "28×28 tokens × features": "40 56",
        "heads × 7×7 windows × 4×4 queries × 8×8 keys": "51 52",
        "heads × 14×14 queries × 14×14 keys": "98 99",
        "classes": "140",
    },
    "ast": {
        "time × frequencies": "0 1",
        "frequencies × time": "2",
        "channels × frequencies × time": "3",
        "features × 12×25 tokens": "4",
        "class + distillation + 12×25 tokens × features": "7 8 9",
        "classes": "29",
    },
    "xcit": {
        "rows × columns": "13 14 16",
        "14×14 tokens × features": "9 41 42",
        "heads × features × 14×14 tokens": "47 48 49",
        "heads × features × features": "53 54",
        "class + 14×14 tokens × features": "108 109",
    },
    "conditional_detr": {
        "8×10 tokens": "89 90 91 107",
        "8×10 queries × 8×10 keys": "92 93 95 97",
        "heads × queries × 8×10 keys": "125 126 127",
        "boxes × coordinates": "111 213",
        "boxes × classes": "195",
    },
    "cait": {
        "heads × 14×14 tokens × features": "11 12 13",
        "heads × 14×14 queries × 14×14 keys": "16",
        "14×14 queries × 14×14 keys × heads": "17 18 21 22",  # talking heads
        "class + 14×14 tokens × features": "62 63",
    },
    "conformer": {
        "channels × time": "2 3 4 47 48 49",
        "time × features": "9 11 16 18 21 23 43",
        "time × heads × features": "19 42",
        "heads × time × features": "20 25 28 36 41",
        "heads × features × distances": "26",
        "heads × time × distances": "29 30",
        "heads × time·distances × distances": "31 32",
        SCORES: "33 34 38 39 40",
    },
    "conformer_rotary": {
        "time × heads × features": "18 21 22 23 24 25",
        "time × features": "17 19 20 28 29",
        "parts × time × features": "30",
    },
    "perceiver": {
        "32×32 tokens × features": "3 4 5 8 12",
        TOKENS: "6 11 19 22 30",
        "queries × 32×32 keys": "7 16 17 18",
        "features × tokens": "53",
        "classes": "67 68",
    },
    "deberta": {
        "tokens": "0",
        TOKENS: "2 4 5 8 42 47",
        "heads × tokens × features": "11 39 40",
        "distances × features": "23 66 67 72",
        "heads × features × distances": "24 28",
        "heads × tokens × distances": "25 29",
        SCORES: "22 26 27 30 31 32 33 37 38",
        "distances × heads × features": "68 73",
        "tokens × vocabulary": "105",
    },
    "seggpt": {
        LAST: "9 13 15 46 50 69 162",
        "batch × rows × columns × channels": "17 19 38 40 43",
        "batch × 8×4 tokens × parts × heads × features": "20",
        "batch·heads × 8×4 tokens × features": "23 35",
        "batch·heads × rows × columns × rows": "29",
        "batch·heads × rows × columns × columns": "30",
        "heads × 8×4 queries × 8×4 keys": "65",
        ORDERED: "164",
        "channels × rows of windows × rows × columns of windows × columns": "165",
    },
    "graph_attention": {
        TOKENS: "0 4 38",
        "queries × keys": "1 14",
        "heads × features": "2",
        "tokens × heads × features": "5",
        "tokens × heads": "7 8 11",
        "queries × keys × heads": "12",
    },
    "vqvae": {
        IMAGE: "0 1 3 5",
        LAST: "6",
        "12×12 tokens × features": "7",
        "vocabulary": "10",
        "12×12 tokens × vocabulary": "12 13",
        "12×12 tokens": "9 14",
        "rows × columns": "24",
    },
    "pointnet2": {
        TOKENS: "0 3 7 12 20 21 41",
        "queries × keys": "4 5 22 23",
        "tokens × tokens × features": "8 10 26 28 34 36",
        "features × tokens × tokens": "14 15 17 37 38",
        "features × tokens": "19 40",
        "features": "42 43",
    },
    "eomt": {
        IMAGE: "0 1 37",
        "8×8 tokens × features": "3",
        TOKENS: "5 25",
        "class + 4 registers + 8×8 tokens × features": "8 13",
        "15 queries + class + 4 registers + 8×8 tokens × features": "26 70",
        "tokens × rows × columns": "43 46",
        "queries × 8×8 keys": "47",
    },
    "wavlm": {
        "time": "0 1",
        "channels × time": "2 15 20 21",
        "time × features": "17 19 56 62",
        SCORES: "27 28",
        "heads × time × features": "31 32",
        "heads × time × parts × features": "33",
        "heads × time × parts": "34",
        "heads × time": "36",
        "time × classes": "104",
    },
    "time_series": {
        "tokens": "0 3 7 23 31",
        TOKENS: "1 4 5 6 38 39 40 41 42 43 49 63 64 74",
        "features": "27 28",
        "queries × keys": "62",
    },
    "parseq": {
        IMAGE: "0 5",
        "tokens": "1",
        "queries × keys": "2",
        TOKENS: "3",
        "8×16 tokens × features": "4",
    },
    "vocos": {
        "channels × time": "0 2 24 25",
        "time × features": "3 9 23",
        "time": "1 32",
    },
    "sam_decoder": {
        IMAGE: "0 2 71 245 250",
        "2×2 windows × heads × 4×4 queries × 4×4 keys": "22",
        TOKENS: "82 93 97 113",
        "8×8 tokens × features": "117 118",
        "heads × tokens × features": "124 140",
        "heads × 8×8 tokens × features": "142",
        "parts × rows × columns": "279 285",
    },
    "ssd_heads": {
        "boxes × coordinates": "79",
        "boxes × classes": "104",
        IMAGE: "0 1",
    },
}  # fmt: skip


@cache
def layouts_of(network: str) -> Mapping[str, Layout]:
    return infer_layouts(engine.load(NETWORKS / f"{network}.pnnx.param"))


@pytest.mark.parametrize("network", EXPECTED)
def test_operands_are_named_as_by_hand(network: str) -> None:
    layouts = layouts_of(network)
    expected = {
        name: words for words, names in EXPECTED[network].items() for name in names.split()
    }
    assert {name: layouts[name].text() for name in expected} == expected


def test_table_is_large_enough() -> None:
    operands = [len(names.split()) for words in EXPECTED.values() for names in words.values()]
    assert len(EXPECTED) >= 25
    assert sum(operands) >= 200


@pytest.mark.parametrize("path", sorted(NETWORKS.glob("*.param")), ids=lambda p: p.name)
def test_every_axis_has_a_name(path: Path) -> None:
    layouts = layouts_of(path.name.removesuffix(".pnnx.param"))
    assert not {name for name, layout in layouts.items() if not layout.is_named}
