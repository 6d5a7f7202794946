"""Sources become arrays; expectations are typed by hand."""

from __future__ import annotations

import contextlib
import functools
import io
import os
import random
import re
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageOps

import engine
from engine.errors import FeedError, UnknownNameError
from engine.inputs import (
    ImageOptions,
    InputSource,
    SourceImage,
    load_input,
    load_inputs,
    load_outputs,
    named_outputs,
    parse_number,
    parse_source,
    parse_supply,
    read_image,
    read_labels,
    source_images,
    thin_made_up,
    thin_planes,
)
from engine.memory_bound import Room, bounded
from engine.shapes import InputShapes


@dataclass
class FakeOperand:
    name: str = "0"
    shape: tuple[int | str | None, ...] | None = (1, 3, 2, 2)
    dtype: np.dtype[Any] | None = np.dtype(np.float32)
    consumers: tuple[Any, ...] = ()


def write_picture(path, pixels):
    Image.fromarray(np.asarray(pixels, np.uint8)).save(path)
    return path


class TestParseSource:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("random", InputSource("random")),
            ("random:7", InputSource("random", seed=7)),
            ("ones", InputSource("constant", value=1.0)),
            ("zeros", InputSource("constant", value=0.0)),
            ("constant:0.5", InputSource("constant", value=0.5)),
            ("constant:1/4", InputSource("constant", value=0.25)),
        ],
    )
    def test_words(self, text, expected):
        assert parse_source(text) == expected
        assert parse_source(expected.text) == expected

    def test_files(self, tmp_path):
        for name, kind in [("a.JPG", "image"), ("b.npy", "npy"), ("c.npz", "npz")]:
            (tmp_path / name).touch()
            assert parse_source(str(tmp_path / name)).kind == kind
        member = parse_source(f"{tmp_path / 'c.npz'}:x")
        assert (member.path, member.member) == (tmp_path / "c.npz", "x")

    @pytest.mark.parametrize(
        ("text", "sentence"),
        [
            ("random:x", "input 'random:x': a seed is a whole number"),
            ("random:-1", "a seed is a whole number"),
            ("random:" + "9" * 5000, "a seed is a whole number"),
            ("constant:", "is not a number"),
            ("constant:inf", "is not finite"),
            ("missing.npy", "there is no such file"),
            ("model.exe", "is not an image, .npy or .npz file"),
        ],
    )
    def test_wrong(self, text, sentence):
        with pytest.raises(FeedError, match=sentence):
            parse_source(text)


@pytest.mark.parametrize(
    ("text", "expected"), [("0.5", 0.5), ("1/255", 1 / 255), ("-3", -3.0), ("2e-3", 0.002)]
)
def test_parse_number(text, expected):
    assert parse_number(text) == expected


@pytest.mark.parametrize("text", ["", "x", "1/0", "nan", "1/2/3"])
def test_parse_number_wrong(text):
    with pytest.raises(ValueError, match="not a number|not finite"):
        parse_number(text)


