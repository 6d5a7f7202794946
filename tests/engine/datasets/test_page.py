"""The page of a sweep says what the sweep found, and needs nothing else."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
import pytest
from datasets_support import DIGITS
from ncnn_files import f32, write_pair
from PIL import Image

from engine.datasets import SweepOptions, open_sweep, sweep
from engine.datasets.inputs import InputReader
from engine.datasets.page import PAGE, write_summary_page
from engine.datasets.page.figures import list_channels
from engine.datasets.thumbnails import draw_input
from engine.errors import ExportError


class Page(HTMLParser):
    """The texts of a page, its pictures, and what it would load or run."""

    def __init__(self, text):
        super().__init__()
        self.texts, self.pictures, self.loaded, self.open = [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        facts = dict(attrs)
        if tag == "img":
            self.pictures.append(facts["src"])
        if tag not in {"meta", "img", "line", "rect", "text"} or tag == "text":
            self.open.append(tag)
        self.loaded += [tag] if tag in {"script", "link", "iframe", "object"} else []
        self.loaded += [name for name in facts if name.startswith("on") or name == "href"]

    def handle_endtag(self, tag):
        if tag in self.open:
            while self.open.pop() != tag:
                pass

    def handle_data(self, data):
        if data.strip() and "style" not in self.open:
            self.texts.append(data.strip())


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """Pictures that are much alike, a black one, one that is none, and dead channels."""
    folder = tmp_path_factory.mktemp("set")
    rng = np.random.default_rng(0)
    for number in range(24):
        pixels = rng.integers(90, 160, (32, 32), np.uint8)
        Image.fromarray(pixels * (number != 7)).save(folder / f"p{number:02}.png")
    (folder / "z<b>.png").write_bytes(b"nothing")
    return sweep(
        DIGITS, folder, tmp_path_factory.mktemp("out"), SweepOptions(batch=1), workers=0
    )


def test_written_with_the_results(found):
    text = (found.path / PAGE).read_text()
    page = Page(text)
    assert not page.loaded
    assert "default-src 'none'" in text
    words = " ".join(page.texts)
    assert "24 inputs of" in words
    assert "1 input could not be run" in words
    assert "z<b>.png" in words  # as text, not as a tag
    place = next(at for at, each in enumerate(page.texts) if each.endswith("z<b>.png"))
    assert page.texts[place + 1] == "cannot be read as an image: its format is unknown"
    # A card for each operand, with its ends.
    for operand in found.operands.values():
        assert any(operand.operator == each for each in page.texts)
    assert len(re.findall('<svg class="histogram"', text)) == len(found.operands)


def test_unusual_inputs_have_pictures(found):
    page = Page((found.path / PAGE).read_text())
    unusual = {each.index for operand in found.operands.values() for each in operand.outliers}
    assert 7 in unusual
    assert f"Unusual inputs ({len(unusual)})" in page.texts
    assert len(page.pictures) == min(len(unusual), 12)
    assert all(each.startswith("data:image/png;base64,") for each in page.pictures)
    first = next(each for each in page.texts if each.endswith(".png"))
    assert first.endswith("p07.png")  # the farthest is first


def test_dead_channels_are_counted_and_listed(found):
    dead = {
        each.operator: np.flatnonzero(each.channels.dead == 1).tolist()
        for each in found.operands.values()
        if each.channels.axis is not None
    }
    page = Page((found.path / PAGE).read_text())
    assert f"Dead channels ({sum(map(len, dead.values()))})" in page.texts
    for operator, numbers in dead.items():
        if numbers:
            assert list_channels(numbers) in page.texts, operator


def test_the_command_repeats_it(found, tmp_path):
    path = write_summary_page(
        open_sweep(found.path), tmp_path / "p.html", ["kuiper-studio", "sweep", "a b"]
    )
    texts = Page(path.read_text()).texts
    assert "kuiper-studio sweep 'a b'" in texts
    assert f"SHA-256 {found.model.sha256}" in texts


def test_an_unwritable_place_is_reported(found, tmp_path):
    with pytest.raises(ExportError, match="cannot write"):
        write_summary_page(found, tmp_path / "missing" / "p.html")


@pytest.mark.parametrize(
    ("numbers", "text"),
    [([], ""), ([3], "3"), ([3, 4, 5, 9, 11, 12], "3 to 5, 9, 11, 12")],
)
def test_neighbours_are_listed_together(numbers, text):
    assert list_channels(numbers) == text


def test_pictures_of_arrays(tmp_path):
    """A plane is grey from its least to its greatest element."""
    from engine.datasets.inputs import InputSet

    array = np.zeros((2, 1, 4, 6), np.float32)
    array[1, 0, 2, 3] = -5
    np.save(tmp_path / "set.npy", array)
    path = str(tmp_path / "set.npy")
    with InputReader(InputSet("npy", path, path, 2)) as reader:
        flat, other = (draw_input(reader, index) for index in range(2))
    assert flat.shape == other.shape == (4, 6, 3)
    assert not flat.any()
    assert other[2, 3].tolist() == [0, 0, 0]
    assert other[0, 0].tolist() == [255, 255, 255]


@pytest.mark.parametrize(
    ("zeros", "text"), [(0, None), (1, "<1% zeros"), (30, "1% zeros"), (2998, ">99% zeros")]
)
def test_few_zeros_are_not_none(tmp_path, zeros, text):
    model = tmp_path / "m.param"
    model.write_text(
        "7767517\n3 2\n"
        "pnnx.Input x 0 1 0 #0=(1,1000)f32\n"
        "nn.ReLU a 1 1 0 1 #0=(1,1000)f32 #1=(1,1000)f32\n"
        "pnnx.Output out 1 0 1\n"
    )
    flat = np.ones(3000, np.float32)
    flat[:zeros] = 0
    np.save(tmp_path / "set.npy", flat.reshape(3, 1000))
    found = sweep(model, tmp_path / "set.npy", tmp_path / "out", workers=0)
    words = " ".join(Page((found.path / PAGE).read_text()).texts).split("Dead channels")[0]
    assert ("% zeros" in words) is (text is not None)
    if text is not None:
        assert text in words


def test_a_sweep_without_statistics_says_so(tmp_path):
    pytest.importorskip("zarr")
    np.save(tmp_path / "set.npy", np.zeros((2, 1, 32, 32), np.float32))
    options = SweepOptions(statistics=False, dump=True)
    found = sweep(DIGITS, tmp_path / "set.npy", tmp_path / "out", options, workers=0)
    words = " ".join(Page((found.path / PAGE).read_text()).texts)
    assert "no statistics, 25 operators, tensors in dump.zarr." in words


def test_copies_of_an_operand_are_left_out(tmp_path):
    lines = [
        "Input in0 0 1 in0",
        "ReLU act 1 1 in0 a",
        "Split copy 1 2 a b c",
        "BinaryOp sum 2 1 b c out0 0=0",
    ]
    model = write_pair(tmp_path, lines, b"")
    np.save(tmp_path / "set.npy", np.random.default_rng(0).random((3, 2, 4, 4), np.float32))
    swept = sweep(model, tmp_path / "set.npy", tmp_path / "out", workers=0)
    assert len(swept.operands) == 5
    texts = Page((tmp_path / "out" / PAGE).read_text()).texts
    assert "Ranges (3)" in texts
    assert any("Copies that Split makes, left out: 2." in text for text in texts)
    assert "copy" not in texts


def test_a_constant_has_no_dead_channels(tmp_path):
    lines = [
        "Input in0 0 1 in0",
        "MemoryData zeros 0 1 z 0=3",
        "BinaryOp times 2 1 in0 z out0 0=2",
        "ReLU shown 1 1 z out1",  # of the constant alone
    ]
    model = write_pair(tmp_path, lines, f32(np.zeros(3)))
    np.save(tmp_path / "set.npy", np.ones((4, 3), np.float32))
    found = sweep(model, tmp_path / "set.npy", tmp_path / "out", workers=0)
    dead = {each.operator: each.dead_channels.tolist() for each in found.operands.values()}
    assert dead == {"in0": [], "zeros": [], "times": [0, 1, 2], "shown": []}
    page = Page((tmp_path / "out" / PAGE).read_text())
    assert "Dead channels (3)" in page.texts
    assert "3 of 3" in page.texts
