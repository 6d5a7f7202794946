"""The ``.bin``: archives made byte by byte, sound ones and hostile ones."""

from __future__ import annotations

import struct
import zipfile
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import ModelFileError
from engine.pnnx import archive as archive_module
from engine.pnnx.archive import Archive, write_archive

FULL = 0xFFFFFFFF


def archive_bytes(
    entries,
    *,
    zip64=False,
    descriptors=False,
    method=0,
    flags=0,
    comment=b"",
    local_extra=b"",
    local_names=None,
    local_extras=None,
    gaps=None,
    offsets=None,
    sizes=None,
    packed_sizes=None,
    count=None,
    end_size=None,
    drop_extra=False,
    directory_tail=b"",
):
    """An archive as pnnx (Zip64) or older writers make it; the rest are ways to break it."""
    body, directory = b"", b""
    flags |= 8 * descriptors
    for index, (name, data) in enumerate(entries):
        raw = name if isinstance(name, bytes) else name.encode()
        local = (local_names or {}).get(index, raw)
        offset = len(body) if offsets is None else offsets[index]
        size = len(data) if sizes is None else sizes[index]
        packed = size if packed_sizes is None else packed_sizes[index]
        crc = zlib.crc32(data)
        extra = struct.pack("<2H2QQL", 1, 28, size, packed, offset, 0) if zip64 else b""
        own_extra = (local_extras or {}).get(index, b"")
        said = FULL if zip64 else len(data)
        in_header = (0, 0, 0) if descriptors else (crc, said, said)
        body += struct.pack(
            "<4s5H3L2H", b"PK\3\4", 0, flags, method, 0, 0, *in_header,
            len(local), len(local_extra + extra + own_extra),
        )  # fmt: skip
        body += local + local_extra + extra + own_extra + data
        body += (gaps or {}).get(index, b"")
        if descriptors:
            body += struct.pack("<4s3L", b"PK\7\x08", crc, len(data), len(data))
        if drop_extra:
            extra = b""
        directory += struct.pack(
            "<4s6H3L5H2L", b"PK\1\2", 0, 0, flags, method, 0, 0, crc,
            FULL if zip64 else packed, FULL if zip64 else size,
            len(raw), len(local_extra + extra), 0, 0, 0, 0, FULL if zip64 else offset,
        )  # fmt: skip
        directory += raw + local_extra + extra
    directory += directory_tail
    number = len(entries) if count is None else count
    length = len(directory) if end_size is None else end_size
    data = body + directory
    if zip64:
        data += struct.pack(
            "<4sQ2H2L4Q", b"PK\6\6", 44, 0, 0, 0, 0, number, number, length, len(body)
        )
        data += struct.pack("<4sLQL", b"PK\6\7", 0, len(body) + len(directory), 1)
        end = (0xFFFF, 0xFFFF, 0xFFFF, 0xFFFF, FULL, FULL)
    else:
        end = (0, 0, number, number, length, len(body))
    return data + struct.pack("<4s4H2LH", b"PK\5\6", *end, len(comment)) + comment


def read(path):
    archive = Archive(path)
    return {
        name: archive.view(offset, size).tobytes()
        for name, (offset, size) in archive.entries.items()
    }


ENTRIES = [("conv.1.weight", b"\1\2\3\4"), ("conv.1.bias", b""), ("größe.w", b"xyz")]


