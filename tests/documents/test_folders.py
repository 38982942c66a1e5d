"""Parts of a corpus are found in their folder, whatever their format."""

from __future__ import annotations

from pathlib import Path

import pytest

from weitblick.common.errors import UserError
from weitblick.documents.corpora.formats import guess_format
from weitblick.documents.corpora.reading import files_of_part


@pytest.mark.parametrize(
    "names",
    [
        ["train.en", "train.de"],
        ["train.en.gz", "train.de.xz"],
        ["train.tsv"],
        ["train.jsonl.gz"],
        ["train.source", "train.target"],
    ],
    ids=" ".join,
)
def test_parts_are_found(tmp_path: Path, names: list[str]) -> None:
    for name in (*names, "train.txt", "dev.tsv"):
        (tmp_path / name).touch()
    assert files_of_part(tmp_path, "train", ("en", "de")) == [f"{tmp_path}/{name}" for name in names]


def test_what_is_missing_is_called_by_its_language(tmp_path: Path) -> None:
    (tmp_path / "train.en").touch()
    assert files_of_part(tmp_path, "train", ("en", "de")) == [f"{tmp_path}/train.en", f"{tmp_path}/train.de"]


def test_a_letter_is_no_list_of_document_starts(tmp_path: Path) -> None:
    (tmp_path / "letter.doc").write_bytes(b"\xd0\xcf\x11\xe0")
    with pytest.raises(UserError, match=r"letter\.doc: is a file of an old Word; save it as \.docx"):
        guess_format([tmp_path / "letter.doc"])
    assert guess_format(["a.en", "a.doc"]) == "starts"
