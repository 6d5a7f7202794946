"""Reading ``.param`` text: every corner that pnnx writes, and every way to be wrong."""

from __future__ import annotations

import contextlib
import gc
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import ModelFileError
from engine.pnnx import load
from engine.pnnx.reader import read_graph


@pytest.fixture
def read(tmp_path):
    """A function that reads operator lines under a header with the given counts."""

    def read(*lines, counts=None):
        path = tmp_path / "m.param"
        operands = {o for line in lines for o in line.encode().split()[4:][: _count(line)]}
        operators, operands = counts or (len(lines), len(operands))
        text = "\n".join(["7767517", f"{operators} {operands}", *lines, ""])
        path.write_bytes(text.encode())
        return read_graph(path)[0]

    return read


def _count(line):
    return sum(int(count) for count in line.encode().split()[2:4] if count.isdigit())


INPUT = "pnnx.Input in 0 1 0"


class TestCorners:
    def test_columns(self, read):
        graph = read(
            "pnnx.Input               pnnx_input_0             0 1 x.1 #x.1=(1,?,%w,4)f32",
            "nn.Conv2d                layer1.0.conv            1 1 x.1 2 bias=True "
            "kernel_size=(3,3) padding=same @bias=(64)f32 @out_proj.weight=(64,3,3,3)bf16 "
            "$input=x.1 #x.1=(1,?,%w,4)f32 #2=(1,64,?,?)f16",
            "pnnx.Output              pnnx_output_0            1 0 2 #2=(1,64,?,?)f16",
        )
        source, conv, sink = graph.operators
        assert (conv.type, conv.name) == ("nn.Conv2d", "layer1.0.conv")
        x, two = graph.operands["x.1"], graph.operands["2"]
        assert (x.shape, x.dtype) == ((1, None, "%w", 4), "f32")
        assert (two.shape, two.dtype) == ((1, 64, None, None), "f16")
        assert (x.producer, x.consumers) == (source, [conv])
        assert (two.producer, two.consumers) == (conv, [sink])
        assert (source.inputs, sink.outputs) == ([], [])
        assert {key: p.value for key, p in conv.params.items()} == {
            "bias": True,
            "kernel_size": (3, 3),
            "padding": "same",
        }
        assert {key: (a.dtype, a.shape) for key, a in conv.attrs.items()} == {
            "bias": ("f32", (64,)),
            "out_proj.weight": ("bf16", (64, 3, 3, 3)),
        }
        assert conv.input_names == ["input"]
        assert sink.input_names == [""]

    def test_every_dtype(self, read):
        dtypes = [
            "f32",
            "f64",
            "f16",
            "i32",
            "i64",
            "i16",
            "i8",
            "u8",
            "bool",
            "c64",
            "c128",
            "c32",
            "bf16",
        ]
        weights = " ".join(f"@{dtype}=(2){dtype}" for dtype in dtypes)
        notes = " ".join(f"#{dtype}=(2){dtype}" for dtype in dtypes)
        graph = read(f"a a 0 {len(dtypes)} {' '.join(dtypes)} {weights} {notes}")
        assert [a.dtype for a in graph.operators[0].attrs.values()] == dtypes
        assert [operand.dtype for operand in graph.operands.values()] == dtypes

    def test_unknown_dtype_of_pnnx(self, read):
        graph = read("a a 0 1 0 @w=(64,3)null #0=(1,?)null")
        assert graph.operands["0"].dtype is None
        assert graph.operands["0"].shape == (1, None)
        weight = graph.operators[0].attrs["w"]
        assert (weight.dtype, weight.nbytes) == ("null", 0)

    def test_scalar_and_empty_weights(self, read):
        graph = read("pnnx.Attribute a 0 1 0 @data=()f32 @none=(0)i64 #0=()f32")
        attrs = graph.operators[0].attrs
        assert (attrs["data"].shape, attrs["data"].nbytes) == ((), 4)
        assert (attrs["none"].shape, attrs["none"].nbytes) == ((0,), 0)
        assert graph.operands["0"].shape == ()

    def test_no_annotation_is_not_a_scalar(self, read):
        operand = read(INPUT).operands["0"]
        assert operand.shape is None
        assert operand.dtype is None

    def test_same_operand_twice(self, read):
        graph = read(INPUT, "torch.ge ge 2 1 0 0 1 $input=0 $other=0 #0=(3)f32 #0=(3)f32")
        ge = graph.operators[1]
        assert ge.inputs == [graph.operands["0"]] * 2
        assert ge.input_names == ["input", "other"]
        assert graph.operands["0"].consumers == [ge, ge]

    @pytest.mark.parametrize(
        ("line", "names"),
        [
            ("a a 2 1 0 1 2 $b=1", ["", "b"]),
            ("a a 3 1 0 1 0 2 $b=1 $c=0", ["", "b", "c"]),
            ("a a 2 1 0 0 2 $b=0", ["", "b"]),
            ("a a 3 1 0 1 0 2 $a=0 $b=1 $c=0", ["a", "b", "c"]),
            ("a a 2 1 0 1 2", ["", ""]),
        ],
    )
    def test_argument_names(self, read, line, names):
        assert read(INPUT, "pnnx.Input in2 0 1 1", line).operators[2].input_names == names

    def test_no_operands_at_all(self, read):
        assert read("aten::nop nop 0 0").operators[0].name == "nop"

    def test_many_outputs(self, read):
        graph = read(INPUT, "torch.unbind u 1 300 0 " + " ".join(map(str, range(1, 301))))
        assert len(graph.operators[1].outputs) == 300

    def test_values_with_equals_signs_split_at_the_first(self, read):
        assert read("a a 0 0 key=a=b").operators[0].params["key"].value == "a=b"

    def test_strings_with_blanks(self, read):
        line = "torch.einsum e 1 1 0 1 equation=b i d, b j d -> b i j k=1 $operands=0"
        einsum = read(INPUT, line).operators[1]
        assert einsum.params["equation"].value == "b i d, b j d -> b i j"
        assert einsum.params["k"].value == 1
        assert einsum.input_names == ["operands"]

    def test_negative_dimension_is_open(self, read):
        assert read("a a 0 1 0 #0=(-1,3)f32").operands["0"].shape == (None, 3)

    def test_last_annotation_counts(self, read):
        graph = read("a a 0 1 0 #0=(1)f32", "b b 1 0 0 #0=(2)f32", "c c 1 0 0 #0=(1)f32")
        assert graph.operands["0"].shape == (1,)

    def test_another_order(self, read):
        operator = read(INPUT, "a a 1 1 0 1 #0=(1)f32 x=1 $k=0  y=2 @w=(1)u8 #1=(2)i8 z=3")
        operator = operator.operators[1]
        assert {k: p.value for k, p in operator.params.items()} == {"x": 1, "y": 2, "z": 3}
        assert list(operator.attrs) == ["w"]
        assert operator.input_names == ["k"]
        assert [o.shape for o in (*operator.inputs, *operator.outputs)] == [(1,), (2,)]

    @pytest.mark.parametrize("blank", ["\t", "  ", "\v", "\f", " \r"])
    def test_other_blanks(self, tmp_path, blank):
        path = tmp_path / "m.param"
        line = blank.join(["a", "a", "0", "1", "0", "k=1", "#0=(1)f32", ""])
        path.write_bytes(f"7767517\r\n1 1\r\n{line}\r\n\n \n".encode())
        graph, _ = read_graph(path)
        assert graph.operators[0].params["k"].value == 1
        assert graph.operands["0"].shape == (1,)

    @pytest.mark.parametrize("odd", ["\xa0", "\u3000", "\x1c", "\x85", "ü"])
    def test_what_only_python_takes_for_blanks(self, read, odd):
        graph = read(f"a  x{odd}y 0 1 o{odd}p k=v{odd}w  l=1 #o{odd}p=(1)f32")
        assert graph.operators[0].name == f"x{odd}y"
        assert graph.operands[f"o{odd}p"].shape == (1,)
        assert graph.operators[0].params["k"].value == f"v{odd}w"

    def test_equal_operators_share_nothing_that_changes(self, read):
        graph = read("a a 0 0 k=1 @w=(1)f32", "a b 0 0 k=1 @w=(1)f32")
        first, second = graph.operators
        first.params.clear()
        assert "k" in second.params
        assert first.attrs["w"] is not second.attrs["w"]


