"""What exports of networks showed on which no rule was made, in few operators each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from ncnn_files import write_pair

import engine
from engine.axes import Axis, infer_layouts, plan_view

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PATCHES = (
    "pnnx.Input in 0 1 a #a=(1,3,12,12)f32",
    "nn.Conv2d c 1 1 a b kernel_size=(3,3) stride=(3,3) #b=(1,8,4,4)f32",
    "torch.flatten f 1 1 b c start_dim=2 end_dim=-1 $input=b #c=(1,8,16)f32",
    "torch.transpose t 1 1 c d dim0=1 dim1=2 $input=c #d=(1,16,8)f32",
)
BEFORE = "class + 4 registers + 4×4 tokens × features"


@pytest.fixture
def texts(make_pair: Callable[..., Path]) -> Callable[..., dict[str, str]]:
    def infer(*lines: str, **weights: np.ndarray) -> dict[str, str]:
        named = {
            name if "." in name else f"{name}.data": array for name, array in weights.items()
        }
        found = infer_layouts(engine.load(make_pair(*lines, weights=named)))
        return {name: layout.text() for name, layout in found.items()}

    return infer


def test_tokens_that_are_cut_off_and_joined_again(texts: Callable[..., dict[str, str]]) -> None:
    """Rotary positions of DINOv3 turn the grid's tokens only."""
    found = texts(
        *PATCHES,
        "pnnx.Attribute cls_token 0 1 e @data=(1,1,8)f32 #e=(1,1,8)f32",
        "pnnx.Attribute reg_token 0 1 f @data=(1,4,8)f32 #f=(1,4,8)f32",
        "torch.cat j 3 1 e f d g dim=1 #g=(1,21,8)f32",
        (
            "torch.tensor_split s 1 2 g h i dim=1 indices=(5) "
            "$input=g #h=(1,5,8)f32 #i=(1,16,8)f32"
        ),
        "F.relu r 1 1 i k #k=(1,16,8)f32",
        "torch.cat l 2 1 h k m dim=1 #m=(1,21,8)f32",
        "pnnx.Expression x 2 1 g m n expr=add(@0,@1) #n=(1,21,8)f32",
        "pnnx.Output out 1 0 n",
        cls_token=np.zeros((1, 1, 8), np.float32),
        reg_token=np.zeros((1, 4, 8), np.float32),
    )
    assert found["g"] == found["m"] == found["n"] == BEFORE
    assert found["h"] == "tokens × features"
    assert found["i"] == "4×4 tokens × features"


def test_tokens_of_a_text_are_no_registers(texts: Callable[..., dict[str, str]]) -> None:
    """Blocks of Stable Diffusion 3 attend to an image and a text together."""
    found = texts(
        *PATCHES,
        "pnnx.Input text 0 1 e #e=(1,9,8)f32",
        "torch.cat j 2 1 d e g dim=1 #g=(1,25,8)f32",
        "pnnx.Output out 1 0 g",
    )
    assert found["g"] == "4×4 tokens + 9 tokens × features"


def test_heads_before_windows(texts: Callable[..., dict[str, str]]) -> None:
    """Hiera attends inside units, whose dimension is between heads and tokens."""
    found = texts(
        *PATCHES,
        "nn.Linear q 1 1 d e #e=(1,16,8)f32",
        "Tensor.reshape r 1 1 e g shape=(1,4,4,2,4) $input=e #g=(1,4,4,2,4)f32",
        "Tensor.permute p 1 1 g h dims=(0,3,2,1,4) $input=g #h=(1,2,4,4,4)f32",
        (
            "F.scaled_dot_product_attention s 3 1 h h h i "
            "$query=h $key=h $value=h #i=(1,2,4,4,4)f32"
        ),
        "pnnx.Output out 1 0 i",
    )
    assert found["h"].startswith("heads × ")
    assert found["h"].count("heads") == 1
    assert found["h"] == found["i"]


@pytest.mark.parametrize(
    ("kernel", "word"), [("3,1,1", "time"), ("3,3,3", "planes"), ("1,1,1", "planes")]
)
def test_convolutions_along_one_dimension_are_of_films(
    texts: Callable[..., dict[str, str]], kernel: str, word: str
) -> None:
    """U-Nets of diffusion for films have no three channels inside."""
    found = texts(
        "pnnx.Input in 0 1 a #a=(1,4,6,16,16)f32",
        f"nn.Conv3d c 1 1 a b kernel_size=({kernel}) #b=(1,4,6,16,16)f32",
        "pnnx.Output out 1 0 b",
    )
    assert found["a"] == found["b"] == f"channels × {word} × rows × columns"


def test_layers_of_ncnn(tmp_path: Path) -> None:
    """Its files have no shapes; those of a run are given."""
    lines = (
        "Input in 0 1 in",
        "Convolution patches 1 1 in 1 0=8 1=4 11=4 3=4 13=4 6=384",
        "Reshape flat 1 1 1 2 0=9 1=8",
        "Permute turn 1 1 2 3 0=1",
        "MemoryData cls_token 0 1 4 0=8 1=1",
        "Concat all 2 1 4 3 5 0=0",
        "LayerNorm norm 1 1 5 6 0=8 1=1.000000e-05 2=0",
        "MultiHeadAttention attention 1 1 6 7 0=8 1=2 2=64",
        "Crop first 1 1 7 8 -23309=1,0 -23310=1,1 -23311=1,0",
        "Squeeze vector 1 1 8 9 1=1",
        "InnerProduct head 1 1 9 out 0=5 1=0 2=40",
    )
    path = write_pair(tmp_path, lines, bytes(2904))
    shapes = {
        "in": (3, 12, 12), "1": (8, 3, 3), "2": (8, 9), "3": (9, 8), "4": (1, 8),
        "5": (10, 8), "6": (10, 8), "7": (10, 8), "8": (1, 8), "9": (8,), "out": (5,),
    }  # fmt: skip
    found = infer_layouts(engine.load(path), shapes)
    words = {name: found[name].text() for name in shapes}
    assert words["in"] == words["1"] == "channels × rows × columns"
    assert words["2"] == "features × 3×3 tokens"
    assert words["5"] == words["6"] == words["7"] == "class + 3×3 tokens × features"
    assert words["out"] == "classes"


def test_attention_of_ncnn_written_out(tmp_path: Path) -> None:
    """Without a batch the first of three dimensions is that of the heads."""
    lines = (
        "Input query 0 1 q",
        "Input key 0 1 k",
        "MatMul product 2 1 q k scores 0=1",
        "Softmax weights 1 1 scores out 0=2 1=1",
    )
    shapes = {"q": (2, 9, 4), "k": (2, 7, 4), "scores": (2, 9, 7), "out": (2, 9, 7)}
    found = infer_layouts(engine.load(write_pair(tmp_path, lines)), shapes)
    assert found["scores"].text() == found["out"].text() == "heads × queries × keys"
    assert found["q"].text() == found["k"].text() == "heads × tokens × features"


def test_a_text_before_a_picture(texts: Callable[..., dict[str, str]]) -> None:
    """LayoutLMv3 reads words, their boxes and the picture of a page, and weighs distances."""
    found = texts(
        *PATCHES,
        "pnnx.Input words 0 1 e #e=(1,6)i64",
        "nn.Embedding w 1 1 e g embedding_dim=8 num_embeddings=50 #g=(1,6,8)f32",
        "pnnx.Attribute pos_fold 0 1 h @data=(1,6,8)f32 #h=(1,6,8)f32",
        "pnnx.Expression s 2 1 g h i expr=add(@0,@1) #i=(1,6,8)f32",
        "pnnx.Attribute cls_tokens 0 1 j @data=(1,1,8)f32 #j=(1,1,8)f32",
        "torch.cat k 2 1 j d k dim=1 #k=(1,17,8)f32",
        "torch.cat l 2 1 i k l dim=1 #l=(1,23,8)f32",
        "pnnx.Input boxes 0 1 m #m=(1,6,4)i64",
        "pnnx.Attribute of_patches 0 1 n @data=(1,17,4)i64 #n=(1,17,4)i64",
        "torch.cat o 2 1 m n o dim=1 #o=(1,23,4)i64",
        "Tensor.select p 1 1 o p dim=-1 index=0 #p=(1,23)i64",
        "torch.unbind q 1 4 m q1 q2 q3 q4 dim=-1 #q1=(1,6)i64 #q2=(1,6)i64 #q3=(1,6)i64 "
        "#q4=(1,6)i64",
        "torch.unsqueeze r1 1 1 p r dim=-1 #r=(1,23,1)i64",
        "torch.unsqueeze r2 1 1 p t dim=-2 #t=(1,1,23)i64",
        "pnnx.Expression u 2 1 r t u expr=sub(@0,@1) #u=(1,23,23)i64",
        "torch.flatten v 1 1 u v start_dim=0 end_dim=-1 #v=(529)i64",
        "pnnx.Attribute table 0 1 x @data=(2,99)f32 #x=(2,99)f32",
        "torch.index_select y 2 1 x v y dim=1 $input=x $index=v #y=(2,529)f32",
        "Tensor.reshape z 1 1 y z shape=(2,1,23,23) $input=y #z=(2,1,23,23)f32",
        "torch.transpose b1 1 1 z b2 dim0=0 dim1=1 #b2=(1,2,23,23)f32",
        "Tensor.reshape b3 1 1 l b4 shape=(1,23,2,4) $input=l #b4=(1,23,2,4)f32",
        "torch.transpose b5 1 1 b4 b6 dim0=1 dim1=2 #b6=(1,2,23,4)f32",
        (
            "F.scaled_dot_product_attention b7 4 1 b6 b6 b6 b2 b8 $query=b6 $key=b6 $value=b6 "
            "$attn_mask=b2 #b8=(1,2,23,4)f32"
        ),
        "pnnx.Output out 1 0 b8",
        cls_tokens=np.zeros((1, 1, 8), np.float32),
        pos_fold=np.zeros((1, 6, 8), np.float32),
        of_patches=np.zeros((1, 17, 4), np.int64),
        table=np.zeros((2, 99), np.float32),
    )
    assert found["k"] == "class + 4×4 tokens × features"
    assert found["l"] == "6 tokens + class + 4×4 tokens × features"
    assert found["b8"] == "heads × 6 tokens + class + 4×4 tokens × features"
    assert found["m"] == found["o"].replace("6 tokens + class + 4×4 tokens", "tokens")
    assert found["m"] == "tokens × parts"
    assert found["y"].startswith("heads × ")
    assert "?" not in found["y"]
    scores = "6 tokens + class + 4×4 {0} × 6 tokens + class + 4×4 {1}"
    assert found["b2"] == f"heads × {scores.format('queries', 'keys')}"


GRIDS = (
    "pnnx.Input in 0 1 a #a=(1,3,12,8)f32",
    "nn.Conv2d c 1 1 a b kernel_size=(1,1) stride=(1,1) #b=(1,8,12,8)f32",
    "Tensor.permute p 1 1 b d dims=(0,2,3,1) $input=b #d=(1,12,8,8)f32",
)


def test_grids_whose_windows_interleave(make_pair: Callable[..., Path]) -> None:
    """MaxViT attends inside windows, then along every n-th position."""
    lines = (
        *GRIDS,
        "Tensor.reshape w 1 1 d e shape=(1,3,4,2,4,8) $input=d #e=(1,3,4,2,4,8)f32",
        "Tensor.permute o 1 1 e g dims=(0,1,3,2,4,5) $input=e #g=(1,3,2,4,4,8)f32",
        "Tensor.reshape m 1 1 g h shape=(6,4,4,8) $input=g #h=(6,4,4,8)f32",
        "Tensor.reshape v 1 1 d i shape=(1,4,3,4,2,8) $input=d #i=(1,4,3,4,2,8)f32",
        "Tensor.permute q 1 1 i k dims=(0,2,4,1,3,5) $input=i #k=(1,3,2,4,4,8)f32",
        "Tensor.reshape n 1 1 k l shape=(6,16,8) $input=k #l=(6,16,8)f32",
        "pnnx.Output out 2 0 h l",
    )
    found = infer_layouts(engine.load(make_pair(*lines)))
    assert found["h"].text() == "3×2 windows × rows × columns × channels"
    assert found["k"].text() == (
        "rows of windows × columns of windows × rows × columns × channels"
    )
    assert found["l"].text() == "3×2 windows × 4×4 tokens × features"
    image = np.arange(12 * 8 * 8).reshape(12, 8, 8)
    interleaved = image.reshape(4, 3, 4, 2, 8).transpose(1, 3, 0, 2, 4).reshape(6, 16, 8)
    plan = plan_view(found["l"], (6, 16, 8))
    assert plan is not None
    np.testing.assert_array_equal(plan.fold(interleaved), image.transpose(2, 0, 1))
    assert [Axis.from_plain(axis.to_plain()) for axis in found["l"].axes] == [*found["l"].axes]


def test_patches_that_are_unfolded(texts: Callable[..., dict[str, str]]) -> None:
    """TNT cuts a picture to patches without a convolution."""
    found = texts(
        "pnnx.Input in 0 1 a #a=(1,3,12,12)f32",
        "nn.Unfold u 1 1 a b dilation=(1,1) kernel_size=(3,3) padding=(0,0) stride=(3,3) "
        "#b=(1,27,16)f32",
        "torch.transpose t 1 1 b c dim0=1 dim1=2 $input=b #c=(1,16,27)f32",
        "Tensor.reshape p 1 1 c d shape=(16,3,3,3) $input=c #d=(16,3,3,3)f32",
        "nn.Linear l 1 1 c e in_features=27 out_features=8 bias=False #e=(1,16,8)f32",
        "pnnx.Attribute cls_token 0 1 f @data=(1,1,8)f32 #f=(1,1,8)f32",
        "torch.cat j 2 1 f e g dim=1 #g=(1,17,8)f32",
        "nn.LayerNorm n 1 1 g h elementwise_affine=False eps=1e-5 normalized_shape=(8) "
        "#h=(1,17,8)f32",
        "pnnx.Output out 2 0 h d",
        cls_token=np.zeros((1, 1, 8), np.float32),
    )
    assert found["b"] == "features × 4×4 tokens"
    assert found["d"] == "4×4 windows × channels × rows × columns"
    assert found["e"] == "4×4 tokens × features"
    assert found["h"] == "class + 4×4 tokens × features"