class TestSound:
    @pytest.mark.parametrize(
        "flavour",
        [
            pytest.param({"zip64": True}, id="zip64-as-pnnx"),
            pytest.param({}, id="plain-as-older-pnnx"),
            pytest.param({"descriptors": True}, id="data-descriptors"),
            pytest.param({"descriptors": True, "zip64": True}, id="both"),
            pytest.param({"comment": b"made by PK\5\6 somebody" + b" " * 22}, id="comment"),
            pytest.param({"zip64": True, "local_extra": b"\7\0\2\0ab"}, id="other-extra"),
        ],
    )
    def test_flavours(self, tmp_path, flavour):
        path = tmp_path / "m.bin"
        path.write_bytes(archive_bytes(ENTRIES, **flavour))
        assert read(path) == dict(ENTRIES)

    @pytest.mark.parametrize("zip64", [True, False])
    @pytest.mark.parametrize(
        "unlike",
        [
            pytest.param({"gaps": {1: b"between"}}, id="gap"),
            pytest.param({"gaps": {0: b"1", 1: b"2", 2: b"3"}}, id="gaps-of-one-size"),
            pytest.param({"local_extras": {1: b"\7\0\2\0ab"}}, id="one-extra"),
        ],
    )
    def test_entries_that_are_not_one_behind_the_other(self, tmp_path, zip64, unlike):
        path = tmp_path / "m.bin"
        path.write_bytes(archive_bytes(ENTRIES, zip64=zip64, **unlike))
        assert read(path) == dict(ENTRIES)

    @pytest.mark.parametrize("zip64", [True, False])
    def test_local_headers_of_several_lengths(self, tmp_path, zip64):
        """The data offset comes from each, also where entries follow at equal distances."""
        field = b"\7\0\2\0ab"
        entries = [(f"e{i}.w", bytes([i] * 9)) for i in range(6)]
        path = tmp_path / "m.bin"
        path.write_bytes(
            archive_bytes(
                entries,
                zip64=zip64,
                # Entries 0 and 5 have two fields, 2 and 3 one and none, with as much behind.
                local_extras={0: field * 2, 1: field * 2, 2: field, 4: field * 2, 5: field * 2},
                gaps={2: b"-" * 6, 3: b"-" * 12},
            )
        )
        assert read(path) == dict(entries)
        archive = Archive(path)
        for _ in range(2):  # the same when asked again
            assert archive.view(*archive.entries["e3.w"]).tolist() == [3] * 9

    def test_only_the_directory_is_looked_at(self, tmp_path, monkeypatch):
        path = tmp_path / "m.bin"
        entries = [(f"e{i}.w", bytes([i] * 9)) for i in range(100)]
        path.write_bytes(archive_bytes(entries, zip64=True))
        monkeypatch.setattr("engine.pnnx.archive._data_offset", None)
        looked_at = []
        look = archive_module._local_extra
        monkeypatch.setattr(
            archive_module,
            "_local_extra",
            lambda read, header, name: looked_at.append(name) or look(read, header, name),
        )
        archive = Archive(path)
        assert looked_at == [b"e0.w", b"e99.w"]
        for name in ("e7.w", "e7.w", "e0.w"):
            assert archive.view(*archive.entries[name]).tobytes() == dict(entries)[name]
        assert looked_at[2:] == [b"e7.w", b"e0.w"]
        assert read(path) == dict(entries)

    def test_empty_zip64_of_98_bytes(self, tmp_path):
        path = tmp_path / "m.bin"
        path.write_bytes(archive_bytes([], zip64=True))
        assert path.stat().st_size == 98
        assert read(path) == {}

    def test_empty_of_22_bytes(self, tmp_path):
        path = tmp_path / "m.bin"
        path.write_bytes(b"PK\5\6" + b"\0" * 18)
        assert read(path) == {}

    def test_python_reads_what_the_test_makes(self, tmp_path):
        path = tmp_path / "m.bin"
        path.write_bytes(archive_bytes(ENTRIES[:2], zip64=True))
        with zipfile.ZipFile(path) as archive:
            assert {name: archive.read(name) for name in archive.namelist()} == dict(
                ENTRIES[:2]
            )

    def test_views_outlive_the_archive(self, tmp_path):
        path = tmp_path / "m.bin"
        path.write_bytes(archive_bytes([("a.w", b"\1\2\3\4")]))
        archive = Archive(path)
        view = archive.view(*archive.entries["a.w"])
        assert not view.flags.writeable
        assert not view.flags.owndata
        del archive
        assert view.tolist() == [1, 2, 3, 4]