class TestPicture:
    # One red, one green, one blue and one white pixel.
    PIXELS = ([[255, 0, 0], [0, 255, 0]], [[0, 0, 255], [255, 255, 255]])

    def load(self, tmp_path, operand=None, **options):
        path = write_picture(tmp_path / "p.png", self.PIXELS)
        return load_input(
            InputSource("image", path=path), operand or FakeOperand(), ImageOptions(**options)
        )

    def test_rgb(self, tmp_path):
        tensor = self.load(tmp_path)
        assert tensor.dtype == np.float32
        expected = [[[1, 0], [0, 1]], [[0, 1], [0, 1]], [[0, 0], [1, 1]]]
        np.testing.assert_allclose(tensor, [expected], rtol=0, atol=1e-6)

    def test_bgr(self, tmp_path):
        tensor = self.load(tmp_path, order="BGR")
        np.testing.assert_allclose(tensor[0, 2], [[1, 0], [0, 1]], rtol=0, atol=1e-6)

    def test_scale_mean_std(self, tmp_path):
        tensor = self.load(tmp_path, scale=1.0, mean=(5.0, 0.0, 255.0), std=(2.0, 1.0, 5.0))
        # Top left is red: (255 - 5) / 2, 0, (0 - 255) / 5.
        np.testing.assert_allclose(tensor[0, :, 0, 0], [125, 0, -51], rtol=0, atol=1e-5)

    def test_integer_input_keeps_pixels(self, tmp_path):
        operand = FakeOperand(dtype=np.dtype(np.uint8))
        assert self.load(tmp_path, operand)[0, 0, 0, 0] == 255

    def test_grey_input(self, tmp_path):
        tensor = self.load(tmp_path, FakeOperand(shape=(1, 1, 2, 2)), scale=1.0)
        # ITU-R 601: 0.299 R + 0.587 G + 0.114 B
        np.testing.assert_allclose(tensor[0, 0], [[76, 150], [29, 255]], rtol=0, atol=1)

    def test_unbatched_and_repeated(self, tmp_path):
        assert self.load(tmp_path, FakeOperand(shape=(3, 2, 2))).shape == (3, 2, 2)
        assert self.load(tmp_path, FakeOperand(shape=(4, 3, 2, 2))).shape == (4, 3, 2, 2)

    def test_open_size_is_the_pictures(self, tmp_path):
        operand = FakeOperand(shape=("%n", None, None, None))
        assert self.load(tmp_path, operand).shape == (1, 3, 2, 2)

    def test_crop_keeps_proportions(self, tmp_path):
        # Columns 0..7 grow from black to white; cutting the centre leaves out both ends.
        ramp = np.repeat(np.arange(8, dtype=np.uint8)[None] * 30, 4, axis=0)
        path = write_picture(tmp_path / "ramp.png", ramp)
        operand = FakeOperand(shape=(1, 1, 4, 4))
        options = ImageOptions(fit="crop", scale=1.0)
        cut = load_input(InputSource("image", path=path), operand, options)
        np.testing.assert_array_equal(cut[0, 0, 0], [60, 90, 120, 150])
        squeezed = load_input(InputSource("image", path=path), operand, ImageOptions(scale=1.0))
        assert squeezed[0, 0, 0, 0] < 60

    def test_crop_of_a_larger_picture(self, tmp_path):
        # Without resizing the middle 2 of 8 columns and of 4 rows are left.
        ramp = np.arange(32, dtype=np.uint8).reshape(4, 8)
        path = write_picture(tmp_path / "ramp.png", ramp)
        operand = FakeOperand(shape=(1, 1, 2, 2))
        options = ImageOptions(fit="crop", scale=1.0, shorter_side=4)
        cut = load_input(InputSource("image", path=path), operand, options)
        np.testing.assert_array_equal(cut[0, 0], [[11, 12], [19, 20]])
        fewest = ImageOptions(fit="crop", scale=1.0, resampling="nearest")
        small = replace(fewest, shorter_side=1)  # less than the size needs
        first, second = (
            load_input(InputSource("image", path=path), operand, each)
            for each in (fewest, small)
        )
        np.testing.assert_array_equal(first, second)

    def test_letterbox_puts_a_border_around_the_picture(self, tmp_path):
        ramp = np.arange(8, dtype=np.uint8).reshape(2, 4)
        path = write_picture(tmp_path / "ramp.png", ramp)
        operand = FakeOperand(shape=(1, 1, 4, 4))
        options = ImageOptions(fit="letterbox", scale=1.0, border=9)
        boxed = load_input(InputSource("image", path=path), operand, options)
        rows = [[9] * 4, [0, 1, 2, 3], [4, 5, 6, 7], [9] * 4]
        np.testing.assert_array_equal(boxed[0, 0], rows)

    @pytest.mark.parametrize(
        ("resampling", "expected"),
        [
            ("nearest", [2, 14]),  # the pixels at the centres of three: 1 and 4
            ("box", [14 / 3, 41 / 3]),  # means of three
            ("opencv-nearest", [0, 12]),  # pixels 0 and 3
            ("opencv-bilinear", [2, 14]),  # centres fall on pixels 1 and 4
        ],
    )
    def test_methods_of_resizing(self, tmp_path, resampling, expected):
        row = np.array([[0, 2, 12, 12, 14, 15]], np.uint8)
        path = write_picture(tmp_path / "row.png", row)
        operand = FakeOperand(shape=(1, 1, 1, 2))
        options = ImageOptions(scale=1.0, resampling=resampling)
        found = load_input(InputSource("image", path=path), operand, options)
        np.testing.assert_array_equal(found[0, 0, 0], np.rint(expected))

    @pytest.mark.parametrize(
        ("resampling", "expected"),
        [
            ("nearest", [0, 0, 160, 160]),
            ("opencv-nearest", [0, 0, 160, 160]),
            ("opencv-bilinear", [20, 60, 100, 140]),  # at 1/8, 3/8, 5/8 and 7/8 of the way
            ("opencv-bicubic", [17, 58, 102, 143]),  # the kernel sums up to 0.1045, 0.3604, ...
        ],
    )
    def test_a_long_strip_is_cut_before_it_is_resized(self, tmp_path, resampling, expected):
        strip = np.zeros((1, 60_000), np.uint8)
        strip[0, 30_000:] = 160
        path = write_picture(tmp_path / "strip.png", strip)
        options = ImageOptions(fit="crop", resampling=resampling, scale=1.0)
        operand = FakeOperand(shape=(1, 1, 4, 4))
        room = Room(128 << 10)  # the whole strip would have 4 rows of 240 000 pixels
        with bounded(room):
            found = load_input(InputSource("image", path=path), operand, options)
        np.testing.assert_array_equal(found[0, 0], [expected] * 4)

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"fit": "letterbox", "border": 256}, "a border of 256 is no pixel of 0 to 255"),
            ({"fit": "letterbox", "border": -1}, "a border of -1"),
            ({"fit": "pad"}, "fit=pad is not one of resize, crop, letterbox"),
            ({"resampling": "area"}, "resampling=area is not one of bilinear, bicubic,"),
        ],
    )
    def test_options_that_are_none(self, tmp_path, options, words):
        path = write_picture(tmp_path / "ramp.png", np.zeros((2, 4), np.uint8))
        operand = FakeOperand(shape=(1, 1, 4, 4))
        with pytest.raises(FeedError, match=words):
            load_input(InputSource("image", path=path), operand, ImageOptions(**options))

    def test_the_image_of_an_input_is_read_again(self, tmp_path):
        ramp = np.arange(48, dtype=np.uint8).reshape(4, 4, 3)
        path = write_picture(tmp_path / "ramp.png", ramp)
        operand, source = FakeOperand(name="x"), InputSource("image", path=path)
        options = ImageOptions(fit="crop", order="BGR")
        array = load_input(source, operand, options)
        found = source_images([source], [operand], options)["x"]
        np.testing.assert_array_equal(found.pixels_of(operand, array), ramp)
        assert SourceImage(path, ImageOptions()).pixels_of(operand, array) is None
        assert found.pixels_of(operand, array[0, 0, 0]) is None  # is not from an image
        write_picture(path, ramp[::-1])
        assert found.pixels_of(operand, array) is None
        path.write_bytes(b"no image")
        assert found.pixels_of(operand, array) is None

    def test_only_images_are_images_of_inputs(self):
        sources = [InputSource("random"), InputSource("npy", path=Path("x.npy"))]
        operands = [FakeOperand(name="0"), FakeOperand(name="1")]
        assert source_images(sources, operands, ImageOptions()) == {}

    @pytest.mark.parametrize("suffix", ["png", "tiff"])
    def test_grey_of_16_bits_is_rounded_to_8(self, tmp_path, suffix):
        # 128 is less than half of 257, 129 more.
        pixels = np.array([[0, 128, 129, 257], [32896, 65406, 65407, 65535]], np.uint16)
        path = tmp_path / f"p.{suffix}"
        Image.fromarray(pixels).save(path)
        expected = [[0, 0, 1, 1], [128, 254, 255, 255]]
        np.testing.assert_array_equal(read_image(path), expected)

    @pytest.mark.parametrize("dtype", [np.float32, np.int32])
    def test_numbers_of_no_known_range_are_refused(self, tmp_path, dtype):
        path = tmp_path / "p.tiff"
        Image.fromarray(np.array([[0, 1], [2, 3]], dtype)).save(path)
        with pytest.raises(FeedError, match="32 bits a pixel, of no known range; use a .npy"):
            read_image(path)

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with names")
    def test_a_pipe_is_not_waited_for(self, tmp_path):
        os.mkfifo(tmp_path / "p.png")
        with pytest.raises(FeedError, match="a device or a pipe, not a file"):
            read_image(tmp_path / "p.png")

    @pytest.mark.parametrize(
        ("operand", "options", "sentence"),
        [
            (FakeOperand(shape=(1, 10)), {}, "is not an image"),
            (FakeOperand(shape=(1, 7, 2, 2)), {}, "takes 7 channels"),
            (FakeOperand(), {"mean": (0.0, 0.0)}, "has 3 channels, and mean has 2 values"),
            (FakeOperand(), {"std": (0.0,)}, "divide by zero"),
            (FakeOperand(), {"size": (0, 5)}, "cannot be resized to 0×5"),
        ],
    )
    def test_wrong(self, tmp_path, operand, options, sentence):
        with pytest.raises(FeedError, match=sentence):
            self.load(tmp_path, operand, **options)

    def test_not_a_picture(self, tmp_path):
        path = tmp_path / "p.png"
        path.write_bytes(b"GIF89a not really")
        with pytest.raises(FeedError, match="cannot be read as an image"):
            read_image(path)

    def test_too_many_pixels(self, tmp_path, monkeypatch):
        path = write_picture(tmp_path / "p.png", self.PIXELS)
        monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 3)
        with pytest.raises(FeedError, match="2×2 pixels, which is too large"):
            read_image(path)