def test_windows_are_as_many_as_padding_and_dilation_leave(
    texts: Callable[..., dict[str, str]],
) -> None:
    """Three positions two apart span 5 of 11 + 2 and 13 + 2: they fit 5 and 6 times."""
    found = texts(
        "pnnx.Input in 0 1 a #a=(1,3,11,13)f32",
        "nn.Unfold u 1 1 a b dilation=(2,2) kernel_size=(3,3) padding=(1,1) stride=(2,2) "
        "$input=a #b=(1,27,30)f32",
        "pnnx.Output out 1 0 b",
    )
    assert found["b"] == "features × 5×6 tokens"


def test_ranges_are_segments_where_they_begin_and_end_with_one(
    texts: Callable[..., dict[str, str]],
) -> None:
    """Grids of 4x4 and 3x3 in a row: positions 0 to 15, and 16 to 24."""
    slices = {"k": (-9, 25), "l": (14, 23), "m": (16, 24), "n": (0, 16)}
    found = texts(
        "pnnx.Input in 0 1 a #a=(1,3,12,12)f32",
        "nn.Conv2d c 1 1 a b kernel_size=(3,3) stride=(3,3) #b=(1,5,4,4)f32",
        "torch.flatten f 1 1 b d start_dim=2 end_dim=-1 $input=b #d=(1,5,16)f32",
        "nn.Conv2d c2 1 1 a e kernel_size=(4,4) stride=(4,4) #e=(1,5,3,3)f32",
        "torch.flatten f2 1 1 e g start_dim=2 end_dim=-1 $input=e #g=(1,5,9)f32",
        "torch.cat ca 2 1 d g h dim=2 #h=(1,5,25)f32",
        "torch.split s 1 2 h i j split_size_or_sections=(16,9) dim=2 $tensor=h "
        "#i=(1,5,16)f32 #j=(1,5,9)f32",
        *(
            f"Tensor.slice s{name} 1 1 h {name} dim=2 start={start} end={end} step=1 $input=h "
            f"#{name}=(1,5,{end - start if start >= 0 else -start})f32"
            for name, (start, end) in slices.items()
        ),
        "pnnx.Output out 6 0 i j k l m n",
    )
    assert found["i"] == found["n"] == "features × 4×4 tokens"
    assert found["j"] == found["k"] == "features × 3×3 tokens"
    assert "×3" not in found["l"]  # the last two of one grid, and seven of the other
    assert "×3" not in found["m"]  # without its last position


def test_windows_that_overlap(texts: Callable[..., dict[str, str]]) -> None:
    """VOLO weighs the neighbours of each place, and adds them up in a picture again."""
    windows = "dilation=(1,1) kernel_size=(3,3) padding=(1,1) stride=(2,2)"
    found = texts(
        "pnnx.Input in 0 1 a #a=(1,8,6,6)f32",
        f"nn.Unfold u 1 1 a b {windows} #b=(1,72,9)f32",
        "Tensor.reshape p 1 1 b c shape=(1,2,4,9,9) $input=b #c=(1,2,4,9,9)f32",
        "F.relu r 1 1 b d $input=b #d=(1,72,9)f32",
        f"F.fold f 1 1 d e {windows} output_size=(6,6) $input=d #e=(1,8,6,6)f32",
        "pnnx.Output out 2 0 e c",
    )
    assert found["b"] == found["d"] == "features × 3×3 tokens"
    assert found["c"] == "features × features × 3×3 tokens × 3×3 tokens"
    assert found["e"] == "channels × rows × columns"


def test_scores_of_neighbours_that_a_layer_gives(texts: Callable[..., dict[str, str]]) -> None:
    """VOLO's scores come from a linear layer: of each place of a window for each other one."""
    windows = "dilation=(1,1) kernel_size=(3,3) padding=(1,1) stride=(2,2)"
    found = texts(
        "pnnx.Input in 0 1 a #a=(1,8,6,6)f32",
        f"nn.Unfold u 1 1 a b {windows} #b=(1,72,9)f32",
        "Tensor.reshape p 1 1 b c shape=(1,2,4,9,9) $input=b #c=(1,2,4,9,9)f32",
        "Tensor.permute v 1 1 c d dims=(0,1,4,3,2) $input=c #d=(1,2,9,9,4)f32",
        "nn.AvgPool2d m 1 1 a e kernel_size=(2,2) stride=(2,2) #e=(1,8,3,3)f32",
        "Tensor.permute q 1 1 e g dims=(0,2,3,1) $input=e #g=(1,3,3,8)f32",
        "nn.Linear l 1 1 g h in_features=8 out_features=162 #h=(1,3,3,162)f32",
        "Tensor.reshape r 1 1 h i shape=(1,9,2,9,9) $input=h #i=(1,9,2,9,9)f32",
        "Tensor.permute s 1 1 i j dims=(0,2,1,3,4) $input=i #j=(1,2,9,9,9)f32",
        "F.softmax t 1 1 j k dim=-1 $input=j #k=(1,2,9,9,9)f32",
        "torch.matmul x 2 1 k d n $input=k $other=d #n=(1,2,9,9,4)f32",
        "Tensor.permute y 1 1 n o dims=(0,1,4,3,2) $input=n #o=(1,2,4,9,9)f32",
        "Tensor.reshape z 1 1 o w shape=(1,72,9) $input=o #w=(1,72,9)f32",
        f"F.fold f 1 1 w z {windows} output_size=(6,6) $input=w #z=(1,8,6,6)f32",
        "pnnx.Output out 1 0 z",
    )
    assert found["z"] == "channels × rows × columns"
    assert found["i"] == "3×3 tokens × heads × 3×3 queries × 3×3 keys"
    assert found["k"] == "heads × 3×3 tokens × 3×3 queries × 3×3 keys"
    assert found["n"] == "heads × 3×3 tokens × 3×3 tokens × features"


def test_blocks_that_attend_to_overlapping_windows(
    texts: Callable[..., dict[str, str]],
) -> None:
    """HaloNet counts blocks last, and its keys come from a wider window around each."""
    found = texts(
        "pnnx.Input in 0 1 a #a=(1,4,8,8)f32",
        "nn.Conv2d q 1 1 a b kernel_size=(1,1) #b=(1,8,8,8)f32",
        "Tensor.reshape r 1 1 b c shape=(2,4,2,4,2,4) $input=b #c=(2,4,2,4,2,4)f32",
        "Tensor.permute p 1 1 c d dims=(0,1,3,5,2,4) $input=c #d=(2,4,4,4,2,2)f32",
        "Tensor.reshape s 1 1 d e shape=(2,4,16,4) $input=d #e=(2,4,16,4)f32",
        "torch.transpose t 1 1 e f dim0=1 dim1=3 $input=e #f=(2,4,16,4)f32",
        "F.pad u 1 1 a g pad=(1,1,1,1) $input=a #g=(1,4,10,10)f32",
        "nn.Conv2d k 1 1 g h kernel_size=(1,1) #h=(1,8,10,10)f32",
        "Tensor.unfold v 1 1 h i dimension=2 size=6 step=4 $input=h #i=(1,8,2,10,6)f32",
        "Tensor.unfold w 1 1 i j dimension=3 size=6 step=4 $input=i #j=(1,8,2,2,6,6)f32",
        "Tensor.reshape x 1 1 j k shape=(2,4,4,36) $input=j #k=(2,4,4,36)f32",
        "Tensor.permute y 1 1 k l dims=(0,2,1,3) $input=k #l=(2,4,4,36)f32",
        "torch.matmul m 2 1 f l m $input=f $other=l #m=(2,4,16,36)f32",
        "F.softmax z 1 1 m n dim=-1 $input=m #n=(2,4,16,36)f32",
        "pnnx.Output out 1 0 n",
    )
    assert (
        found["d"] == "heads × features × rows × columns × rows of windows × columns of windows"
    )
    assert found["e"] == "heads × features × 4×4 tokens × 2×2 windows"
    assert found["f"] == "heads × 2×2 windows × 4×4 tokens × features"
    assert found["j"] == "channels × rows of windows × columns of windows × rows × columns"
    assert found["l"] == "heads × 2×2 windows × features × 6×6 tokens"
    assert found["n"] == "heads × 2×2 windows × 4×4 queries × 6×6 keys"


SERIES = (
    "pnnx.Input in 0 1 a #a=(1,20,5)f32",
    "torch.mean m 1 1 a b dim=(1) keepdim=True #b=(1,1,5)f32",
    "pnnx.Expression c 2 1 a b c expr=sub(@0,@1) #c=(1,20,5)f32",
    "Tensor.unfold u 1 1 c d dimension=1 size=8 step=4 $input=c #d=(1,4,5,8)f32",
    "torch.transpose t 1 1 d e dim0=1 dim1=2 $input=d #e=(1,5,4,8)f32",
    "nn.Linear l 1 1 e f in_features=8 out_features=6 #f=(1,5,4,6)f32",
    "Tensor.reshape r 1 1 f g shape=(5,4,6) $input=f #g=(5,4,6)f32",
    (
        "nn.MultiheadAttention h 1 1 g i num_heads=2 embed_dim=6 batch_first=True "
        "$input=g #i=(5,4,6)f32"
    ),
    "Tensor.reshape s 1 1 i j shape=(1,5,24) $input=i #j=(1,5,24)f32",
    "nn.Linear p 1 1 j k in_features=24 out_features=7 #k=(1,5,7)f32",
    "torch.transpose x 1 1 k n dim0=1 dim1=2 $input=k #n=(1,7,5)f32",
    "pnnx.Expression y 2 1 n b o expr=add(@0,@1) #o=(1,7,5)f32",
    "pnnx.Output out 1 0 o",
)


def test_series_that_are_followed_one_by_one(texts: Callable[..., dict[str, str]]) -> None:
    """PatchTST cuts each channel of a signal to windows in time, and gives the mean back."""
    found = texts(*SERIES)
    assert found["a"] == found["c"] == found["o"] == "time × channels"
    assert found["e"] == found["f"] == found["g"] == found["i"] == "channels × time × features"
    assert found["d"] == "time × channels × features"


def test_windows_along_two_dimensions(texts: Callable[..., dict[str, str]]) -> None:
    """A picture is cut to patches by ``x.unfold(2, 4, 4).unfold(3, 4, 4)``."""
    found = texts(
        "pnnx.Input in 0 1 a #a=(1,3,8,12)f32",
        "Tensor.unfold u 1 1 a b dimension=2 size=4 step=4 $input=a #b=(1,3,2,12,4)f32",
        "Tensor.unfold v 1 1 b c dimension=3 size=4 step=4 $input=b #c=(1,3,2,3,4,4)f32",
        "Tensor.permute p 1 1 c d dims=(0,2,3,1,4,5) $input=c #d=(1,2,3,3,4,4)f32",
        "Tensor.reshape r 1 1 d e shape=(1,6,48) $input=d #e=(1,6,48)f32",
        "nn.Linear l 1 1 e f in_features=48 out_features=16 #f=(1,6,16)f32",
        "pnnx.Output out 1 0 f",
    )
    assert found["a"] == "channels × rows × columns"
    assert found["f"] == "2×3 tokens × features"


def test_unfolding_of_unknown_size_names_the_picture_only(
    texts: Callable[..., dict[str, str]],
) -> None:
    found = texts(
        "pnnx.Input in 0 1 a #a=(1,8,?,6)f32",
        "nn.Unfold u 1 1 a b dilation=(1,1) kernel_size=(3,3) padding=(1,1) stride=(2,2) "
        "#b=(1,72,?)f32",
        "pnnx.Output out 1 0 b",
    )
    assert found["a"] == "channels × rows × columns"


def test_tokens_that_a_padding_shifts(texts: Callable[..., dict[str, str]]) -> None:
    """RWKV mixes each token with the one before, by a padding of two dimensions."""
    found = texts(
        "pnnx.Input in 0 1 a #a=(1,10)i64",
        "nn.Embedding e 1 1 a b embedding_dim=8 num_embeddings=20 #b=(1,10,8)f32",
        "nn.ZeroPad2d p 1 1 b c padding=(0,0,1,-1) #c=(1,10,8)f32",
        "pnnx.Expression x 2 1 b c d expr=add(@0,@1) #d=(1,10,8)f32",
        "pnnx.Output out 1 0 d",
    )
    assert found["b"] == found["c"] == found["d"] == "tokens × features"


def test_the_mean_of_two_heads_has_their_classes(texts: Callable[..., dict[str, str]]) -> None:
    """CrossViT stacks the results of its branches."""
    found = texts(
        "pnnx.Input in 0 1 a #a=(1,8)f32",
        "nn.Linear head.0 1 1 a b in_features=8 out_features=5 #b=(1,5)f32",
        "nn.Linear head.1 1 1 a c in_features=8 out_features=5 #c=(1,5)f32",
        "torch.stack s 2 1 b c d dim=0 #d=(2,1,5)f32",
        "torch.mean m 1 1 d e dim=(0) keepdim=False $input=d #e=(1,5)f32",
        "pnnx.Output out 1 0 e",
    )
    assert found["b"] == found["c"] == found["e"] == "classes"
    assert found["d"] == "parts × classes"


