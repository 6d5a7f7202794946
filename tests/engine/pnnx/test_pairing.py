"""Which files belong together."""

from __future__ import annotations

import zipfile

import numpy as np
import pytest

from engine.errors import ModelFileError
from engine.pnnx import find_param, find_weights, load, pair

ONE = {"fc.weight": 6, "fc.bias": 2}


def write_param(path, weights=ONE, *, note=""):
    """A model whose operators have these weights, of so many float32."""
    operators = {}
    for name, size in weights.items():
        operator, key = name.rsplit(".", 1)
        operators.setdefault(operator, []).append(f"@{key}=({size})f32")
    lines = [f"nn.Linear {name} 0 0 {' '.join(keys)}" for name, keys in operators.items()]
    path.write_text("\n".join(["7767517", f"{len(lines)} 0{note}", *lines, ""]))
    return path


def write_bin(path, weights=ONE, value=0.0):
    with zipfile.ZipFile(path, "w") as archive:
        for name, size in weights.items():
            archive.writestr(name, np.full(size, value, np.float32).tobytes())
    return path


@pytest.fixture
def files(tmp_path):
    """A function that writes files by their names and gives the folder."""

    def write(**named):
        for name, weights in named.items():
            stem, kind = name.rsplit("_", 1)
            path = tmp_path / f"{stem.replace('__', '.')}.{kind}"
            (write_param if kind.lower() == "param" else write_bin)(path, weights)
        return tmp_path

    return write


MORE = {**ONE, "extra.weight": 1}
OTHER = {"conv.weight": 3}
RESIZED = {"fc.weight": 6, "fc.bias": 3}


class TestLoad:
    def test_weights_are_read_once(self, files):
        folder = files(m_param=ONE)
        write_bin(folder / "m.bin", value=2.5)
        graph = load(str(folder / "m.param"))
        assert graph.weights_path == folder / "m.bin"
        assert graph.has_weights
        weight = graph.get_operator("fc").attrs["weight"]
        np.testing.assert_array_equal(weight.array, np.full(6, 2.5, np.float32))
        assert not weight.array.flags.owndata
        assert not weight.array.flags.writeable

    def test_unaligned(self, tmp_path):
        for shift in range(8):
            name = "a" * (1 + shift)
            param = tmp_path / f"m{shift}.param"
            param.write_text(f"7767517\n1 0\nx {name} 0 0 @w=(2,2)f64\n")
            with zipfile.ZipFile(tmp_path / f"m{shift}.bin", "w") as archive:
                archive.writestr(f"{name}.w", np.arange(4, dtype=np.float64).tobytes())
            array = load(param).operators[0].attrs["w"].array
            assert (array @ array).tolist() == [[2, 3], [6, 11]]

    def test_structure_only(self, files):
        graph = load(files(m_param=ONE) / "m.param")
        assert graph.weights_path is None
        assert not graph.has_weights
        with pytest.raises(ModelFileError, match="its weights are missing"):
            _ = graph.get_operator("fc").attrs["bias"].array

    def test_nothing_to_map(self, files):
        graph = load(files(m_param={}, other_bin=ONE) / "m.param")
        assert graph.weights_path is None
        assert graph.has_weights

    def test_nothing_to_map_and_junk_beside_it(self, files):
        folder = files(m_param={"a.w": 0})
        (folder / "m.bin").write_bytes(b"junk")
        graph = load(folder / "m.param")
        assert graph.has_weights
        assert graph.operators[0].attrs["w"].array.size == 0

    def test_given_by_name(self, files):
        folder = files(m_param=ONE, m_bin=OTHER, elsewhere_bin=MORE)
        graph = load(folder / "m.param", folder / "elsewhere.bin")
        assert graph.weights_path == folder / "elsewhere.bin"

    @pytest.mark.parametrize(
        ("weights", "place", "reason"),
        [
            (
                OTHER,
                "w.bin",
                (
                    "2 of the 2 weights of m.param are not in it, such as 'fc.bias'; it "
                    "belongs to another model, use the .bin that was exported with it"
                ),
            ),
            (
                RESIZED,
                "m.param:3",
                (
                    "weight @bias takes 8 bytes and has 12 in w.bin; it belongs to another "
                    "version of the model, use the .bin that was exported with this file"
                ),
            ),
            (None, "w.bin", "there is no such file"),
        ],
    )
    def test_refused(self, files, weights, place, reason):
        folder = files(m_param=ONE, **({"w_bin": weights} if weights else {}))
        with pytest.raises(ModelFileError) as caught:
            load(folder / "m.param", folder / "w.bin")
        assert str(caught.value) == f"{folder / place}: {reason}"

    def test_truncated(self, files):
        folder = files(m_param=ONE, m_bin=ONE)
        whole = (folder / "m.bin").read_bytes()
        for length in range(1, len(whole)):
            (folder / "m.bin").write_bytes(whole[:length])
            with pytest.raises(ModelFileError):
                load(folder / "m.param")

    def test_big_weights_are_not_read(self, tmp_path):
        # sparse: 3 GiB of which nothing but the directory is on the disk
        param = tmp_path / "m.param"
        size = 3 * 2**30
        param.write_text("7767517\n1 0\na a 0 0 @w=(3,1073741824)u8\n")
        data = write_bin(tmp_path / "m.bin", {"a.w": 1}).read_bytes()
        start = data.index(b"PK\1\2")
        head, tail = bytearray(data[: start - 4]), bytearray(data[start:])
        for position in (20, 24):
            tail[position : position + 4] = size.to_bytes(4, "little")
        tail[-6:-2] = (len(head) + size).to_bytes(4, "little")
        with (tmp_path / "m.bin").open("wb") as file:
            file.write(head)
            file.seek(len(head) + size)
            file.write(tail)
        graph = load(param)
        assert graph.operators[0].attrs["w"].nbytes == size
        assert not graph.archive.is_kept


