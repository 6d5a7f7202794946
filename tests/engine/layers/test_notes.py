"""Notes on operators: made from docstrings and signatures, for every registered type."""

from __future__ import annotations

import re
from typing import Any

import numpy as np  # noqa: TC002 - annotations are looked at
import pytest

from engine.layers import (
    OperandOf,
    OperatorCall,
    WeightOf,
    load_layers,
    register,
    registered_types,
    unload_layers,
)
from engine.layers import registry as registry_module
from engine.layers.docstrings import Field, read_docstring
from engine.layers.notes import ArgumentNote, note
from engine.values import Array, Value


@pytest.fixture
def empty_registry(monkeypatch):
    monkeypatch.setattr(registry_module, "_registry", type(registry_module._registry)())


def named(found, name):
    return next(argument for argument in found.arguments if argument.name == name)


class TestDocstrings:
    def test_all_parts(self):
        read = read_docstring(
            """Sum of two: ``torch.add``.

            First line
            goes on.

            Second paragraph.

            Parameters
            ----------
            a, b : ndarray of shape (N,)
                Summands,
                of one length.
            mode : str
            *more : int
            m.0.weight, m.1.weight, ... : ndarray

            Returns
            -------
            ndarray of shape (N,)
                A new array.
            int
            """
        )
        assert read.summary == "Sum of two: ``torch.add``."
        assert read.details == ("First line goes on.", "Second paragraph.")
        summands = Field("ndarray of shape (N,)", "Summands, of one length.")
        assert read.parameters == {
            "a": summands,
            "b": summands,
            "mode": Field("str", ""),
            "*more": Field("int", ""),
            "m.0.weight": Field("ndarray", ""),
            "m.1.weight": Field("ndarray", ""),
        }
        assert read.returns == (
            Field("ndarray of shape (N,)", "A new array."),
            Field("int", ""),
        )

    @pytest.mark.parametrize("text", [None, "", "\n   \n"])
    def test_none(self, text):
        read = read_docstring(text)
        assert (read.summary, read.details, read.parameters, read.returns) == ("", (), {}, ())

    def test_one_line(self):
        assert read_docstring("Nothing more.").summary == "Nothing more."

    def test_a_section_that_is_not_known(self):
        read = read_docstring("A.\n\nNotes\n-----\nLong.\n\nParameters\n----------\nx : int\n")
        assert (read.summary, read.details) == ("A.", ())
        assert read.parameters == {"x": Field("int", "")}


def faults_of(summary):
    """What keeps a text from being one meaningful sentence."""
    words = re.sub(r"``.*?``", "", summary)
    return [
        fault
        for fault, there in {
            "too short": len(summary) < 5,
            "no full stop": not summary.endswith("."),
            "more than one sentence": re.search(r"\.\s", words),
            "a private name": re.search(r"(?<!\w)_[a-z]", words),
            "something was cut off": ":." in summary or summary.count("`") % 2,
            "a small letter first": words[:1] != words[:1].upper(),
        }.items()
        if there
    ]


def engine_types():
    """Without those that other tests register."""
    return [name for name in registered_types() if not name.startswith("test.")]