def test_features_that_were_parts_are_channels_beside_an_image(
    texts: Callable[..., dict[str, str]],
) -> None:
    """Sines and cosines of DETR's positions are stacked and flattened."""
    found = texts(
        "pnnx.Input in 0 1 a #a=(1,3,6,4)f32",
        "nn.Conv2d c 1 1 a b kernel_size=(1,1) #b=(1,8,6,4)f32",
        "torch.permute p 1 1 b d dims=(0,2,3,1) $input=b #d=(1,6,4,8)f32",
        "torch.stack s 2 1 d d e dim=4 #e=(1,6,4,8,2)f32",
        "torch.flatten f 1 1 e g start_dim=3 end_dim=-1 $input=e #g=(1,6,4,16)f32",
        "pnnx.Output out 1 0 g",
    )
    assert found["g"] == "rows × columns × channels"


def test_a_text_that_is_unfolded_is_no_image(texts: Callable[..., dict[str, str]]) -> None:
    """ConvBERT takes the neighbours of each token, and weighs them head by head."""
    found = texts(
        "pnnx.Input in 0 1 a #a=(1,10)i64",
        "nn.Embedding e 1 1 a b embedding_dim=8 num_embeddings=20 #b=(1,10,8)f32",
        "nn.Linear l 1 1 b c in_features=8 out_features=6 #c=(1,10,6)f32",
        "Tensor.reshape r 1 1 c d shape=(20,3,1) $input=c #d=(20,3,1)f32",
        "F.softmax s 1 1 d e dim=1 #e=(20,3,1)f32",
        "torch.transpose t 1 1 b f dim0=1 dim1=2 $input=b #f=(1,8,10)f32",
        "torch.unsqueeze u 1 1 f g dim=-1 $input=f #g=(1,8,10,1)f32",
        "F.unfold v 1 1 g h dilation=(1,1) kernel_size=(3,1) padding=(1,0) stride=(1,1) "
        "$input=g #h=(1,24,10)f32",
        "torch.transpose w 1 1 h i dim0=1 dim1=2 $input=h #i=(1,10,24)f32",
        "Tensor.reshape x 1 1 i j shape=(20,4,3) $input=i #j=(20,4,3)f32",
        "torch.matmul y 2 1 j e k $input=j $other=e #k=(20,4,1)f32",
        "Tensor.reshape z 1 1 k l shape=(1,10,2,4) $input=k #l=(1,10,2,4)f32",
        "pnnx.Output out 1 0 l",
    )
    assert found["a"] == "tokens"
    assert found["b"] == found["c"] == found["i"] == "tokens × features"
    assert found["h"] == "features × tokens"
    assert found["l"] == "tokens × heads × features"


def test_series_that_layers_mix_in_time(texts: Callable[..., dict[str, str]]) -> None:
    """TSMixer mixes windows of each channel, and their features, by linear layers."""
    found = texts(
        "pnnx.Input in 0 1 a #a=(1,20,3)f32",
        "Tensor.unfold u 1 1 a b dimension=1 size=4 step=4 $input=a #b=(1,5,3,4)f32",
        "torch.transpose t 1 1 b c dim0=1 dim1=2 $input=b #c=(1,3,5,4)f32",
        "nn.Linear l 1 1 c d in_features=4 out_features=6 #d=(1,3,5,6)f32",
        "torch.transpose v 1 1 d e dim0=2 dim1=3 $input=d #e=(1,3,6,5)f32",
        "nn.Linear m 1 1 e f in_features=5 out_features=5 #f=(1,3,6,5)f32",
        "pnnx.Expression x 2 1 e f g expr=mul(@0,@1) #g=(1,3,6,5)f32",
        "pnnx.Output out 1 0 g",
    )
    assert found["a"] == "time × channels"
    assert found["b"] == "time × channels × features"
    assert found["d"] == "channels × time × features"
    assert found["e"] == found["g"] == "channels × features × time"


def test_distances_of_transformer_xl(texts: Callable[..., dict[str, str]]) -> None:
    """XLNet multiplies by weights of three dimensions, and shifts scores of 2 n distances."""
    found = texts(
        "pnnx.Input in 0 1 a #a=(4,1)i64",
        "nn.Embedding e 1 1 a b embedding_dim=6 num_embeddings=20 #b=(4,1,6)f32",
        "pnnx.Attribute w 0 1 w @data=(6,2,3)f32 #w=(6,2,3)f32",
        "pnnx.Attribute r 0 1 r @data=(8,1,2,3)f32 #r=(8,1,2,3)f32",
        "torch.einsum q 2 1 b w q equation=ibh,hnd->ibnd #q=(4,1,2,3)f32",
        "torch.einsum k 2 1 b w k equation=ibh,hnd->ibnd #k=(4,1,2,3)f32",
        "torch.einsum c 2 1 q k c equation=ibnd,jbnd->bnij #c=(1,2,4,4)f32",
        "torch.einsum p 2 1 q r p equation=ibnd,jbnd->bnij #p=(1,2,4,8)f32",
        "Tensor.reshape s 1 1 p s shape=(1,2,8,4) $input=p #s=(1,2,8,4)f32",
        "Tensor.slice t 1 1 s t dims=(2) starts=(1) ends=(8) steps=(1) $input=s "
        "#t=(1,2,7,4)f32",
        "Tensor.reshape u 1 1 t u shape=(1,2,4,7) $input=t #u=(1,2,4,7)f32",
        "Tensor.slice v 1 1 u v dims=(3) starts=(0) ends=(4) steps=(1) $input=u "
        "#v=(1,2,4,4)f32",
        "pnnx.Expression x 2 1 c v x expr=add(@0,@1) #x=(1,2,4,4)f32",
        "F.softmax y 1 1 x y dim=3 #y=(1,2,4,4)f32",
        "torch.einsum z 2 1 y k z equation=bnij,jbnd->ibnd #z=(4,1,2,3)f32",
        "torch.einsum o 2 1 z w o equation=ibnd,hnd->ibh #o=(4,1,6)f32",
        "pnnx.Expression i 2 1 o b j expr=add(@0,@1) #j=(4,1,6)f32",
        "pnnx.Output out 1 0 j",
        w=np.zeros((6, 2, 3), np.float32),
        r=np.zeros((8, 1, 2, 3), np.float32),
    )
    assert found["w"] == "features × heads × features"
    assert found["q"] == found["z"] == "tokens × heads × features"
    assert found["r"] == "distances × heads × features"
    assert found["p"] == "heads × tokens × distances"
    assert found["s"] == found["t"] == "heads × tokens·distances × distances"
    assert found["u"] == found["v"] == found["c"] == found["y"] == "heads × queries × keys"
    assert found["o"] == "tokens × features"


def test_distances_along_one_side_of_an_image(texts: Callable[..., dict[str, str]]) -> None:
    """BoTNet multiplies queries by a table of distances along rows and along columns."""
    found = texts(
        "pnnx.Input in 0 1 a #a=(1,3,4,4)f32",
        "nn.Conv2d c 1 1 a b kernel_size=(1,1) #b=(1,6,4,4)f32",
        "Tensor.reshape r 1 1 b c shape=(2,3,16) $input=b #c=(2,3,16)f32",
        "torch.transpose t 1 1 c d dim0=1 dim1=2 $input=c #d=(2,16,3)f32",
        "torch.matmul m 2 1 d c e $input=d $other=c #e=(2,16,16)f32",
        "F.softmax s 1 1 e f dim=-1 #f=(2,16,16)f32",
        "Tensor.reshape u 1 1 d g shape=(2,4,4,3) $input=d #g=(2,4,4,3)f32",
        "pnnx.Attribute table 0 1 h @data=(3,7)f32 #h=(3,7)f32",
        "torch.matmul n 2 1 g h i $input=g $other=h #i=(2,4,4,7)f32",
        "pnnx.Output out 2 0 f i",
        table=np.zeros((3, 7), np.float32),
    )
    assert found["h"] == "features × distances"
    assert found["i"] == "heads × rows × columns × distances"


def test_heads_of_attention_without_softmax(texts: Callable[..., dict[str, str]]) -> None:
    """Linear attention sums keys times values, head by head, and no product has scores."""
    found = texts(
        "pnnx.Input in 0 1 a #a=(1,5,12)f32",
        "nn.Linear l 1 1 a b in_features=12 out_features=12 #b=(1,5,12)f32",
        "Tensor.reshape r 1 1 b c shape=(1,5,3,4) $input=b #c=(1,5,3,4)f32",
        "F.elu k 1 1 c d #d=(1,5,3,4)f32",
        "torch.einsum s 2 1 d c e equation=bnhd,bnhm->bhdm #e=(1,3,4,4)f32",
        "torch.einsum o 2 1 d e f equation=bnhd,bhdm->bnhm #f=(1,5,3,4)f32",
        "pnnx.Output out 1 0 f",
    )
    assert found["c"] == found["f"] == "tokens × heads × features"
    assert found["e"] == "heads × features × features"


def test_graphs_of_nodes(texts: Callable[..., dict[str, str]]) -> None:
    """Graph attention adds the scores of both nodes of an edge, one number for each node."""
    found = texts(
        "pnnx.Input nodes 0 1 a #a=(1,6,4)f32",
        "pnnx.Input edges 0 1 b #b=(1,6,6)f32",
        "nn.Linear l 1 1 a c in_features=4 out_features=8 #c=(1,6,8)f32",
        "nn.Linear q 1 1 c d in_features=8 out_features=1 #d=(1,6,1)f32",
        "nn.Linear k 1 1 c e in_features=8 out_features=1 #e=(1,6,1)f32",
        "torch.transpose t 1 1 e f dim0=1 dim1=2 $input=e #f=(1,1,6)f32",
        "pnnx.Expression x 3 1 d f b g expr=add(add(@0,@1),@2) #g=(1,6,6)f32",
        "F.softmax s 1 1 g h dim=-1 #h=(1,6,6)f32",
        "torch.matmul m 2 1 h c i $input=h $other=c #i=(1,6,8)f32",
        "pnnx.Output out 1 0 i",
    )
    assert found["a"] == found["i"] == "tokens × features"
    assert found["b"] == found["h"] == "queries × keys"


def test_points_have_no_order_in_time(texts: Callable[..., dict[str, str]]) -> None:
    """PointNet convolves single points; a kernel of several positions needs their order."""
    lines = ("pnnx.Input in 0 1 a #a=(1,3,9)f32",)
    ends = ("pnnx.Output out 1 0 b",)
    points = texts(*lines, "nn.Conv1d c 1 1 a b kernel_size=(1) #b=(1,8,9)f32", *ends)
    signal = texts(*lines, "nn.Conv1d c 1 1 a b kernel_size=(3) #b=(1,8,9)f32", *ends)
    assert points["a"] == points["b"] == "features × tokens"
    assert signal["a"] == signal["b"] == "channels × time"


def test_weights_that_are_computed(texts: Callable[..., dict[str, str]]) -> None:
    """StyleGAN scales a weight by the style, and divides each filter by its norm."""
    found = texts(
        "pnnx.Input in 0 1 a #a=(1,4,5,5)f32",
        "pnnx.Input style 0 1 s #s=(1,4)f32",
        "pnnx.Attribute w 0 1 w @data=(1,6,4,3,3)f32 #w=(1,6,4,3,3)f32",
        "Tensor.reshape r 1 1 s t shape=(1,1,4,1,1) $input=s #t=(1,1,4,1,1)f32",
        "pnnx.Expression x 2 1 w t u expr=mul(@0,@1) #u=(1,6,4,3,3)f32",
        "torch.sum n 1 1 u v dim=(2,3,4) keepdim=False $input=u #v=(1,6)f32",
        "Tensor.reshape o 1 1 u k shape=(6,4,3,3) $input=u #k=(6,4,3,3)f32",
        "F.conv2d c 2 1 a k b $input=a $weight=k #b=(1,6,5,5)f32",
        "pnnx.Output out 2 0 b v",
        w=np.zeros((1, 6, 4, 3, 3), np.float32),
    )
    assert found["u"] == found["k"] == "filters × channels × rows × columns"
    assert found["v"] == "filters"
    assert found["b"] == "channels × rows × columns"


def test_frequencies_of_a_signal(texts: Callable[..., dict[str, str]]) -> None:
    """A Fourier neural operator weighs the lowest frequencies."""
    found = texts(
        "pnnx.Input in 0 1 a #a=(1,4,16)f32",
        "nn.Conv1d c 1 1 a b kernel_size=(1) #b=(1,6,16)f32",
        "torch.fft.rfft f 1 1 b d dim=-1 #d=(1,6,9)c64",
        "torch.view_as_real r 1 1 d e #e=(1,6,9,2)f32",
        "torch.view_as_complex i 1 1 e g #g=(1,6,9)c64",
        "torch.fft.irfft j 1 1 g h dim=-1 n=16 #h=(1,6,16)f32",
        "pnnx.Expression x 2 1 b h k expr=add(@0,@1) #k=(1,6,16)f32",
        "pnnx.Output out 1 0 k",
    )
    assert found["a"] == found["h"] == found["k"] == "channels × time"
    assert found["d"] == found["g"] == "channels × frequencies"
    assert found["e"] == "channels × frequencies × parts"


def test_frequencies_of_each_frame(texts: Callable[..., dict[str, str]]) -> None:
    found = texts(
        "pnnx.Input in 0 1 a #a=(1,64)f32",
        "torch.stft s 1 1 a b n_fft=16 hop_length=8 #b=(1,9,9)c64",
        "torch.view_as_real r 1 1 b c #c=(1,9,9,2)f32",
        "pnnx.Output out 1 0 c",
    )
    assert found["a"] == "time"
    assert found["b"] == "frequencies × time"
    assert found["c"] == "frequencies × time × parts"


