"""Faults of exports, in lines as pnnx writes them of such models."""

from __future__ import annotations

import numpy as np
import pytest
from ncnn_files import write_pair

import engine
from engine.errors import InferenceError

FLOATS = np.arange(80, dtype=np.float32).reshape(2, 40)

MASKED = (
    "pnnx.Input x 0 1 0 #0=(1,5,16)f32",
    "pnnx.Input m 0 1 1 #1=(1,1,5,5){dtype}",
    "Tensor.reshape {name} 1 1 1 2 shape=({size}) ${argument}=1 #1=(1,1,5,5){dtype}",
    (
        "nn.MultiheadAttention attention_1 2 1 0 2 3 batch_first=True bias=False embed_dim=16 "
        "num_heads=2 @in_proj_weight=(48,16)f32 @out_proj.weight=(16,16)f32 $input=0 "
        "$attn_mask=2 #0=(1,5,16)f32 #3=(1,5,16)f32"
    ),
    "pnnx.Output y 1 0 3",
)
WEIGHTS = {
    "attention_1.in_proj_weight": np.ones((48, 16), np.float32),
    "attention_1.out_proj.weight": np.ones((16, 16), np.float32),
}


def faults(param):
    return engine.load(param).export_faults


def masked(make_pair, dtype="bool", name="reshape_0", argument="attn_mask", size="5,5"):
    facts = {"dtype": dtype, "name": name, "argument": argument, "size": size}
    return make_pair(*(line.format(**facts) for line in MASKED), weights=WEIGHTS)


def divided(make_pair, expr="div(@0,8)", dtype="i64"):
    return make_pair(
        "pnnx.Input x 0 1 0 #0=(2,40)f32",
        "torch.topk t 1 2 0 1 2 dim=-1 k=3 largest=True sorted=True $input=0 #0=(2,40)f32 "
        "#1=(2,3)f32 #2=(2,3)i64",
        f"pnnx.Expression e 1 1 2 3 expr={expr} #2=(2,3)i64 #3=(2,3){dtype}",
        "torch.gather g 2 1 0 3 4 dim=1 $input=0 $index=3 #4=(2,3)f32",
        "pnnx.Output y 1 0 4",
    )


class TestLostDimensions:
    @pytest.mark.parametrize(("size", "count"), [("-1,8", 1), ("2,-1,8", 0)])
    def test_a_reshape_states_as_many_as_it_makes(self, make_pair, size, count):
        param = make_pair(
            "pnnx.Input x 0 1 0 #0=(?,8,?,?)f32",
            f"Tensor.reshape r 1 1 0 1 shape=({size}) $input=0 #0=(?,8,?,?)f32 #1=(?,8,?)f32",
            "pnnx.Output y 1 0 1",
        )
        found = faults(param)
        assert [(each.operator.name, each.certain) for each in found] == [("r", True)] * count
        assert all("2 dimensions, but its line states ?×8×?" in each.what for each in found)

    @pytest.mark.parametrize(("size", "count"), [("1,16", 1), ("1,1,16", 0)])
    def test_a_query_has_as_many_as_its_keys(self, make_pair, size, count):
        param = make_pair(
            f"pnnx.Input q 0 1 0 #0=({size})f32",
            "pnnx.Input k 0 1 1 #1=(1,5,16)f32",
            "nn.MultiheadAttention attention_1 3 1 0 1 1 2 batch_first=True bias=False "
            "embed_dim=16 num_heads=2 @in_proj_weight=(48,16)f32 @out_proj.weight=(16,16)f32 "
            f"$query=0 $key=1 $value=1 #0=({size})f32 #1=(1,5,16)f32 #2=(1,1,16)f32",
            "pnnx.Output y 1 0 2",
            weights=WEIGHTS,
        )
        found = faults(param)
        assert [each.operator.name for each in found] == ["attention_1"] * count
        assert all("query of 1×16 has other dimensions" in each.what for each in found)