class TestNumpyFiles:
    def test_npy(self, tmp_path):
        np.save(tmp_path / "a.npy", np.asfortranarray([[1, 2, 3], [4, 5, 6]]))
        loaded = load_input(parse_source(str(tmp_path / "a.npy")), FakeOperand())
        np.testing.assert_array_equal(loaded, [[1, 2, 3], [4, 5, 6]])

    def test_npz_by_order_and_by_name(self, tmp_path):
        operands = [FakeOperand("b"), FakeOperand("a")]
        np.savez(tmp_path / "n.npz", a=np.float32(1), b=np.float32(2))
        np.savez(tmp_path / "o.npz", x=np.float32(1), y=np.float32(2))
        named = load_inputs([parse_source(str(tmp_path / "n.npz"))], operands)
        ordered = load_inputs([parse_source(str(tmp_path / "o.npz"))], operands)
        assert (named["b"], named["a"]) == (2, 1)
        assert (ordered["b"], ordered["a"]) == (1, 2)

    def test_npz_member(self, tmp_path):
        np.savez(tmp_path / "n.npz", a=np.float32(1), b=np.float32(2))
        assert load_input(parse_source(f"{tmp_path / 'n.npz'}:b"), FakeOperand()) == 2
        with pytest.raises(FeedError, match="has no array 'c'; it has a, b"):
            load_input(parse_source(f"{tmp_path / 'n.npz'}:c"), FakeOperand())

    def test_wrong_count(self, tmp_path):
        np.savez(tmp_path / "n.npz", a=np.float32(1), b=np.float32(2))
        with pytest.raises(FeedError, match=r"has 2 arrays \(a, b\) for 1 operand \(0\)"):
            load_input(parse_source(str(tmp_path / "n.npz")), FakeOperand())

    def test_pickle_is_refused(self, tmp_path):
        np.save(tmp_path / "a.npy", np.array([{}], dtype=object), allow_pickle=True)
        with pytest.raises(FeedError, match="holds object, not numbers"):
            load_input(parse_source(str(tmp_path / "a.npy")), FakeOperand())

    @pytest.mark.parametrize("version", [1, 2])
    def test_header_of_ten_thousand_bytes_is_refused(self, tmp_path, version):
        length = (20_000).to_bytes(2 * version, "little")
        text = (
            b"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }".ljust(19_999) + b"\n"
        )
        data = b"\x93NUMPY" + bytes([version, 0]) + length + text + b"1234"
        (tmp_path / "a.npy").write_bytes(data)
        with pytest.raises(FeedError, match="its header cannot be read"):
            load_input(parse_source(str(tmp_path / "a.npy")), FakeOperand())

    def test_header_that_lies(self, tmp_path):
        header = io.BytesIO()
        np.lib.format.write_array_header_1_0(
            header, {"descr": "<f4", "fortran_order": False, "shape": (1 << 40,)}
        )
        (tmp_path / "a.npy").write_bytes(header.getvalue() + b"1234")
        with pytest.raises(FeedError, match="claims 1099511627776 float32"):
            load_input(parse_source(str(tmp_path / "a.npy")), FakeOperand())

    @pytest.mark.parametrize(
        ("shape", "sentence"),
        [
            ("(-1,)", "claims the impossible shape (-1,)"),
            ("(-1, -3, 4)", "claims the impossible shape (-1, -3, 4)"),
            ("(True,)", "claims the impossible shape (True,)"),
            (f"({'1, ' * 70})", "claims 70 dimensions; arrays have"),
            (f"(0, {(1 << 63) - 1})", "more than an array can have"),
            (f"(0, {(1 << 62)}, {1 << 62})", "more than an array can have"),
            (f"({1 << 70},)", "more than an array can have"),
        ],
    )
    def test_shapes_that_no_array_has(self, tmp_path, shape, sentence):
        header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}\n".encode()
        content = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(8)
        (tmp_path / "a.npy").write_bytes(content)
        with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
            archive.writestr("a.npy", content)
        for name in ("a.npy", "a.npz"):
            with pytest.raises(FeedError, match=re.escape(sentence)):
                load_input(parse_source(str(tmp_path / name)), FakeOperand())

    @pytest.mark.parametrize(
        "method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]
    )
    def test_damaged_compression(self, tmp_path, method):
        buffer = io.BytesIO()
        np.save(buffer, np.arange(4000, dtype=np.float32))
        with zipfile.ZipFile(tmp_path / "a.npz", "w", method) as archive:
            archive.writestr("a.npy", buffer.getvalue())
            start = archive.infolist()[0].header_offset
        content = bytearray((tmp_path / "a.npz").read_bytes())
        for place in range(start + 60, start + 90):
            content[place] ^= 0x5A
        (tmp_path / "a.npz").write_bytes(content)
        with pytest.raises(FeedError):
            load_input(parse_source(str(tmp_path / "a.npz")), FakeOperand())

    def test_more_than_the_memory_bound(self, tmp_path):
        np.save(tmp_path / "a.npy", np.zeros(1000, np.float32))
        np.savez(tmp_path / "a.npz", x=np.zeros(300, np.float32), y=np.zeros(300, np.float32))
        with bounded(Room(2000)):
            with pytest.raises(FeedError, match="would take 4.0 kB; the memory bound is 2.0"):
                load_input(parse_source(str(tmp_path / "a.npy")), FakeOperand())
            operands = [FakeOperand(name="x"), FakeOperand(name="y")]
            with pytest.raises(FeedError, match="y in .* of which 1.2 kB are taken"):
                load_inputs([parse_source(str(tmp_path / "a.npz"))], operands)

    @pytest.mark.parametrize("content", [b"", b"hello", b"\x93NUMPY\x09\x00"])
    def test_not_npy(self, tmp_path, content):
        (tmp_path / "a.npy").write_bytes(content)
        with pytest.raises(FeedError):
            load_input(parse_source(str(tmp_path / "a.npy")), FakeOperand())

    def test_not_npz(self, tmp_path):
        (tmp_path / "a.npz").write_bytes(b"PK not a zip")
        with pytest.raises(FeedError, match="cannot be read as .npz"):
            load_input(parse_source(str(tmp_path / "a.npz")), FakeOperand())

    def test_cut_short(self, tmp_path):
        with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
            buffer = io.BytesIO()
            np.save(buffer, np.zeros(8, np.float32))
            archive.writestr("a.npy", buffer.getvalue()[:-4])
        with pytest.raises(FeedError, match="cut short|claims"):
            load_input(parse_source(str(tmp_path / "a.npz")), FakeOperand())


