"""Writing pairs: what comes back is what was there, and pnnx's own text byte for byte."""

from __future__ import annotations

import itertools
import math
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import ExportError, ModelFileError
from engine.pnnx import DTYPES, Attribute, Graph, Parameter, load, save
from engine.pnnx.attribute import ITEMSIZES
from engine.pnnx.writer import param_text


def listed(folder):
    return sorted(path.name for path in folder.iterdir())


BLANKS = " \t\n\r\v\f\0"
WORD = st.text(
    st.characters(codec="utf-8", exclude_characters=f"{BLANKS}=#@$"), min_size=1, max_size=6
)
KEY = WORD.map(lambda word: f"k{word}")  # keys of digits only are ncnn's
VALUE = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**31), 2**31 - 1),
    st.floats(width=32),
    st.complex_numbers(max_magnitude=1e30),
    st.lists(st.integers(-(2**31), 2**31 - 1)),
    st.lists(st.floats(width=32)),
    st.lists(st.complex_numbers(max_magnitude=1e30)),
)
TEXT = st.one_of(
    WORD, st.sampled_from(["[@0,@1]", "()", "%b", "(1,%c)", "a=b", "inf", "", "2d"])
)
DIM = st.one_of(
    st.integers(0, 2**31 - 1), st.none(), WORD.map(lambda w: f"%{w}".replace(",", ""))
)


@st.composite
def parameters(draw):
    if draw(st.booleans()):
        return Parameter.of(draw(VALUE))
    text = draw(TEXT)
    try:
        return Parameter.parse(text)
    except ValueError:
        return Parameter.of(1)


@st.composite
def attributes(draw):
    dtype = draw(st.sampled_from(sorted(DTYPES)))
    shape = tuple(draw(st.lists(st.integers(0, 3), max_size=3)))
    size = math.prod(shape) * ITEMSIZES[dtype]
    return Attribute.from_bytes(draw(st.binary(min_size=size, max_size=size)), shape, dtype)


@st.composite
def graphs(draw):
    graph = Graph()
    operand_names = iter(draw(st.lists(WORD, unique=True, max_size=12)))
    for name in draw(st.lists(WORD, unique=True, max_size=5)):
        operator = graph.new_operator(draw(WORD), name)
        known = list(graph.operands.values())
        inputs = draw(st.lists(st.sampled_from(known), max_size=4)) if known else []
        named = draw(st.lists(KEY, unique=True, max_size=len(inputs)))
        # as in a call of Python's, positional arguments come first
        for operand, key in zip(inputs, [""] * (len(inputs) - len(named)) + named, strict=True):
            operator.add_input(operand, key)
        for operand_name in itertools.islice(operand_names, draw(st.integers(0, 3))):
            operand = graph.new_operand(operand_name)
            if draw(st.booleans()):
                operand.shape = tuple(draw(st.lists(DIM, max_size=4)))
                operand.dtype = draw(st.sampled_from([None, *sorted(DTYPES.keys() - {"null"})]))
            operator.add_output(operand)
        operator.params.update(draw(st.dictionaries(KEY, parameters(), max_size=3)))
        # the operator's name is in the entry's: a dot could make two alike
        operator.attrs.update(
            draw(st.dictionaries(KEY.filter(lambda k: "." not in k), attributes(), max_size=2))
        )
    return graph


@settings(deadline=None)
@given(graphs())
def test_round_trip(tmp_path_factory, graph):
    folder = tmp_path_factory.getbasetemp()
    param, weights = folder / "round.param", folder / "round.bin"
    save(graph, param, weights)
    again = load(param, weights)
    assert again.same_as(graph)
    for mine, theirs in zip(graph.operators, again.operators, strict=True):
        assert [str(p) for p in mine.params.values()] == [
            str(theirs.params[key]) for key in mine.params
        ]
    for name, operand in graph.operands.items():
        users = [operator.name for operator in operand.consumers]
        assert [operator.name for operator in again.operands[name].consumers] == users
    assert param_text(again) == param.read_text(encoding="utf-8")


def small():
    graph = Graph()
    source = graph.new_operator("pnnx.Input", "in")
    x = graph.new_operand("x")
    x.shape, x.dtype = (1, None, "%w"), "f32"
    source.add_output(x)
    linear = graph.new_operator("nn.Linear", "fc.größe")
    linear.add_input(x, "input")
    linear.params["bias"] = Parameter.of(True)
    linear.params["Alpha"] = Parameter.of(0.1)
    linear.attrs["weight"] = Attribute.from_array(np.float32([[1, 2]]))
    y = graph.new_operand("y")
    y.shape = ()
    linear.add_output(y)
    graph.new_operator("pnnx.Output", "longer_than_the_column_is").add_input(y)
    return graph


