from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import engine
from engine.errors import SearchError
from engine.search import OperatorIndex, ValueTable, parse_search

LINES = (
    "pnnx.Input in 0 1 0 #0=(1,3,8,8)f32",
    (
        "nn.Conv2d stem.conv1x1 1 1 0 1 bias=True dilation=(1,1) groups=1 in_channels=3 "
        "kernel_size=(3,3) out_channels=4 padding=(1,1) padding_mode=zeros stride=(2,2) "
        "@bias=(4)f32 @weight=(4,3,3,3)f32 $input=0 #0=(1,3,8,8)f32 #1=(1,4,4,4)f32"
    ),
    "nn.ReLU6 stem.relu 1 1 1 2 #2=(1,4,4,4)f32",
    "torch.clamp layer1.clamp 1 1 2 3 max=6 min=-1.5 #3=(1,4,4,4)f32",
    "Tensor.to layer1.half 1 1 3 4 dtype=torch.float16 #4=(1,4,4,4)f16",
    "aten::add layer1.add 2 1 4 4 five #five=(?,4,4,4)f16",
    "pnnx.Output out 1 0 five",
)
# What each operator gave: least, largest, share of zeros, NaN, infinite; None where unknown.
VALUES = (
    (-2.0, 2.0, 0.0, 0, 0),
    (-8.0, 120.0, 0.01, 0, 0),
    (0.0, 6.0, 0.95, 3, 0),
    (1.0, 1.0, 0.0, 0, 0),
    (-np.inf, 5.0, 0.1, 0, 2),
    None,
    None,
)


_KEYS = (
    "a: is unknown: write one of type:, name:, operand:, shape:, dtype:, weight:, "
    "or put it in quotes"
)


@pytest.fixture
def index(make_pair):
    weights = {
        "stem.conv1x1.bias": np.zeros(4, np.float32),
        "stem.conv1x1.weight": np.zeros((4, 3, 3, 3), np.float32),
    }
    return OperatorIndex(engine.load(make_pair(*LINES, weights=weights)).operators)


@pytest.fixture
def values():
    known = np.array([row is not None for row in VALUES])
    columns = np.array([row or (np.nan,) * 5 for row in VALUES]).T
    return ValueTable(known, *columns)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("  and ", []),
        ("relu", [2]),
        ("RELU", [2]),
        ("conv1x1", [1]),  # no shape
        ("stem.*", [1, 2]),
        ("nn.*", [1, 2]),
        ("type:nn. name:stem", [1, 2]),
        ("type:nn. and not relu", [1]),
        ("type:nn. -relu", [1]),
        ("not -relu name:stem", [2]),
        ("aten::add", [5]),
        ("five", [5]),
        ("operand:five", [5, 6]),
        ("operand:4", [4, 5]),
        ('"layer1"', [3, 4, 5]),
        ('name:"layer1"', [3, 4, 5]),
        ("1x3x8x8", [0]),
        ("3x8x8", [0]),
        ("3×8×8", [0]),
        ("*x4x*x*", [1, 2, 3, 4, 5]),
        ("?x4x4x4", [5]),
        ("shape:4x4x4 stem", [1, 2]),
        ("8x8", []),
        ("float16", [4, 5]),
        ("f16", [4, 5]),
        ("dtype:half", [4, 5]),
        ("dtype:int64", []),
        ("kernel_size=(3,3)", [1]),
        ("kernel_size = (3, 3)", [1]),
        ("kernel_size=[3,3]", [1]),
        ("kernel_size=3", [1]),
        ("kernel_size=(3,)", []),
        ("stride=2", [1]),
        ("STRIDE=2", [1]),
        ("stride=1", []),
        ("stride>1", [1]),
        ("groups<=1", [1]),
        ("bias=true", [1]),
        ("bias=1", []),
        ("padding_mode=zeros", [1]),
        ("padding_mode=z*", [1]),
        ("max=6", [3]),
        ("min=-1.5", [3]),
        ("weight 4x3x3x3", [1]),
        ("weight 4x*x3x3", [1]),
        ("weight 4", [1]),
        ("weight:4", [1]),
        ("weight 3x3", []),
        ("weight float32", [1]),
        ("weight float16", []),
        ("weight float32, stride=2", [1]),
    ],
)
def test_terms_of_the_graph(index, text, expected):
    found = parse_search(text).find(index)

    assert found.operators.tolist() == expected
    assert found.unknown == 0