class TestFilesWrittenMeanwhile:
    """What is read of such a file may be the beginning of one and the end of another."""

    def load(self, path):
        return load_input(parse_source(str(path)), FakeOperand(shape=(1, 3, 2, 2)))

    @pytest.fixture
    def write_meanwhile(self, monkeypatch):
        """A function that has a file written again when a function of a module is called."""

        def arrange(module, name, path):
            call, data = getattr(module, name), path.read_bytes()

            def write(*arguments, **named):
                path.write_bytes(data + b"more")
                return call(*arguments, **named)

            monkeypatch.setattr(module, name, write)

        return arrange

    def test_npy(self, tmp_path, write_meanwhile):
        path = tmp_path / "a.npy"
        np.save(path, np.zeros((1, 3, 2, 2), np.float32))
        write_meanwhile(np.lib.format, "read_magic", path)
        with pytest.raises(FeedError) as caught:
            self.load(path)
        assert str(caught.value) == (
            f"{path} cannot be read: it changed while it was read; choose it again"
        )

    def test_npz(self, tmp_path, write_meanwhile):
        path = tmp_path / "a.npz"
        np.savez(path, a=np.zeros((1, 3, 2, 2), np.float32))
        write_meanwhile(np.lib.format, "read_magic", path)
        with pytest.raises(FeedError, match=r"as \.npz: it changed while it was read"):
            self.load(path)

    def test_picture(self, tmp_path, write_meanwhile):
        path = write_picture(tmp_path / "a.png", np.zeros((2, 2, 3)))
        write_meanwhile(ImageOps, "exif_transpose", path)
        with pytest.raises(FeedError, match="as an image: it changed while it was read"):
            self.load(path)


