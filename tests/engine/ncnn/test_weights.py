"""The ``.bin`` of ncnn, and which files belong together."""

from __future__ import annotations

import pickle
import struct

import numpy as np
import pytest
from ncnn_files import F16, INT8, f32, tagged, write_pair

import engine
from engine.errors import ModelFileError
from engine.ncnn.types import TYPES, weight_specs
from engine.runtime.description import DescribedLayers, describe, graph_of

INPUT = "Input in0 0 1 a 0=4 1=4 2=2"
CONVOLUTION = "Convolution conv 1 1 a b 0=3 1=1 5=1 6=6"
LINES = [INPUT, CONVOLUTION]
WEIGHT = np.arange(6, dtype=np.float32).reshape(3, 2, 1, 1) / 4
BIAS = np.array([1, 2, 3], np.float32)


def weight_of(path):
    return engine.load(path).operator("conv").attributes["weight"]


class TestStorage:
    def test_float32(self, tmp_path):
        path = write_pair(tmp_path, LINES, tagged(WEIGHT) + f32(BIAS))
        operator = engine.load(path).operator("conv")
        assert operator.attributes["weight"].array.tolist() == WEIGHT.tolist()
        assert operator.attributes["bias"].array.tolist() == BIAS.tolist()

    def test_float32_with_its_other_tag(self, tmp_path):
        path = write_pair(tmp_path, LINES, tagged(WEIGHT, 0x0002C056) + f32(BIAS))
        assert weight_of(path).array.tolist() == WEIGHT.tolist()

    def test_float16(self, tmp_path):
        path = write_pair(tmp_path, LINES, tagged(WEIGHT.astype(np.float16), F16) + f32(BIAS))
        weight = weight_of(path)
        assert weight.stored_dtype == "f16"
        assert weight.array.tolist() == WEIGHT.tolist()

    @pytest.mark.parametrize("backend", ["numpy", "ncnn"])
    def test_bfloat16(self, tmp_path, backend):
        if backend == "ncnn":
            pytest.importorskip("ncnn")
        upper = (WEIGHT.view(np.uint32) >> 16).astype(np.uint16)  # exact for these numbers
        path = write_pair(tmp_path, LINES, tagged(upper, 0x01348B83) + f32(BIAS))
        weight = weight_of(path)
        assert weight.stored_dtype == "bf16"
        assert weight.array.tolist() == WEIGHT.tolist()
        session = engine.Session(engine.load(path), backend=backend)
        session.feed([np.ones((2, 4, 4), np.float32)])
        session.run()
        assert session.value("b")[:, 0, 0].tolist() == [1.25, 3.25, 5.25]  # 0+1, 2+3, 4+5

    def test_int8_and_its_scales(self, tmp_path):
        values = np.array([-127, 1, 2, 3, 4, 127], np.int8)
        data = tagged(values, INT8) + f32(BIAS) + f32([10, 20, 30]) + f32([5])
        path = write_pair(tmp_path, [INPUT, f"{CONVOLUTION} 8=2"], data)
        attributes = engine.load(path).operator("conv").attributes
        assert attributes["weight"].array.reshape(-1).tolist() == values.tolist()
        assert attributes["weight_int8_scales"].array.tolist() == [10, 20, 30]
        assert attributes["bottom_int8_scales"].array.tolist() == [5]

    @pytest.mark.parametrize("load_type", [3, 4, 6, 8])
    def test_bytes_in_a_memory_data(self, tmp_path, load_type):
        memory = f"MemoryData mask 0 1 m 0=3 1=2 21={load_type}"
        values = np.array([1, 0, -1, 127, -128, 5], np.int8)
        data = values.tobytes() + b"\0\0" + tagged(WEIGHT) + f32(BIAS)  # up to 4 bytes
        operators = engine.load(write_pair(tmp_path, [memory, *LINES], data)).operators
        attributes = {operator.name: operator.attributes for operator in operators}
        assert attributes["mask"]["data"].array.tolist() == [[1, 0, -1], [127, -128, 5]]
        assert attributes["conv"]["bias"].array.tolist() == BIAS.tolist()

    @pytest.mark.parametrize("others", [(), ("MemoryData q 0 1 q 0=1",)])
    def test_float64_in_a_memory_data(self, tmp_path, others):
        lines = ["MemoryData p 0 1 p 0=3 1=2", *others, INPUT, "ReLU relu 1 1 a b"]
        data = np.ones(6, np.float64).tobytes() + b"\0\0\0\0" * len(others)
        with pytest.raises(ModelFileError, match="constant 'p' with 8 bytes per element"):
            engine.load(write_pair(tmp_path, lines, data))
        with pytest.raises(ModelFileError, match="it belongs to another model"):
            engine.load(write_pair(tmp_path, lines, data + b"\0" * 8))

    def test_a_memory_data_that_ncnn_cannot_read(self, tmp_path):
        memory = "MemoryData mask 0 1 m 0=3 1=2 21=2"
        path = write_pair(tmp_path, [memory, *LINES], b"\0" * 12 + tagged(WEIGHT) + f32(BIAS))
        with pytest.raises(ModelFileError, match="position of this weight is unknown"):
            _ = weight_of(path).array

    @pytest.mark.parametrize("backend", ["numpy", "ncnn"])
    def test_bytes_are_computed_with_as_numbers(self, tmp_path, backend):
        if backend == "ncnn":
            pytest.importorskip("ncnn")
        lines = ["MemoryData mask 0 1 m 0=3 1=2 21=3", "ReLU relu 1 1 m r"]
        path = write_pair(
            tmp_path, lines, np.array([1, 0, -1, 9, -8, 5, 0, 0], np.int8).tobytes()
        )
        session = engine.Session(engine.load(path), backend=backend)
        session.run()
        assert session.value("m").tolist() == [[1, 0, -1], [9, -8, 5]]
        assert session.value("r").tolist() == [[1, 0, 0], [9, 0, 5]]

    def test_a_table_of_256(self, tmp_path):
        table = np.linspace(-1, 1, 256, dtype=np.float32)
        indexes = np.array([0, 255, 7, 7, 128, 3], np.uint8)
        data = struct.pack("<I", 1) + table.tobytes() + indexes.tobytes() + b"\0\0"
        path = write_pair(tmp_path, LINES, data + f32(BIAS))
        operator = engine.load(path).operator("conv")
        expected = [table[index] for index in indexes]
        assert operator.attributes["weight"].array.reshape(-1).tolist() == expected
        assert operator.attributes["bias"].array.tolist() == BIAS.tolist()