class TestLostRounding:
    def test_a_failure_names_line_and_operator(self, make_pair):
        with pytest.raises(InferenceError) as caught:
            engine.load(divided(make_pair)).forward([FLOATS])
        assert (caught.value.operator, caught.value.suspect) == ("g", "e")
        assert caught.value.of_export
        assert caught.value.diagnosis == (
            "the export is at fault, not the model: m.pnnx.param:5, pnnx.Expression 'e': its "
            "division must return integers, but pnnx dropped the rounding_mode; write a // b "
            "or torch.floor_divide(a, b) in the model, or export the model with optlevel=0, "
            "which keeps the operators that PyTorch traced"
        )

    def test_a_fault_is_found_without_a_run(self, make_pair):
        (fault,) = faults(divided(make_pair))
        assert (fault.operator.name, fault.certain) == ("e", True)

    @pytest.mark.parametrize(
        ("expr", "dtype"), [("div(@0,8)", "f32"), ("floor_divide(@0,8)", "i64")]
    )
    def test_other_divisions_are_no_faults(self, make_pair, expr, dtype):
        assert not faults(divided(make_pair, expr, dtype))

    def test_a_list_of_indices_needs_integers(self, make_pair):
        param = make_pair(
            "pnnx.Input x 0 1 0 #0=(5,8)f32",
            "pnnx.Input i 0 1 1 #1=(12)i64",
            "pnnx.Expression e 1 1 1 2 expr=[div(@0,6)] #1=(12)i64",
            "Tensor.index t 2 1 0 2 3 $input=0 $expr=2 #0=(5,8)f32 #3=(12,8)f32",
            "pnnx.Output y 1 0 3",
        )
        (fault,) = faults(param)
        assert (fault.operator.name, fault.operator.line) == ("e", 5)
        with pytest.raises(InferenceError, match=r"m\.pnnx\.param:5, pnnx\.Expression 'e'"):
            engine.load(param).forward([FLOATS[:, :20].reshape(5, 8), np.arange(12)])

    def test_a_file_made_of_onnx_means_whole_ones(self, make_pair):
        param = make_pair(
            "pnnx.Input in0 0 1 0 #0=(4)i64",
            "pnnx.Expression e 1 1 0 1 expr=div(@0,3) #0=(4)i64 #1=(4)i64",
            "pnnx.Output out0 1 0 1",
        )
        assert not faults(param)


class TestTurnedMask:
    def test_a_fused_bool_mask(self, make_pair):
        (fault,) = faults(masked(make_pair))
        assert fault.operator.name == "attention_1"
        assert fault.sentence.startswith(
            "the export is at fault, not the model: m.pnnx.param:6, nn.MultiheadAttention "
            "'attention_1': pnnx fused scaled_dot_product_attention"
        )
        assert "float mask" in fault.remedy

    @pytest.mark.parametrize("other", [{"dtype": "f32"}, {"argument": "input"}])
    def test_correct_masks_are_no_faults(self, make_pair, other):
        """What is added to scores, and what a module took in the model too."""
        assert not faults(masked(make_pair, **other))

    def test_a_mask_of_a_shape_that_it_cannot_have(self, make_pair):
        param = masked(make_pair, name="attn_ht_0_0", argument="mask", size="2,5,5")
        with pytest.raises(InferenceError) as caught:
            engine.load(param).forward(
                [np.zeros((1, 5, 16), np.float32), np.zeros((1, 1, 5, 5), np.bool_)]
            )
        assert caught.value.diagnosis.startswith(
            "the export is at fault, not the model: m.pnnx.param:5, Tensor.reshape "
            "'attn_ht_0_0': pnnx fused an attention and gave its mask an impossible shape"
        )
        assert "expand the mask to batch × heads × queries × keys" in caught.value.diagnosis
        assert not caught.value.suspect  # the operator that fails is the one to blame


