"""Files of the user's own layers: loaded as a whole or not at all, errors with their line."""

from __future__ import annotations

import hashlib
import sys
import textwrap

import numpy as np
import pytest

import engine
from engine.errors import InferenceError, LayerFileError, ParameterError, RegistrationError
from engine.layers import (
    OperatorCall,
    build_layer,
    layer_files,
    load_layers,
    register,
    registered_types,
    registration,
    unload_layers,
)

RELU = registration("nn.ReLU")


@pytest.fixture(autouse=True)
def unloaded():
    """No test leaves a file loaded."""
    before = registered_types()
    yield
    unload_layers()
    assert registered_types() == before
    assert registration("nn.ReLU") is RELU


@pytest.fixture
def write(tmp_path):
    def write(text, name="mine.py"):
        path = tmp_path / name
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        return path

    return write


TRIPLE = """\
from engine.layers import register

@register("my.Triple", "pnnx.custom_op.my.triple")
def triple(input):
    return input * 3
"""


def run(operator_type, *inputs, params=None, attributes=None):
    names = ("",) * len(inputs)
    call = OperatorCall("op", operator_type, params or {}, attributes or {}, names)
    return build_layer(call).forward(*inputs)


class TestLoading:
    def test_gives_the_file_and_its_types(self, write):
        path = write(TRIPLE)
        loaded = load_layers(path)
        assert loaded.path == path.resolve()
        assert loaded.types == ("my.Triple", "pnnx.custom_op.my.triple")
        assert loaded.sha256 == hashlib.sha256(TRIPLE.encode()).hexdigest()
        assert layer_files() == (loaded,)

    def test_what_it_registers_computes(self, write):
        load_layers(str(write(TRIPLE)))
        np.testing.assert_array_equal(run("my.Triple", np.array([1.0, 2.0])), [3, 6])

    def test_registrations_say_which_file_they_are_from(self, write):
        path = write(TRIPLE)
        load_layers(path)
        assert registration("my.Triple").file == path.resolve()
        assert RELU.file is None

    def test_is_part_of_the_package(self):
        assert engine.load_layers is load_layers

    def test_a_layer_class_with_a_dataclass_and_late_annotations(self, write):
        path = write(
            """\
            from __future__ import annotations
            from dataclasses import dataclass
            from engine.layers import Layer, register
            from engine.values import Array

            @dataclass
            class Settings:
                gain: float

            @register("my.Gain")
            class Gain(Layer):
                def __init__(self, weight: Array, gain: float = 1.0) -> None:
                    self.weight, self.settings = weight, Settings(gain)

                def forward(self, input: Array) -> Array:
                    return input * self.weight * self.settings.gain
            """
        )
        load_layers(path)
        weight = np.array([1.0, 10.0])
        got = run("my.Gain", np.ones(2), params={"gain": 2}, attributes={"weight": weight})
        assert got.tolist() == [2, 20]
        with pytest.raises(ParameterError, match=r"parameter gain is 'x', not a number"):
            run("my.Gain", params={"gain": "x"}, attributes={"weight": weight})

    def test_random_numbers_come_from_the_sessions_seed(self, write, make_pair):
        load_layers(
            write(
                """\
                import numpy as np
                from engine.layers import register
                from engine.values import Array

                @register("my.Noise")
                def noise(input: Array, *, rng: np.random.Generator) -> Array:
                    return input + rng.normal(size=input.shape)
                """
            )
        )
        model = make_pair(
            "pnnx.Input in 0 1 0 #0=(4)f64", "my.Noise noise 1 1 0 1", "pnnx.Output out 1 0 1"
        )
        drawn = []
        for seed in (1, 1, 2):
            session = engine.Session(engine.load(model), seed=seed)
            session.feed([np.zeros(4)])
            session.run()
            drawn.append(session.outputs()[0].tolist())
        assert drawn[0] == drawn[1] != drawn[2]

    def test_is_not_run_as_a_program(self, write):
        load_layers(write(TRIPLE + "if __name__ == '__main__':\n    raise SystemExit(1)\n"))

    def test_knows_its_own_place(self, write):
        path = write(TRIPLE + "from pathlib import Path\nHERE = Path(__file__)\n")
        load_layers(path)
        module = sys.modules[registration("my.Triple").target.__module__]
        assert path.resolve() == module.HERE

    def test_two_files_of_one_name(self, write, tmp_path):
        (tmp_path / "other").mkdir()
        load_layers(write(TRIPLE))
        load_layers(write(TRIPLE.replace("my.", "your.").replace("3", "4"), "other/mine.py"))
        assert run("my.Triple", 1) == 3
        assert run("your.Triple", 1) == 4

    def test_the_encoding_that_it_declares(self, tmp_path):
        path = tmp_path / "latin.py"
        text = f"# -*- coding: latin-1 -*-\nNAME = 'Größe'\n{TRIPLE}"
        path.write_bytes(text.encode("latin-1"))
        load_layers(path)
        assert sys.modules[registration("my.Triple").target.__module__].NAME == "Größe"