class TestPairs:
    def test_a_short_file_is_refused(self, tmp_path):
        path = write_pair(tmp_path, LINES, tagged(WEIGHT) + f32(BIAS)[:-1])
        with pytest.raises(ModelFileError, match=r"'conv' needs 12 bytes .* file has 39"):
            engine.load(path)

    def test_a_long_file_is_refused(self, tmp_path):
        path = write_pair(tmp_path, LINES, tagged(WEIGHT) + f32(BIAS) + b"\0\0\0\0")
        with pytest.raises(ModelFileError, match="need 40 bytes, but the file has 44"):
            engine.load(path)

    def test_huge_sizes_take_no_memory(self, tmp_path):
        lines = [INPUT, "Convolution conv 1 1 a b 0=2147483647 1=1 6=2147483647"]
        path = write_pair(tmp_path, lines, tagged(WEIGHT))
        with pytest.raises(ModelFileError, match="needs 8589934588 bytes"):
            engine.load(path)

    @pytest.mark.parametrize(
        "params", ["0=3 1=1 6=7", "0=0 1=1 6=6", "0=3 1=0 6=6", "0=3 1=1.0 6=6", "0=3 6=-6"]
    )
    def test_contradicting_sizes_are_refused(self, tmp_path, params):
        lines = [INPUT, f"Convolution c 1 1 a b {params}", "ReLU r 1 1 a d"]
        graph = engine.load(write_pair(tmp_path, lines, b"\0" * 40))
        assert [operator.name for operator in graph.unsupported] == ["c"]
        assert "c': " in graph.operator("c").reason

    def test_without_a_bin_it_opens_as_structure(self, tmp_path):
        path = write_pair(tmp_path, LINES)
        path.with_suffix(".bin").unlink()
        graph = engine.load(path)
        assert not graph.has_weights
        assert graph.operator("conv").attributes["weight"].shape == (3, 2, 1, 1)

    def test_either_file_and_the_folder_open_it(self, tmp_path):
        path = write_pair(tmp_path, LINES, tagged(WEIGHT) + f32(BIAS))
        for given in (path, path.with_suffix(".bin"), tmp_path, tmp_path / "m"):
            assert engine.load(given).param_path == path

    def test_a_bin_of_another_name_is_found_by_its_size(self, tmp_path):
        path = write_pair(tmp_path, LINES, tagged(WEIGHT) + f32(BIAS))
        path.with_suffix(".bin").rename(tmp_path / "weights.bin")
        (tmp_path / "other.bin").write_bytes(b"\0" * 44)
        assert engine.load(path).bin_path == tmp_path / "weights.bin"

    def test_weights_after_an_unknown_layer_are_lost(self, tmp_path):
        lines = [INPUT, "nn.Strange s 1 1 a x", CONVOLUTION]
        path = write_pair(tmp_path, lines, b"\0" * 100 + tagged(WEIGHT) + f32(BIAS))
        with pytest.raises(ModelFileError, match="position of this weight is unknown"):
            _ = weight_of(path).array

    def test_another_process_has_the_same_graph(self, tmp_path):
        graph = engine.load(
            write_pair(tmp_path, LINES, tagged(WEIGHT.astype(np.float16), F16) + f32(BIAS))
        )
        description = pickle.loads(pickle.dumps(describe(graph)))
        other = graph_of(description, DescribedLayers(description), graph.file.archive)
        weight = other.operator("conv").attributes["weight"]
        assert weight.stored_dtype == "f16"
        assert weight.array.tolist() == WEIGHT.tolist()


