"""Files appear complete or not at all, and what is wrong with one is said in one line."""

import pytest

from weitblick.errors import UserError
from weitblick.files import atomic_folder, atomic_path, check_format_version, read_lines, settled_folder, text_writer


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
    assert (settled_folder(tmp_path / "f") / "x").read_text() == "old"


def test_errors_are_one_line_with_place_and_remedy(tmp_path):
    (tmp_path / "bad").write_bytes(b"fine\nnot \xff utf\n")
    with pytest.raises(UserError, match=r"bad:2: byte 5 \(0xff\) is not UTF-8; convert"):
        list(read_lines(tmp_path / "bad"))
    with pytest.raises(UserError, match="is a directory"), atomic_path(tmp_path):
        pass
    with pytest.raises(UserError, match="format_version is None, this version of weitblick reads 1"):
        check_format_version({}, 1, "f.json")
    assert "\n" not in str(UserError("two\nlines", where="f", line=3, remedy="mend\nit"))