class TestLoadingAgain:
    def test_replaces_what_it_registered(self, write):
        load_layers(write(TRIPLE))
        loaded = load_layers(
            write(TRIPLE.replace("my.Triple", "my.Fourfold").replace("3", "4"))
        )
        assert loaded.types == ("my.Fourfold", "pnnx.custom_op.my.triple")
        assert run("my.Fourfold", 1) == 4
        assert registration("my.Triple") is None

    def test_a_file_that_became_wrong_leaves_the_earlier_layers(self, write):
        load_layers(write(TRIPLE))
        with pytest.raises(LayerFileError):
            load_layers(write("def triple(:"))
        assert run("my.Triple", 1) == 3
        assert len(layer_files()) == 1
        assert hasattr(sys.modules[registration("my.Triple").target.__module__], "triple")

    def test_graphs_that_are_open_keep_their_layers(self, write, make_pair):
        load_layers(write(TRIPLE))
        graph = engine.load(make_pair("pnnx.Input in 0 1 0", "my.Triple op 1 1 0 1",
                                      "pnnx.Output out 1 0 1"))  # fmt: skip
        load_layers(write(TRIPLE.replace("3", "4")))
        assert graph.forward([np.ones(2)])[0].tolist() == [3, 3]
        unload_layers()
        assert graph.forward([np.ones(2)])[0].tolist() == [3, 3]
        assert graph.operator("op").layer_file.name == "mine.py"

    def test_unloading_one_of_two(self, write):
        first = write(TRIPLE)
        load_layers(first)
        load_layers(write(TRIPLE.replace("my.", "your."), "yours.py"))
        unload_layers(first)
        assert [file.path.name for file in layer_files()] == ["yours.py"]
        assert registration("my.Triple") is None
        unload_layers(first)  # once more does no harm


class TestReplacing:
    def test_one_of_the_engine_has_to_be_asked_for(self, write):
        path = write(TRIPLE.replace("my.Triple", "nn.ReLU"))
        with pytest.raises(LayerFileError) as caught:
            load_layers(path)
        assert str(caught.value) == (
            f"{path}:3: 'nn.ReLU' is already registered by engine.layers.activations.relu; "
            "register(…, replace=True) replaces it"
        )
        assert registration("pnnx.custom_op.my.triple") is None

    def test_counts_until_the_file_is_unloaded(self, write):
        load_layers(write(TRIPLE.replace('triple")', 'triple", "nn.ReLU", replace=True)')))
        assert run("nn.ReLU", np.float32(-1)) == -3
        unload_layers()
        assert run("nn.ReLU", np.array(-1.0)) == 0

    @pytest.mark.parametrize("backend", ["auto", "numpy"])
    def test_counts_whoever_computes_the_engines_own(self, write, make_pair, backend):
        load_layers(write(TRIPLE.replace('triple")', 'triple", "nn.ReLU", replace=True)')))
        model = make_pair(
            "pnnx.Input in 0 1 0 #0=(1,2)f32",
            "nn.ReLU relu 1 1 0 1 #0=(1,2)f32 #1=(1,2)f32",
            "pnnx.Output out 1 0 1",
        )
        session = engine.Session(engine.load(model), backend=backend)
        session.feed([np.full((1, 2), -1, np.float32)])
        session.run()
        assert session.outputs()[0].tolist() == [[-3, -3]]

    def test_twice_in_one_file(self, write):
        path = write(TRIPLE + '\n@register("my.Triple")\ndef again(input):\n    return 1\n')
        with pytest.raises(
            LayerFileError, match=r"mine.py:7: 'my.Triple' is .* triple in mine"
        ):
            load_layers(path)

    def test_another_file(self, write):
        load_layers(write(TRIPLE))
        second = write(TRIPLE.replace("3", "4"), "second.py")
        with pytest.raises(LayerFileError, match=r"second.py:3: .* by triple in mine.py;"):
            load_layers(second)
        write(
            TRIPLE.replace("3", "4").replace('triple")', 'triple", replace=True)'), "second.py"
        )
        load_layers(second)
        assert run("my.Triple", 1) == 4

    def test_the_file_below_can_be_loaded_again(self, write):
        """Reloading all files in order must not depend on what lies above."""
        replacing = TRIPLE.replace("3", "4").replace('triple")', 'triple", replace=True)')
        load_layers(write(TRIPLE))
        load_layers(write(replacing, "second.py"))
        load_layers(write(TRIPLE))
        assert run("my.Triple", 1) == 4

    def test_the_file_below_cannot_take_what_lies_above(self, write):
        load_layers(write(TRIPLE.replace("my.Triple", "my.Double")))
        load_layers(
            write('from engine.layers import register\nregister("my.Triple")(abs)\n', "b.py")
        )
        with pytest.raises(
            LayerFileError, match=r"'my.Triple' is already registered by abs in b"
        ):
            load_layers(write(TRIPLE))
        assert registration("my.Double") is not None

    def test_in_a_program_of_ones_own(self, monkeypatch):
        from engine.layers import registry

        monkeypatch.setattr(registry, "_registry", type(registry._registry)())
        register("test.a")(abs)
        with pytest.raises(RegistrationError):
            register("test.a")(len)
        register("test.a", replace=True)(len)
        assert registration("test.a").target is len