class TestEveryType:
    """All types at once: there are more than a thousand."""

    def test_has_one_meaningful_sentence(self):
        faults = {name: faults_of(note(name).summary) for name in engine_types()}
        assert {name: found for name, found in faults.items() if found} == {}

    def test_says_what_each_parameter_means(self):
        """In the docstring, or in the glossary where an argument is common."""
        silent = {
            name: [
                argument.name
                for argument in note(name).arguments
                if argument.kind == "parameter" and not argument.meaning
            ]
            for name in engine_types()
        }
        assert {name: found for name, found in silent.items() if found} == {}

    def test_marks_are_closed(self):
        for name in engine_types():
            found = note(name)
            texts = [*found.details, *found.returns]
            texts += [text for a in found.arguments for text in (a.meaning, a.accepts)]
            assert [text for text in texts if text.count("``") % 2] == [], name

    def test_names_what_exists_in_pytorch(self):
        torch = pytest.importorskip("torch")
        missing = []
        for name in engine_types():
            library, _, path = note(name).reference.partition(".")
            if library != "torch" or path.startswith("ops."):
                continue
            found = torch
            for part in path.split("."):
                found = getattr(found, part, None)
            if not callable(found):
                missing.append(name)
        assert missing == []

    def test_only_what_pytorch_lacks_has_no_name_there(self):
        nameless = {name for name in engine_types() if not note(name).reference}
        theirs = re.compile(r"pnnx\.|prim::|models\.|Tensor\.(index|slice|slice_copy)$")
        assert [name for name in nameless if not theirs.match(name)] == []


PAGE = "https://docs.pytorch.org/docs/stable/generated/"
AUDIO = "https://docs.pytorch.org/audio/stable/generated/"


class TestReferences:
    @pytest.mark.parametrize(
        ("operator_type", "reference", "page"),
        [
            ("nn.Conv2d", "torch.nn.Conv2d", f"{PAGE}torch.nn.Conv2d.html"),
            ("F.relu", "torch.nn.functional.relu", f"{PAGE}torch.nn.functional.relu.html"),
            ("Tensor.view", "torch.Tensor.view", f"{PAGE}torch.Tensor.view.html"),
            ("torch.add", "torch.add", f"{PAGE}torch.add.html"),
            ("torch.fft.fft", "torch.fft.fft", f"{PAGE}torch.fft.fft.html"),
            ("aten::add", "torch.ops.aten.add", f"{PAGE}torch.add.html"),
            ("aten::gru_cell", "torch.ops.aten.gru_cell", f"{PAGE}torch.nn.GRUCell.html"),
            ("torch.max_pool2d", "torch.max_pool2d",
             f"{PAGE}torch.nn.functional.max_pool2d.html"),
            ("torch.masked_fill", "torch.masked_fill", f"{PAGE}torch.Tensor.masked_fill.html"),
            ("Tensor.relu", "torch.Tensor.relu", f"{PAGE}torch.nn.functional.relu.html"),
            ("Tensor.fill", "torch.Tensor.fill_", f"{PAGE}torch.Tensor.fill_.html"),
            ("nn.quantized.Conv2d", "torch.ao.nn.quantized.Conv2d",
             f"{PAGE}torch.ao.nn.quantized.Conv2d.html"),
            ("torchvision.ops.nms", "torchvision.ops.nms",
             "https://docs.pytorch.org/vision/stable/generated/torchvision.ops.nms.html"),
            ("pnnx.custom_op.torchvision.nms", "torchvision.ops.nms",
             "https://docs.pytorch.org/vision/stable/generated/torchvision.ops.nms.html"),
            ("torchaudio.functional.spectrogram", "torchaudio.functional.spectrogram",
             f"{AUDIO}torchaudio.functional.spectrogram.html"),
            ("ReduceMax", "ONNX ReduceMax",
             "https://onnx.ai/onnx/operators/onnx__ReduceMax.html"),
            ("pnnx.custom_op.my.op", "torch.ops.my.op", ""),
            ("Tensor.slice", "", ""),
            ("pnnx.Expression", "", ""),
            ("my.Module", "", ""),
            ("nn.Unheard", "torch.nn.Unheard", f"{PAGE}torch.nn.Unheard.html"),
        ],
    )  # fmt: skip
    def test_name_and_page(self, operator_type, reference, page):
        found = note(operator_type)
        assert (found.reference, found.url) == (reference, page)


