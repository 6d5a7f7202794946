"""The report is one page that needs nothing else, and says what the comparison found."""

from __future__ import annotations

import base64
import hashlib
import io
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from PIL import Image

import engine
from engine.comparison import Tolerances, compare, open_reference
from engine.comparison.report import write_report
from engine.errors import ExportError

NAME = "<script>alert(1)</script>"
CONV = (
    "nn.Conv2d a 1 1 0 1 bias=False dilation=(1,1) groups=1 in_channels=3 kernel_size=(3,3) "
    "out_channels=4 padding=(1,1) padding_mode={} stride=(1,1) @weight=(4,3,3,3)f32 "
    "#0=(1,3,8,8)f32 #1=(1,4,8,8)f32"
)
NET = (
    "pnnx.Input in 0 1 0 #0=(1,3,8,8)f32",
    CONV,
    f"nn.ReLU {NAME} 1 1 1 2 #1=(1,4,8,8)f32 #2=(1,4,8,8)f32",
    "pnnx.Output out 1 0 2 #2=(1,4,8,8)f32",
)
TAGS_THAT_LOAD = {"script", "link", "iframe", "object", "embed", "base", "form"}


class Page(HTMLParser):
    """What a page consists of."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.sources, self.texts, self.cells = [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.sources += [value for name, value in attrs if name in {"src", "href"}]

    def handle_data(self, data):
        self.texts.append(data)


@pytest.fixture
def run(make_pair):
    """A function that makes a session of the network, padded in a mode."""
    rng = np.random.default_rng(0)
    weight = rng.standard_normal((4, 3, 3, 3)).astype(np.float32)
    image = rng.standard_normal((1, 3, 8, 8)).astype(np.float32)

    def make(mode):
        lines = [line.format(mode) for line in NET]
        path = make_pair(*lines, weights={"a.weight": weight}, name=mode)
        session = engine.Session(engine.load(path), backend="numpy")
        session.feed([image])
        session.run()
        return session

    return make


@pytest.fixture
def compared(run):
    """The faulty session, the reference, and the comparison of both."""
    session, reference = run("reflect"), open_reference(run("zeros"))
    return session, reference, compare(session, reference)


def read(path):
    text = path.read_text(encoding="utf-8")
    return text, Page(text)


def test_it_needs_no_other_file_and_runs_nothing(compared, tmp_path):
    session, reference, comparison = compared
    text, page = read(write_report(comparison, session, reference, tmp_path / "r.html"))
    assert not TAGS_THAT_LOAD & set(page.tags)
    assert all(source.startswith("data:image/png;base64,") for source in page.sources)
    assert "url(" not in text
    assert "@import" not in text
    assert NAME in page.texts  # as text, not as a tag


def test_it_states_the_findings(compared, tmp_path):
    session, reference, comparison = compared
    command = ["kuiper-studio", "compare", "a b.param"]
    path = write_report(comparison, session, reference, tmp_path / "r.html", command=command)
    text, page = read(path)
    shown = " ".join(page.texts)
    assert "Differs: 1 origin" in shown
    assert "prefers-color-scheme: dark" in text
    assert "kuiper-studio compare 'a b.param'" in shown
    for file in (session.graph.param_path, session.graph.bin_path):
        assert hashlib.sha256(file.read_bytes()).hexdigest() in shown
    assert f"numpy {np.__version__}" in shown
    worst = comparison.origins[0].index
    assert str(list(worst)) in shown
    assert f"{session.value('1')[worst]:.6g}" in page.texts
    assert text.count("<tr") == 1 + len(comparison.rows)


def test_numbers_that_differ_in_their_last_digits_look_different(run, tmp_path):
    session = run("zeros")
    arrays = {name: np.array(session.value(name)) for name in ("0", "1", "2")}
    largest = np.unravel_index(np.argmax(np.abs(arrays["1"])), arrays["1"].shape)
    arrays["1"][largest] = np.nextafter(arrays["1"][largest], np.float32(100))
    np.savez(tmp_path / "reference.npz", **arrays)
    reference = open_reference(tmp_path / "reference.npz")
    comparison = compare(session, reference, Tolerances(float32=1e-9))
    text, page = read(write_report(comparison, session, reference, tmp_path / "r.html"))
    assert "1 origin." in text
    start = next(n for n, each in enumerate(page.texts) if each == ": ours ")
    mine, other = page.texts[start + 1], page.texts[start + 3]
    assert mine != other
    assert np.float32(mine) == session.value("1")[largest]
    assert np.float32(other) == arrays["1"][largest]


def test_pictures_show_where_it_differs(compared, tmp_path):
    session, reference, comparison = compared
    _, page = read(write_report(comparison, session, reference, tmp_path / "r.html"))
    pictures = [
        np.asarray(Image.open(io.BytesIO(base64.b64decode(source.partition(",")[2]))))
        for source in page.sources
    ]
    assert len(pictures) == 3
    difference = pictures[2]
    size = difference.shape[0] // 8  # of an element
    cells = difference[size // 2 :: size, size // 2 :: size, :3].astype(int)
    # Padding matters at the border only: inside, all is of the colour of zero.
    inside = cells[1:-1, 1:-1].reshape(-1, 3)
    assert (inside == inside[0]).all()
    border = np.concatenate([cells[0], cells[-1], cells[:, 0], cells[:, -1]])
    assert (border != inside[0]).any()


def test_equal_runs(run, tmp_path):
    session, reference = run("zeros"), open_reference(run("zeros"))
    comparison = compare(session, reference)
    _, page = read(write_report(comparison, session, reference, tmp_path / "r.html"))
    assert any("Same" in text for text in page.texts)
    assert "img" not in page.tags


def test_a_network_of_thousands_stays_small(compared, tmp_path):
    session, reference, comparison = compared
    many = replace(comparison, rows=comparison.rows * 20_000, origins=comparison.origins * 50)
    path = write_report(many, session, reference, tmp_path / "r.html")
    assert path.stat().st_size < 5_000_000


def test_an_unwritable_place_is_reported(compared, tmp_path):
    session, reference, comparison = compared
    with pytest.raises(ExportError, match=r"cannot write .*missing.*r\.html"):
        write_report(comparison, session, reference, tmp_path / "missing" / "r.html")