class TestFindWeights:
    @pytest.mark.parametrize(
        ("named", "found"),
        [
            pytest.param({"m_bin": ONE, "n_bin": ONE}, "m.bin", id="same-name-first"),
            pytest.param({"m_bin": MORE}, "m.bin", id="with-others"),
            pytest.param({"n_bin": ONE, "o_bin": OTHER}, "n.bin", id="by-content"),
            pytest.param({"m_bin": OTHER, "n_bin": ONE}, "n.bin", id="same-name-is-other"),
            pytest.param({"m_bin": RESIZED, "n_bin": ONE}, "n.bin", id="same-name-resized"),
            pytest.param({"m__pnnx_bin": ONE, "n_bin": ONE}, "m.pnnx.bin", id="begins-alike"),
            pytest.param({"n_bin": OTHER}, None, id="none"),
        ],
    )
    def test_found(self, files, named, found):
        folder = files(m_param=ONE, **named)
        (folder / "ncnn.bin").write_bytes(b"\0" * 100)
        result = find_weights(folder / "m.param")
        assert result == (folder / found if found else None)

    def test_several(self, files):
        folder = files(m_param=ONE, a_bin=ONE, b_bin=ONE)
        with pytest.raises(ModelFileError) as caught:
            find_weights(folder / "m.param")
        assert str(caught.value) == (
            f"{folder / 'm.param'}: several files in its folder match it: a.bin, b.bin; choose "
            "one"
        )

    def test_only_the_wrong_one_of_the_same_name(self, files):
        folder = files(m_param=ONE, m_bin=OTHER)
        with pytest.raises(ModelFileError, match=r"m\.bin: 2 of the 2 weights of m\.param"):
            find_weights(folder / "m.param")


class TestFindParam:
    @pytest.mark.parametrize(
        ("named", "found"),
        [
            pytest.param({"m_param": ONE, "n_param": MORE}, "m.param", id="same-name-first"),
            pytest.param({"n_param": MORE, "o_param": ONE}, "n.param", id="by-content"),
            pytest.param({"m_param": OTHER, "n_param": MORE}, "n.param", id="other-content"),
            pytest.param({"n_param": ONE}, None, id="not-all-of-it"),
            pytest.param({}, None, id="none"),
        ],
    )
    def test_found(self, files, named, found):
        folder = files(m_bin=MORE, **named)
        (folder / "broken.param").write_text("7767517\n")
        result = find_param(str(folder / "m.bin"))
        assert result == (folder / found if found else None)

    def test_several(self, files):
        folder = files(m_bin=ONE, **{f"n{i}_param": ONE for i in range(7)})
        with pytest.raises(ModelFileError) as caught:
            find_param(folder / "m.bin")
        assert caught.value.reason == (
            "several files in its folder match it: n0.param, n1.param, n2.param, n3.param, "
            "n4.param and 2 more; choose one"
        )

    def test_wrong_one_of_the_same_name(self, files):
        folder = files(m_bin=ONE, m_param=OTHER)
        with pytest.raises(ModelFileError, match="1 of the 1 weights"):
            find_param(folder / "m.bin")
        (folder / "m.param").write_text("7767517\n")
        with pytest.raises(ModelFileError, match="the counts of operators and operands"):
            find_param(folder / "m.bin")

    def test_no_weights_file(self, tmp_path):
        (tmp_path / "m.bin").write_bytes(b"ncnn")
        with pytest.raises(ModelFileError, match="it is not a weights file of PNNX"):
            find_param(tmp_path / "m.bin")