class TestWrongLines:
    @pytest.mark.parametrize(
        ("lines", "line", "reason"),
        [
            pytest.param(
                [INPUT, "a a 1 1 9 1"],
                4,
                "operator 'a' takes operand '9', which nothing produces",
                id="unknown-operand",
            ),
            pytest.param(
                ["a a 1 1 1 2", "b b 0 1 1"],
                3,
                "operator 'a' takes operand '1' before line 4 produces it; move that line up, "
                "producers come first",
                id="disorder",
            ),
            pytest.param(
                [INPUT, "a a 2 1 0 3 1", "b b 1 1 1 2", "c c 1 1 2 3", "d d 1 0 3"],
                4,
                "operators form a cycle: a → b → c → a",
                id="cycle",
            ),
            pytest.param(
                [INPUT, "a a 2 1 0 2 1", "b b 0 1 2"],
                4,
                "operator 'a' takes operand '2' before line 5 produces it; move that line up, "
                "producers come first",
                id="disorder-of-one-of-two",
            ),
            pytest.param(
                ["a a 2 1 1 9 2", "b b 0 1 1"],
                3,
                "operator 'a' takes operand '1' before line 4 produces it; move that line up, "
                "producers come first",
                id="disorder-beside-unknown",
            ),
            pytest.param(
                ["a a 1 1 0 0"],
                3,
                "operators form a cycle: a → a",
                id="own-output",
            ),
            pytest.param(
                ["first first 1 0 7"]
                + [f"n n{i} 1 1 {(i - 1) % 9} {i}" for i in range(9)]
                + ["x x 0 1 99"],
                3,
                "operators form a cycle: n7 → n8 → n0 → n1 → n2 → n3 → …",
                id="long-cycle",
            ),
            pytest.param(
                [INPUT, "a same 1 1 0 1", "b same 1 1 1 2"],
                5,
                "line 4 already has an operator named 'same'",
                id="operator-twice",
            ),
            pytest.param(
                [INPUT, "a a 1 1 0 1", "b b 1 1 0 1"],
                5,
                "line 4 already produces operand '1'",
                id="operand-twice",
            ),
            pytest.param(
                ["a a 0 2 1 1"],
                3,
                "line 3 already produces operand '1'",
                id="operand-twice-in-a-line",
            ),
            pytest.param(
                [INPUT, "a a 1 2 0 1 k=1"],
                4,
                "the line counts more operands than it names: 'k=1' is not an operand",
                id="too-many-outputs-counted",
            ),
            pytest.param(
                [INPUT, "a a 2 0 0 k=1"],
                4,
                "the line counts more operands than it names: 'k=1' is not an operand",
                id="too-many-inputs-counted",
            ),
            pytest.param(
                [INPUT, "a a 1 3 0 1"],
                4,
                "the line counts 1 inputs and 3 outputs and names 2 operands; the file may "
                "have been cut short here",
                id="too-few-operands",
            ),
            pytest.param(
                [INPUT, "a a 1 1 0 1 2"],
                4,
                "'2' is not of the form key=value",
                id="too-many-operands",
            ),
            pytest.param(
                [INPUT, "nn.ReLU relu 1"],
                4,
                "an operator needs a type, a name and the counts of its inputs and outputs; "
                "the file may have been cut short here",
                id="cut-short",
            ),
            pytest.param(
                [INPUT, "", "a a 0 0"],
                4,
                "an operator needs a type, a name and the counts of its inputs and outputs; "
                "the file may have been cut short here",
                id="blank-line",
            ),
            pytest.param(
                ["a a -1 1 0"], 3, "'-1' is not a number of operands", id="negative-count"
            ),
            pytest.param(["a a x 1 0"], 3, "'x' is not a number of operands", id="no-count"),
            pytest.param(["a a ² 1 0"], 3, "'²' is not a number of operands", id="odd-digit"),
            pytest.param(
                [f"a a {'9' * 50} 1 0"],
                3,
                f"'{'9' * 39}…' is not a number of operands",
                id="huge-count",
            ),
            pytest.param(
                ["a a 999999999 1 0"],
                3,
                "the line counts 999999999 inputs and 1 outputs and names 1 operands; the file "
                "may have been cut short here",
                id="large-count",
            ),
            pytest.param(
                ["a a 0 0 size=(3,3"],
                3,
                "parameter 'size': '(3,3' lacks its closing bracket",
                id="open-tuple",
            ),
            pytest.param(["a a 0 0 k=1 k=2"], 3, "'k' appears twice", id="parameter-twice"),
            pytest.param(
                ["a a 0 0 @w=(1)f32 @w=(1)f32"], 3, "'w' appears twice", id="weight-twice"
            ),
            pytest.param(
                ["a a 0 1 0 k=1 #0=(1)f32 k=1"],
                3,
                "'k' appears twice",
                id="parameter-twice-apart",
            ),
            pytest.param(
                ["a a 0 1 0 @w=(1)u8 #0=(1)f32 @w=(1)u8"],
                3,
                "'w' appears twice",
                id="weight-twice-apart",
            ),
            pytest.param(["a a 0 0 =5"], 3, "a parameter or weight has no name", id="no-key"),
            pytest.param(
                ["a a 0 0 @=(1)f32"], 3, "a parameter or weight has no name", id="no-weight"
            ),
            pytest.param(
                ["a a 0 0 junk"], 3, "'junk' is not of the form key=value", id="no-equals"
            ),
            pytest.param(
                ["a a 0 0 k=1 junk"],
                3,
                "'junk' is not of the form key=value",
                id="no-equals-behind-a-number",
            ),
            pytest.param(
                ["a a 0 0 k=s @w=(1)f32 junk"],
                3,
                "'junk' is not of the form key=value",
                id="no-equals-behind-a-weight",
            ),
            pytest.param(
                ["Input in0 0 1 in0", "Convolution conv 1 1 in0 1 0=64 1=3 -23310=1,2"],
                4,
                "'0=64' is a parameter of ncnn's own format; open the .pnnx.param file of the "
                "model",
                id="ncnn",
            ),
            pytest.param(
                ["a a 0 1 0 #0=1,2f32"],
                3,
                "'1,2f32' is not a shape and dtype such as (1,3,224,224)f32",
                id="no-brackets",
            ),
            pytest.param(
                ["a a 0 1 0 #0=(1,2f32"],
                3,
                "'(1,2f32' is not a shape and dtype such as (1,3,224,224)f32",
                id="open-shape",
            ),
            pytest.param(
                ["a a 0 1 0 #0"],
                3,
                "'' is not a shape and dtype such as (1,3,224,224)f32",
                id="no-shape",
            ),
            pytest.param(
                ["a a 0 1 0 #0=(1)f33"],
                3,
                "'(1)f33' has a dtype that PNNX does not know; those are f32, f64, f16, i32, "
                "i64, i16, i8, u8, bool, c64, c128, c32, bf16, null",
                id="unknown-dtype",
            ),
            pytest.param(
                ["a a 0 1 0 #0=(1,-2)f32"],
                3,
                "'-2' is not the size of a dimension",
                id="negative",
            ),
            pytest.param(
                ["a a 0 1 0 #0=(1,)f32"], 3, "'' is not the size of a dimension", id="no-size"
            ),
            pytest.param(
                ["a a 0 1 0 #0=(2147483648)f32"],
                3,
                "'2147483648' is not the size of a dimension",
                id="huge-size",
            ),
            pytest.param(
                ["a a 0 0 @w=(2,?)f32"],
                3,
                "weight '@w=(2,?)f32' leaves a dimension open",
                id="open-weight",
            ),
            pytest.param(
                [f"a a 0 0 @w=({','.join(['2147483647'] * 3)})f32"],
                3,
                "weight '@w=(2147483647,2147483647,2147483647)f32' is larger than any array",
                id="huge-weight",
            ),
            pytest.param(
                [f"a a 0 0 @w=(0,{','.join(['2147483647'] * 3)})f32"],
                3,
                "weight '@w=(0,2147483647,2147483647,2147483647)…' is larger than any array",
                id="huge-empty-weight",
            ),
            pytest.param(
                [f"a a 0 0 @w=({','.join('1' * 33)})f32"],
                3,
                "weight '@w=(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1…' is larger than any array",
                id="many-dimensions",
            ),
            pytest.param(
                ["a a 0 1 0 #9=(1)f32"],
                3,
                "#9 annotates an operand that no line so far names",
                id="annotation-of-nothing",
            ),
            pytest.param(
                [INPUT, "a a 1 0 0 $input=9"],
                4,
                "'$input=9' names no input of the operator",
                id="argument-of-nothing",
            ),
            pytest.param(
                [INPUT, "a a 1 0 0 $input=0 $other=0"],
                4,
                "'$input=0' names no input of the operator",
                id="two-arguments-of-one",
            ),
            pytest.param(
                [INPUT, "a a 2 0 0 0 $input=0 $input=0"],
                4,
                "two inputs are for the same argument",
                id="argument-twice",
            ),
            pytest.param(
                [INPUT, "a a 1 0 0 $ "], 4, "'$=' names no input of the operator", id="dollar"
            ),
            pytest.param(
                [INPUT, "a a 1 0 0 $=0"],
                4,
                "'$=0' names no input of the operator",
                id="argument-without-name",
            ),
        ],
    )
    def test_sentence(self, read, tmp_path, lines, line, reason):
        with pytest.raises(ModelFileError) as caught:
            read(*lines)
        assert str(caught.value) == f"{tmp_path / 'm.param'}:{line}: {reason}"
        assert (caught.value.line, caught.value.reason) == (line, reason)

    @pytest.mark.parametrize(
        ("counts", "found"),
        [
            ((3, 1), "3 operators and the file has 2"),
            ((1, 1), "1 operators and the file has 2"),
            ((2, 0), "0 operands and the file has 1"),
        ],
    )
    def test_counts(self, read, counts, found):
        with pytest.raises(ModelFileError) as caught:
            read(INPUT, "pnnx.Output out 1 0 0", counts=counts)
        assert caught.value.line == 2
        assert caught.value.reason == (
            f"the header counts {found}; it was cut short or edited, export it again or "
            "correct the header"
        )

    def test_operands_that_pnnx_has_dropped_are_counted(self, read):
        assert len(read(INPUT, "pnnx.Output out 1 0 0", counts=(2, 5)).operands) == 1

    def test_a_line_that_cannot_be_read_does_not_hide_a_disorder(self, read):
        with pytest.raises(ModelFileError, match="takes operand '1' before line 5 produces it"):
            read("a a 1 1 1 2", "b b many", "c c 0 1 1", counts=(3, 2))