def test_results_that_a_model_gives_several_times(texts: Callable[..., dict[str, str]]) -> None:
    """Boxes are named by their scores, wherever the same boxes are among the results."""
    lines = (
        "pnnx.Input in 0 2 a b #a=(1,50,4)f32 #b=(1,50,7)f32",
        *(f"F.relu r{n} 1 1 a c{n} #c{n}=(1,50,4)f32" for n in range(40)),
    )
    again = " ".join(f"c{n}" for n in range(40))
    for results in (f"a b {again}", f"{again} b a"):
        found = texts(*lines, f"pnnx.Output out 42 0 {results}")
        assert found["b"] == "boxes × classes"
        assert {found["a"], *(found[f"c{n}"] for n in range(40))} == {"boxes × coordinates"}


@pytest.mark.parametrize("samples", [1, 3])
def test_a_spectrogram_is_no_picture(
    texts: Callable[..., dict[str, str]], samples: int
) -> None:
    """The audio spectrogram transformer turns its frames before it cuts patches."""
    found = texts(
        f"pnnx.Input in 0 1 a #a=({samples},12,8)f32",
        f"torch.unsqueeze u 1 1 a b dim=1 $input=a #b=({samples},1,12,8)f32",
        f"torch.transpose t 1 1 b c dim0=2 dim1=3 $input=b #c=({samples},1,8,12)f32",
        f"nn.Conv2d p 1 1 c d kernel_size=(4,4) stride=(4,4) #d=({samples},6,2,3)f32",
        f"torch.flatten f 1 1 d e start_dim=2 end_dim=-1 $input=d #e=({samples},6,6)f32",
        f"torch.transpose v 1 1 e g dim0=1 dim1=2 $input=e #g=({samples},6,6)f32",
        "pnnx.Output out 1 0 g",
    )
    batch = "batch × " if samples > 1 else ""
    assert found["a"] == f"{batch}time × frequencies"
    assert found["d"] == f"{batch}channels × frequencies × time"
    assert found["g"] == f"{batch}2×3 tokens × features"


def test_graphs_of_nodes_with_heads(texts: Callable[..., dict[str, str]]) -> None:
    """Scores of edges add a sum over features for each node and one for each neighbour."""
    found = texts(
        "pnnx.Input nodes 0 1 a #a=(1,6,4)f32",
        "pnnx.Input edges 0 1 b #b=(1,1,6,6)f32",
        "nn.Linear l 1 1 a c in_features=4 out_features=8 #c=(1,6,8)f32",
        "Tensor.reshape r 1 1 c d shape=(1,6,2,4) $input=c #d=(1,6,2,4)f32",
        "torch.transpose t 1 1 d e dim0=1 dim1=2 $input=d #e=(1,2,6,4)f32",
        "torch.sum s 1 1 e f dim=(-1) keepdim=True $input=e #f=(1,2,6,1)f32",
        "F.relu u 1 1 f g #g=(1,2,6,1)f32",
        "torch.transpose v 1 1 g h dim0=2 dim1=3 $input=g #h=(1,2,1,6)f32",
        "pnnx.Expression x 2 1 f h i expr=add(@0,@1) #i=(1,2,6,6)f32",
        "pnnx.Expression y 2 1 i b j expr=mul(@0,@1) #j=(1,2,6,6)f32",
        "F.softmax w 1 1 j k dim=-1 #k=(1,2,6,6)f32",
        "torch.matmul m 2 1 k e l $input=k $other=e #l=(1,2,6,4)f32",
        "pnnx.Output out 1 0 l",
    )
    assert found["a"] == "tokens × features"
    assert found["f"] == "heads × tokens"
    assert found["l"] == "heads × tokens × features"
    assert found["k"] == "heads × queries × keys"
    assert found["b"] == "queries × keys"


def test_features_that_scale_heads(texts: Callable[..., dict[str, str]]) -> None:
    """Mamba 2 cuts one number for each head off the features that it splits into heads."""
    found = texts(
        "pnnx.Input in 0 1 a #a=(1,5,6)f32",
        "nn.Linear l 1 1 a b in_features=6 out_features=14 #b=(1,5,14)f32",
        "torch.split s 1 2 b c d dim=-1 split_size_or_sections=(12,2) "
        "$input=b #c=(1,5,12)f32 #d=(1,5,2)f32",
        "Tensor.reshape r 1 1 c e shape=(1,5,2,6) $input=c #e=(1,5,2,6)f32",
        "torch.unsqueeze u 1 1 d f dim=-1 $input=d #f=(1,5,2,1)f32",
        "pnnx.Expression x 2 1 e f g expr=mul(@0,@1) #g=(1,5,2,6)f32",
        "torch.einsum m 2 1 e g h equation=blhp,bshp->bhls #h=(1,2,5,5)f32",
        "F.softmax w 1 1 h i dim=-1 #i=(1,2,5,5)f32",
        "pnnx.Output out 1 0 i",
    )
    assert found["a"] == found["b"] == found["c"] == "tokens × features"
    assert found["d"] == "tokens × heads"
    assert found["g"] == "tokens × heads × features"
    assert found["i"] == "heads × queries × keys"


def test_a_cache_without_tokens(texts: Callable[..., dict[str, str]]) -> None:
    """Exports of transformers join keys to an empty list, the cache before the first token."""
    found = texts(
        "pnnx.Input in 0 1 a #a=(1,5,8)f32",
        "nn.Linear l 1 1 a b in_features=8 out_features=8 #b=(1,5,8)f32",
        "Tensor.reshape r 1 1 b c shape=(1,5,2,4) $input=b #c=(1,5,2,4)f32",
        "torch.transpose t 1 1 c d dim0=1 dim1=2 $input=c #d=(1,2,5,4)f32",
        "pnnx.Attribute cache 0 1 e @data=(0)f32 #e=(0)f32",
        "torch.cat j 2 1 e d f dim=-2 #f=(1,2,5,4)f32",
        (
            "F.scaled_dot_product_attention s 3 1 d f f g "
            "$query=d $key=f $value=f #g=(1,2,5,4)f32"
        ),
        "pnnx.Output out 1 0 g",
        cache=np.zeros(0, np.float32),
    )
    assert found["e"] == ""
    assert found["c"] == "tokens × heads × features"
    assert found["f"] == found["g"] == "heads × tokens × features"


def test_four_numbers_of_a_token_are_no_box(texts: Callable[..., dict[str, str]]) -> None:
    """A decision transformer predicts states and actions for each step that it was given."""
    found = texts(
        "pnnx.Input in 0 1 a #a=(1,6,8)f32",
        "nn.Linear states 1 1 a b in_features=8 out_features=17 #b=(1,6,17)f32",
        "nn.Linear actions 1 1 a c in_features=8 out_features=4 #c=(1,6,4)f32",
        "pnnx.Output out 2 0 b c",
    )
    assert found["b"] == found["c"] == "tokens × features"


def test_positions_of_several_scales(texts: Callable[..., dict[str, str]]) -> None:
    """Deformable DETR adds the positions of each scale, which are joined like the pictures."""
    found = texts(
        "pnnx.Input in 0 1 a #a=(1,3,8,8)f32",
        "nn.Conv2d c1 1 1 a b kernel_size=(2,2) stride=(2,2) #b=(1,6,4,4)f32",
        "nn.Conv2d c2 1 1 b c kernel_size=(2,2) stride=(2,2) #c=(1,6,2,2)f32",
        "torch.flatten f1 1 1 b d start_dim=2 end_dim=-1 $input=b #d=(1,6,16)f32",
        "torch.flatten f2 1 1 c e start_dim=2 end_dim=-1 $input=c #e=(1,6,4)f32",
        "torch.cat j 2 1 d e f dim=2 #f=(1,6,20)f32",
        "pnnx.Attribute p1 0 1 g @data=(1,6,4,4)f32 #g=(1,6,4,4)f32",
        "F.relu r 1 1 g h #h=(1,6,4,4)f32",
        "torch.flatten f3 1 1 h i start_dim=2 end_dim=-1 $input=h #i=(1,6,16)f32",
        "pnnx.Attribute p2 0 1 k @data=(1,6,4)f32 #k=(1,6,4)f32",
        "torch.cat l 2 1 i k l dim=2 #l=(1,6,20)f32",
        "pnnx.Expression x 2 1 f l m expr=add(@0,@1) #m=(1,6,20)f32",
        "torch.transpose t 1 1 m n dim0=1 dim1=2 $input=m #n=(1,20,6)f32",
        "Tensor.reshape s 1 1 n o shape=(1,20,2,3) $input=n #o=(1,20,2,3)f32",
        "torch.split u 1 2 o q1 q2 dim=1 split_size_or_sections=(16,4) "
        "$input=o #q1=(1,16,2,3)f32 #q2=(1,4,2,3)f32",
        "torch.flatten f4 1 1 q1 r start_dim=2 end_dim=-1 $input=q1 #r=(1,16,6)f32",
        "torch.transpose v 1 1 r s dim0=1 dim1=2 $input=r #s=(1,6,16)f32",
        "Tensor.reshape w 1 1 s t shape=(2,3,4,4) $input=s #t=(2,3,4,4)f32",
        "pnnx.Input places 0 1 u #u=(2,5,5,2)f32",
        "F.grid_sample y 2 1 t u v align_corners=False mode=bilinear padding_mode=zeros "
        "$input=t $grid=u #v=(2,3,5,5)f32",
        "pnnx.Output out 2 0 v q2",
        p1=np.zeros((1, 6, 4, 4), np.float32),
        p2=np.zeros((1, 6, 4), np.float32),
    )
    assert found["g"] == found["h"] == "channels × rows × columns"
    assert found["i"] == "features × 4×4 tokens"
    assert found["k"] == "features × 2×2 tokens"
    assert found["n"] == "4×4 + 2×2 tokens × features"
    assert found["o"] == "4×4 + 2×2 tokens × heads × features"


def test_windows_that_were_joined_follow_each_other(
    texts: Callable[..., dict[str, str]],
) -> None:
    """UnivNet convolves each frame by a kernel of its own, and joins the samples of frames."""
    found = texts(
        "pnnx.Input in 0 1 a #a=(1,4,40)f32",
        "nn.Conv1d c 1 1 a b kernel_size=(3) stride=(1) #b=(1,4,40)f32",
        "F.pad p 1 1 b d pad=(1,1) mode=constant #d=(1,4,42)f32",
        "Tensor.unfold u 1 1 d e dimension=2 size=10 step=8 $input=d #e=(1,4,5,10)f32",
        "Tensor.slice s 1 1 e f dim=3 start=1 end=9 step=1 $input=e #f=(1,4,5,8)f32",
        "F.relu g 1 1 f g #g=(1,4,5,8)f32",
        "Tensor.reshape r 1 1 g h shape=(1,4,40) $input=g #h=(1,4,40)f32",
        "nn.Conv1d e 1 1 h i kernel_size=(3) stride=(1) #i=(1,4,40)f32",
        "pnnx.Output out 1 0 i",
    )
    assert found["b"] == found["h"] == found["i"] == "channels × time"


def test_one_channel_of_a_picture(texts: Callable[..., dict[str, str]]) -> None:
    """SuperPoint reads the first of three equal channels."""
    found = texts(
        "pnnx.Input in 0 1 a #a=(1,3,12,12)f32",
        "Tensor.select s 1 1 a b dim=1 index=0 $input=a #b=(1,12,12)f32",
        "torch.unsqueeze u 1 1 b c dim=1 $input=b #c=(1,1,12,12)f32",
        "nn.Conv2d v 1 1 c d kernel_size=(3,3) stride=(1,1) #d=(1,6,10,10)f32",
        "pnnx.Output out 1 0 d",
    )
    assert found["a"] == "channels × rows × columns"


def test_the_head_of_a_language_model(texts: Callable[..., dict[str, str]]) -> None:
    """ImageGPT embeds one token more than it predicts; MobileBERT multiplies by a table."""
    found = texts(
        "pnnx.Input in 0 1 a #a=(1,6)i64",
        "nn.Embedding e 1 1 a b embedding_dim=8 num_embeddings=33 @weight=(33,8)f32 "
        "#b=(1,6,8)f32",
        "nn.Linear lm_head 1 1 b c in_features=8 out_features=32 #c=(1,6,32)f32",
        "pnnx.Attribute table 0 1 d @data=(8,33)f32 #d=(8,33)f32",
        "torch.matmul m 2 1 b d f $input=b $other=d #f=(1,6,33)f32",
        "pnnx.Output out 2 0 c f",
        table=np.zeros((8, 33), np.float32),
        **{"e.weight": np.zeros((33, 8), np.float32)},
    )
    assert found["c"] == found["f"] == "tokens × vocabulary"


@pytest.mark.parametrize(
    ("name", "bias", "words"),
    [("F_linear_0", True, "classes"), ("F_linear_0", False, "features"),
     ("project", True, "features")],
)  # fmt: skip
def test_the_only_result_of_a_layer_that_lost_its_name(
    texts: Callable[..., dict[str, str]], name: str, bias: bool, words: str
) -> None:
    """GhostNet calls `F.linear` with the weight of its classifier."""
    found = texts(
        "pnnx.Input in 0 1 a #a=(1,8)f32",
        f"nn.Linear {name} 1 1 a b bias={bias} in_features=8 out_features=5 #b=(1,5)f32",
        "pnnx.Output out 1 0 b",
    )
    assert found["b"] == words