def test_ncnn_has_every_type_of_the_table():
    ncnn = pytest.importorskip("ncnn")
    optional = {"ArgMax", "SPP"}  # not in every build
    assert [k for k in TYPES if k not in optional and ncnn.layer_to_index(k) < 0] == []


@pytest.mark.parametrize(
    ("kind", "params", "shapes"),
    [
        ("InnerProduct", {"num_output": 4, "weight_data_size": 12}, [(4, 3)]),
        (
            "LSTM",
            {"num_output": 3, "hidden_size": 5, "weight_data_size": 40, "direction": 0},
            [(1, 20, 2), (1, 4, 5), (1, 20, 3), (1, 3, 5)],
        ),
        ("GRU", {"num_output": 3, "weight_data_size": 36, "direction": 2},
         [(2, 9, 2), (2, 4, 3), (2, 9, 3)]),
        ("Gemm", {"constantB": 1, "constantC": 1, "constantN": 4, "constantK": 3, "transB": 1,
                  "constant_broadcast_type_C": 4}, [(4, 3), (1, 4)]),
        ("Embed", {"num_output": 4, "input_dim": 10, "weight_data_size": 40}, [(10, 4)]),
        ("MemoryData", {"w": 5, "h": 2}, [(2, 5)]),
        ("LayerNorm", {"affine_size": 6, "affine": 0}, []),
    ],
)  # fmt: skip
def test_shapes_of_weights(kind, params, shapes):
    assert [spec.shape for spec in weight_specs(kind, params)] == shapes