class TestWrongFiles:
    @pytest.mark.parametrize(
        ("data", "line", "reason"),
        [
            (b"", None, "it is empty; export the model again"),
            (
                b"PK\3\4 and so on",
                None,
                "it contains weights; open the .param file of the model",
            ),
            (
                b"7767516\n0 0\n",
                1,
                "a .param file of PNNX begins with 7767517 and not with '7767516'",
            ),
            (
                b"\xef\xbb\xbf7767517\n0 0\n",
                1,
                r"a .param file of PNNX begins with 7767517 and not with '\ufeff7767517'",
            ),
            (
                b"x" * 1000,
                1,
                f"a .param file of PNNX begins with 7767517 and not with '{'x' * 39}…'",
            ),
            (b"7767517", 2, "the counts of operators and operands belong here, not ''"),
            (b"7767517\n", 2, "the counts of operators and operands belong here, not ''"),
            (b"7767517\n1\n", 2, "the counts of operators and operands belong here, not '1'"),
            (
                b"7767517\n1 -1\n",
                2,
                "the counts of operators and operands belong here, not '1 -1'",
            ),
            (
                b"7767517\n1 1 1\n",
                2,
                "the counts of operators and operands belong here, not '1 1 1'",
            ),
            (b"7767517\n1 1\na a 0 1 \xff\n", 3, "the line is not UTF-8 text"),
            (
                b"7767517\n1 1\na a 0 1 \0\n",
                3,
                "the line has a zero byte, so this is not text",
            ),
        ],
    )
    def test_sentence(self, tmp_path, data, line, reason):
        path = tmp_path / "m.param"
        path.write_bytes(data)
        with pytest.raises(ModelFileError) as caught:
            load(path)
        assert (caught.value.path, caught.value.line) == (path, line)
        assert caught.value.reason == reason

    def test_no_file(self, tmp_path):
        for path in (tmp_path / "none.param", tmp_path):
            with pytest.raises(ModelFileError, match="there is no such file"):
                load(path)

    def test_unreadable(self, tmp_path, monkeypatch):
        path = tmp_path / "m.param"
        path.write_text("7767517\n0 0\n")

        def refuse(*_):
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr("pathlib.Path.open", refuse)
        with pytest.raises(ModelFileError, match="it cannot be read: Permission denied"):
            load(path)

    @given(st.binary())
    def test_bytes(self, tmp_path_factory, data):
        path = tmp_path_factory.getbasetemp() / "bytes.param"
        path.write_bytes(b"7767517\n2 2\n" + data)
        with contextlib.suppress(ModelFileError):
            read_graph(path)

    TOKENS = st.sampled_from(
        ["a", "b", "0", "1", "2", "-1", "k=1", "k=s", "k=(1", "@w=(2)f32", "@w=x", "$a=0", "$",
         "#0=(1)f32", "#1=(?)i8", "#", "=", "\t", "\n", "\x1c", "é", "", "0 1 0", "1 0 0"]
    )  # fmt: skip

    @given(st.lists(TOKENS, max_size=30).map(" ".join), st.integers(0, 3), st.integers(0, 3))
    def test_tokens(self, tmp_path_factory, text, operators, operands):
        path = tmp_path_factory.getbasetemp() / "tokens.param"
        path.write_text(f"7767517\n{operators} {operands}\n{text}\n", encoding="utf-8")
        try:
            graph, _ = read_graph(path)
        except ModelFileError:
            return
        assert len(graph.operators) == operators
        assert len(graph.operands) <= operands
        for operator in graph.operators:
            assert len(operator.input_names) == len(operator.inputs)
            for operand in operator.inputs:
                assert operand.consumers.count(operator) == operator.inputs.count(operand)


