"""Files appear complete or not at all, and what is wrong with one is said in one line."""

import gzip
import os
import stat

import pytest

from weitblick.common.errors import UserError
from weitblick.common.files import (
    atomic_folder,
    atomic_path,
    check_format_version,
    read_lines,
    recovered_folder,
    text_writer,
)


def test_a_failed_write_leaves_the_old_file_and_no_other(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")

    def fail():
        with text_writer(path) as stream:
            stream.write("new")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_folders_are_replaced_whole(tmp_path):
    for content in ("one", "two"):
        with atomic_folder(tmp_path / "f") as folder:
            (folder / "x").write_text(content)
    assert (tmp_path / "f" / "x").read_text() == "two"
    with pytest.raises(RuntimeError), atomic_folder(tmp_path / "f") as folder:
        raise RuntimeError
    assert (tmp_path / "f" / "x").read_text() == "two"
    assert [p.name for p in tmp_path.iterdir()] == ["f"]


def test_a_crash_between_two_renames_is_mended(tmp_path):
    with atomic_folder(tmp_path / "f") as folder:
        (folder / "x").write_text("old")
    (tmp_path / "f").rename(tmp_path / ".f.old")
    assert (recovered_folder(tmp_path / "f") / "x").read_text() == "old"


def test_errors_are_one_line_with_place_and_remedy(tmp_path):
    (tmp_path / "bad").write_bytes(b"fine\nnot \xff utf\n")
    with pytest.raises(UserError, match=r"bad:2: byte 5 \(0xff\) is not UTF-8; convert"):
        list(read_lines(tmp_path / "bad"))
    with pytest.raises(UserError, match="is a directory"), atomic_path(tmp_path):
        pass
    with pytest.raises(UserError, match="format_version is None, this version of weitblick reads 1"):
        check_format_version({}, 1, "f.json")
    assert "\n" not in str(UserError("two\nlines", where="f", line=3, remedy="mend\nit"))


def test_devices_and_pipes_are_written_to_and_never_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with atomic_path(pipe) as temporary:
        temporary.write_bytes(b"through")
    assert os.read(reader, 100) == b"through"
    os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert list(tmp_path.iterdir()) == [pipe]


def test_the_same_text_gives_the_same_compressed_bytes(tmp_path):
    for name in ("a.gz", "b.gz", "c.xz", "d.xz"):
        with text_writer(tmp_path / name) as stream:
            stream.write("a line\n")
        assert list(read_lines(tmp_path / name)) == ["a line"]
    one, other, third, fourth = (path.read_bytes() for path in sorted(tmp_path.iterdir()))
    assert one == other
    assert third == fourth
    assert b"weitblick" not in one


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_is_read_by_its_mark(tmp_path, encoding):
    lines = ["eins", "ਊ ਊ", "", "drei 😀"]  # the second holds the bytes of a line end
    data = ("\ufeff" + "\r\n".join(lines)).encode(encoding)
    (tmp_path / "a").write_bytes(data)
    (tmp_path / "a.gz").write_bytes(gzip.compress(data))
    assert list(read_lines(tmp_path / "a")) == lines == list(read_lines(tmp_path / "a.gz"))


def test_utf_16_that_is_cut_or_unmarked_is_one_line(tmp_path):
    (tmp_path / "cut").write_bytes("\ufeffone\ntwo".encode("utf-16-le")[:-1])
    with pytest.raises(UserError, match=r"cut:2: is not UTF-16 as its byte-order mark says"):
        list(read_lines(tmp_path / "cut"))
    (tmp_path / "unmarked").write_bytes("<tmx/>".encode("utf-16-le"))
    with pytest.raises(UserError, match=r"unmarked:1: NUL character at column 2; if it is UTF-16"):
        list(read_lines(tmp_path / "unmarked"))