class TestByteMask:
    """pnnx stores the bool mask of an attention as bytes; ncnn adds masks of float32."""

    ATTENTION = "SDPA attention 4 1 a a a t o 5=1"

    def pair(self, folder, load_type, mask, attention=ATTENTION):
        lines = [
            "Input a 0 1 a",
            f"MemoryData mask 0 1 m 0=2 1=2 21={load_type}",
            "Split split 1 2 m s t",
            attention,
            "Noop rest 1 1 s r",
        ]
        return write_pair(folder, lines, mask.tobytes())

    @pytest.mark.parametrize("backend", ["numpy", "ncnn"])
    def test_ncnn_does_not_read_beyond_it(self, tmp_path, backend):
        if backend == "ncnn":
            pytest.importorskip("ncnn")
        graph = engine.load(self.pair(tmp_path, 3, np.array([1, 0, 1, 1], np.int8)))
        (fault,) = graph.export_faults
        assert fault.operator.name == "attention"
        assert fault.what.startswith("its mask 'mask' was bool and is stored as bytes")
        session = engine.Session(graph, backend=backend)
        session.feed([np.ones((1, 2, 4), np.float32)])
        with pytest.raises(InferenceError) as caught:
            session.run()
        assert caught.value.operator == "attention"
        assert caught.value.of_export
        assert caught.value.diagnosis == fault.sentence
        session.override("t", np.array([[0, -np.inf], [0, 0]], np.float32))
        session.run()
        assert session.value("o").tolist() == np.ones((1, 2, 4)).tolist()

    def test_a_mask_of_floats_is_no_fault(self, tmp_path):
        assert not faults(self.pair(tmp_path, 1, np.zeros(4, np.float32)))

    def test_bytes_for_a_layer_without_a_mask(self, tmp_path):
        path = self.pair(tmp_path, 3, np.zeros(4, np.int8), "SDPA o 4 1 a a a t o 5=0")
        assert not faults(path)

    def test_ncnn_gets_no_bytes_where_it_reads_floats(self, tmp_path):
        """NumPy computes with them as numbers."""
        pytest.importorskip("ncnn")
        mask = np.array([1, 0, 1, 1], np.int8)
        graph = engine.load(self.pair(tmp_path, 3, mask, "BinaryOp o 2 1 a t o 0=2"))
        session = engine.Session(graph, backend="ncnn")
        session.feed([np.full((2, 2), 3, np.float32)])
        session.run()
        assert session.value("o").tolist() == [[3, 0], [3, 3]]
        assert "ncnn" not in session.record("o").kernel


class TestKeptWrites:
    """pnnx reads constants after the run, in which the model has assigned their slices."""

    def pair(self, make_pair, name="pnnx_fold_output.1", place="self", other="src"):
        return make_pair(
            "pnnx.Input x 0 1 0 #0=(1,4)f32",
            f"pnnx.Attribute {name} 0 1 1 @data=(3,4)f32 #1=(3,4)f32",
            "Tensor.clone c 1 1 1 2 #1=(3,4)f32 #2=(3,4)f32",
            f"Tensor.slice_copy w 2 1 2 0 3 dim=0 start=0 end=1 step=1 ${place}=2 ${other}=0 "
            "#3=(3,4)f32",
            "pnnx.Output y 1 0 3",
            weights={f"{name}.data": np.ones((3, 4), np.float32)},
        )

    def test_an_assigned_constant_is_suspected(self, make_pair):
        (fault,) = faults(self.pair(make_pair))
        assert (fault.operator.name, fault.certain, fault.stops) == (
            "pnnx_fold_output.1", False, False
        )  # fmt: skip
        assert "assigns slices of this constant ('w')" in fault.what

    def test_others_are_not(self, make_pair):
        assert not faults(self.pair(make_pair, name="weight"))

    @pytest.mark.parametrize(
        ("values", "count"), [([[0, 0], [0, 0]], 0), ([[0, 1], [0, 0]], 1)]
    )
    def test_scattered_elements_of_a_constant(self, make_pair, values, count):
        """The mask of the groups of DeepSeek begins with zeros."""
        found = faults(
            make_pair(
                "pnnx.Input x 0 1 0 #0=(2,1)i64",
                "pnnx.Attribute pnnx_fold_mask.1 0 1 1 @data=(2,2)f32 #1=(2,2)f32",
                "pnnx.Expression e 0 1 2 expr=1",
                "aten::scatter s 4 1 1 2 0 2 3 #3=(2,2)f32",
                "pnnx.Output y 1 0 3",
                weights={"pnnx_fold_mask.1.data": np.array(values, np.float32)},
            )
        )
        assert len(found) == count
        assert all("assigns elements of this constant ('s')" in fault.what for fault in found)