class TestOutputs:
    """What stands for the outputs of an operator."""

    @pytest.fixture(autouse=True)
    def files(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        np.save("a.npy", np.float32(1))
        np.savez("two.npz", x=np.float32(1), y=np.float32(2))
        np.savez("named.npz", b=np.float32(1), a=np.float32(2), c=np.float32(3))
        Image.new("RGB", (2, 2)).save("p.png")

    @pytest.mark.parametrize(
        ("file", "names", "expected"),
        [
            ("a.npy", "b", {"b": 1}),
            ("two.npz:y", "b", {"b": 2}),
            ("two.npz", "ab", {"a": 1, "b": 2}),
            ("named.npz", "ab", {"a": 2, "b": 1}),
            ("named.npz", "c", {"c": 3}),
        ],
    )
    def test_load(self, file, names, expected):
        _, source = parse_supply(f"x={file}")
        assert load_outputs(source, [FakeOperand(name) for name in names]) == expected

    def test_a_list(self):
        _, source = parse_supply("x=two.npz")
        assert load_outputs(source, [FakeOperand("b", shape=None)]) == {"b": (1, 2)}
        _, source = parse_supply("x=named.npz")
        assert load_outputs(source, [FakeOperand("b", shape=None)]) == {"b": 1}

    @pytest.mark.parametrize(
        ("file", "names", "sentence"),
        [
            ("a.npy", "ab", r"a.npy is one array, the operator has 2 outputs \(a, b\)"),
            ("two.npz:x", "ab", "two.npz:x is one array"),
            ("two.npz", "abc", "has 2 arrays"),
            ("two.npz", "a", r"has 2 arrays \(x, y\) for 1 operand \(a\)"),
            ("a.npy", "", "the operator has no outputs"),
        ],
    )
    def test_wrong_number(self, file, names, sentence):
        _, source = parse_supply(f"x={file}")
        with pytest.raises(FeedError, match=sentence):
            load_outputs(source, [FakeOperand(name) for name in names])

    @pytest.mark.parametrize(
        ("text", "sentence"),
        [
            ("a.npy", "must be OPERAND=FILE.npy"),
            ("=a.npy", "must be OPERAND"),
            ("x=", "'' is not a .npy or .npz file"),
            ("x=p.png", "'p.png' is not a .npy or .npz file"),
            ("x=gone.npy", "there is no such file"),
        ],
    )
    def test_wrong_texts(self, text, sentence):
        with pytest.raises(FeedError, match=sentence):
            parse_supply(text)


def test_named_outputs(make_pair):
    graph = engine.load(
        make_pair("pnnx.Input a 0 1 0 #0=(3)f32", "custom.Two 0 1 2 0 x y", "nn.ReLU x 1 1 x z")
    )
    names = {n: [o.name for o in named_outputs(graph, n)] for n in ("0", "y", "x", "a")}
    assert names == {"0": ["0"], "y": ["y"], "x": ["x"], "a": ["0"]}
    with pytest.raises(UnknownNameError, match="no operand or operator named 'w'"):
        named_outputs(graph, "w")


class TestGenerated:
    def test_random_is_repeatable(self):
        one = load_input(InputSource("random", seed=3), FakeOperand())
        same = load_input(InputSource("random", seed=3), FakeOperand())
        other = load_input(InputSource("random", seed=4), FakeOperand())
        np.testing.assert_array_equal(one, same)
        assert not np.array_equal(one, other)
        assert one.shape == (1, 3, 2, 2)
        assert 0 <= one.min() <= one.max() < 1

    def test_random_places_are_in_every_table(self, make_pair):
        table = "nn.Embedding {} 1 1 ids {} num_embeddings={} embedding_dim=2 sparse=False"
        graph = engine.load(
            make_pair(
                "pnnx.Input in 0 1 ids #ids=(1,500)i64",
                table.format("words", "a", 30),
                table.format("kinds", "b", 7),
                "pnnx.Output out 2 0 a b",
            )
        )
        places = load_input(InputSource("random"), graph.operand("ids"))
        assert (places.min(), places.max()) == (0, 6)

    @pytest.mark.parametrize(
        "dtype", ["bool", "uint8", "int8", "int64", "float16", "complex64"]
    )
    def test_dtypes(self, dtype):
        operand = FakeOperand(dtype=np.dtype(dtype))
        for source in (InputSource("random"), InputSource("constant", value=1.0)):
            assert load_input(source, operand).dtype == dtype

    def test_one_source_for_all(self):
        loaded = load_inputs([InputSource("random")], [FakeOperand("a"), FakeOperand("b")])
        assert not np.array_equal(loaded["a"], loaded["b"])

    @pytest.mark.parametrize(
        ("shape", "sentence"),
        [
            (None, "does not say the shape"),
            ((1, None), r"input 0 of 1×\? leaves dimension 1 open"),
            ((1, "%n"), "input 0 of 1×%n leaves %n open"),
            ((1 << 20, 1 << 20), "would take"),
            ((1,) * 70, "input 0 has 70 dimensions; arrays have (32|64) at most"),
        ],
    )
    def test_unknown_or_huge_shape(self, shape, sentence):
        with pytest.raises(FeedError, match=sentence):
            load_input(InputSource("random"), FakeOperand(shape=shape))

    @pytest.mark.parametrize(
        ("value", "dtype", "sentence"),
        [
            (1e39, "float32", "input 0 takes float32, which cannot hold 1e+39"),
            (70000.0, "float16", "which cannot hold 70000"),
            (0.5, "int64", "which cannot hold 0.5"),
            (256.0, "uint8", "which cannot hold 256"),
            (-1.0, "uint8", "which cannot hold -1"),
        ],
    )
    def test_constants_that_do_not_fit(self, value, dtype, sentence):
        with pytest.raises(FeedError) as caught:
            load_input(InputSource("constant", value=value), FakeOperand(dtype=np.dtype(dtype)))
        assert sentence in str(caught.value)

    def test_constants_may_be_rounded(self):
        loaded = load_input(InputSource("constant", value=0.1), FakeOperand())
        assert np.all(loaded == np.float32(0.1))

    def test_count(self):
        with pytest.raises(FeedError, match=r"2 inputs were given, the model takes 1 \(0\)"):
            load_inputs([InputSource("random")] * 2, [FakeOperand()])
        with pytest.raises(FeedError, match=r"1 input was given, the model takes 2 \(a, b\)"):
            load_inputs([InputSource("npy")], [FakeOperand("a"), FakeOperand("b")])


def test_labels(tmp_path):
    path = tmp_path / "labels.txt"
    path.write_text("cat\n dog \n\n", encoding="utf-8")
    assert read_labels(path) == ("cat", "dog")
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FeedError, match="labels cannot be read from .*: it is not UTF-8 text"):
        read_labels(path)
    with pytest.raises(FeedError, match="labels cannot be read from .*: it is a folder"):
        read_labels(tmp_path)