def test_text_by_hand(tmp_path):
    save(small(), tmp_path / "m.param", tmp_path / "m.bin")
    # the second column is padded by bytes, of which "ö" and "ß" have two
    assert (tmp_path / "m.param").read_text(encoding="utf-8") == (
        "7767517\n"
        "3 2\n"
        "pnnx.Input               in                       0 1 x #x=(1,?,%w)f32\n"
        "nn.Linear                fc.größe               1 1 x y Alpha=0.1 bias=True "
        "@weight=(1,2)f32 $input=x #x=(1,?,%w)f32 #y=()null\n"
        "pnnx.Output              longer_than_the_column_is 1 0 y #y=()null\n"
    )
    with zipfile.ZipFile(tmp_path / "m.bin") as archive:
        assert archive.namelist() == ["fc.größe.weight"]
        assert archive.read("fc.größe.weight") == np.float32([1, 2]).tobytes()


@pytest.mark.shared
def test_pnnx_text_byte_for_byte(shared, tmp_path):
    files = sorted(shared.glob("conformance*/*/*.param")) + sorted(
        shared.glob("models/*.param")
    )
    assert len(files) >= 250
    for file in files:
        graph = load(file)
        copy = tmp_path / "copy.param"
        weights = tmp_path / "copy.bin" if graph.has_weights else None
        save(graph, copy, weights)
        assert copy.read_bytes() == file.read_bytes(), file
        if weights is not None:
            assert load(copy, weights).same_as(graph), file


@pytest.mark.shared
def test_encoding_values_gives_pnnx_text(shared):
    texts = {
        parameter.text: parameter
        for file in shared.glob("conformance*/*/*.param")
        for operator in load(file).operators
        for parameter in operator.params.values()
    }
    # expressions of lists are kept in square brackets, for which an array has round ones
    for text, parameter in texts.items():
        if not text.startswith("["):
            assert Parameter.of(parameter.value).text == text
    assert len(texts) > 300


def test_over_the_mapped_file(tmp_path):
    param, weights = tmp_path / "m.param", tmp_path / "m.bin"
    save(small(), param, weights)
    graph = load(param)
    graph.operators[1].params["extra"] = Parameter.of(1)
    save(graph, param, weights)
    assert load(param).same_as(graph)
    assert graph.operators[1].attrs["weight"].array.tolist() == [[1, 2]]


def test_structure_only(tmp_path):
    save(small(), tmp_path / "m.param", None)
    assert listed(tmp_path) == ["m.param"]
    graph = load(tmp_path / "m.param")
    assert not graph.has_weights
    with pytest.raises(ModelFileError, match="its weights are missing"):
        save(graph, tmp_path / "n.param", tmp_path / "n.bin")
    assert listed(tmp_path) == ["m.param"]


def test_unannotated_uses_stay_so(tmp_path):
    text = (
        "7767517\n2 1\n"
        "pnnx.Input               in                       0 1 0 #0=(1)f32\n"
        "pnnx.Output              out                      1 0 0\n"
    )
    (tmp_path / "m.param").write_text(text)
    graph = load(tmp_path / "m.param")
    assert graph.unannotated == {"out": frozenset({"0"})}
    assert graph.operands["0"].shape == (1,)
    assert param_text(graph) == text


def test_string_with_blanks(tmp_path):
    graph = Graph()
    graph.new_operator("a", "a").params["equation"] = Parameter.parse("i j, j k -> i k")
    save(graph, tmp_path / "m.param", None)
    assert load(tmp_path / "m.param").same_as(graph)


def edit(**changes):
    def apply(graph):
        for path, value in changes.items():
            place, name = path.split("__")
            target = {
                "linear": graph.operators[1],
                "x": graph.operands["x"],
                "y": graph.operands["y"],
            }[place]
            setattr(target, name, value)

    return apply


def parameter(key, text):
    return lambda graph: graph.operators[1].params.update({key: Parameter.parse(text)})


def weight(key):
    return lambda graph: graph.operators[1].attrs.update(
        {key: Attribute.from_array(np.float32(1))}
    )


def same_entry_twice(graph):
    graph.new_operator("a", "fc").attrs["größe.weight"] = Attribute.from_array(np.float32(1))


def only_first_use_named(graph):
    graph.operators[1].add_input(graph.operands["x"])


def foreign_output(graph):
    graph.operators[1].add_output(Graph().new_operand("z"))


def foreign_producer(graph):
    graph.operators[2].outputs.append(graph.operands["x"])


def twice_produced(graph):
    graph.operators[1].outputs.append(graph.operands["y"])


def replaced_operand(graph):
    graph.operands["y"] = Graph().new_operand("y")