class TestContradictedShape:
    @pytest.mark.parametrize(
        ("line", "what"),
        [
            ("Tensor.reshape v 1 1 0 1 shape=(3,5) $input=0", "15 elements|24 elements"),
            ("Tensor.permute v 1 1 0 1 dims=(1,0,2) $input=0",
             "it turns 2×3×4 into 3×2×4, but its line states 3×5"),
            ("nn.PixelShuffle v 1 1 0 1 upscale_factor=2", "2 channels cannot be divided"),
            ("nn.PixelUnshuffle v 1 1 0 1 downscale_factor=1",
             "it turns 2×3×4 into 2×3×4, but its line states 3×5"),
            ("pnnx.Expression v 1 1 0 1 expr=add(@0,1)",
             "it turns 2×3×4 into 2×3×4, but its line states 3×5"),
        ],
    )  # fmt: skip
    def test_a_line_against_its_own_annotation(self, make_pair, line, what):
        param = make_pair(
            "pnnx.Input x 0 1 0 #0=(2,3,4)f32",
            f"{line} #0=(2,3,4)f32 #1=(3,5)f32",
            "pnnx.Output y 1 0 1",
        )
        (fault,) = faults(param)
        assert fault.what.startswith("the line contradicts itself: ")
        assert any(part in fault.what for part in what.split("|"))
        assert "optlevel=0" in fault.remedy

    @pytest.mark.parametrize(
        ("members", "what"), [("[@0,3,5]", "a size of 3"), ("[@0,-1,5]", ""), ("[@0,7,5]", "")]
    )
    def test_a_constant_size_where_the_line_states_another(self, make_pair, members, what):
        """The first member is a list of two sizes."""
        param = make_pair(
            "pnnx.Input x 0 1 0 #0=(?,3,7,5)f32",
            "pnnx.Input s 0 1 1 #1=(2)i64",
            f"pnnx.Expression e 1 1 1 2 expr={members} #1=(2)i64",
            "Tensor.reshape r 2 1 0 2 3 $input=0 $shape=2 #0=(?,3,7,5)f32 #3=(?,3,7,5)f32",
            "pnnx.Output y 1 0 3",
        )
        found = [fault.what for fault in faults(param)]
        assert [what in each for each in found] == [True] * bool(what)

    def test_operands_that_contradict_each_other(self, make_pair):
        param = make_pair(
            "pnnx.Input x 0 1 0 #0=(2,3)f32",
            "pnnx.Input z 0 1 1 #1=(4)f32",
            "pnnx.Expression e 2 1 0 1 2 expr=mul(@0,@1) #0=(2,3)f32 #1=(4)f32 #2=(2,3)f32",
            "pnnx.Output y 1 0 2",
        )
        (fault,) = faults(param)
        assert fault.what == "the line contradicts itself: 2×3 and 4 cannot be broadcast"
        with pytest.raises(InferenceError, match="the export is at fault, not the model"):
            engine.load(param).forward([np.zeros((2, 3)), np.zeros(4)])

    def test_open_sizes_contradict_nothing(self, make_pair):
        param = make_pair(
            "pnnx.Input x 0 1 0 #0=(?,3,4)f32",
            "Tensor.reshape v 1 1 0 1 shape=(-1,12) $input=0 #0=(?,3,4)f32 #1=(?,12)f32",
            "pnnx.Expression e 1 1 1 2 expr=add(@0,1) #1=(?,12)f32 #2=(?,12)f32",
            "pnnx.Output y 1 0 2",
        )
        assert not faults(param)

    def test_a_fault_that_only_a_run_shows_is_a_suspicion(self, make_pair):
        """The pooling gives 2×2 pixels and not the stated 3×3, so the sum fails."""
        param = make_pair(
            "pnnx.Input x 0 1 0 #0=(1,1,4,4)f32",
            "pnnx.Input z 0 1 1 #1=(1,1,3,3)f32",
            "nn.MaxPool2d p 1 1 0 2 ceil_mode=False dilation=(1,1) kernel_size=(2,2) "
            "padding=(0,0) return_indices=False stride=(2,2) #0=(1,1,4,4)f32 #2=(1,1,3,3)f32",
            "pnnx.Expression e 2 1 1 2 3 expr=add(@0,@1) #1=(1,1,3,3)f32 #2=(1,1,3,3)f32 "
            "#3=(1,1,3,3)f32",
            "pnnx.Output y 1 0 3",
        )
        assert not faults(param)
        with pytest.raises(InferenceError) as caught:
            engine.load(param).forward([np.zeros((1, 1, 4, 4)), np.zeros((1, 1, 3, 3))])
        assert caught.value.suspect == "p"
        assert caught.value.diagnosis.startswith(
            "the export may be at fault, not the model: m.pnnx.param:5, nn.MaxPool2d 'p': it "
            "returns 1×1×2×2, but its line states 1×1×3×3; "
        )