def test_scores_within_bounds(texts: Callable[..., dict[str, str]]) -> None:
    """Gemma 2 bounds its scores by a tanh, and has several queries for each head of keys."""
    found = texts(
        "pnnx.Input in 0 1 a #a=(1,5,8)f32",
        "nn.Linear q 1 1 a b in_features=8 out_features=16 #b=(1,5,16)f32",
        "Tensor.reshape r 1 1 b c shape=(1,5,4,4) $input=b #c=(1,5,4,4)f32",
        "torch.transpose t 1 1 c d dim0=1 dim1=2 $input=c #d=(1,4,5,4)f32",
        "nn.Linear k 1 1 a e in_features=8 out_features=8 #e=(1,5,8)f32",
        "Tensor.reshape s 1 1 e f shape=(1,5,2,4) $input=e #f=(1,5,2,4)f32",
        "torch.transpose u 1 1 f g dim0=1 dim1=2 $input=f #g=(1,2,5,4)f32",
        "torch.unsqueeze v 1 1 g h dim=2 $input=g #h=(1,2,1,5,4)f32",
        "Tensor.expand w 1 1 h i sizes=(1,2,2,5,4) $input=h #i=(1,2,2,5,4)f32",
        "Tensor.reshape x 1 1 i j shape=(1,4,5,4) $input=i #j=(1,4,5,4)f32",
        "torch.transpose y 1 1 j k dim0=2 dim1=3 $input=j #k=(1,4,4,5)f32",
        "torch.matmul z 2 1 d k l $input=d $other=k #l=(1,4,5,5)f32",
        "F.tanh aa 1 1 l m #m=(1,4,5,5)f32",
        "F.softmax bb 1 1 m n dim=-1 #n=(1,4,5,5)f32",
        "pnnx.Output out 1 0 n",
    )
    assert found["d"] == found["j"] == "heads × tokens × features"
    assert found["i"] == "heads × heads × tokens × features"
    assert found["n"] == "heads × queries × keys"


def test_positions_that_are_picked(texts: Callable[..., dict[str, str]]) -> None:
    """Falcon takes the last of its heads for keys; CLIP the token of each text that ends it."""
    found = texts(
        "pnnx.Input in 0 1 a #a=(3,6)i64",
        "nn.Embedding e 1 1 a b embedding_dim=8 num_embeddings=33 #b=(3,6,8)f32",
        "nn.LayerNorm n 1 1 b c normalized_shape=(8) #c=(3,6,8)f32",
        "torch.argmax m 1 1 a d dim=-1 keepdim=False $input=a #d=(3)i64",
        "pnnx.Attribute range 0 1 e @data=(3)i64 #e=(3)i64",
        "pnnx.Expression w 2 1 e d v expr=[@0,@1]",
        "Tensor.index i 2 1 c v f $input=c $expr=v #f=(3,8)f32",
        "nn.Linear l 1 1 c g in_features=8 out_features=12 #g=(3,6,12)f32",
        "Tensor.reshape r 1 1 g h shape=(3,6,3,4) $input=g #h=(3,6,3,4)f32",
        "Tensor.index j 1 1 h k expr=[None,None,[-1]] $input=h #k=(3,6,1,4)f32",
        "Tensor.index o 1 1 h p expr=[None,None,[0,1]] $input=h #p=(3,6,2,4)f32",
        "torch.transpose t 1 1 p q dim0=1 dim1=2 $input=p #q=(3,2,6,4)f32",
        (
            "F.scaled_dot_product_attention s 3 1 q q q u "
            "$query=q $key=q $value=q #u=(3,2,6,4)f32"
        ),
        "pnnx.Output out 3 0 f k u",
        range=np.arange(3),
    )
    assert found["e"] == "batch"
    assert found["f"] == "batch × features"
    assert found["k"] == "batch × tokens × features"
    assert found["p"] == "batch × tokens × heads × features"


@pytest.mark.parametrize("name", ["class_predictor", "class_embed", "classifier", "cls_score"])
def test_layers_that_are_called_after_classes(
    texts: Callable[..., dict[str, str]], name: str
) -> None:
    """MaskFormer predicts a class for each query."""
    found = texts(
        "pnnx.Input in 0 1 a #a=(1,6,8)f32",
        f"nn.Linear m.{name} 1 1 a b bias=True in_features=8 out_features=5 #b=(1,6,5)f32",
        "pnnx.Output out 1 0 b",
    )
    assert found["b"] == "tokens × classes"


@pytest.mark.parametrize(("keys", "distances"), [(4, 7), (6, 11)])
def test_rows_of_distances_that_a_padding_shifts(
    texts: Callable[..., dict[str, str]], keys: int, distances: int
) -> None:
    """BoTNet has as many keys as queries along a side; blocks of HaloNet see more."""
    longer, flat = distances + 1, 4 * (distances + 1)
    all_of = flat + distances - 4
    found = texts(
        "pnnx.Input in 0 1 a #a=(1,3,4,4)f32",
        "nn.Conv2d c 1 1 a b kernel_size=(1,1) #b=(1,6,4,4)f32",
        "Tensor.reshape r 1 1 b c shape=(2,3,16) $input=b #c=(2,3,16)f32",
        "torch.transpose t 1 1 c d dim0=1 dim1=2 $input=c #d=(2,16,3)f32",
        "Tensor.reshape u 1 1 d g shape=(2,4,4,3) $input=d #g=(2,4,4,3)f32",
        f"pnnx.Attribute table 0 1 h @data=(3,{distances})f32 #h=(3,{distances})f32",
        f"torch.matmul n 2 1 g h i $input=g $other=h #i=(2,4,4,{distances})f32",
        f"Tensor.reshape j 1 1 i j shape=(8,4,{distances}) $input=i #j=(8,4,{distances})f32",
        f"F.pad k 1 1 j k pad=(0,1) $input=j #k=(8,4,{longer})f32",
        f"torch.flatten l 1 1 k l start_dim=1 end_dim=-1 $input=k #l=(8,{flat})f32",
        f"F.pad m 1 1 l m pad=(0,{distances - 4}) $input=l #m=(8,{all_of})f32",
        f"Tensor.reshape o 1 1 m o shape=(8,5,{distances}) $input=m #o=(8,5,{distances})f32",
        f"Tensor.slice s 1 1 o p dims=(1,2) starts=(0,{distances - keys}) ends=(4,{distances}) "
        f"steps=(1,1) $input=o #p=(8,4,{keys})f32",
        "pnnx.Output out 1 0 p",
        table=np.zeros((3, distances), np.float32),
    )
    assert found["h"] == "features × distances"
    assert found["i"] == "heads × rows × columns × distances"
    assert found["l"] == found["m"] == "heads·rows × columns·distances"


def test_a_sequence_that_is_pooled_as_one_channel(texts: Callable[..., dict[str, str]]) -> None:
    """Funnel pools two tokens to one by a pooling of images."""
    found = texts(
        "pnnx.Input in 0 1 a #a=(1,8)i64",
        "nn.Embedding e 1 1 a b embedding_dim=6 num_embeddings=20 #b=(1,8,6)f32",
        "torch.unsqueeze u 1 1 b c dim=1 $input=b #c=(1,1,8,6)f32",
        "F.avg_pool2d p 1 1 c d kernel_size=(2,1) stride=(2,1) $input=c #d=(1,1,4,6)f32",
        "pnnx.Output out 1 0 d",
    )
    assert found["a"] == "tokens"
    assert found["b"] == found["c"] == found["d"] == "tokens × features"


def test_attention_after_a_layer_that_mixes_tokens(
    texts: Callable[..., dict[str, str]],
) -> None:
    """GroupViT mixes the tokens of its groups, before it attends to them."""
    found = texts(
        "pnnx.Input in 0 1 a #a=(1,5,6)f32",
        "torch.transpose t 1 1 a b dim0=1 dim1=2 $input=a #b=(1,6,5)f32",
        "nn.Linear l 1 1 b c #c=(1,6,5)f32",
        "torch.transpose u 1 1 c d dim0=1 dim1=2 $input=c #d=(1,5,6)f32",
        "pnnx.Expression x 2 1 a d e expr=add(@0,@1) #e=(1,5,6)f32",
        "nn.MultiheadAttention m 1 1 e f batch_first=True embed_dim=6 num_heads=2 "
        "#f=(1,5,6)f32",
        "pnnx.Output out 1 0 f",
    )
    assert found["a"] == found["d"] == found["f"] == "tokens × features"
    assert found["b"] == found["c"] == "features × tokens"


def test_scores_for_each_distance_of_which_a_table_picks(
    texts: Callable[..., dict[str, str]],
) -> None:
    """ProphetNet computes scores of eight ranges of distances by a linear layer."""
    found = texts(
        "pnnx.Input in 0 1 a #a=(1,3,6)f32",
        "nn.Linear q 1 1 a b #b=(1,3,6)f32",
        "Tensor.reshape r 1 1 b c shape=(1,3,2,3) $input=b #c=(1,3,2,3)f32",
        "torch.transpose t 1 1 c d dim0=1 dim1=2 $input=c #d=(1,2,3,3)f32",
        "torch.einsum s 2 1 d d e equation=bhqd,bhkd->bhqk #e=(1,2,3,3)f32",
        "nn.Linear p 1 1 a f #f=(1,3,16)f32",
        "Tensor.reshape u 1 1 f g shape=(1,3,8,2) $input=f #g=(1,3,8,2)f32",
        "Tensor.permute v 1 1 g h dims=(0,3,1,2) $input=g #h=(1,2,3,8)f32",
        "Tensor.reshape w 1 1 h i shape=(6,8) $input=h #i=(6,8)f32",
        "pnnx.Attribute table 0 1 j @data=(6,3)i64 #j=(6,3)i64",
        "torch.gather x 2 1 i j k dim=1 $input=i $index=j #k=(6,3)f32",
        "Tensor.reshape y 1 1 k l shape=(1,2,3,3) $input=k #l=(1,2,3,3)f32",
        "pnnx.Expression z 2 1 e l m expr=add(@0,@1) #m=(1,2,3,3)f32",
        "F.softmax n 1 1 m n dim=-1 #n=(1,2,3,3)f32",
        "pnnx.Output out 1 0 n",
        table=np.zeros((6, 3), np.int64),
    )
    assert found["g"] == "tokens × distances × heads"
    assert found["h"] == "heads × tokens × distances"
    assert found["i"] == "heads·tokens × distances"
    assert found["l"] == found["m"] == "heads × queries × keys"


def test_parts_of_flattened_tokens(texts: Callable[..., dict[str, str]]) -> None:
    """The streams of ProphetNet follow each other, and are taken apart again."""
    found = texts(
        "pnnx.Input in 0 1 a #a=(1,3,6)f32",
        "nn.LayerNorm n 1 1 a b normalized_shape=(6) #b=(1,3,6)f32",
        "torch.stack s 2 1 a b c dim=1 #c=(1,2,3,6)f32",
        "Tensor.reshape r 1 1 c d shape=(1,6,6) $input=c #d=(1,6,6)f32",
        "torch.chunk k 1 2 d e f chunks=2 dim=1 $input=d #e=(1,3,6)f32 #f=(1,3,6)f32",
        "Tensor.slice l 1 1 d g dims=(1) starts=(1) ends=(4) steps=(1) $input=d #g=(1,3,6)f32",
        "pnnx.Output out 3 0 e f g",
    )
    assert found["d"] == "parts·tokens × features"
    assert found["e"] == found["f"] == "tokens × features"
    assert found["g"] == "parts·tokens × features"


def test_a_table_of_positions(texts: Callable[..., dict[str, str]]) -> None:
    """M2M-100 counts its tokens, and picks rows of a table that has no embedding."""
    found = texts(
        "pnnx.Input in 0 1 a #a=(1,3)i64",
        "nn.Embedding e 1 1 a b embedding_dim=6 num_embeddings=20 #b=(1,3,6)f32",
        "torch.cumsum c 1 1 a c dim=1 $input=a #c=(1,3)i64",
        "Tensor.reshape r 1 1 c d shape=(3) $input=c #d=(3)i64",
        "pnnx.Attribute table 0 1 f @data=(9,6)f32 #f=(9,6)f32",
        "torch.index_select s 2 1 f d g dim=0 $input=f $index=d #g=(3,6)f32",
        "pnnx.Expression x 2 1 b g h expr=add(@0,@1) #h=(1,3,6)f32",
        "pnnx.Output out 1 0 h",
        table=np.zeros((9, 6), np.float32),
    )
    assert found["f"] == found["g"] == found["h"] == "tokens × features"


def test_experts_whose_rows_are_grouped(texts: Callable[..., dict[str, str]]) -> None:
    """Mixtral sorts the choices of two of four experts for each token."""
    found = texts(
        "pnnx.Input in 0 1 a #a=(5,6)f32",
        "pnnx.Input counts 0 1 m #m=(4)f32",
        "nn.Linear router 1 1 a b #b=(5,4)f32",
        "F.softmax s 1 1 b c dim=-1 #c=(5,4)f32",
        "torch.topk t 1 2 c d e dim=-1 k=2 $input=c #d=(5,2)f32 #e=(5,2)i64",
        "Tensor.reshape r 1 1 e f shape=(10) $input=e #f=(10)i64",
        "pnnx.Expression dim 0 1 g expr=-1",
        "pnnx.Expression down 0 1 h expr=False",
        "aten::sort o 3 2 f g h i j #i=(10)i64 #j=(10)i64",
        "pnnx.Expression rows 1 1 j k expr=[floor_divide(@0,2)]",
        "Tensor.index x 2 1 a k l $input=a $expr=k #l=(10,6)f32",
        "torch.cumsum ends 1 1 m n dim=0 $input=m #m=(4)f32 #n=(4)i32",
        "pnnx.Attribute w 0 1 w @data=(4,6,8)f32 #w=(4,6,8)f32",
        "pnnx.Expression none 0 1 p expr=None",
        "aten::_grouped_mm y 5 1 l w n p p q #q=(10,8)f32",
        "pnnx.Attribute order 0 1 u @data=(10)i64 #u=(10)i64",
        "pnnx.Attribute count 0 1 v @data=(10)i64 #v=(10)i64",
        "pnnx.Expression places 1 1 j z expr=[@0]",
        "Tensor.index_put back 3 1 u z v aa $input=u $indices=z $values=v #aa=(10)i64",
        "pnnx.Expression again 1 1 aa ab expr=[@0]",
        "Tensor.index own 2 1 q ab ac $input=q $expr=ab #ac=(10,8)f32",
        "Tensor.reshape each 1 1 ac ad shape=(5,2,8) $input=ac #ad=(5,2,8)f32",
        "pnnx.Output out 1 0 ad",
        w=np.zeros((4, 6, 8), np.float32),
        order=np.zeros(10, np.int64),
        count=np.zeros(10, np.int64),
    )
    assert found["b"] == found["c"] == found["d"] == "batch × experts"
    assert found["f"] == found["j"] == "batch·experts"
    assert found["l"] == "batch·experts × features"
    assert found["q"] == "batch·experts × features"
    assert found["ac"] == "batch·experts × features"
    assert found["n"] == "experts"
    assert found["w"] == "experts × features × features"
    assert found["ad"] == "batch × experts × features"