@pytest.mark.parametrize(
    ("text", "expected", "unknown"),
    [
        ("has nan", [2], 1),
        ("has inf", [4], 1),
        ("is constant", [3], 1),
        ("max>100", [1], 1),
        ("max > 100", [1], 1),
        ("max >= 120", [1], 1),
        ("min < -5", [1, 4], 1),
        ("min<−5", [1, 4], 1),
        ("absmax>=8", [1, 4], 1),
        ("zeros > 0.9", [2], 1),
        ("zeros=0.95", [2], 1),
        ("inf=2", [4], 1),
        ("not has nan", [0, 1, 3, 4], 1),
        ("stem max>100", [1], 0),
        ("layer1 is constant", [3], 1),
        ("pnnx.Output has nan", [], 0),  # has no output that could be measured
    ],
)
def test_terms_of_values(index, values, text, expected, unknown):
    found = parse_search(text).find(index, values)

    assert found.operators.tolist() == expected
    assert found.unknown == unknown


def test_nothing_is_known_of_values_before_a_run(index):
    search = parse_search("max > 100")

    assert search.needs_values
    assert search.find(index).operators.tolist() == []
    assert search.find(index).unknown == 6


def test_shapes_that_came_out(index):
    actual = OperatorIndex(
        index.operators, lambda operand: (2, 5) if operand.name == "4" else None
    )

    assert parse_search("2x5").find(actual).operators.tolist() == [4]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('"relu', 'a quotation mark is not closed: add "'),
        ("kernel_size=(3,3", "a bracket is not closed: write kernel_size=(3,3)"),
        ("relu )", ") is not understood: put it in quotes"),
        ("stride=", "stride= needs a value: write stride=2 or stride=(3,3)"),
        ("zeros>", "zeros> needs a value: write zeros>0.5"),
        ("zeros>many", "zeros>many needs a number: write zeros>100"),
        ("stride>(2,2)", "stride>(2,2) needs a number: write stride>100"),
        ("=2", "= needs a name before it, for example stride=2 or max>100"),
        ("(3,3)", "(3,3) needs a name before it, for example stride=2 or max>100"),
        ("has gaps", "has gaps is unknown: write has nan or has inf"),
        ("is odd", "is odd is unknown: write is constant"),
        ("a:b", _KEYS),
        ("type:", "type: needs a value after the colon"),
        ("shape:a/b", "a/b is not a shape: write 1x64x56x56, with * for any size"),
        ("dtype:f33", "f33 is not a dtype: write float32, float16, int64 or bool"),
        ("weight:a/b", "weight a/b is unknown: write weight 64x3x7x7 or weight float16"),
        ("relu not", "not needs a term behind it, for example not relu"),
    ],
)  # fmt: skip
def test_errors_say_how_to_write_it(text, message):
    with pytest.raises(SearchError) as caught:
        parse_search(text)

    assert str(caught.value) == message


def test_an_unknown_parameter_names_the_nearest(index):
    with pytest.raises(SearchError) as caught:
        parse_search("kernelsize=3").find(index)

    assert str(caught.value) == (
        "no operator has a parameter kernelsize: do you mean kernel_size?"
    )


def test_what_has_a_colon_is_no_parameter_unless_an_operator_has_one_of_that_name(index):
    with pytest.raises(SearchError) as caught:
        parse_search("shape=1x64").find(index)

    assert str(caught.value) == "no operator has a parameter shape: write shape: with a colon"


@given(st.text(alphabet='conv12x*?"()[]<>=-,: and not weight\\', max_size=30))
def test_any_text_is_searched_or_refused(text):
    try:
        search = parse_search(text)
        found = search.find(OperatorIndex(())).operators.tolist()
    except SearchError:
        found = []

    assert found == []