REGISTERING = "from engine.layers import Layer, register\n"

WRONG = {
    # text of the file, line, beginning of the reason
    "syntax": ("x = 1\ndef f(:\n", 2, "SyntaxError: invalid syntax"),
    "indentation": ("def f():\nreturn 1\n", 2, "IndentationError: "),
    "import": ("import no_where\n", 1, "ModuleNotFoundError: No module named 'no_where'"),
    "deepest line of the file": ("def f():\n    1 / 0\n\nf()\n", 2, "ZeroDivisionError: div"),
    "not of a library": ("import json\n\njson.loads('{')\n", 3, "JSONDecodeError: "),
    "without words": ("raise KeyError\n", 1, "KeyError"),
    "in several lines": ("raise ValueError('one\\n  two')\n", 1, "ValueError: one two"),
    "exit": ("import sys\nsys.exit(3)\n", 2, "SystemExit: 3"),
    "syntax elsewhere": ("exec('1 +')\n", 1, "SyntaxError: invalid syntax"),
    "bare decorator": (
        f"{REGISTERING}@register\ndef f(x):\n    ...\n",
        2,
        'state the operator types: @register("my.Operator")',
    ),
    "no type": (
        f"{REGISTERING}@register()\ndef f(x):\n    ...\n",
        2,
        'state the operator types: @register("my.Operator")',
    ),
    "no layer": (
        f"{REGISTERING}@register('my.A')\nclass A:\n    ...\n",
        2,
        "A is not a Layer: write class A(Layer)",
    ),
    "no forward": (
        f"{REGISTERING}@register('my.A')\nclass A(Layer):\n    ...\n",
        2,
        "A has no method forward(self, input, …)",
    ),
    "no function": (
        f"{REGISTERING}register('my.A')(3)\n",
        2,
        "3 is neither a function nor a Layer class",
    ),
    "empty": ("", None, "it registers no operator type: "),
}


class TestWrongFiles:
    @pytest.mark.parametrize(("text", "line", "reason"), WRONG.values(), ids=WRONG)
    def test_are_told_with_their_line(self, write, text, line, reason):
        path = write(text)
        with pytest.raises(LayerFileError) as caught:
            load_layers(path)
        place = f"{path}:{line}: " if line else f"{path}: "
        assert str(caught.value).startswith(f"{place}{reason}")
        assert "\n" not in str(caught.value)
        assert caught.value.line == line
        assert layer_files() == ()

    def test_nothing_is_half_registered(self, write):
        with pytest.raises(LayerFileError, match=r":7: ZeroDivisionError"):
            load_layers(write(TRIPLE + "\n1 / 0\n"))
        assert registration("my.Triple") is None
        assert not [name for name in sys.modules if name.startswith("kuiper_user_layers")]

    def test_a_file_that_is_not_there(self, tmp_path):
        with pytest.raises(LayerFileError) as caught:
            load_layers(tmp_path / "none.py")
        assert str(caught.value) == (
            f"{tmp_path / 'none.py'}: it cannot be read: there is no such file or folder"
        )

    def test_a_folder(self, tmp_path):
        with pytest.raises(LayerFileError, match="it cannot be read: it is a folder"):
            load_layers(tmp_path)

    def test_what_is_no_text(self, tmp_path):
        (tmp_path / "picture.py").write_bytes(b"\x89PNG\xff\xfe")
        with pytest.raises(LayerFileError, match=r"picture.py(:\d+)?: "):
            load_layers(tmp_path / "picture.py")

    def test_interrupting_rolls_back(self, write):
        with pytest.raises(KeyboardInterrupt):
            load_layers(write(TRIPLE + "\nraise KeyboardInterrupt\n"))
        assert registration("my.Triple") is None