def chain(count):
    lines = ["pnnx.Input in 0 1 0 #0=(1,8)f32"]
    lines += [
        f"nn.ReLU relu_{i} 1 1 {i - 1} {i} #{i - 1}=(1,8)f32 #{i}=(1,8)f32"
        for i in range(1, count)
    ]
    return lines


class TestLarge:
    def test_as_many_dimensions_as_an_array_may_have(self, read):
        ones = ",".join("1" * 32)
        graph = read(f"a a 0 0 @w=({ones})f32")
        assert graph.operators[0].attrs["w"].shape == (1,) * 32

    def test_a_taken_name_is_refused_before_the_operators_are_made(self, tmp_path):
        path = tmp_path / "m.param"
        count = 2_500  # operators of a file as long are made when they are asked for
        path.write_text("\n".join(["7767517", f"{count} {count}", *chain(count), ""]))
        graph = load(path)
        assert not graph.is_made
        with pytest.raises(ValueError, match="already has an operator named 'relu_7'"):
            graph.new_operator("nn.ReLU", "relu_7")

    def test_long_chain(self, read):
        started = time.process_time()
        graph = read(*chain(50_000))
        assert len(graph.operators) == 50_000
        assert graph.operands["49999"].producer is graph.operators[-1]
        assert time.process_time() - started < 5

    def test_long_cycle(self, read):
        lines = chain(50_000)
        lines[0] = "pnnx.Input in 1 1 49999 0"
        with pytest.raises(ModelFileError, match="operators form a cycle"):
            read(*lines)

    def test_operator_with_many_named_inputs(self, read):
        count = 20_000
        lines = [f"pnnx.Input in 0 {count} {' '.join(map(str, range(count)))}"]
        names = " ".join(f"$a{i}={i}" for i in reversed(range(count)))
        lines.append(f"a a {count} 0 {' '.join(map(str, range(count)))} {names}")
        started = time.process_time()
        assert read(*lines).operators[1].input_names[7] == "a7"
        assert time.process_time() - started < 5

    @pytest.mark.parametrize("enabled", [True, False])
    def test_collector_is_as_before(self, read, enabled):
        was = gc.isenabled()
        (gc.enable if enabled else gc.disable)()
        try:
            read(INPUT)
            assert gc.isenabled() is enabled
            with pytest.raises(ModelFileError):
                read("a a")
            assert gc.isenabled() is enabled
        finally:
            (gc.enable if was else gc.disable)()

    def test_frozen_objects_stay_frozen(self, read):
        gc.freeze()
        try:
            read(INPUT)
            assert gc.get_freeze_count()
        finally:
            gc.unfreeze()