def to_the_front(graph):
    graph.operators.reverse()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            edit(linear__name="a b"),
            "operator 'a b': 'a b' is empty or has a blank, or a # in front",
        ),
        (
            edit(linear__type=""),
            "operator 'fc.größe': '' is empty or has a blank, or a # in front",
        ),
        (
            edit(x__name="#x"),
            "operand '#x': '#x' is empty or has a blank, or a # in front",
        ),
        (
            edit(y__name="y=1"),
            "operand 'y=1': 'y=1' has an equals sign, which PNNX cannot write",
        ),
        (edit(linear__name="in"), "two operators are named 'in'"),
        (
            edit(linear__input_names=[]),
            "operator 'fc.größe' has not as many input names as inputs",
        ),
        (
            edit(linear__input_names=["a b"]),
            "operator 'fc.größe': 'a b' is empty or has a blank, or a # in front",
        ),
        (
            lambda g: g.operators[1].add_input(g.operands["x"], "input"),
            "operator 'fc.größe' has two inputs for the same argument",
        ),
        (
            only_first_use_named,
            "operator 'fc.größe' takes operand 'x' twice and names only the first use",
        ),
        (
            edit(x__dtype="f33"),
            "operand 'x' has dtype 'f33', which PNNX does not know",
        ),
        (edit(x__shape=(-1,)), "operand 'x' has a dimension -1, which PNNX cannot write"),
        (
            edit(x__shape=(2**31,)),
            "operand 'x' has a dimension 2147483648, which PNNX cannot write",
        ),
        (edit(x__shape=("w",)), "operand 'x' has a dimension 'w', which PNNX cannot write"),
        (
            edit(x__shape=("%a,b",)),
            "operand 'x' has a dimension '%a,b', which PNNX cannot write",
        ),
        (
            edit(x__shape=("%a b",)),
            "operand 'x': '%a b' is empty or has a blank, or a # in front",
        ),
        (
            parameter("k", "(1, 2)"),
            "operator 'fc.größe': parameter k='(1, 2)' cannot be written",
        ),
        (
            parameter("k", "(1 %a"),
            "operator 'fc.größe': parameter k='(1 %a' cannot be written",
        ),
        (parameter("k", "1 a"), "operator 'fc.größe': parameter k='1 a' cannot be written"),
        (
            parameter("k", "a b=1"),
            "operator 'fc.größe': parameter k='a b=1' cannot be written",
        ),
        (
            parameter("k", "a  b"),
            "operator 'fc.größe': parameter k='a  b' cannot be written",
        ),
        (
            parameter("k", "a #b"),
            "operator 'fc.größe': parameter k='a #b' cannot be written",
        ),
        (
            parameter("k", "a\nb"),
            "operator 'fc.größe': parameter k='a\\nb' cannot be written",
        ),
        (parameter("@k", "1"), "operator 'fc.größe': parameter @k='1' cannot be written"),
        (parameter("-1", "1"), "operator 'fc.größe': parameter -1='1' cannot be written"),
        (
            weight("a b"),
            "operator 'fc.größe': 'a b' is empty or has a blank, or a # in front",
        ),
        (
            same_entry_twice,
            "two weights would both be named 'fc.größe.weight' in the .bin",
        ),
        (
            weight("w" * 70_000),
            f"the name of weight fc.größe.{'w' * 31}… is too long",
        ),
        (
            to_the_front,
            (
                "operator 'longer_than_the_column_is' takes operand 'y', which no operator "
                "before it produces"
            ),
        ),
        (
            lambda g: g.new_operand("z"),
            "operand 'z' has no producer; remove it or add one",
        ),
        (foreign_output, "operand 'z' is not of this graph"),
        (
            foreign_producer,
            "operand 'x' is an output of 'longer_than_the_column_is' and not produced by it",
        ),
        (twice_produced, "operand 'y' is produced twice"),
        (replaced_operand, "operand 'y' has no producer; remove it or add one"),
    ],
)
def test_what_cannot_be_read_back_is_not_written(tmp_path, change, reason):
    graph = small()
    change(graph)
    with pytest.raises(ExportError) as caught:
        save(graph, tmp_path / "m.param", tmp_path / "m.bin")
    assert str(caught.value) == reason
    assert not listed(tmp_path)


class TestFailure:
    def test_folder(self, tmp_path):
        (tmp_path / "m.bin").mkdir()
        with pytest.raises(ExportError) as caught:
            save(small(), tmp_path / "m.param", tmp_path / "m.bin")
        reason = "a folder has this name; choose another"
        assert str(caught.value) == f"{tmp_path / 'm.bin'}: {reason}"
        assert listed(tmp_path) == ["m.bin"]

    def test_no_folder(self, tmp_path):
        with pytest.raises(ExportError) as caught:
            save(small(), tmp_path / "none" / "m.param", tmp_path / "none" / "m.bin")
        assert str(caught.value) == (
            f"{tmp_path / 'none' / 'm.param'}: the model could not be written: "
            "No such file or directory"
        )

    def test_full_disk_keeps_the_old_pair(self, tmp_path, monkeypatch):
        param, weights = tmp_path / "m.param", tmp_path / "m.bin"
        save(small(), param, weights)
        before = param.read_bytes(), weights.read_bytes()

        def full(*_):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("pathlib.Path.write_bytes", full)
        graph = small()
        graph.operators[1].params["more"] = Parameter.of(1)
        with pytest.raises(ExportError, match="No space left on device"):
            save(graph, param, weights)
        assert (param.read_bytes(), weights.read_bytes()) == before
        assert listed(tmp_path) == ["m.bin", "m.param"]