def test_experts_that_all_compute(texts: Callable[..., dict[str, str]]) -> None:
    """A small mixture weighs the results of all of its experts."""
    found = texts(
        "pnnx.Input in 0 1 a #a=(1,5,6)f32",
        "nn.Linear router 1 1 a b #b=(1,5,3)f32",
        "F.softmax s 1 1 b c dim=-1 #c=(1,5,3)f32",
        "torch.topk t 1 2 c d e dim=2 k=2 $input=c #d=(1,5,2)f32 #e=(1,5,2)i64",
        "pnnx.Attribute zeros 0 1 f @data=(1,5,3)f32 #f=(1,5,3)f32",
        "pnnx.Expression dim 0 1 g expr=-1",
        "aten::scatter p 4 1 f g e d h #h=(1,5,3)f32",
        "pnnx.Attribute w 0 1 w @data=(3,6,8)f32 #w=(3,6,8)f32",
        "torch.einsum x 2 1 a w i equation=btd,edh->bteh #i=(1,5,3,8)f32",
        "torch.unsqueeze u 1 1 h j dim=3 $input=h #j=(1,5,3,1)f32",
        "pnnx.Expression m 2 1 i j k expr=mul(@0,@1) #k=(1,5,3,8)f32",
        "pnnx.Output out 1 0 k",
        zeros=np.zeros((1, 5, 3), np.float32),
        w=np.zeros((3, 6, 8), np.float32),
    )
    assert found["c"] == found["d"] == found["h"] == "tokens × experts"
    assert found["w"] == "experts × features × features"
    assert found["i"] == found["k"] == "tokens × experts × features"


def test_heads_without_a_product(texts: Callable[..., dict[str, str]]) -> None:
    """Autoformer compares heads by their frequencies, as further samples."""
    found = texts(
        "pnnx.Input in 0 1 a #a=(1,8,6)f32",
        "nn.Linear q 1 1 a b #b=(1,8,6)f32",
        "Tensor.reshape r 1 1 b c shape=(1,8,2,3) $input=b #c=(1,8,2,3)f32",
        "torch.transpose t 1 1 c d dim0=1 dim1=2 $input=c #d=(1,2,8,3)f32",
        "Tensor.reshape s 1 1 d e shape=(2,8,3) $input=d #e=(2,8,3)f32",
        "torch.fft.rfft f 1 1 e f dim=1 norm=None $input=e #f=(2,5,3)c64",
        "pnnx.Output out 1 0 f",
    )
    assert found["c"] == "time × heads × features"
    assert found["e"] == "heads × time × features"
    assert found["f"] == "heads × frequencies × features"


def test_codebooks_of_a_sound(texts: Callable[..., dict[str, str]]) -> None:
    """MusicGen adds the embeddings of its codebooks, and gives scores of each."""
    found = texts(
        "pnnx.Input in 0 1 a #a=(2,5)i64",
        "Tensor.reshape r 1 1 a b shape=(1,2,5) $input=a #b=(1,2,5)i64",
        "torch.unbind u 1 2 b c d dim=1 $input=b #c=(1,5)i64 #d=(1,5)i64",
        "nn.Embedding e 1 1 c e embedding_dim=6 num_embeddings=20 @weight=(20,6)f32 "
        "#e=(1,5,6)f32",
        "nn.Embedding f 1 1 d f embedding_dim=6 num_embeddings=20 @weight=(20,6)f32 "
        "#f=(1,5,6)f32",
        "pnnx.Expression x 2 1 e f g expr=add(@0,@1) #g=(1,5,6)f32",
        "nn.Linear m.lm_heads.0 1 1 g h #h=(1,5,19)f32",
        "nn.Linear m.lm_heads.1 1 1 g i #i=(1,5,19)f32",
        "torch.stack s 2 1 h i j dim=1 #j=(1,2,5,19)f32",
        "Tensor.reshape t 1 1 j k shape=(2,5,19) $input=j #k=(2,5,19)f32",
        "pnnx.Output out 1 0 k",
        **{
            "e.weight": np.zeros((20, 6), np.float32),
            "f.weight": np.zeros((20, 6), np.float32),
        },
    )
    assert found["a"] == found["b"] == "parts × tokens"
    assert found["h"] == "tokens × vocabulary"
    assert found["k"] == "parts × tokens × vocabulary"


def test_windows_of_which_queries_are_pooled(texts: Callable[..., dict[str, str]]) -> None:
    """Hiera in SAM 2 pools inside of windows, and joins them to a smaller picture."""
    found = texts(
        "pnnx.Input in 0 1 a #a=(1,3,8,8)f32",
        "nn.Conv2d c 1 1 a b kernel_size=(3,3) padding=(1,1) #b=(1,6,8,8)f32",
        "Tensor.permute p 1 1 b c dims=(0,2,3,1) $input=b #c=(1,8,8,6)f32",
        "Tensor.reshape r 1 1 c d shape=(1,2,4,2,4,6) $input=c #d=(1,2,4,2,4,6)f32",
        "Tensor.permute q 1 1 d e dims=(0,1,3,5,2,4) $input=d #e=(1,2,2,6,4,4)f32",
        "Tensor.reshape s 1 1 e f shape=(4,6,4,4) $input=e #f=(4,6,4,4)f32",
        "F.max_pool2d m 1 1 f g kernel_size=(2,2) stride=(2,2) $input=f #g=(4,6,2,2)f32",
        "Tensor.reshape t 1 1 g h shape=(1,2,2,6,2,2) $input=g #h=(1,2,2,6,2,2)f32",
        "Tensor.permute u 1 1 h i dims=(0,1,4,2,5,3) $input=h #i=(1,2,2,2,2,6)f32",
        "Tensor.reshape v 1 1 i j shape=(1,4,4,6) $input=i #j=(1,4,4,6)f32",
        "pnnx.Output out 1 0 j",
    )
    assert found["g"] == "2×2 windows × channels × rows × columns"
    assert found["i"] == ("rows of windows × rows × columns of windows × columns × channels")
    assert found["j"] == "rows × columns × channels"


def test_distances_that_weigh_a_table(texts: Callable[..., dict[str, str]]) -> None:
    """VITS shifts its weights back to distances, to add values of these."""
    found = texts(
        "pnnx.Input in 0 1 a #a=(1,3,4)f32",
        "nn.LayerNorm n 1 1 a n normalized_shape=(4) #n=(1,3,4)f32",
        "Tensor.reshape r 1 1 n b shape=(3,2,2) $input=n #b=(3,2,2)f32",
        "torch.transpose t 1 1 b c dim0=0 dim1=1 $input=b #c=(2,3,2)f32",
        "torch.transpose u 1 1 c d dim0=1 dim1=2 $input=c #d=(2,2,3)f32",
        "torch.bmm s 2 1 c d e $input=c $mat2=d #e=(2,3,3)f32",
        "F.softmax w 1 1 e f dim=-1 #f=(2,3,3)f32",
        "F.pad p 1 1 f g pad=(0,2) $input=f #g=(2,3,5)f32",
        "Tensor.reshape h 1 1 g h shape=(2,15) $input=g #h=(2,15)f32",
        "F.pad q 1 1 h i pad=(3,0) $input=h #i=(2,18)f32",
        "Tensor.reshape j 1 1 i j shape=(2,3,6) $input=i #j=(2,3,6)f32",
        "Tensor.slice l 1 1 j k dims=(2) starts=(1) ends=(6) steps=(1) $input=j #k=(2,3,5)f32",
        "pnnx.Attribute table 0 1 l @data=(1,5,2)f32 #l=(1,5,2)f32",
        "torch.matmul m 2 1 k l m $input=k $other=l #m=(2,3,2)f32",
        "torch.bmm v 2 1 f c v $input=f $mat2=c #v=(2,3,2)f32",
        "pnnx.Expression o 2 1 v m o expr=add(@0,@1) #o=(2,3,2)f32",
        "pnnx.Output out 1 0 o",
        table=np.zeros((1, 5, 2), np.float32),
    )
    assert found["k"] == "heads × tokens × distances"
    assert found["l"] == "distances × features"
    assert found["m"] == "heads × tokens × features"


def test_windows_by_steps_of_memory(texts: Callable[..., dict[str, str]]) -> None:
    """Longformer views chunks that overlap: the second begins in the middle of the first."""
    found = texts(
        "pnnx.Input in 0 1 a #a=(1,10)i64",
        "nn.Embedding e 1 1 a b embedding_dim=6 num_embeddings=20 #b=(1,10,6)f32",
        "torch.as_strided s 1 1 b c size=(1,4,4,6) stride=(60,12,6,1) $input=b #c=(1,4,4,6)f32",
        "pnnx.Output out 1 0 c",
    )
    assert found["c"] == "tokens × tokens × features"


@pytest.mark.parametrize("join", ["torch.stack", "torch.cat"])
def test_points_that_an_attention_samples(
    texts: Callable[..., dict[str, str]], join: str
) -> None:
    """Deformable DETR stacks what it samples of each level, RT-DETR concatenates it."""
    stacks = join == "torch.stack"
    shape = "(2,4,5,2,3)" if stacks else "(2,4,5,6)"
    found = texts(
        "pnnx.Input large 0 1 a #a=(2,4,8,8)f32",
        "pnnx.Input small 0 1 b #b=(2,4,4,4)f32",
        "pnnx.Input in 0 1 c #c=(2,5,8)f32",
        "nn.Linear offsets 1 1 c d #d=(2,5,12)f32",
        "Tensor.reshape r 1 1 d e shape=(2,5,2,3,2) $input=d #e=(2,5,2,3,2)f32",
        "torch.unbind u 1 2 e f g dim=2 $input=e #f=(2,5,3,2)f32 #g=(2,5,3,2)f32",
        "F.grid_sample s 2 1 a f h $input=a $grid=f #h=(2,4,5,3)f32",
        "F.grid_sample t 2 1 b g i $input=b $grid=g #i=(2,4,5,3)f32",
        f"{join} j 2 1 h i j dim={-2 if stacks else -1} #j={shape}f32",
        "pnnx.Output out 1 0 j",
    )
    assert found["e"].endswith("tokens × levels × points × coordinates")
    assert found["h"].endswith("tokens × points")
    assert found["j"].endswith("tokens × levels × points" if stacks else "tokens × points")


def test_bags_of_numbers(texts: Callable[..., dict[str, str]]) -> None:
    """A traced embedding bag has its numbers in a row, and where each bag begins."""
    found = texts(
        "pnnx.Input in 0 1 a #a=(4,7)i64",
        "pnnx.Attribute w 0 1 w @data=(50,6)f32 #w=(50,6)f32",
        "aten::numel n 1 1 a n #a=(4,7)i64",
        "torch.arange r 1 1 n b dtype=torch.long start=0 step=7 $end=n #b=(4)i64",
        "Tensor.reshape f 1 1 a c shape=(28) $input=a #c=(28)i64",
        "pnnx.Expression no 0 1 d expr=False",
        "pnnx.Expression mean 0 1 e expr=1",
        "pnnx.Expression none 0 1 g expr=None",
        "aten::embedding_bag x 9 4 w c b d e d g d g h i j k "
        "#h=(4,6)f32 #i=(28)i64 #j=(4)i64 #k=(4)i64",
        "pnnx.Output out 1 0 h",
        w=np.zeros((50, 6), np.float32),
    )
    assert found["a"] == "batch × tokens"
    assert found["w"] == "vocabulary × features"
    assert found["c"] == found["i"] == "batch·tokens"
    assert found["h"] == "batch × features"
    assert found["j"] == "batch"


def test_a_series_that_is_cut_to_tokens(texts: Callable[..., dict[str, str]]) -> None:
    """TimesFM makes tokens of several numbers that follow each other."""
    found = texts(
        "pnnx.Input in 0 1 a #a=(1,32)f32",
        "Tensor.reshape r 1 1 a b shape=(1,4,8) $input=a #b=(1,4,8)f32",
        "nn.Linear l 1 1 b c #c=(1,4,6)f32",
        "nn.MultiheadAttention m 1 1 c d batch_first=True embed_dim=6 num_heads=2 "
        "#d=(1,4,6)f32",
        "pnnx.Output out 1 0 d",
    )
    assert found["a"] == "time"
    assert found["b"] == found["c"] == found["d"] == "tokens × features"


def test_a_spectrogram_whose_frames_are_rows(texts: Callable[..., dict[str, str]]) -> None:
    """Parakeet reads it as a picture, and its frames as a signal afterwards."""
    found = texts(
        "pnnx.Input in 0 1 a #a=(1,8,6)f32",
        "torch.unsqueeze u 1 1 a b dim=1 $input=a #b=(1,1,8,6)f32",
        "nn.Conv2d c 1 1 b c kernel_size=(3,3) stride=(2,2) padding=(1,1) #c=(1,5,4,3)f32",
        "torch.transpose t 1 1 c d dim0=1 dim1=2 $input=c #d=(1,4,5,3)f32",
        "Tensor.reshape r 1 1 d e shape=(1,4,15) $input=d #e=(1,4,15)f32",
        "nn.Linear l 1 1 e f #f=(1,4,6)f32",
        "torch.transpose v 1 1 f g dim0=1 dim1=2 $input=f #g=(1,6,4)f32",
        "nn.Conv1d w 1 1 g h kernel_size=(3) padding=(1) #h=(1,6,4)f32",
        "pnnx.Output out 1 0 h",
    )
    assert found["a"] == "time × frequencies"
    assert found["c"] == "channels × time × frequencies"
    assert found["f"] == "time × features"
    assert found["h"] == "channels × time"


