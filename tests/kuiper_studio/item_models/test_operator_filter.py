from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kuiper_studio.item_models.operator_filter import FilterError, parse_filter

CONV = SimpleNamespace(
    index=12,
    type="nn.Conv2d",
    name="layer1.0.conv",
    family="conv CONV",
    states=frozenset({"run", "breakpoint", "born"}),
    ms=1.4,
    diff=2.5e-4,
    shapes=((1, 64, 56, 56),),
    kernel="ncnn/winograd",
)
RELU = SimpleNamespace(
    index=3,
    type="nn.ReLU",
    name="relu",
    family="act ACT",
    states=frozenset({"pending"}),
    ms=None,
    diff=None,
    shapes=((None, "%c", 8),),
    kernel="",
)


@pytest.mark.parametrize(
    ("text", "conv", "relu"),
    [
        ("", True, True),
        ("   ", True, True),
        ("conv", True, False),
        ("CONV2D", True, False),
        ("re", False, True),
        ("type:conv", True, False),
        ("type:nn.", True, True),
        ("type:nn.*2d", True, False),
        ("type:relu", False, True),
        ("name:layer1", True, False),
        ("name:layer1 type:Conv", True, False),
        ("name:layer1 type:ReLU", False, False),
        ("family:conv", True, False),
        ("#12", True, False),
        ("#3-12", True, True),
        ("#4-11", False, False),
        ("ms>1", True, False),
        ("ms>=1.4", True, False),
        ("ms<1", False, False),
        ("ms=1.4", True, False),
        ("diff>1e-4", True, False),
        ("DIFF<=2.5e-4", True, False),
        ("diff<1e-4", False, False),
        ("-diff>1e-4", False, True),
        ("state:born", True, False),
        ("state:inherited", False, False),
        ("shape:64", True, False),
        ("shape:64x56x56", True, False),
        ("shape:64×56", True, False),
        ("shape:56x64", False, False),
        ("shape:6", False, False),
        ("shape:?", False, True),
        ("shape:%c", False, True),
        ("kernel:ncnn", True, False),
        ("kernel:winograd", True, False),
        ("kernel:onnxruntime", False, False),
        ("kernel:*", True, False),
        ("state:run", True, False),
        ("state:pend", False, True),
        ("state:breakpoint", True, False),
        ("-conv", False, True),
        ("!state:pending", True, False),
        ('"layer1.0"', True, False),
        ('name:"layer1.0.conv"', True, False),
        ("aten::add", False, False),
    ],
)
def test_words(text: str, conv: bool, relu: bool) -> None:
    found = parse_filter(text)
    assert (found.accepts(CONV), found.accepts(RELU)) == (conv, relu)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("colour:red", "colour: is unknown"),
        ("type:", "type: needs a value"),
        ("ms>fast", "ms>fast is not a time"),
        ("diff>much", "diff>much is not a number"),
        ("#x", "#x is not an index"),
        ("shape:a-b", "shape:a-b is not a shape"),
        ("state:bored", "state:bored is unknown; use next, run"),
        ('name:"a b', "a quotation mark is not closed"),
        ("-colour:red", "colour: is unknown"),
    ],
)
def test_what_is_not_understood_is_explained(text: str, sentence: str) -> None:
    with pytest.raises(FilterError) as caught:
        parse_filter(text)
    assert sentence in str(caught.value)


@given(st.text(max_size=40))
def test_any_text_is_a_filter_or_an_explained_error(text: str) -> None:
    try:
        found = parse_filter(text)
    except FilterError:
        return
    assert found.accepts(CONV) in {True, False}
