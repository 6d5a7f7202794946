"""One place through all operands; expectations are worked out by hand and by slow loops."""

from __future__ import annotations

import numpy as np
import pytest

import engine
from engine.errors import TensorError
from engine.provenance.records import Relation

RNG = np.random.default_rng(11)


def run(pair, array):
    session = engine.Session(engine.load(pair))
    session.feed([array])
    session.run()
    return session


def by_operand(history):
    return {visit.operand: visit for visit in history.visits}


@pytest.fixture
def network(make_pair):
    """A convolution, two branches, and a classifier behind a global pooling."""
    path = make_pair(
        "pnnx.Input in 0 1 0 #0=(1,2,8,8)f32",
        "nn.Conv2d conv 1 1 0 1 in_channels=2 out_channels=3 kernel_size=(3,3) stride=(2,2) "
        "padding=(1,1) dilation=(1,1) groups=1 bias=False padding_mode=zeros "
        "@weight=(3,2,3,3)f32 #1=(1,3,4,4)f32",
        "nn.ReLU relu 1 1 1 2 #2=(1,3,4,4)f32",
        "nn.Sigmoid side 1 1 1 3 #3=(1,3,4,4)f32",
        "nn.AdaptiveAvgPool2d pool 1 1 2 4 output_size=(1,1) #4=(1,3,1,1)f32",
        "torch.flatten flat 1 1 4 5 start_dim=1 end_dim=-1 #5=(1,3)f32",
        "nn.Linear fc 1 1 5 6 in_features=3 out_features=5 bias=False @weight=(5,3)f32 "
        "#6=(1,5)f32",
        "pnnx.Output out 1 0 6",
        weights={
            "conv.weight": RNG.normal(size=(3, 2, 3, 3)).astype(np.float32),
            "fc.weight": RNG.normal(size=(5, 3)).astype(np.float32),
        },
    )
    return run(path, RNG.normal(size=(1, 2, 8, 8)).astype(np.float32))


def test_a_place_of_an_image(network):
    history = engine.trace_place(network, "2", (0, 1, 2, 3))
    assert (history.operand, history.index) == ("2", (0, 1, 2, 3))
    assert history.place == "row 2 of 4 · column 3 of 4"
    found = by_operand(history)
    assert [each.operand for each in history.visits] == ["0", "1", "2", "3", "4", "5", "6"]
    # The middle of row 2 of 4 is in row 5 of 8, that of column 3 in column 7.
    places = {"0": (5, 7), "1": (2, 3), "2": (2, 3), "3": (2, 3), "4": (0, 0)}
    for name, place in places.items():
        array, visit = network.value(name), found[name]
        numbers = [float(array[0, c, place[0], place[1]]) for c in range(array.shape[1])]
        assert visit.index[2:] == place
        assert visit.is_placed
        assert (visit.count, visit.strip.tolist()) == (len(numbers), numbers)
        assert (visit.minimum, visit.maximum) == (min(numbers), max(numbers))
        assert visit.mean == pytest.approx(sum(numbers) / len(numbers))
        assert visit.zeros == numbers.count(0.0)
        assert visit.value == array[visit.index]
        if name != "2":
            assert abs(visit.value) == max(map(abs, numbers))
    assert found["2"].index == (0, 1, 2, 3)
    assert [found[name].is_placed for name in ("5", "6")] == [False, False]
    assert found["6"].strip.tolist() == network.value("6")[0].tolist()


def test_how_operands_are_related(network):
    found = by_operand(engine.trace_place(network, "2", (0, 0, 0, 0)))
    assert {name: visit.relation.value for name, visit in found.items()} == {
        "0": "upstream", "1": "upstream", "2": "picked", "3": "beside",
        "4": "downstream", "5": "downstream", "6": "downstream",
    }  # fmt: skip


def test_an_element_without_a_place(network):
    history = engine.trace_place(network, "6", (0, -2))
    assert (history.place, history.index) == ("", (0, 3))
    assert by_operand(history)["6"].strip.tolist() == [network.value("6")[0, 3]]
    assert by_operand(history)["2"].count == 48


def test_what_is_no_element_is_refused(network):
    with pytest.raises(TensorError, match="no element"):
        engine.trace_place(network, "2", (0, 1, 2, 4))


def test_it_can_be_ended(network):
    calls = []

    def end():
        calls.append(None)
        if len(calls) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        engine.trace_place(network, "2", (0, 0, 0, 0), check_cancelled=end)
    assert len(calls) == 3