@functools.cache
def make_seeds() -> dict[str, bytes]:
    """One sound file of every kind that an input can come from."""
    picture = Image.fromarray(
        np.random.default_rng(0).integers(0, 256, (20, 20, 3), dtype=np.uint8)
    )
    seeds = {}
    for suffix in ("png", "jpg", "bmp", "gif", "tiff", "webp", "ppm"):
        buffer = io.BytesIO()
        picture.save(buffer, {"jpg": "JPEG"}.get(suffix, suffix.upper()))
        seeds[suffix] = buffer.getvalue()
    buffer = io.BytesIO()
    np.save(buffer, np.zeros((1, 3, 2, 2), np.float32))
    seeds["npy"] = buffer.getvalue()
    buffer = io.BytesIO()
    np.savez_compressed(buffer, x=np.zeros((1, 3, 2, 2), np.float32))
    seeds["npz"] = buffer.getvalue()
    return seeds


@pytest.mark.parametrize("suffix", make_seeds())
def test_damaged_files_give_a_sentence(tmp_path, suffix):
    rng = random.Random(suffix)
    path = tmp_path / f"damaged.{suffix}"
    for _ in range(150):
        data = bytearray(make_seeds()[suffix])
        for _ in range(rng.choice([1, 2, 5, 20])):
            # Headers are short, and where most can go wrong.
            place = rng.randrange(min(len(data), rng.choice([40, 200, 1 << 30])) or 1)
            if rng.random() < 0.6:
                data[place : place + 1] = bytes([rng.randrange(256)])
            else:
                data[place : place + rng.randrange(30)] = rng.randbytes(rng.randrange(8))
        path.write_bytes(data)
        with contextlib.suppress(FeedError):
            load_input(parse_source(str(path)), FakeOperand())


