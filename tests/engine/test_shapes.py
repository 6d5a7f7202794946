"""Sizes that are asked for; expectations are typed by hand."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from PIL import Image

import engine
from engine.errors import FeedError, InferenceError, OpenShapeError
from engine.inputs import ImageOptions, InputSource, load_inputs
from engine.shapes import (
    InputShapes,
    bind_symbols,
    likely_size,
    parse_shapes,
    settle_shapes,
)


@dataclass
class FakeOperand:
    name: str = "0"
    shape: tuple[int | str | None, ...] | None = (1, 3, 2, 2)
    dtype: np.dtype | None = np.dtype(np.float32)


PICTURE = FakeOperand("in0", (1, 3, "%h", "%w"))
MASK = FakeOperand("in1", (1, "%h", "%w"))
ROW = FakeOperand("2", (None, 12, None))


class TestParse:
    @pytest.mark.parametrize(
        ("texts", "expected"),
        [
            ([], InputShapes()),
            (["1,3,8,9f32"], InputShapes({"in0": (1, 3, 8, 9)})),
            (
                ["[1,3,8,9]f32", "[1,?,2] f32"],
                InputShapes({"in0": (1, 3, 8, 9), "in1": (1, None, 2)}),
            ),
            (["in1=1x8x9f32"], InputShapes({"in1": (1, 8, 9)})),
            (["1,3,8,9"], InputShapes({"in0": (1, 3, 8, 9)})),
            (["1x3×8X9"], InputShapes({"in0": (1, 3, 8, 9)})),
            (["[1, 3, 8, 9]"], InputShapes({"in0": (1, 3, 8, 9)})),
            (["1,3,8,9", "1,8,9"], InputShapes({"in0": (1, 3, 8, 9), "in1": (1, 8, 9)})),
            (["in1=1,8,9"], InputShapes({"in1": (1, 8, 9)})),
            (["2=?,12,64"], InputShapes({"2": (None, 12, 64)})),
            (["h=320", "%w=6"], InputShapes({}, {"%h": 320, "%w": 6})),
        ],
    )
    def test_right(self, texts, expected):
        operands = [PICTURE, MASK, ROW]
        assert parse_shapes(texts, operands) == expected
        assert parse_shapes(expected.texts, operands) == expected

    def test_an_input_goes_before_a_symbol_of_its_name(self):
        operands = [FakeOperand("h", (None,)), FakeOperand("x", ("%h",))]
        assert parse_shapes(["h=3"], operands) == InputShapes({"h": (3,)})
        assert parse_shapes(["%h=3"], operands) == InputShapes({}, {"%h": 3})

    @pytest.mark.parametrize(
        ("texts", "sentence"),
        [
            (["1,0"], "shape '1,0': '0' is no size; write whole numbers from 1"),
            (["1,-3"], "'-3' is no size"),
            (["1,"], "a size is missing"),
            (["1,99999999999999999999"], "is no size"),
            (["h=big"], "shape 'h=big': 'big' is no size"),
            (["h=?"], "'\\?' is no size"),
            (["h=8f32"], "'8f32' is no size"),
            (["1,3,8,8i65"], "'i65' is no type; write one of f32, i64, i32"),
            (["1,3,8,8float32"], "'float32' is no type"),
            (["1,3,8,8i64"], "shape '1,3,8,8i64': input in0 takes f32, not i64"),
            (["q=3"], "q is neither an input nor a symbol of the model, which has in0, in1, "),
            (["in0=1,3,8,8", "in0=1,3,8,8"], "in0 already has a shape"),
            (["1,3,8,8", "in0=1,3,8,8"], "in0 already has a shape"),
            (["h=2", "%h=3"], "%h already has a shape"),
            (["1", "1", "1"], "shape '1' is one too many: the inputs of the model are in0, in"),
        ],
    )
    def test_wrong(self, texts, sentence):
        with pytest.raises(FeedError, match=sentence):
            parse_shapes(texts, [PICTURE, MASK])


class TestSettle:
    @pytest.mark.parametrize(
        ("asked", "fed", "expected"),
        [
            (InputShapes(), {}, [(1, 3, "%h", "%w"), (1, "%h", "%w")]),
            (InputShapes({}, {"%h": 5}), {}, [(1, 3, 5, "%w"), (1, 5, "%w")]),
            # A shape says what its symbols are, also to the other inputs.
            (InputShapes({"in0": (2, 3, 5, 6)}), {}, [(2, 3, 5, 6), (1, 5, 6)]),
            (InputShapes({"in0": (None, None, 5, None)}), {}, [(1, 3, 5, "%w"), (1, 5, "%w")]),
            # So does an array.
            (InputShapes(), {"in1": (1, 7, 8)}, [(1, 3, 7, 8), (1, 7, 8)]),
        ],
    )
    def test_symbols_are_shared(self, asked, fed, expected):
        settled = settle_shapes([PICTURE, MASK], asked, fed)
        assert list(settled.values()) == expected

    def test_fixed_dimensions_may_be_other_ones(self):
        asked = InputShapes({"0": (2, 1, 5, 5)})
        assert settle_shapes([FakeOperand()], asked) == {"0": (2, 1, 5, 5)}
        assert settle_shapes([FakeOperand(shape=None)], asked) == {"0": (2, 1, 5, 5)}

    @pytest.mark.parametrize(
        ("asked", "fed", "sentence"),
        [
            (
                InputShapes({"in0": (3, 8, 8)}),
                {},
                "input in0 of 1×3×%h×%w has 4 dimensions, and 3×8×8 has 3",
            ),
            (
                InputShapes({"in0": (1, 3, 8, 8)}, {"%w": 9}),
                {},
                "%w stands for one size, but is 9 as asked for and 8 in input in0 of 1×3×8×8",
            ),
            (
                InputShapes({"in0": (1, 3, 8, None), "in1": (1, 9, None)}),
                {},
                "%h stands for one size, but is 8 in input in0 of 1×3×8×? and 9 in input in1",
            ),
            (
                InputShapes({"in0": (None, None, 8, 8)}),
                {"in0": (1, 3, 8, 9)},
                "input in0 must be 1×3×8×8, but its value is 1×3×8×9",
            ),
        ],
    )
    def test_contradictions(self, asked, fed, sentence):
        with pytest.raises(FeedError) as caught:
            settle_shapes([PICTURE, MASK], asked, fed)
        assert sentence in str(caught.value)


def test_bind_symbols():
    assert bind_symbols([PICTURE, ROW], {"in0": (1, 3, 8, 9), "2": (4, 12, 5)}) == {
        "%h": 8,
        "%w": 9,
    }


@pytest.mark.parametrize(
    ("axis", "rank", "size"),
    [(0, 4, 1), (1, 4, 16), (2, 4, 224), (3, 4, 224), (0, 3, 1), (2, 3, 16), (0, 1, 1)],
)
def test_likely_sizes(axis, rank, size):
    assert likely_size(axis, rank) == size


class TestLoad:
    ONES = InputSource("constant", value=1.0)

    def test_made_up(self):
        asked = InputShapes({"2": (3, None, 4)}, {"%h": 5, "%w": 6})
        loaded = load_inputs([self.ONES], [PICTURE, MASK, ROW], shapes=asked)
        assert [a.shape for a in loaded.values()] == [(1, 3, 5, 6), (1, 5, 6), (3, 12, 4)]

    def test_generated_sizes_fit_an_array(self):
        array = InputSource("array", array=np.zeros((1, 7, 8), np.float32))
        loaded = load_inputs([self.ONES, array], [PICTURE, MASK])
        assert loaded["in0"].shape == (1, 3, 7, 8)

    def test_generated_sizes_fit_a_picture(self, tmp_path):
        Image.new("RGB", (6, 4)).save(tmp_path / "p.png")
        picture = InputSource("image", path=tmp_path / "p.png")
        loaded = load_inputs([picture, self.ONES], [PICTURE, MASK])
        assert [a.shape for a in loaded.values()] == [(1, 3, 4, 6), (1, 4, 6)]

    def test_pictures_are_scaled(self, tmp_path):
        Image.new("RGB", (6, 4)).save(tmp_path / "p.png")
        picture = InputSource("image", path=tmp_path / "p.png")
        asked = InputShapes({"in0": (2, 1, 8, None)}, {"%w": 9})
        assert load_inputs([picture], [PICTURE], shapes=asked)["in0"].shape == (2, 1, 8, 9)
        with pytest.raises(FeedError, match="must be 2×1×8×%w, but its value is 2×1×5×5"):
            load_inputs([picture], [PICTURE], ImageOptions(size=(5, 5)), InputShapes(
                {"in0": (2, 1, 8, None)}
            ))  # fmt: skip

    def test_huge_pictures_are_refused_before_memory_is_taken(self, tmp_path):
        Image.new("RGB", (6, 4)).save(tmp_path / "p.png")
        picture = InputSource("image", path=tmp_path / "p.png")
        asked = InputShapes({"in0": (1 << 20, 3, 224, 224)})
        with pytest.raises(FeedError, match="would take"):
            load_inputs([picture], [PICTURE], shapes=asked)

    def test_open_dimensions_are_all_named(self):
        with pytest.raises(OpenShapeError) as caught:
            load_inputs([self.ONES], [PICTURE, MASK, ROW, FakeOperand("3", None)])
        assert str(caught.value) == (
            "input in0 of 1×3×%h×%w leaves %h and %w open; "
            "input in1 of 1×%h×%w leaves %h and %w open; "
            "input 2 of ?×12×? leaves dimensions 0 and 2 open; "
            "the model does not say the shape of input 3; set its size"
        )
        assert caught.value.suggestions == ("h=224", "w=224", "2=1,12,16", "3=1,3,224,224")

    def test_suggested_shapes_can_be_parsed_and_suffice(self):
        operands = [PICTURE, MASK, ROW, FakeOperand("3", None), FakeOperand("4", (None, "%h"))]
        with pytest.raises(OpenShapeError) as caught:
            load_inputs([self.ONES], operands)
        asked = parse_shapes(caught.value.suggestions, operands)
        loaded = load_inputs([self.ONES], operands, shapes=asked)
        assert loaded["in1"].shape == (1, 224, 224)
        assert loaded["4"].shape == (1, 224)


# A convolution with padding, whose result a reshape takes apart as it was exported.
PINNED = (
    "pnnx.Input in 0 1 0 #0=(1,1,2,2)f32",
    "nn.ReLU relu 1 1 0 1 #1=(1,1,2,2)f32",
    "Tensor.reshape flat 1 1 1 2 shape=(1,4) #2=(1,4)f32",
    "pnnx.Output out 1 0 2",
)


@pytest.fixture
def pinned(make_pair):
    return engine.load(make_pair(*PINNED))


class TestOtherSizes:
    def test_another_size_runs_if_operators_allow_it(self, make_pair):
        graph = engine.load(make_pair(*PINNED[:2], "pnnx.Output out 1 0 1"))
        session = engine.Session(graph)
        session.feed([np.full((2, 3, 5, 7), -1.0)])
        session.run()
        assert session.outputs()[0].shape == (2, 3, 5, 7)

    @pytest.mark.parametrize("run", ["session", "forward"])
    def test_the_operator_that_pins_the_size_is_named(self, pinned, run):
        fed = np.zeros((1, 1, 3, 3), np.float32)
        session = engine.Session(pinned)
        session.feed([fed])
        with pytest.raises(InferenceError) as caught:
            session.run() if run == "session" else pinned.forward([fed])
        assert caught.value.operator == "flat"
        assert str(caught.value) == (
            "Tensor.reshape 'flat' failed on inputs 1×1×3×3: it fixes the size by shape=(1,4): "
            "9 elements of shape 1×1×3×3 do not fit the shape 1×4; the model was exported for "
            "1×1×2×2 and is fed 1×1×3×3"
        )

    @pytest.mark.parametrize(
        ("operator", "reason"),
        [
            (
                "Tensor.view v 1 1 1 2 shape=(2,2)",
                "it fixes the size by shape=(2,2): 9 elements",
            ),
            (
                "Tensor.expand v 1 1 1 2 sizes=(1,1,2,2)",
                "it fixes the size by sizes=(1,1,2,2): shape 1×1×3×3 cannot be expanded",
            ),
            (
                "torch.unflatten v 1 1 1 2 dim=3 sizes=(2,1)",
                "it fixes the size by sizes=(2,1): 3 elements of shape 3 do not fit",
            ),
            (
                "nn.Unflatten v 1 1 1 2 dim=3 unflattened_size=(2,1)",
                "it fixes the size by unflattened_size=(2,1): 3 elements",
            ),
            (
                "torch.split v 1 1 1 2 dim=3 split_size_or_sections=(1,1)",
                "it fixes the size by split_size_or_sections=(1,1): sizes",
            ),
            (
                "F.layer_norm v 1 1 1 2 normalized_shape=(2,2) eps=1e-5",
                "it fixes the size by normalized_shape=(2,2): the input's last sizes",
            ),
        ],
    )
    def test_every_operator_that_fixes_a_size_is_named(self, make_pair, operator, reason):
        session = engine.Session(
            engine.load(make_pair(*PINNED[:2], operator, "pnnx.Output out 1 0 2"))
        )
        session.feed([np.zeros((1, 1, 3, 3))])
        with pytest.raises(InferenceError) as caught:
            session.run()
        assert caught.value.reason.startswith(reason)
        assert caught.value.diagnosis == (
            "the model was exported for 1×1×2×2 and is fed 1×1×3×3"
        )

    def test_a_computed_size_is_no_fixed_one(self, make_pair):
        """The lines themselves do not go together, whatever the input's size."""
        graph = engine.load(
            make_pair(
                "pnnx.Input in 0 1 0 #0=(4)f32",
                "pnnx.Expression size 0 1 1 expr=[2,3]",
                "Tensor.reshape flat 2 1 0 1 2 $input=0 $shape=1",
                "pnnx.Output out 1 0 2",
            )
        )
        with pytest.raises(InferenceError) as caught:
            graph.forward([np.zeros(4)])
        assert caught.value.reason.startswith("4 elements")
        assert caught.value.diagnosis.startswith("the export is at fault, not the model: ")
        assert "4 elements of shape 4 do not fit the shape 2×3" in caught.value.diagnosis

    def test_a_constant_beside_it_is_named(self, make_pair):
        param = make_pair(
            "pnnx.Input in 0 1 0 #0=(1,4)f32",
            "pnnx.Input aside 0 1 1 #1=(2)f32",
            "pnnx.Attribute place 0 1 2 @data=(1,4)f32 #2=(1,4)f32",
            "pnnx.Expression sum 2 1 0 2 3 expr=add(@0,@1)",
            "pnnx.Output out 1 0 3",
            weights={"place.data": np.zeros((1, 4), np.float32)},
        )
        session = engine.Session(engine.load(param))
        session.feed([np.zeros((1, 5)), np.zeros(2)])
        with pytest.raises(InferenceError) as caught:
            session.run()
        assert caught.value.diagnosis == (
            "input 0 was exported for 1×4 and is fed 1×5; its input 2 is always 1×4"
        )

    def test_an_operator_before_it_that_fixes_the_size_is_named(self, make_pair):
        graph = engine.load(
            make_pair(
                "pnnx.Input in 0 1 0 #0=(1,1,4,4)f32",
                "nn.MaxPool2d pool 1 1 0 1 ceil_mode=False dilation=1 kernel_size=2 padding=0 "
                "return_indices=False stride=2 #1=(1,1,2,2)f32",
                "F.upsample up 1 1 1 2 size=(4,4) mode=nearest $input=1 #2=(1,1,4,4)f32",
                "nn.ReLU relu 1 1 2 3 #3=(1,1,4,4)f32",
                "torch.cat cat 2 1 0 3 4 dim=1 #4=(1,2,4,4)f32",
                "pnnx.Output out 1 0 4",
            )
        )
        fed = np.zeros((1, 1, 6, 8))
        session = engine.Session(graph)
        session.feed([fed])
        with pytest.raises(InferenceError) as caught:
            session.run()
        assert (caught.value.operator, caught.value.suspect) == ("cat", "up")
        assert caught.value.diagnosis == (
            "the model was exported for 1×1×4×4 and is fed 1×1×6×8; its input 3 is 1×1×4×4 at "
            "any size, which F.upsample 'up' fixes"
        )
        # Without a session the values upstream are gone, and their shapes are not.
        with pytest.raises(InferenceError) as forwarded:
            graph.forward([fed])
        assert str(forwarded.value) == str(caught.value)
        assert forwarded.value.suspect == "up"

    def test_open_dimensions_are_no_other_size(self, make_pair):
        lines = [line.replace("(1,1,2,2)", "(1,1,?,%w)") for line in PINNED]
        with pytest.raises(InferenceError) as caught:
            engine.load(make_pair(*lines)).forward([np.zeros((1, 1, 3, 3))])
        assert not caught.value.diagnosis

    def test_a_symbol_stands_for_one_size(self, make_pair):
        graph = engine.load(
            make_pair(
                "pnnx.Input a 0 1 in0 #in0=(1,%h,%w)f32",
                "pnnx.Input b 0 1 in1 #in1=(%h)f32",
                "pnnx.Output out 1 0 in0",
            )
        )
        session = engine.Session(graph)
        session.feed([np.zeros((2, 5, 6)), np.zeros(5)])
        with pytest.raises(FeedError) as caught:
            session.feed([np.zeros((1, 5, 6)), np.zeros(6)])
        assert str(caught.value) == (
            "%h stands for one size, but is 5 in input in0 of 1×5×6 and 6 in input in1 of 6"
        )