def test_nan_is_shown_and_counted(make_pair):
    path = make_pair(
        "pnnx.Input in 0 1 0 #0=(1,4,2,2)f32",
        "nn.MaxPool2d pool 1 1 0 1 kernel_size=(1,1) stride=(1,1) padding=(0,0) "
        "dilation=(1,1) ceil_mode=False return_indices=False #1=(1,4,2,2)f32",
        "pnnx.Output out 1 0 1",
    )
    array = np.ones((1, 4, 2, 2), np.float32)
    array[0, :, 1, 0] = 5, np.nan, -7, np.inf
    visit = by_operand(engine.trace_place(run(path, array), "1", (0, 0, 1, 0)))["0"]
    assert visit.index == (0, 1, 1, 0)
    assert np.isnan(visit.value)
    assert (visit.minimum, visit.maximum, visit.mean, visit.non_finite) == (-7, 5, -1, 2)


@pytest.fixture
def tokens(make_pair):
    """Patches of an image become tokens, behind a class token that alone is read."""
    path = make_pair(
        "pnnx.Input in 0 1 0 #0=(1,3,8,8)f32",
        "nn.Conv2d patch 1 1 0 1 in_channels=3 out_channels=6 kernel_size=(4,4) stride=(4,4) "
        "padding=(0,0) dilation=(1,1) groups=1 bias=False padding_mode=zeros "
        "@weight=(6,3,4,4)f32 #1=(1,6,2,2)f32",
        "Tensor.reshape fold 1 1 1 2 shape=(1,6,4) #2=(1,6,4)f32",
        "Tensor.permute turn 1 1 2 3 dims=(0,2,1) #3=(1,4,6)f32",
        "pnnx.Attribute first 0 1 4 @data=(1,1,6)f32 #4=(1,1,6)f32",
        "torch.cat join 2 1 4 3 5 dim=1 #5=(1,5,6)f32",
        "nn.MultiheadAttention attention 1 1 5 6 embed_dim=6 num_heads=2 batch_first=True "
        "bias=True add_zero_attn=False add_bias_kv=False @in_proj_weight=(18,6)f32 "
        "@in_proj_bias=(18)f32 @out_proj.weight=(6,6)f32 @out_proj.bias=(6)f32 "
        "#6=(1,5,6)f32",
        "Tensor.select head 1 1 6 7 dim=1 index=0 #7=(1,6)f32",
        "pnnx.Output out 1 0 7",
        weights={
            name: RNG.normal(size=shape).astype(np.float32)
            for name, shape in {
                "patch.weight": (6, 3, 4, 4), "first.data": (1, 1, 6),
                "attention.in_proj_weight": (18, 6), "attention.in_proj_bias": (18,),
                "attention.out_proj.weight": (6, 6), "attention.out_proj.bias": (6,),
            }.items()
        },
    )  # fmt: skip
    return run(path, RNG.normal(size=(1, 3, 8, 8)).astype(np.float32))


def test_a_token_is_a_place_of_the_image(tokens):
    history = engine.trace_place(tokens, "5", (0, 3, 2))
    assert history.place == "row 1 of 2 · column 0 of 2"  # token 3 is patch 2
    found = by_operand(history)
    assert found["0"].index[2:] == (6, 2)
    assert found["1"].index[2:] == (1, 0)
    assert found["2"].index[2] == found["3"].index[1] == 2
    assert found["6"].index[1] == 3
    assert found["6"].strip.tolist() == tokens.value("6")[0, 3].tolist()
    assert not found["7"].is_placed
    assert history.left_out == 0


def test_a_class_token_stays_one(tokens):
    history = engine.trace_place(tokens, "6", (0, 0, 1))
    found = by_operand(history)
    assert history.place == "class token"
    assert found["5"].index[1] == found["6"].index[1] == 0
    assert not {"0", "1", "2", "3"} & set(found)  # they have places, but not this one
    assert (history.left_out, found["7"].count) == (4, 6)