class TestHostile:
    @pytest.mark.parametrize(
        ("data", "reason"),
        [
            pytest.param(b"", "it is empty; copy or export it again", id="empty"),
            pytest.param(
                b"7767517\n1 1\n",
                "it is not a weights file of PNNX, which is a ZIP archive",
                id="text",
            ),
            pytest.param(
                archive_bytes(ENTRIES)[:-30],
                "its directory at the end is missing; the file is damaged; "
                "copy or export it again",
                id="cut-short",
            ),
            pytest.param(
                archive_bytes(ENTRIES) + b"PK\5\6",
                "its directory at the end is missing; the file is damaged; "
                "copy or export it again",
                id="cut-in-the-end",
            ),
            pytest.param(
                archive_bytes([("a.w", b"1234")], method=8),
                "entry 'a.w' is compressed, and weights can only be read as they are; pack "
                "the archive again without that",
                id="compressed",
            ),
            pytest.param(
                archive_bytes([("a.w", b"1234")], flags=1),
                "entry 'a.w' is encrypted, and weights can only be read as they are; pack "
                "the archive again without that",
                id="encrypted",
            ),
            pytest.param(
                archive_bytes([("a.w", b"1"), ("a.w", b"2")]),
                "it has two entries named 'a.w'; the file is damaged; copy or export it again",
                id="twice",
            ),
            pytest.param(
                archive_bytes([("a.w", b"1")], count=2),
                "it lists 1 entries and counts 2; the file is damaged; copy or export it again",
                id="count",
            ),
            pytest.param(
                archive_bytes([("a.w", b"1234")], sizes=[5], packed_sizes=[5]),
                "entry 'a.w' reaches beyond its end; the file is damaged; copy or export it "
                "again",
                id="size",
            ),
            pytest.param(
                archive_bytes([("a.w", b"1234")], zip64=True, sizes=[2**63]),
                "entry 'a.w' reaches beyond its end; the file is damaged; copy or export it "
                "again",
                id="huge-size",
            ),
            pytest.param(
                archive_bytes([("a.w", b"1234")], packed_sizes=[3]),
                "entry 'a.w' has two different sizes; the file is damaged; copy or export it "
                "again",
                id="two-sizes",
            ),
            pytest.param(
                archive_bytes([("a.w", b"1234")], zip64=True, offsets=[2**63]),
                "entry 'a.w' is not where it should be; the file is damaged; copy or export it "
                "again",
                id="offset-outside",
            ),
            pytest.param(
                archive_bytes([("a.w", b"1234")], offsets=[1]),
                "entry 'a.w' is not where it should be; the file is damaged; copy or export it "
                "again",
                id="offset-elsewhere",
            ),
            pytest.param(
                archive_bytes([("a.w", b"1"), ("b.w", b"2")], local_names={1: b"c.w"}),
                "entry 'b.w' has two different names; the file is damaged; copy or export it "
                "again",
                id="local-name",
            ),
            pytest.param(
                archive_bytes([(b"\xff.w", b"1")]),
                "entry '\\\\xff.w' is not named in UTF-8; the file is damaged; copy or export "
                "it again",
                id="name-not-utf8",
            ),
            pytest.param(
                archive_bytes([("a.w", b"1234")], zip64=True, drop_extra=True),
                "entry 'a.w' lacks its Zip64 sizes; the file is damaged; copy or export it "
                "again",
                id="no-zip64-sizes",
            ),
            pytest.param(
                archive_bytes([("a.w", b"1234")], zip64=True, local_extra=b"\1\0\4\0abcd"),
                "entry 'a.w' lacks its Zip64 sizes; the file is damaged; copy or export it "
                "again",
                id="short-zip64-sizes",
            ),
            pytest.param(
                archive_bytes([("a.w", b"1")], directory_tail=b"junk" * 12),
                "its directory cannot be read; the file is damaged; copy or export it again",
                id="junk-in-directory",
            ),
            pytest.param(
                archive_bytes([("a.w", b"1")], end_size=47),
                "its directory cannot be read; the file is damaged; copy or export it again",
                id="directory-cut",
            ),
            pytest.param(
                archive_bytes([("a.w", b"1")], end_size=5000),
                "its directory reaches beyond its end; the file is damaged; copy or export it "
                "again",
                id="directory-outside",
            ),
            pytest.param(
                archive_bytes([("a.w", b"1")], zip64=True, end_size=2**64 - 1),
                "its directory reaches beyond its end; the file is damaged; copy or export it "
                "again",
                id="zip64-directory-outside",
            ),
            pytest.param(
                archive_bytes([("a.w", b"1")], zip64=True)[10:],
                "its Zip64 directory is not where it should be; the file is damaged; copy or "
                "export it again",
                id="beginning-missing",
            ),
        ],
    )
    def test_refused(self, tmp_path, data, reason):
        path = tmp_path / "m.bin"
        path.write_bytes(data)
        with pytest.raises(ModelFileError) as caught:
            Archive(path)
        assert str(caught.value) == f"{path}: {reason}"
        assert caught.value.path == path

    @pytest.mark.parametrize(
        ("unlike", "reason"),
        [
            ({"local_names": {1: b"e9.w"}}, "entry 'e1.w' is not where it should be; the file"),
            ({"local_extras": {1: b"\7\0\2\0ab"}, "sizes": [9, 15, 9]},
             "entry 'e1.w' reaches into what follows; the file is damaged"),
        ],
    )  # fmt: skip
    def test_a_local_header_between_others(self, tmp_path, unlike, reason):
        """Told when its bytes are asked for, each time; the other entries are sound."""
        entries = [(f"e{i}.w", bytes([i] * 9)) for i in range(3)]
        path = tmp_path / "m.bin"
        path.write_bytes(archive_bytes(entries, **unlike))
        archive = Archive(path)
        for _ in range(2):
            with pytest.raises(ModelFileError) as caught:
                archive.view(*archive.entries["e1.w"])
            assert str(caught.value).startswith(f"{path}: {reason}")
        for i in (0, 2):
            assert archive.view(*archive.entries[f"e{i}.w"]).tolist() == [i] * 9

    def test_overlap(self, tmp_path):
        inner = archive_bytes([("b.w", b"2")])[:34]  # the local header and byte of an entry
        data = archive_bytes([("a.w", inner), ("b.w", b"2")], offsets=[0, 33])
        path = tmp_path / "m.bin"
        path.write_bytes(data)
        with pytest.raises(ModelFileError, match=r"entries 'a\.w' and 'b\.w' overlap"):
            Archive(path)

    def test_no_file(self, tmp_path):
        for path in (tmp_path / "none.bin", tmp_path):
            with pytest.raises(ModelFileError, match="there is no such file"):
                Archive(path)

    def test_unreadable(self, tmp_path, monkeypatch):
        path = tmp_path / "m.bin"
        path.write_bytes(b"PK")

        def refuse(*_, **__):
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr("engine.pnnx.archive.read_at", refuse)
        with pytest.raises(ModelFileError, match="it cannot be read: Permission denied"):
            Archive(path)

    @settings(max_examples=300)
    @given(st.data())
    def test_damage_never_leads_outside(self, tmp_path_factory, data):
        whole = bytearray(archive_bytes(ENTRIES, zip64=data.draw(st.booleans())))
        for _ in range(data.draw(st.integers(1, 4))):
            whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
        path = tmp_path_factory.getbasetemp() / "damaged.bin"
        path.write_bytes(whole[: data.draw(st.integers(1, len(whole)))])
        try:
            archive = Archive(path)
        except ModelFileError:
            return
        for offset, size in archive.entries.values():
            assert 0 <= offset <= offset + size <= path.stat().st_size
            try:
                assert archive.view(offset, size).size == size
            except ModelFileError:
                continue


class TestWrite:
    def test_stored_and_readable(self, tmp_path):
        path = tmp_path / "m.bin"
        write_archive(path, ((name, np.frombuffer(data, np.uint8)) for name, data in ENTRIES))
        assert read(path) == dict(ENTRIES)
        with zipfile.ZipFile(path) as archive:
            assert archive.testzip() is None
            for info in archive.infolist():
                assert info.compress_type == zipfile.ZIP_STORED
                assert not info.flag_bits & 8  # pnnx refuses data descriptors

    def test_same_weights_same_bytes(self, tmp_path):
        files = [tmp_path / "a.bin", tmp_path / "b.bin"]
        for path in files:
            write_archive(path, [("a.w", np.arange(9, dtype=np.uint8))])
        assert files[0].read_bytes() == files[1].read_bytes()