class TestPair:
    def test_param(self, tmp_path):
        assert pair(str(tmp_path / "m.param")) == (tmp_path / "m.param", None)

    def test_both(self, tmp_path):
        given = (tmp_path / "m.param", tmp_path / "w.bin")
        assert pair(*map(str, given)) == given

    def test_bin(self, files):
        folder = files(m_bin=ONE, n_param=ONE)
        assert pair(folder / "m.bin") == (folder / "n.param", folder / "m.bin")

    @pytest.mark.parametrize("opened", ["M.PARAM", "M.BIN", ""])
    def test_capital_letters(self, files, opened):
        folder = files(M_PARAM=ONE, M_BIN=ONE)
        param, weights = pair(folder / opened)
        assert param == folder / "M.PARAM"
        assert load(param, weights).weights_path == folder / "M.BIN"

    def test_other_names_in_capital_letters(self, files):
        folder = files(m_param=ONE, OTHER_BIN=OTHER, W_BIN=ONE)
        assert load(folder / "m.param").weights_path == folder / "W.BIN"

    def test_small_letters_come_first(self, files):
        folder = files(m_param=ONE, m_bin=ONE, m_BIN=ONE)
        assert load(folder / "m.param").weights_path == folder / "m.bin"

    def test_bin_alone(self, files):
        folder = files(m_bin=ONE)
        with pytest.raises(ModelFileError) as caught:
            pair(folder / "m.bin")
        assert str(caught.value) == (
            f"{folder / 'm.bin'}: no .param file in its folder lists these weights; open the "
            ".param instead"
        )

    def test_folder(self, files):
        folder = files(m__ncnn_param=OTHER, m__pnnx_param=ONE)
        assert pair(folder) == (folder / "m.pnnx.param", None)

    def test_folder_and_bin(self, files):
        folder = files(m_param=ONE, w_bin=ONE)
        assert pair(folder, folder / "w.bin") == (folder / "m.param", folder / "w.bin")

    @pytest.mark.parametrize("suffix", [".param", ".pnnx.param"])
    def test_without_suffixes(self, tmp_path, suffix):
        path = tmp_path / f"m{suffix}"
        path.write_text("")
        assert pair(tmp_path / "m") == (path, None)
        if suffix == ".pnnx.param":
            assert pair(tmp_path / "m.pnnx") == (path, None)

    def test_a_file_of_the_very_name_comes_first(self, tmp_path):
        for name in ("m", "m.param"):
            (tmp_path / name).write_text("")
        assert pair(tmp_path / "m") == (tmp_path / "m", None)

    def test_nothing_of_the_name(self, tmp_path):
        assert pair(tmp_path / "m") == (tmp_path / "m", None)
        assert pair(tmp_path / "none" / "..") == (tmp_path / "none" / "..", None)

    @pytest.mark.parametrize(
        ("named", "found"),
        [({}, "none"), ({"a_param": ONE, "b_param": ONE}, "a.param, b.param")],
    )
    def test_no_such_folder(self, files, named, found):
        folder = files(**named)
        with pytest.raises(ModelFileError) as caught:
            pair(folder)
        assert str(caught.value) == (
            f"{folder}: a folder with one .param is needed, this has {found}; open a file "
            "instead"
        )


@pytest.mark.shared
def test_course_models(shared):
    models = shared / "models"
    assert find_weights(models / "test_linear.pnnx.param") == models / "test_linear.pnnx.bin"
    assert find_param(models / "simple_ops2.pnnx.bin") == models / "simple_ops2.pnnx.param"
    assert not load(models / "yolov5s.pnnx.param").has_weights
    linear = load(models / "test_linear.pnnx.param").get_operator("linear")
    # read off the file with a hex editor: 5f f0 85 38 is the checksum, then the first bias
    assert linear.attrs["bias"].array[0] == np.frombuffer(b"\xaf\x99\xab\x3d", "<f4")[0]
    assert linear.attrs["weight"].array.shape == (128, 32)


@pytest.mark.shared
def test_corpus_opens_with_weights(shared):
    for file in shared.glob("conformance*/*/*.param"):
        graph = load(file)
        assert graph.weights_path == file.with_suffix(".bin")
        for _, attribute in graph.weights():
            assert attribute.array.shape == attribute.shape
