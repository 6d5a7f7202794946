"""The look through a long file: never surer than the reader, and the same graph later."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import ModelFileError
from engine.pnnx import load
from engine.pnnx.archive import write_archive
from engine.pnnx.pairing import find_param
from engine.pnnx.prescan import prescan
from engine.pnnx.reader import Reader

# As pnnx writes them: an argument's name, weights, two inputs, several outputs, constants.
BLOCK = """\
nn.Conv2d conv_{i} 1 1 {x} a{i} bias=True kernel_size=(3,3) @bias=(8)f32 @weight=(8,8,3,3)f32 \
#{x}=(1,8,9,9)f32 #a{i}=(1,8,9,9)f32
nn.ReLU relu_{i} 1 1 a{i} b{i} #a{i}=(1,8,9,9)f32 #b{i}=(1,8,9,9)f32
F.interpolate up_{i} 1 1 b{i} c{i} mode=nearest size=(9,9) $input=b{i} #b{i}=(1,8,9,9)f32 \
#c{i}=(1,8,9,9)f32
pnnx.Expression add_{i} 2 1 c{i} {x} d{i} expr=add(@0,@1) #c{i}=(1,8,9,9)f32 \
#{x}=(1,8,9,9)f32 #d{i}=(1,8,9,9)f32
torch.split split_{i} 1 2 d{i} e{i} f{i} dim=1 $tensor=d{i} #d{i}=(1,8,9,9)f32 \
#e{i}=(1,4,9,9)f32 #f{i}=(1,4,9,9)f32
torch.cat cat_{i} 2 1 f{i} e{i} {y} dim=1 #f{i}=(1,4,9,9)f32 #e{i}=(1,4,9,9)f32 \
#{y}=(1,8,9,9)f32
pnnx.Attribute table_{i} 0 1 g{i} @data=(2,2)i64 #g{i}=(2,2)i64
F.silu quiet_{i} 1 1 g{i} h{i}""".splitlines()


def lines_of(blocks):
    """A file of `blocks` times eight operators, between an input and an output."""
    lines = ["pnnx.Input in 0 1 0 #0=(1,8,9,9)f32"]
    for i in range(blocks):
        lines += [line.format(i=i, x=i, y=i + 1) for line in BLOCK]
    return [*lines, f"pnnx.Output out 1 0 {blocks} #{blocks}=(1,8,9,9)f32"]


def write(path, lines, counts=None):
    operands = {name for line in lines for name in line.split()[4:][: count_of(line)]}
    operators, named = counts or (len(lines), len(operands))
    path.write_text("\n".join(["7767517", f"{operators} {named}", *lines, ""]))
    return path


def count_of(line):
    return sum(int(count) for count in line.split()[2:4] if count.isdigit())


@pytest.fixture
def look(tmp_path):
    """A function that looks through operator lines."""

    def look(*lines, counts=None):
        return prescan(Reader(write(tmp_path / "m.param", lines, counts)))

    return look


class TestSound:
    def test_weights_are_listed(self, look):
        assert look(*lines_of(2)) == {
            "conv_0.bias": 32,
            "conv_0.weight": 2304,
            "table_0.data": 32,
            "conv_1.bias": 32,
            "conv_1.weight": 2304,
            "table_1.data": 32,
        }

    @pytest.mark.parametrize(
        "line",
        [
            pytest.param("a.A a 1 1 0 1", id="bare"),
            pytest.param("a.A a 2 1 0 0 1", id="twice"),
            pytest.param("a.A a 2 1 0 0 1 #0=(8)f32 #0=(8)f32 #1=(8)f32", id="twice-annotated"),
            pytest.param("a.A a 1 1 0 1 #1=(?,%w,-1)bf16", id="only-the-output"),
            pytest.param("a.A a 1 1 0 1 #0=(9)f32 #1=()null", id="input-differs"),
            pytest.param("a.A a 1 1 0 1 #1=(8)f32 #0=(8)f32", id="other-order"),
            pytest.param("a.A a 1 0 0 k=1 k_2=(1,2) s=ij,  jk->ik $x=0", id="no-output"),
            pytest.param("a.A a 2 1 0 0 1 $x=0", id="one-name"),
            pytest.param("a.A   a 0  3 1 2 3   k=%s", id="blanks"),
        ],
    )
    def test_lines(self, look, line):
        assert look("pnnx.Input in 0 1 0 #0=(8)f32", line) == {}

    def test_corpora(self, shared, samples):
        files = [*shared.glob("**/*.pnnx.param"), *samples.glob("**/*.pnnx.param")]
        assert len(files) > 100
        for path in files:
            graph = Reader(path).read()
            sizes = {name: attribute.nbytes for name, attribute in graph.weights()}
            assert prescan(Reader(path)) in (sizes, None), path
        looked_through = [path for path in files if prescan(Reader(path)) is not None]
        assert len(looked_through) > 0.95 * len(files)


FAULTS = [
    ("a.A a 1 1 9 1", "takes operand '9', which nothing produces"),
    ("a.A a 1 1 9 1 #9=(8)f32 #1=(8)f32", "takes operand '9', which nothing produces"),
    ("a.A in 1 1 0 1", "already has an operator named 'in'"),
    ("a.A a 1 1 0 0", "line 3 already produces operand '0'"),
    ("a.A a 1 1 0 0 #0=(8)f32 #0=(8)f32", "line 3 already produces operand '0'"),
    ("a.A a 1 1 0 k=1", "counts more operands than it names"),
    ("a.A a 1 1 0", "the line counts 1 inputs and 1 outputs"),
    ("a.A a 1", "an operator needs a type, a name"),
    ("", "an operator needs a type, a name"),
    ("a.A a one 1 0 1", "'one' is not a number"),
    ("a.A a 1 1 0 1 k", "'k' is not of the form key=value"),
    ("a.A a 1 1 0 1 k=(1", "lacks its closing bracket"),
    ("a.A a 1 1 0 1 k=1 k=2", "'k' appears twice"),
    ("a.A a 1 1 0 1 k=1 k=2 #0=(8)f32 #1=(8)f32", "'k' appears twice"),
    ("a.A a 1 1 0 1 0=1", "ncnn's own format"),
    ("a.A a 1 1 0 1 @w=(8)f31", "has a dtype that PNNX does not know"),
    ("a.A a 1 1 0 1 @w=(8,?)f32", "leaves a dimension open"),
    ("a.A a 1 1 0 1 $x=1", "names no input of the operator"),
    ("a.A a 1 1 0 1 $x=1 #0=(8)f32 #1=(8)f32", "names no input of the operator"),
    ("a.A a 1 1 0 1 $=0", "names no input of the operator"),
    ("a.A a 2 1 0 0 1 $x=0 $x=0", "two inputs are for the same argument"),
    ("a.A a 2 1 0 0 1 $x=0 $y=0 $z=0", "names no input of the operator"),
    ("a.A a 1 1 0 1 #0=(8)f32 #1=(8)f31", "has a dtype that PNNX does not know"),
    ("a.A a 1 1 0 1 #0=(8)f32 #1=(8", "is not a shape and dtype"),
    ("a.A a 1 1 0 1 #0=(8)f32 #1", "is not a shape and dtype"),
    ("a.A a 1 1 0 1 #0=(8)f32 #2=(8)f32", "an operand that no line so far names"),
    ("a.A a 1 1 0 1 #0=(8)f32 #1=(8)f32 k", "'k' is not of the form key=value"),
    ("a.A #a 1 1 0 1", "an operator needs a type, a name"),
    ("a.A a 1 1 0 #1", "the line counts 1 inputs and 1 outputs"),
]


class TestFaults:
    @pytest.mark.parametrize(("line", "reason"), FAULTS)
    def test_a_faulty_line_is_doubted(self, look, line, reason):
        source = "pnnx.Input in 0 1 0 #0=(8)f32"
        assert look(source, "b.B b 1 1 0 5 #0=(8)f32 #5=(8)f32") == {}
        # behind lines of the same kind, which it may be taken for
        usual = ["b.B b 1 1 0 5 #0=(8)f32 #5=(8)f32", "c.C c 1 1 0 6 k=1 #0=(8)f32 #6=(8)f32"]
        assert look(source, *usual, line, "z.Z z 1 0 0") is None

    def test_doubts_that_are_unfounded(self, look):
        assert look("pnnx.Input in 0 1 0", "#a a 1 1 0 1") is None
        assert look("pnnx.Input in 0 1 é") is None

    @pytest.mark.parametrize("counts", [(1, 1), (3, 1), (2, 0), (2, 2)])
    def test_counts(self, look, counts):
        lines = ["pnnx.Input in 0 1 0", "pnnx.Output out 1 0 0"]
        assert look(*lines) == {}
        assert look(*lines, counts=counts) is None

    @pytest.mark.parametrize(("line", "reason"), FAULTS)
    def test_told_when_a_long_file_is_opened(self, tmp_path, line, reason):
        lines = ["pnnx.Input in 0 1 0 #0=(8)f32"]
        lines += [f"f.F f{i} 1 1 0 r{i} #0=(8)f32 #r{i}=(8)f32" for i in range(2500)]
        path = write(tmp_path / "m.param", [*lines, line, "z.Z z 1 0 0"])
        with pytest.raises(ModelFileError, match=reason.replace("(", r"\(")) as caught:
            load(path)
        assert caught.value.line == 3 + 2501

    TOKENS = st.sampled_from(
        ["a 1 1", "b 0 1", "c 1 1", "d 2 1", "0", "1", "2", "3", "k=1", "k=s", "k=(1", "w",
         "@w=(2)f32", "@w=x", "$a=0", "$a=1", "$b=1", "$", "#0=(1)f32", "#1=(1)f32",
         "#1=(?)i8", "#2=(1)f32", "#", "=", "\nx.X", "\nx.X", "\nx.X", "\nx.X e 1 1 0 2",
         "\nx.X", "\x1c", "é"]
    )  # fmt: skip

    @settings(max_examples=1000)
    @given(st.lists(TOKENS, max_size=30).map(" ".join), st.booleans())
    def test_never_surer_than_the_reader(self, tmp_path_factory, text, annotated):
        note = " #0=(1)f32" if annotated else ""
        path = tmp_path_factory.getbasetemp() / "tokens.param"
        lines = f"pnnx.Input in 0 1 0{note}{text}".splitlines()
        write(path, lines)
        sizes = prescan(Reader(path))
        if sizes is not None:
            graph = Reader(path).read()  # raises where it finds a fault
            assert sizes == {name: a.nbytes for name, a in graph.weights()}


class TestLongFiles:
    @pytest.fixture
    def model(self, tmp_path):
        """A pair of 2402 operators."""
        path = write(tmp_path / "m.param", lines_of(300))
        rng = np.random.default_rng(0)
        sizes = {"bias": 32, "weight": 2304, "data": 32}
        entries = [
            (f"{name}_{i}.{key}", rng.integers(0, 2, sizes[key], np.uint8))
            for i in range(300)
            for name, key in (("conv", "bias"), ("conv", "weight"), ("table", "data"))
        ]
        write_archive(tmp_path / "m.bin", entries)
        return path, dict(entries)

    def test_made_when_looked_at(self, model):
        path, weights = model
        graph = load(path)
        assert not graph.is_made
        assert (graph.has_weights, graph.weights_path) == (True, path.with_suffix(".bin"))
        assert not graph.is_made
        assert len(graph.operators) == 2402
        assert graph.is_made
        conv = graph.get_operator("conv_7")
        np.testing.assert_array_equal(conv.attrs["weight"].data, weights["conv_7.weight"])
        assert graph.same_as(Reader(path).read()) is False  # which has no weights
        assert graph.operands["b7"].consumers == [graph.get_operator("up_7")]

    @pytest.mark.parametrize(
        "look",
        [
            lambda graph: graph.operands,
            lambda graph: graph.unannotated,
            lambda graph: graph.get_operator("in"),
            lambda graph: graph.get_operand("0"),
            lambda graph: list(graph.weights()),
            lambda graph: graph.new_operand("new"),
            lambda graph: graph.new_operator("new.New", "new"),
        ],
    )
    def test_every_way_to_look(self, model, look):
        graph = load(model[0])
        assert look(graph) is not None
        assert graph.is_made
        assert sum(operator.type != "new.New" for operator in graph.operators) == 2402

    def test_an_operator_of_that_name(self, model):
        with pytest.raises(ValueError, match="already has an operator named 'conv_3'"):
            load(model[0]).new_operator("new.New", "conv_3")

    def test_made_once(self, model):
        graph = load(model[0])
        found = []
        threads = [threading.Thread(target=lambda: found.append(graph.operators)) for _ in "ab"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found[0] is found[1]

    def test_structure_only(self, model):
        path, _ = model
        path.with_suffix(".bin").unlink()
        graph = load(path)
        assert (graph.is_made, graph.has_weights, graph.weights_path) == (False, False, None)
        with pytest.raises(ModelFileError, match="opened without its .bin"):
            _ = graph.get_operator("conv_0").attrs["bias"].data

    def test_weights_that_do_not_fit(self, model):
        path, weights = model
        weights["conv_5.bias"] = weights["conv_5.bias"][:-4]
        write_archive(path.with_suffix(".bin"), weights.items())
        with pytest.raises(ModelFileError, match="@bias takes 32 bytes and has 28") as caught:
            load(path)
        assert caught.value.line == 3 + 1 + 5 * 8
        del weights["conv_5.bias"]
        write_archive(path.with_suffix(".bin"), weights.items())
        with pytest.raises(ModelFileError, match=r"1 of the 900 weights .* 'conv_5.bias'"):
            load(path)

    def test_found_by_its_weights(self, model):
        path, _ = model
        renamed = path.with_suffix(".bin").rename(path.parent / "other.bin")
        assert load(path).weights_path == renamed
        assert find_param(renamed) == path