class TestNotes:
    def test_a_module(self):
        found = note("nn.MaxPool2d")
        assert found.known
        assert found.summary == "Largest value of each window."
        assert found.details[0].startswith("``y[n, c, p] = max over t of x[n, c,")
        assert found.same[:3] == ("F.max_pool1d", "F.max_pool2d", "F.max_pool3d")
        assert "nn.MaxPool2d" not in found.same
        assert [a.name for a in found.arguments] == [
            "kernel_size", "stride", "padding", "dilation", "ceil_mode", "return_indices",
            "input",
        ]  # fmt: skip
        assert named(found, "stride") == ArgumentNote(
            "stride",
            "parameter",
            "int or tuple of int, optional",
            "`kernel_size` by default.",
            "None",
        )
        assert named(found, "kernel_size").default == ""
        assert named(found, "input").kind == "operand"

    def test_where_a_weight_is_depends_on_the_type(self):
        assert named(note("nn.PReLU"), "weight").kind == "attribute"
        assert named(note("F.prelu"), "weight").kind == "operand"
        assert named(note("nn.BatchNorm2d"), "running_var").kind == "attribute"
        # A module's weight is its attribute; what it takes beside its input is not.
        bag = note("nn.EmbeddingBag")
        assert named(bag, "weight").kind == "attribute"
        assert named(bag, "per_sample_weights").kind == "operand"

    def test_what_an_argument_is_the_annotation_says_and_no_text(self, empty_registry):
        @register("nn.Gate", "my.gate")
        def gate(
            x: OperandOf[Value],
            table: Array,
            slope: WeightOf[Any],
            bias: WeightOf[Array | None] = None,
            weight: Any = None,
            input: Any = None,
            **more: Array,
        ) -> Value:
            """Open and close.

            Parameters
            ----------
            weight : ndarray of shape (N,)
                Called one.
            input : ndarray
                Likewise.
            rest : int
                Of any name.
            """
            return x

        assert [(a.name, a.kind) for a in note("nn.Gate").arguments] == [
            ("x", "operand"), ("table", "operand"), ("slope", "attribute"),
            ("bias", "attribute"), ("weight", "parameter"), ("input", "parameter"),
            ("rest", "operand"),
        ]  # fmt: skip
        assert [(a.name, a.kind) for a in note("my.gate").arguments[2:4]] == [
            ("slope", "operand"), ("bias", "operand"),
        ]  # fmt: skip

    def test_results(self):
        assert note("F.group_norm").returns == (
            "ndarray of shape (N, C, ...): ``(x - mean) / sqrt(var + eps) * weight + bias``.",
        )

    def test_arguments_as_elsewhere(self):
        reduction = named(note("F.l1_loss"), "reduction")
        assert reduction == named(note("F.mse_loss"), "reduction")
        assert reduction.meaning == "``mean``, ``sum`` or ``none``."
        assert named(note("nn.LSTM"), "hidden_size") == named(note("nn.RNN"), "hidden_size")

    def test_arguments_that_the_signature_does_not_name(self):
        found = note("models.yolo.Detect")
        assert named(found, "m.0.weight").kind == "attribute"
        assert "..." not in [argument.name for argument in found.arguments]

    def test_arguments_that_make_no_difference_come_last(self):
        found = note("torch.full")
        assert [a.name for a in found.arguments] == [
            "size", "fill_value", "dtype", "layout", "device", "pin_memory", "requires_grad",
        ]  # fmt: skip
        assert found.arguments[-1] == ArgumentNote(
            "requires_grad",
            "parameter",
            "True or False",
            "No effect: there are no gradients.",
            "None",
        )

    def test_arguments_that_make_no_difference_in_a_users_words(self, empty_registry):
        @register("test.plain", unused="hint speed")
        def plain(input: Array) -> Array:
            """Give the input.

            Parameters
            ----------
            hint : str
                For a compiler.
            """
            return input

        assert [(a.name, a.meaning) for a in note("test.plain").arguments] == [
            ("input", ""), ("hint", "For a compiler."), ("speed", "No effect."),
        ]  # fmt: skip

    def test_the_arguments_of_an_extension(self):
        found = note("pnnx.custom_op.torchvision.roi_align")
        assert [a.name for a in found.arguments][2] == "spatial_scale"
        assert found.arguments == note("torchvision::roi_align").arguments

    def test_what_the_frame_gives_is_left_out(self, empty_registry):
        @register("test.all")
        def everything(
            input: Array,
            operator: OperatorCall,
            *operands: Array,
            size: int | tuple[int, ...],
            generator: np.random.Generator,
            gain: float | None = None,
            **more: int,
        ) -> Array:
            """Do everything.

            Parameters
            ----------
            *operands : ndarray
                All the rest.
            later : int
                Taken as it comes.
            """
            return input

        assert note("test.all").arguments == (
            ArgumentNote("input", "operand", "a tensor", "", ""),
            ArgumentNote("operands", "operand", "ndarray", "All the rest.", ""),
            ArgumentNote("size", "parameter", "an integer or a list of integers",
                         "Sizes of the result's dimensions.", ""),
            ArgumentNote("gain", "parameter", "a number", "", "None"),
            ArgumentNote("later", "parameter", "int", "Taken as it comes.", ""),
        )  # fmt: skip

    @pytest.mark.parametrize(
        ("text", "summary"),
        [
            ("Copy a tensor: ``torch.clone``.", "Copy a tensor."),
            ("Norm: ``torch.dist``; of shape ().", "Norm; of shape ()."),
            ("Power: ``torch.pow``; as ``torch.mul``.", "Power."),
            ("Mean: ``torch.nn.A``, ``B`` and its kin.", "Mean."),
            ("Add: ``a + b``, ``torch.addmm``.", "Add: ``a + b``."),
            ("Sum: ONNX ``ReduceSum``.", "Sum."),
            ("Ranges: ``x[1:2]``.", "Ranges: ``x[1:2]``."),
            ("``F.a`` of the sigmoid; `b` counts.", "``F.a`` of the sigmoid; `b` counts."),
            ("Without a full stop", "Without a full stop."),
            ("", ""),
        ],
    )
    def test_the_summary_leaves_out_where_it_comes_from(self, empty_registry, text, summary):
        def code(input):
            return input

        code.__doc__ = text
        register("test.code")(code)
        assert note("test.code").summary == summary

    @pytest.mark.parametrize(
        ("operator_type", "sentence"),
        [
            ("torch.rand", "Random: it uses the session's random seed."),
            (
                "F.dropout",
                (
                    "Random: it uses the session's random seed, unless ``training=False`` "
                    "or ``p=0``."
                ),
            ),
        ],
    )
    def test_what_is_random(self, operator_type, sentence):
        assert note(operator_type).details[-1] == sentence
        assert not any("Random" in text for text in note("nn.ReLU").details)

    def test_the_graphs_own_operators(self):
        assert note("pnnx.Input").summary == "Input of the model."
        assert note("pnnx.Input").known

    def test_an_unknown_type(self):
        found = note("my.Strange")
        assert (found.known, found.summary, found.arguments) == (False, "", ())

    def test_a_users_layer(self, tmp_path):
        path = tmp_path / "mine.py"
        path.write_text(
            "from engine.layers import Layer, register\n"
            '@register("my.Documented")\n'
            'def f(input, gain: float = 2.0):\n    """Do a thing."""\n    return input\n'
            '@register("my.Silent")\n'
            "class Silent(Layer):\n    def forward(self, input):\n        return input\n",
            encoding="utf-8",
        )
        load_layers(path)
        try:
            found, silent = note("my.Documented"), note("my.Silent")
        finally:
            unload_layers()
        assert (found.summary, found.file) == ("Do a thing.", path.resolve())
        assert named(found, "gain").default == "2.0"
        assert (silent.summary, silent.known) == ("", True)
        assert [argument.name for argument in silent.arguments] == ["input"]

    def test_the_engines_code_has_no_file(self):
        assert note("nn.ReLU").file is None