def test_a_token_of_a_spectrogram_is_a_frame(make_pair):
    """The model turns frames to columns; the place is named by time and frequency."""
    path = make_pair(
        "pnnx.Input in 0 1 0 #0=(1,12,8)f32",
        "torch.unsqueeze one 1 1 0 1 dim=1 $input=0 #1=(1,1,12,8)f32",
        "torch.transpose turn 1 1 1 2 dim0=2 dim1=3 $input=1 #2=(1,1,8,12)f32",
        "nn.Conv2d patch 1 1 2 3 in_channels=1 out_channels=6 kernel_size=(4,4) stride=(4,4) "
        "padding=(0,0) dilation=(1,1) groups=1 bias=False padding_mode=zeros "
        "@weight=(6,1,4,4)f32 #3=(1,6,2,3)f32",
        "Tensor.reshape fold 1 1 3 4 shape=(1,6,6) #4=(1,6,6)f32",
        "pnnx.Output out 1 0 4",
        weights={"patch.weight": RNG.normal(size=(6, 1, 4, 4)).astype(np.float32)},
    )
    session = run(path, RNG.normal(size=(1, 12, 8)).astype(np.float32))
    history = engine.trace_place(session, "4", (0, 2, 5))
    assert history.place == "time 2 of 3 · frequency 1 of 2"
    assert by_operand(history)["0"].index == (0, 10, 6)  # the middle of the patch


def test_windows_and_rolls_are_undone(make_pair):
    """What only moves keeps the same numbers at the place."""
    path = make_pair(
        "pnnx.Input in 0 1 0 #0=(1,3,8,8)f32",
        "nn.Conv2d same 1 1 0 1 in_channels=3 out_channels=3 kernel_size=(1,1) stride=(1,1) "
        "padding=(0,0) dilation=(1,1) groups=1 bias=False padding_mode=zeros "
        "@weight=(3,3,1,1)f32 #1=(1,3,8,8)f32",
        "Tensor.permute last 1 1 1 2 dims=(0,2,3,1) #2=(1,8,8,3)f32",
        "torch.roll roll 1 1 2 3 dims=(1,2) shifts=(-2,-2) #3=(1,8,8,3)f32",
        "Tensor.reshape split 1 1 3 4 shape=(1,2,4,2,4,3) #4=(1,2,4,2,4,3)f32",
        "Tensor.permute order 1 1 4 5 dims=(0,1,3,2,4,5) #5=(1,2,2,4,4,3)f32",
        "Tensor.reshape flat 1 1 5 6 shape=(4,16,3) #6=(4,16,3)f32",
        "nn.MultiheadAttention attention 1 1 6 7 embed_dim=3 num_heads=1 batch_first=True "
        "bias=True add_zero_attn=False add_bias_kv=False @in_proj_weight=(9,3)f32 "
        "@in_proj_bias=(9)f32 @out_proj.weight=(3,3)f32 @out_proj.bias=(3)f32 "
        "#7=(4,16,3)f32",
        "pnnx.Output out 1 0 7",
        weights={
            "same.weight": np.eye(3, dtype=np.float32).reshape(3, 3, 1, 1),
            "attention.in_proj_weight": RNG.normal(size=(9, 3)).astype(np.float32),
            "attention.in_proj_bias": RNG.normal(size=9).astype(np.float32),
            "attention.out_proj.weight": RNG.normal(size=(3, 3)).astype(np.float32),
            "attention.out_proj.bias": RNG.normal(size=3).astype(np.float32),
        },
    )
    array = np.arange(192, dtype=np.float32).reshape(1, 3, 8, 8)
    session = run(path, array)
    for row in range(8):
        for column in range(8):
            wanted = [array[0, c, row, column] for c in range(3)]
            found = by_operand(engine.trace_place(session, "0", (0, 1, row, column)))
            for name in "0123456":
                assert found[name].strip.tolist() == wanted, (name, row, column)
                assert found[name].is_placed


def test_strips_of_long_rows_keep_the_extremes(make_pair):
    path = make_pair(
        "pnnx.Input in 0 1 0 #0=(1,1000,2,2)f32",
        "nn.AvgPool2d pool 1 1 0 1 kernel_size=(1,1) stride=(1,1) padding=(0,0) "
        "ceil_mode=False count_include_pad=True divisor_override=None #1=(1,1000,2,2)f32",
        "pnnx.Output out 1 0 1",
    )
    array = np.zeros((1, 1000, 2, 2), np.float32)
    array[0, 1, 0, 0], array[0, 2, 0, 0], array[0, 999, 0, 0] = 3, -4, 2
    visit = by_operand(engine.trace_place(run(path, array), "1", (0, 0, 0, 0)))["0"]
    assert visit.strip.shape == (256,)
    assert (visit.strip[0], visit.strip[-1]) == (-4, 2)
    assert np.count_nonzero(visit.strip) == 2
    assert visit.relation is Relation.UPSTREAM