def test_rows_that_were_flattened_before_a_convolution(
    texts: Callable[..., dict[str, str]],
) -> None:
    """CLAP normalises frequencies as channels, and then folds a long sound to a picture."""
    found = texts(
        "pnnx.Input in 0 1 a #a=(1,6,16,1)f32",
        "nn.BatchNorm2d n 1 1 a b #b=(1,6,16,1)f32",
        "torch.transpose t 1 1 b c dim0=1 dim1=3 $input=b #c=(1,1,16,6)f32",
        "Tensor.reshape r 1 1 c d shape=(1,2,8,6) $input=c #d=(1,2,8,6)f32",
        "Tensor.permute p 1 1 d e dims=(0,1,3,2) $input=d #e=(1,2,6,8)f32",
        "Tensor.reshape s 1 1 e f shape=(1,1,12,8) $input=e #f=(1,1,12,8)f32",
        "nn.Conv2d c 1 1 f g kernel_size=(4,4) stride=(4,4) #g=(1,5,3,2)f32",
        "torch.flatten u 1 1 g h start_dim=2 end_dim=-1 $input=g #h=(1,5,6)f32",
        "pnnx.Output out 1 0 h",
    )
    assert found["g"] == "channels × rows × columns"
    assert found["h"] == "features × 3×2 tokens"


def test_weights_that_are_shifted_before_they_weigh(
    texts: Callable[..., dict[str, str]],
) -> None:
    """Longformer pads its weights and cuts them again, so that they meet chunks of values."""
    found = texts(
        "pnnx.Input in 0 1 a #a=(2,4,3)f32",
        "F.softmax s 1 1 a b dim=-1 #b=(2,4,3)f32",
        "F.pad p 1 1 b c pad=(0,5) $input=b #c=(2,4,8)f32",
        "torch.flatten f 1 1 c d start_dim=1 end_dim=-1 $input=c #d=(2,32)f32",
        "Tensor.slice l 1 1 d e dims=(1) starts=(0) ends=(28) steps=(1) $input=d #e=(2,28)f32",
        "Tensor.reshape r 1 1 e g shape=(2,4,7) $input=e #g=(2,4,7)f32",
        "pnnx.Input values 0 1 h #h=(2,7,6)f32",
        "torch.einsum w 2 1 g h i equation=bqk,bkd->bqd #i=(2,4,6)f32",
        "nn.Linear n 1 1 i j #j=(2,4,6)f32",
        "pnnx.Output out 1 0 j",
    )
    assert found["h"] == "batch × tokens × features"
    assert found["i"] == found["j"] == "batch × tokens × features"


def test_a_number_for_each_sample(texts: Callable[..., dict[str, str]]) -> None:
    """Diffusion transformers look up the class of each image: a batch of labels, no tokens."""
    found = texts(
        "pnnx.Input labels 0 1 a #a=(2)i64",
        "nn.Embedding e 1 1 a b embedding_dim=8 num_embeddings=11 #b=(2,8)f32",
        "nn.Linear l 1 1 b c #c=(2,8)f32",
        "Tensor.reshape r 1 1 c d shape=(2,8,1,1) $input=c #d=(2,8,1,1)f32",
        "pnnx.Input image 0 1 g #g=(2,3,6,6)f32",
        "nn.Conv2d p 1 1 g h kernel_size=(2,2) stride=(2,2) #h=(2,8,3,3)f32",
        "pnnx.Expression x 2 1 h d i expr=mul(@0,@1) #i=(2,8,3,3)f32",
        "pnnx.Output out 1 0 i",
    )
    assert found["a"] == "batch"
    assert found["b"] == found["c"] == "batch × features"
    assert found["i"] == "batch × channels × rows × columns"


def test_a_sequence_without_a_batch(texts: Callable[..., dict[str, str]]) -> None:
    found = texts(
        "pnnx.Input ids 0 1 a #a=(5)i64",
        "nn.Embedding e 1 1 a b embedding_dim=8 num_embeddings=11 #b=(5,8)f32",
        "nn.Linear l 1 1 b c #c=(5,8)f32",
        "pnnx.Output out 1 0 c",
    )
    assert found["a"] == "tokens"
    assert found["c"] == "tokens × features"


def test_blocks_of_a_sequence(texts: Callable[..., dict[str, str]]) -> None:
    """BigBird attends from each block to others, and treats the first and the last apart.

    Mamba 2 takes the last token of each chunk.
    """
    found = texts(
        "pnnx.Input ids 0 1 a #a=(1,20)i64",
        "nn.Embedding e 1 1 a b embedding_dim=6 num_embeddings=11 #b=(1,20,6)f32",
        "Tensor.reshape r 1 1 b c shape=(1,5,4,2,3) $input=b #c=(1,5,4,2,3)f32",
        "Tensor.permute p 1 1 c d dims=(0,3,1,2,4) $input=c #d=(1,2,5,4,3)f32",
        "Tensor.select f 1 1 d g dim=2 index=0 $input=d #g=(1,2,4,3)f32",
        "Tensor.slice m 1 1 d h dims=(2) starts=(1) ends=(4) steps=(1) $input=d "
        "#h=(1,2,3,4,3)f32",
        "torch.transpose t 1 1 h i dim0=3 dim1=4 $input=h #i=(1,2,3,3,4)f32",
        "torch.matmul q 2 1 h i j $input=h $other=i #j=(1,2,3,4,4)f32",
        "F.softmax s 1 1 j k dim=-1 #k=(1,2,3,4,4)f32",
        "Tensor.select l 1 1 h n dim=3 index=-1 $input=h #n=(1,2,3,3)f32",
        "pnnx.Output out 3 0 g k n",
    )
    assert found["c"] == "windows × tokens × heads × features"
    assert found["d"] == "heads × windows × tokens × features"
    assert found["g"] == "heads × tokens × features"
    assert found["h"] == "heads × windows × tokens × features"
    assert found["k"] == "heads × windows × queries × keys"
    assert found["n"] == "heads × windows × features"


def test_queries_of_heads_with_their_keys(texts: Callable[..., dict[str, str]]) -> None:
    """Persimmon has query, key and value of each head beside each other."""
    found = texts(
        "pnnx.Input ids 0 1 a #a=(1,5)i64",
        "nn.Embedding e 1 1 a b embedding_dim=8 num_embeddings=20 #b=(1,5,8)f32",
        "nn.Linear q 1 1 b c #c=(1,5,24)f32",
        "Tensor.reshape r 1 1 c d shape=(1,5,2,3,4) $input=c #d=(1,5,2,3,4)f32",
        "torch.unbind u 1 3 d g h i dim=3 #g=(1,5,2,4)f32 #h=(1,5,2,4)f32 #i=(1,5,2,4)f32",
        "torch.transpose tg 1 1 g j dim0=1 dim1=2 $input=g #j=(1,2,5,4)f32",
        "torch.transpose th 1 1 h k dim0=1 dim1=2 $input=h #k=(1,2,5,4)f32",
        "torch.transpose ti 1 1 i l dim0=1 dim1=2 $input=i #l=(1,2,5,4)f32",
        "F.scaled_dot_product_attention s 3 1 j k l m $query=j $key=k $value=l #m=(1,2,5,4)f32",
        "torch.transpose tm 1 1 m n dim0=1 dim1=2 $input=m #n=(1,5,2,4)f32",
        "Tensor.reshape f 1 1 n o shape=(1,5,8) $input=n #o=(1,5,8)f32",
        "nn.Linear p 1 1 o q #q=(1,5,8)f32",
        "pnnx.Output out 1 0 q",
    )
    assert found["d"] == "tokens × heads × parts × features"
    assert found["n"] == "tokens × heads × features"
    assert found["o"] == "tokens × features"


def test_features_to_which_each_layer_adds_are_no_classes(
    texts: Callable[..., dict[str, str]],
) -> None:
    """The result of TimesFM is what its last layer, which is called fc2, adds to its input."""
    found = texts(
        "pnnx.Input in 0 1 a #a=(1,5,8)f32",
        "nn.Linear fc1 1 1 a b #b=(1,5,8)f32",
        "pnnx.Expression x 2 1 b a c expr=add(@0,@1) #c=(1,5,8)f32",
        "nn.Linear fc2 1 1 c d #d=(1,5,8)f32",
        "pnnx.Expression y 2 1 d c e expr=add(@0,@1) #e=(1,5,8)f32",
        "pnnx.Output out 1 0 e",
    )
    assert found["e"] == "tokens × features"


def test_nearest_codes_as_vectors(texts: Callable[..., dict[str, str]]) -> None:
    """A quantiser may look its codes up by a product with vectors of one 1."""
    found = texts(
        "pnnx.Input in 0 1 a #a=(1,3,12,15)f32",
        "nn.Conv2d c 1 1 a b kernel_size=(3,3) stride=(3,3) #b=(1,8,4,5)f32",
        "Tensor.permute p 1 1 b d dims=(0,2,3,1) $input=b #d=(1,4,5,8)f32",
        "Tensor.reshape r 1 1 d e shape=(20,8) $input=d #e=(20,8)f32",
        "pnnx.Attribute book 0 1 g @data=(7,8)f32 #g=(7,8)f32",
        "torch.cdist m 2 1 e g h p=2.0 $x1=e $x2=g #h=(20,7)f32",
        "torch.argmin n 1 1 h i dim=1 keepdim=False $input=h #i=(20)i64",
        "aten::one_hot o 1 1 i j num_classes=7 #j=(20,7)i64",
        "Tensor.to f 1 1 j k dtype=torch.float $input=j #k=(20,7)f32",
        "torch.matmul q 2 1 k g l $input=k $other=g #l=(20,8)f32",
        "pnnx.Output out 1 0 l",
        book=np.zeros((7, 8), np.float32),
    )
    assert found["e"] == "4×5 tokens × features"
    assert found["h"] == found["k"] == "4×5 tokens × vocabulary"
    assert found["g"] == "vocabulary × features"
    assert found["i"] == "4×5 tokens"


def test_neighbours_of_the_places_of_a_flow(texts: Callable[..., dict[str, str]]) -> None:
    """RAFT samples a correlation for each position at places around that it flows to."""
    found = texts(
        "pnnx.Input in 0 1 a #a=(1,6,4,5)f32",
        "nn.Conv2d c 1 1 a b kernel_size=(3,3) padding=(1,1) #b=(1,6,4,5)f32",
        "torch.flatten f 1 1 b d start_dim=2 end_dim=-1 $input=b #d=(1,6,20)f32",
        "torch.transpose t 1 1 d e dim0=1 dim1=2 $input=d #e=(1,20,6)f32",
        "torch.matmul m 2 1 e d g $input=e $other=d #g=(1,20,20)f32",
        "Tensor.reshape r 1 1 g h shape=(20,1,4,5) $input=g #h=(20,1,4,5)f32",
        "pnnx.Input at 0 1 i #i=(20,3,3,2)f32",
        "F.grid_sample s 2 1 h i j mode=bilinear $input=h $grid=i #j=(20,1,3,3)f32",
        "pnnx.Output out 1 0 j",
    )
    assert found["i"] == "4×5 tokens × rows × columns × coordinates"
    assert found["j"] == "4×5 tokens × rows × columns"


def test_scores_beside_a_sink_have_heads(texts: Callable[..., dict[str, str]]) -> None:
    """Two heads of GPT-OSS share their keys, and a sink takes a part of the weight."""
    found = texts(
        "pnnx.Input ids 0 1 a #a=(1,5)i64",
        "nn.Embedding e 1 1 a b embedding_dim=12 num_embeddings=20 #b=(1,5,12)f32",
        "nn.Linear q 1 1 b c #c=(1,5,12)f32",
        "Tensor.reshape rq 1 1 c d shape=(1,5,4,3) $input=c #d=(1,5,4,3)f32",
        "torch.transpose tq 1 1 d g dim0=1 dim1=2 $input=d #g=(1,4,5,3)f32",
        "nn.Linear k 1 1 b h #h=(1,5,6)f32",
        "Tensor.reshape rk 1 1 h i shape=(1,5,2,3) $input=h #i=(1,5,2,3)f32",
        "Tensor.permute tk 1 1 i j dims=(0,2,3,1) $input=i #j=(1,2,3,5)f32",
        "torch.unsqueeze uk 1 1 j k dim=2 $input=j #k=(1,2,1,3,5)f32",
        "Tensor.expand ek 1 1 k l sizes=(1,2,2,3,5) $input=k #l=(1,2,2,3,5)f32",
        "Tensor.reshape sk 1 1 l m shape=(1,4,3,5) $input=l #m=(1,4,3,5)f32",
        "torch.matmul m 2 1 g m n $input=g $other=m #n=(1,4,5,5)f32",
        "pnnx.Input sink 0 1 o #o=(1,4,5,1)f32",
        "torch.cat j 2 1 n o p dim=-1 #p=(1,4,5,6)f32",
        "F.softmax s 1 1 p q dim=-1 $input=p #q=(1,4,5,6)f32",
        "pnnx.Output out 1 0 q",
    )
    assert found["d"] == "tokens × heads × features"
    assert found["m"] == "heads × features × tokens"
    assert found["q"] == "heads × queries × keys"