class TestMeaninglessIndex:
    @pytest.mark.parametrize(
        ("dtype", "expr", "stated", "what"),
        [
            ("f32", "[@0]", "(6,8)", "its indices are not integers"),
            ("i64", "[None,@0]", "(6,8)", "it selects 5×6 from 5×8, but its line states 6×8"),
            ("i64", "[None,None,@0]", "(6,8)", ""),
        ],
    )
    def test_seen_without_a_run(self, make_pair, dtype, expr, stated, what):
        param = make_pair(
            "pnnx.Input x 0 1 0 #0=(5,8)f32",
            f"pnnx.Input i 0 1 1 #1=(6){dtype}",
            f"pnnx.Expression e 1 1 1 2 expr={expr} #1=(6){dtype}",
            f"Tensor.index t 2 1 0 2 3 $input=0 $expr=2 #0=(5,8)f32 #3={stated}f32",
            "pnnx.Output y 1 0 3",
        )
        (fault,) = faults(param)
        assert fault.operator.name == "t"
        assert fault.what.startswith("pnnx wrote its index wrongly: " + what)

    @pytest.mark.parametrize(
        ("line", "stated"),
        [
            ("pnnx.Expression e 1 1 1 2 expr=[@0] #1=(6)i64", "(6,8)"),
            ("pnnx.Expression e 1 1 1 2 expr=[None,@0] #1=(6)i64", "(5,6)"),
            ("pnnx.Expression e 1 1 1 2 expr=[@0,@0] #1=(6)i64", "(6)"),
        ],
    )
    def test_correct_lines_are_no_faults(self, make_pair, line, stated):
        param = make_pair(
            "pnnx.Input x 0 1 0 #0=(5,8)f32",
            "pnnx.Input i 0 1 1 #1=(6)i64",
            line,
            f"Tensor.index t 2 1 0 2 3 $input=0 $expr=2 #0=(5,8)f32 #3={stated}f32",
            "pnnx.Output y 1 0 3",
        )
        assert not faults(param)


class TestSuspectedGelu:
    @staticmethod
    def network(make_pair, gelu, layer="a", relu="F.relu_9", more=""):
        return make_pair(
            "pnnx.Input x 0 1 0 #0=(2,3)f32",
            f"nn.Linear {layer} 1 1 0 1 bias=False in_features=3 out_features=4 "
            "@weight=(4,3)f32 #0=(2,3)f32 #1=(2,4)f32",
            f"F.gelu {gelu} 1 1 1 2 {more} $input=1 #1=(2,4)f32 #2=(2,4)f32",
            f"F.relu {relu} 1 1 2 3 $input=2 #2=(2,4)f32 #3=(2,4)f32",
            "pnnx.Output y 1 0 3",
            weights={f"{layer}.weight": np.ones((4, 3), np.float32)},
        )

    def test_by_the_number_of_a_formula(self, make_pair):
        (fault,) = faults(self.network(make_pair, "F.gelu_7"))
        assert not fault.certain
        assert fault.sentence.startswith(
            "the export may be at fault, not the model: m.pnnx.param:5, F.gelu 'F.gelu_7': the "
            "number in its name shows that pnnx made it from a formula, and pnnx writes the "
            "tanh formula (gelu_new) as the exact GELU"
        )
        assert "approximate='tanh'" in fault.remedy

    def test_by_the_layer_in_front(self, make_pair):
        (fault,) = faults(self.network(make_pair, "F.gelu_12", "h.0.mlp.c_fc"))
        assert fault.what.startswith(
            "it follows 'h.0.mlp.c_fc', as in networks that use gelu_new"
        )

    @pytest.mark.parametrize("more", ["", "approximate=tanh"])
    def test_operators_of_pytorch_are_not_suspected(self, make_pair, more):
        number = 7 if more else 12
        assert not faults(self.network(make_pair, f"F.gelu_{number}", more=more))

    def test_a_suspicion_is_no_diagnosis(self, make_pair):
        graph = engine.load(self.network(make_pair, "F.gelu_7"))
        with pytest.raises(InferenceError) as caught:
            graph.forward([np.zeros((2, 5), np.float32)])
        assert "gelu" not in caught.value.diagnosis
        assert not caught.value.of_export
