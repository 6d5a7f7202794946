"""Pictures of the window as files."""

from __future__ import annotations

import resource
import signal
import sys

import pytest
from PySide6.QtGui import QColor, QImage

from engine.errors import ExportError
from kuiper_studio.picture_files import write_picture


@pytest.fixture
def image(qapp) -> QImage:
    made = QImage(300, 200, QImage.Format.Format_RGB32)
    for x in range(300):  # nothing that is packed into a few bytes
        for y in range(200):
            made.setPixelColor(x, y, QColor(x * y % 256, (x * 7 + y * 13) % 256, x % 256))
    return made


@pytest.mark.parametrize(("name", "form"), [("x.png", "png"), ("x", "png"), ("x.BMP", "bmp")])
def test_written_as_its_name_says(image, tmp_path, name, form):
    write_picture(image, tmp_path / name)
    read = QImage()
    assert read.load(str(tmp_path / name), form)
    assert read.pixelColor(31, 7) == QColor(217, (217 + 91) % 256, 31)
    assert read.size() == image.size()


def test_a_format_that_there_is_not(image, tmp_path):
    with pytest.raises(ExportError, match=r"x\.docx cannot be written: Unsupported image"):
        write_picture(image, tmp_path / "x.docx")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="limits are POSIX")
def test_a_disk_that_is_full_leaves_what_was_there(image, tmp_path):
    (tmp_path / "x.png").write_text("precious")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(ExportError, match="the file would exceed the allowed size"):
            write_picture(image, tmp_path / "x.png")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)
    assert (tmp_path / "x.png").read_text() == "precious"
    assert len(list(tmp_path.iterdir())) == 1