def test_triangular_equations_of_a_chunk(texts: Callable[..., dict[str, str]]) -> None:
    """Qwen3-Next solves for the values of the tokens of a chunk."""
    found = texts(
        "pnnx.Input ids 0 1 a #a=(1,5)i64",
        "nn.Embedding e 1 1 a b embedding_dim=6 num_embeddings=20 #b=(1,5,6)f32",
        "pnnx.Input system 0 1 c #c=(1,5,5)f32",
        "pnnx.Expression no 0 1 f expr=False",
        "pnnx.Expression yes 0 1 t expr=True",
        "aten::linalg_solve_triangular s 5 1 c b f t t d #d=(1,5,6)f32",
        "pnnx.Output out 1 0 d",
    )
    assert found["d"] == "tokens × features"
    assert found["c"] == "queries × keys"


def test_patches_that_a_convolution_takes_for_samples(
    texts: Callable[..., dict[str, str]],
) -> None:
    """Qwen2-VL is given patches, each of which a convolution embeds by itself."""
    found = texts(
        "pnnx.Input in 0 1 a #a=(6,48)f32",
        "Tensor.reshape r 1 1 a b shape=(6,3,4,4) $input=a #b=(6,3,4,4)f32",
        "nn.Conv2d c 1 1 b c kernel_size=(4,4) stride=(4,4) #c=(6,8,1,1)f32",
        "Tensor.reshape s 1 1 c d shape=(6,8) $input=c #d=(6,8)f32",
        "nn.Linear q 1 1 d e #e=(6,8)f32",
        "Tensor.reshape t 1 1 e g shape=(6,2,4) $input=e #g=(6,2,4)f32",
        "torch.transpose u 1 1 g h dim0=0 dim1=1 $input=g #h=(2,6,4)f32",
        "torch.unsqueeze v 1 1 h i dim=0 $input=h #i=(1,2,6,4)f32",
        "F.scaled_dot_product_attention w 3 1 i i i j $query=i $key=i $value=i #j=(1,2,6,4)f32",
        "pnnx.Output out 1 0 j",
    )
    assert found["b"] == "tokens × channels × rows × columns"
    assert found["d"] == "tokens × features"
    assert found["j"] == "heads × tokens × features"


def test_what_is_assigned_to_a_part(texts: Callable[..., dict[str, str]]) -> None:
    """Graphormer assigns biases of edges to scores that also have a graph token."""
    found = texts(
        "pnnx.Input edges 0 1 a #a=(1,5,5)i64",
        "nn.Embedding e 1 1 a b embedding_dim=3 num_embeddings=12 #b=(1,5,5,3)f32",
        "Tensor.permute p 1 1 b c dims=(0,3,1,2) $input=b #c=(1,3,5,5)f32",
        "torch.zeros z 0 1 z size=(1,3,6,6) #z=(1,3,6,6)f32",
        "Tensor.slice_copy s 2 1 z c d dims=(2,3) starts=(1,1) ends=(2147483647,2147483647) "
        "steps=(1,1) selects=(2147483647,2147483647) $self=z $src=c #d=(1,3,6,6)f32",
        "pnnx.Input q 0 1 q #q=(1,3,6,4)f32",
        "pnnx.Input k 0 1 k #k=(1,3,4,6)f32",
        "torch.matmul m 2 1 q k g $input=q $other=k #g=(1,3,6,6)f32",
        "pnnx.Expression x 2 1 g d h expr=add(@0,@1) #h=(1,3,6,6)f32",
        "F.softmax f 1 1 h i dim=-1 $input=h #i=(1,3,6,6)f32",
        "pnnx.Output out 1 0 i",
    )
    assert found["i"] == "heads × queries × keys"
    assert found["c"] == "heads × queries × keys"
    assert found["b"] == "queries × keys × heads"


def test_a_part_that_an_index_selects_is_assigned(
    texts: Callable[..., dict[str, str]],
) -> None:
    found = texts(
        "pnnx.Input image 0 1 a #a=(1,3,6,8)f32",
        "nn.Conv2d c 1 1 a b kernel_size=(3,3) padding=(1,1) #b=(1,4,6,8)f32",
        "pnnx.Input plane 0 1 p #p=(1,6,8)f32",
        "Tensor.slice_copy s 2 1 b p d dims=(1) starts=(0) ends=(0) steps=(0) selects=(2) "
        "$self=b $src=p #d=(1,4,6,8)f32",
        "pnnx.Output out 1 0 d",
    )
    assert found["d"] == "channels × rows × columns"
    assert found["p"] == "rows × columns"


def test_scores_inside_a_band(texts: Callable[..., dict[str, str]]) -> None:
    """Longformer pads scores of chunks by a row, so that each row begins at its own key."""
    found = texts(
        "pnnx.Input ids 0 1 a #a=(1,12)i64",
        "nn.Embedding e 1 1 a b embedding_dim=6 num_embeddings=20 #b=(1,12,6)f32",
        "Tensor.reshape r 1 1 b c shape=(3,4,6) $input=b #c=(3,4,6)f32",
        "torch.einsum m 2 1 c c d equation=bxd,byd->bxy #d=(3,4,4)f32",
        "F.pad p 1 1 d g mode=constant pad=(0,0,0,1) $input=d #g=(3,5,4)f32",
        "Tensor.reshape s 1 1 g h shape=(3,4,5) $input=g #h=(3,4,5)f32",
        "pnnx.Output out 1 0 h",
    )
    assert found["h"] == "tokens × tokens × distances"


def test_rows_at_the_places_of_an_index(texts: Callable[..., dict[str, str]]) -> None:
    """Mixtures of experts invert a permutation, and add rows of experts to their tokens."""
    found = texts(
        "pnnx.Input in 0 1 a #a=(1,7,6)f32",
        "nn.Linear l 1 1 a b #b=(1,7,6)f32",
        "Tensor.reshape r 1 1 b c shape=(7,6) $input=b #c=(7,6)f32",
        "torch.zeros z 0 1 z size=(7,6) #z=(7,6)f32",
        "pnnx.Input at 0 1 i #i=(7)i64",
        "pnnx.Expression dim 0 1 n expr=0",
        "pnnx.Expression one 0 1 o expr=1",
        "aten::index_add x 5 1 z n i c o y #y=(7,6)f32",
        "pnnx.Input image 0 1 p #p=(1,3,6,8)f32",
        "nn.Conv2d v 1 1 p q kernel_size=(3,3) padding=(1,1) #q=(1,4,6,8)f32",
        "aten::cummax w 1 2 q s t dim=2 #s=(1,4,6,8)f32 #t=(1,4,6,8)i64",
        "pnnx.Output out 2 0 y s",
    )
    assert found["s"] == found["t"] == "channels × rows × columns"
    assert found["y"].endswith("features")


def test_heads_that_a_convolution_mixes(texts: Callable[..., dict[str, str]]) -> None:
    """Talking heads of EfficientFormer V2 are channels to the convolution of their scores."""
    mixing = "bias=True in_channels=2 out_channels=2 kernel_size=(1,1)"
    found = texts(
        "pnnx.Input image 0 1 a #a=(1,3,4,5)f32",
        "nn.Conv2d c 1 1 a b kernel_size=(3,3) padding=(1,1) #b=(1,6,4,5)f32",
        "Tensor.reshape r 1 1 b c shape=(1,2,3,20) $input=b #c=(1,2,3,20)f32",
        "Tensor.permute p 1 1 c d dims=(0,1,3,2) $input=c #d=(1,2,20,3)f32",
        "torch.matmul m 2 1 d c e $input=d $other=c #e=(1,2,20,20)f32",
        f"nn.Conv2d talk 1 1 e g {mixing} #g=(1,2,20,20)f32",
        "F.softmax s 1 1 g h dim=-1 $input=g #h=(1,2,20,20)f32",
        "torch.matmul n 2 1 h d i $input=h $other=d #i=(1,2,20,3)f32",
        "pnnx.Output out 1 0 i",
    )
    assert found["c"] == "heads × features × 4×5 tokens"
    assert found["e"] == found["h"] == "heads × 4×5 queries × 4×5 keys"
    assert found["i"] == "heads × 4×5 tokens × features"


def test_distances_between_the_points_of_a_cloud(
    texts: Callable[..., dict[str, str]],
) -> None:
    """SchNet squares the differences of the places of each two atoms, and adds them up."""
    found = texts(
        "pnnx.Input kinds 0 1 k #k=(1,5)i64",
        "nn.Embedding e 1 1 k m embedding_dim=4 num_embeddings=20 #m=(1,5,4)f32",
        "pnnx.Input places 0 1 a #a=(1,5,3)f32",
        "torch.unsqueeze u 1 1 a b dim=2 $input=a #b=(1,5,1,3)f32",
        "torch.unsqueeze v 1 1 a c dim=1 $input=a #c=(1,1,5,3)f32",
        "pnnx.Expression d 2 1 b c d expr=pow(sub(@0,@1),2) #d=(1,5,5,3)f32",
        "torch.sum s 1 1 d g dim=(-1) keepdim=False $input=d #g=(1,5,5)f32",
        "torch.matmul w 2 1 g m h $input=g $other=m #h=(1,5,4)f32",
        "pnnx.Output out 1 0 h",
    )
    assert found["a"] == "tokens × coordinates"
    assert found["g"] == "queries × keys"


def test_biases_of_experts(texts: Callable[..., dict[str, str]]) -> None:
    """GPT-OSS adds the bias of its expert to what each token becomes."""
    found = texts(
        "pnnx.Input in 0 1 a #a=(1,7,6)f32",
        "Tensor.reshape r 1 1 a b shape=(7,6) $input=a #b=(7,6)f32",
        "nn.Linear router 1 1 b c #c=(7,5)f32",
        "torch.topk t 1 2 c d i k=1 dim=-1 $input=c #d=(7,1)f32 #i=(7,1)i64",
        "Tensor.reshape f 1 1 i j shape=(7) $input=i #j=(7)i64",
        "torch.argsort o 1 1 j k dim=0 $input=j #k=(7)i64",
        "Tensor.index g 2 1 j k l $input=j $expr=k #l=(7)i64",
        "pnnx.Attribute bias 0 1 m @data=(5,6)f32 #m=(5,6)f32",
        "Tensor.index h 2 1 m l n $input=m $expr=l #n=(7,6)f32",
        "pnnx.Expression x 2 1 b n p expr=add(@0,@1) #p=(7,6)f32",
        "pnnx.Output out 1 0 p",
        bias=np.zeros((5, 6), np.float32),
    )
    assert found["m"] == "experts × features"


def test_a_picture_that_is_cut_before_any_convolution(
    texts: Callable[..., dict[str, str]],
) -> None:
    """NaFlexViT embeds the pixels of each patch by a linear layer."""
    found = texts(
        "pnnx.Input in 0 1 a #a=(1,3,8,12)f32",
        "Tensor.reshape r 1 1 a b shape=(1,3,2,4,3,4) $input=a #b=(1,3,2,4,3,4)f32",
        "Tensor.permute p 1 1 b c dims=(0,2,4,3,5,1) $input=b #c=(1,2,3,4,4,3)f32",
        "Tensor.reshape s 1 1 c d shape=(1,6,48) $input=c #d=(1,6,48)f32",
        "nn.Linear l 1 1 d e #e=(1,6,10)f32",
        "nn.MultiheadAttention m 1 1 e g embed_dim=10 batch_first=True #g=(1,6,10)f32",
        "pnnx.Output out 1 0 g",
    )
    assert found["a"] == "channels × rows × columns"
    assert found["g"].endswith("tokens × features")


def test_codes_of_a_moment_are_parts(texts: Callable[..., dict[str, str]]) -> None:
    """CSM adds the features of the codes that a codec gives for each moment."""
    found = texts(
        "pnnx.Input codes 0 1 a #a=(1,7,4)i64",
        "nn.Embedding e 1 1 a b embedding_dim=6 num_embeddings=40 #b=(1,7,4,6)f32",
        "torch.sum s 1 1 b c dim=(2) keepdim=False $input=b #c=(1,7,6)f32",
        "nn.Linear l 1 1 c d #d=(1,7,6)f32",
        "pnnx.Output out 1 0 d",
    )
    assert found["a"] == "tokens × parts"
    assert found["b"] == "tokens × parts × features"
    assert found["c"] == "tokens × features"


def test_rows_that_are_split_by_expert(texts: Callable[..., dict[str, str]]) -> None:
    """JetMoE sorts the choices of its tokens, and gives each expert its own rows."""
    found = texts(
        "pnnx.Input in 0 1 a #a=(1,4,6)f32",
        "nn.LayerNorm z 1 1 a x #x=(1,4,6)f32",
        "Tensor.reshape r 1 1 x b shape=(4,6) $input=x #b=(4,6)f32",
        "nn.Linear router 1 1 b c #c=(4,3)f32",
        "torch.topk t 1 2 c d i k=2 dim=-1 $input=c #d=(4,2)f32 #i=(4,2)i64",
        "torch.flatten f 1 1 i j start_dim=0 end_dim=-1 $input=i #j=(8)i64",
        "torch.argsort o 1 1 j k dim=0 $input=j #k=(8)i64",
        "Tensor.index g 2 1 b k l $input=b $expr=k #l=(8,6)f32",
        "torch.split s 1 2 l m n dim=0 split_size_or_sections=(5,3) $tensor=l "
        "#m=(5,6)f32 #n=(3,6)f32",
        "nn.Linear one 1 1 m p #p=(5,6)f32",
        "nn.Linear two 1 1 n q #q=(3,6)f32",
        "torch.cat u 2 1 p q v dim=0 #v=(8,6)f32",
        "pnnx.Output out 1 0 v",
    )
    assert found["l"] == found["v"] == "tokens·experts × features"
    assert found["m"] == found["p"] == "tokens·experts × features"