class TestFailures:
    @pytest.fixture
    def graph(self, write, make_pair):
        def build(body, parameters=""):
            text = "import numpy as np\nfrom engine.errors import LayerError\n"
            text += "from engine.layers import Layer, register\n\n" + textwrap.dedent(body)
            load_layers(write(text))
            return engine.load(
                make_pair(
                    "pnnx.Input in 0 1 0 #0=(2)f32",
                    f"my.Op it 1 1 0 1 {parameters} #0=(2)f32 #1=(2)f32",
                    "pnnx.Output out 1 0 1 #1=(2)f32",
                )
            )

        return build

    @pytest.mark.parametrize(
        ("statement", "reason"),
        [
            (
                "return input.none",
                "AttributeError: 'numpy.ndarray' object has no attribute 'none'",
            ),
            ("return {}['scale']", "KeyError: 'scale'"),
            ("raise RuntimeError", "RuntimeError"),
            ("raise LayerError('the scale is 0')", "the scale is 0"),
            ("raise MemoryError('4 TB')", "MemoryError: not enough memory: 4 TB"),
            ("return [1][\n        2\n    ]", "IndexError: list index out of range"),
        ],
    )
    def test_name_operator_file_and_line(self, graph, statement, reason):
        opened = graph(f"@register('my.Op')\ndef op(input):\n    {statement}\n")
        with pytest.raises(InferenceError) as caught:
            opened.forward([np.ones(2)])
        assert str(caught.value) == f"my.Op 'it' failed on inputs 2: {reason} (mine.py:7)"

    def test_the_deepest_line_of_the_users_code(self, graph):
        opened = graph(
            """\
            def helper(x):
                return np.linalg.inv(x)

            @register("my.Op")
            def op(input):
                return helper(np.zeros((2, 2)))
            """
        )
        with pytest.raises(
            InferenceError, match=r"LinAlgError: Singular matrix \(mine.py:6\)$"
        ):
            opened.forward([np.ones(2)])

    def test_inputs_are_read_only(self, graph):
        opened = graph("@register('my.Op')\ndef op(input):\n    input += 1\n    return input\n")
        with pytest.raises(InferenceError, match=r"read-only \(mine.py:7\)$"):
            opened.forward([np.ones(2)])

    def test_what_is_no_value(self, graph):
        opened = graph("@register('my.Op')\ndef op(input):\n    return {}\n")
        with pytest.raises(InferenceError, match="a layer returned dict, which is no tensor"):
            opened.forward([np.ones(2)])

    @pytest.mark.parametrize("statement", ["1 / 0", "{}['x']", "raise RuntimeError('no')"])
    def test_one_that_cannot_be_built_leaves_the_model_open(self, graph, statement):
        opened = graph(
            f"""\
            @register("my.Op")
            class Op(Layer):
                def __init__(self, gain: float = 1.0):
                    {statement}

                def forward(self, input):
                    return input
            """,
            "gain=2",
        )
        (operator,) = opened.unsupported
        assert operator.name == "it"
        assert operator.reason.startswith("my.Op 'it': ")
        assert operator.reason.endswith("(mine.py:8)")

    def test_a_parameter_that_the_code_does_not_know(self, graph):
        opened = graph(
            "@register('my.Op')\ndef op(input, gain=1):\n    return input\n", "size=3"
        )
        assert opened.operator("it").reason == (
            "my.Op 'it': parameter size=3 is not known to this layer, which takes input, gain"
        )

    def test_annotations_that_cannot_be_read(self, write, make_pair):
        text = "from __future__ import annotations\nimport numpy as np\n"
        text += "from engine.layers import register\n@register('my.Op')\n"
        load_layers(write(f"{text}def op(input: np.nothing):\n    return input\n"))
        opened = engine.load(make_pair("pnnx.Input in 0 1 0", "my.Op it 1 1 0 1"))
        assert opened.operator("it").reason == (
            "my.Op 'it': the annotations of op cannot be read: "
            "module 'numpy' has no attribute 'nothing'"
        )