class TestThinned:
    @pytest.mark.parametrize("dtype", ["f4", "f8", "f2", "i8", "u1", "?"])
    @pytest.mark.parametrize(
        ("shape", "planes"),
        [((1, 3, 9, 7), 3), ((2, 3, 9, 7), 3), ((1, 4, 7, 9), 1), ((3, 5), 1),
         ((300_000, 3), 1), ((3, 300_001), 1), ((2, 1, 1, 600_000), 1)],
    )  # fmt: skip
    @pytest.mark.parametrize("source", [InputSource("random", seed=5), InputSource("constant")])
    def test_made_up_numbers_are_those_of_the_input(self, shape, planes, dtype, source):
        operand = FakeOperand(shape=shape, dtype=np.dtype(dtype))
        made, kind, thinned = thin_made_up(source, operand, InputShapes(), 4)
        whole = load_input(source, operand)
        step = 1
        while max(shape[-2:]) > 4 * step:
            step += 1
        first = whole.reshape(-1, *shape[-2:])[:planes]
        assert (made, kind) == (shape, whole.dtype)
        np.testing.assert_array_equal(thinned, first[:, ::step, ::step])
        np.testing.assert_array_equal(thin_planes(whole, 4), thinned)

    @pytest.mark.parametrize(("shape", "dtype"), [((7,), "f4"), ((), "f4"), ((2, 3), "c8")])
    def test_what_is_no_plane(self, shape, dtype):
        operand = FakeOperand(shape=shape, dtype=np.dtype(dtype))
        made, kind, thinned = thin_made_up(InputSource("random"), operand, InputShapes(), 4)
        assert (made, kind, thinned) == (shape, np.dtype(dtype), None)
        assert thin_planes(np.zeros(shape, dtype), 4) is None

    def test_too_much(self):
        operand = FakeOperand(shape=(1, 1, 10**6, 10**6))
        with pytest.raises(FeedError, match="1000000"):
            thin_made_up(InputSource("random"), operand, InputShapes(), 4)
