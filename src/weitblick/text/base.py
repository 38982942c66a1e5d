"""What a text pipeline is: strings to ids and back, with the vocabularies, for one pair of languages."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Literal

from weitblick.errors import UserError
from weitblick.files import (
    atomic_path,
    check_files,
    check_format_version,
    check_plain,
    make_folder,
    read_json,
    sha256,
    write_json,
)
from weitblick.text.cleaning import clean
from weitblick.text.long_sentences import split_until
from weitblick.text.vocabulary import Vocabulary

FORMAT_VERSION = 1
PIPELINE_FILE = "pipeline.json"
CHUNK = 2000

Side = Literal["source", "target"]


class TextPipeline(ABC):
    """Encodes sentences of both languages to ids (without BOS and EOS) and decodes ids of the target language.

    Both vocabularies are the same object when they are joint. A pipeline may be used from several threads.
    """

    kind: ClassVar[str]

    def __init__(
        self,
        source_language: str,
        target_language: str,
        source_vocabulary: Vocabulary,
        target_vocabulary: Vocabulary,
        longest_sentence: int,
    ) -> None:
        self.source_language, self.target_language = source_language, target_language
        self.source_vocabulary, self.target_vocabulary = source_vocabulary, target_vocabulary
        self.longest_sentence = longest_sentence

    # What a kind of pipeline defines

    @abstractmethod
    def encode(self, sentences: Sequence[str], side: Side) -> list[list[int]]:
        """Ids of each sentence, in this process. Only UNK, and no other special id, ever comes from text."""

    @abstractmethod
    def encode_stream(self, sentences: Iterable[str], side: Side, *, workers: int | None = None) -> Iterator[list[int]]:
        """Ids of any number of sentences, in order, never holding more than some chunks of them.

        `workers` is how many cores may be used: all if not given.
        """

    @abstractmethod
    def decode(self, ids: Sequence[Sequence[int]], side: Side, sources: Sequence[str] | None = None) -> list[str]:
        """Text of each sequence of ids on one line, special ids dropped, UNK copied from its source if possible."""

    @abstractmethod
    def words(self, ids: Sequence[int], side: Side) -> list[tuple[int, int, str]]:
        """The pieces grouped into words: (start, end, surface), in order and covering all of `ids`."""

    def continuing(self, ids: Sequence[int], side: Side) -> list[bool]:
        """For each piece whether it continues a word that began before it."""
        starts = {start for start, _, _ in self.words(ids, side)}
        return [place not in starts for place in range(len(ids))]

    @abstractmethod
    def _files(self) -> dict[str, bytes]:
        """The learned parts, by file name."""

    @classmethod
    @abstractmethod
    def _restore(
        cls,
        folder: Path,
        languages: tuple[str, str],
        vocabularies: tuple[Vocabulary, Vocabulary],
        longest_sentence: int,
    ) -> TextPipeline:
        """The pipeline whose `_files` are in `folder`."""

    # What all have

    @property
    def joint_vocabulary(self) -> bool:
        return self.source_vocabulary is self.target_vocabulary

    def vocabulary(self, side: Side) -> Vocabulary:
        return self.source_vocabulary if side == "source" else self.target_vocabulary

    def encode_source(self, sentences: Sequence[str]) -> list[list[int]]:
        return self.encode(sentences, "source")

    def encode_target(self, sentences: Sequence[str]) -> list[list[int]]:
        return self.encode(sentences, "target")

    def decode_target(self, ids: Sequence[Sequence[int]], sources: Sequence[str] | None = None) -> list[str]:
        return self.decode(ids, "target", sources)

    def single_pieces(self, words: Sequence[str], side: Side, where: str) -> list[int]:
        """The id of each of these words; `where` names them in the complaint about one that is no single piece."""
        found = []
        for word, ids in zip(words, self.encode(words, side), strict=True):
            if len(ids) != 1:
                raise UserError(
                    f"{where}: {word!r} is {len(ids)} pieces in this model's vocabulary",
                    remedy="name words that are one piece",
                )
            found.append(ids[0])
        return found

    def pieces(self, ids: Sequence[int], side: Side) -> list[str]:
        vocabulary = self.vocabulary(side)
        return [vocabulary.token(number) for number in ids]

    def split_long(self, sentence: str) -> list[str]:
        """The sentence in parts that encode to at most `longest_sentence` ids each; `[sentence]` if it is short."""
        text = clean(sentence)
        if self._fits(text):
            return [sentence]
        return split_until(text, self._fits)

    def _fits(self, text: str) -> bool:
        return len(self.encode([text], "source")[0]) <= self.longest_sentence

    # Files

    def save(self, folder: str | Path) -> None:
        """Write the pipeline into `folder` (made if missing) among whatever else is there."""
        folder = make_folder(folder)
        names = {"source": "source.vocabulary.json", "target": "target.vocabulary.json"}
        if self.joint_vocabulary:
            names = dict.fromkeys(names, "vocabulary.json")
        for side in ("source", "target"):
            self.vocabulary(side).save(folder / names[side])
        for name, content in self._files().items():
            with atomic_path(folder / name) as temporary:
                temporary.write_bytes(content)
        files = sorted({*names.values(), *self._files()})
        description: dict[str, Any] = {
            "format_version": FORMAT_VERSION,
            "kind": self.kind,
            "source_language": self.source_language,
            "target_language": self.target_language,
            "longest_sentence": self.longest_sentence,
            "vocabularies": names,
            "files": {name: sha256(folder / name) for name in files},
        }
        write_json(folder / PIPELINE_FILE, description)

    def fingerprint(self) -> str:
        """Tells pipelines apart: equal if and only if they encode and decode alike."""
        digest = hashlib.sha256(f"{self.kind} {self.source_language} {self.target_language}".encode())
        for vocabulary in (self.source_vocabulary, self.target_vocabulary):
            digest.update("\n".join(vocabulary.tokens).encode() + b"\n\n")
        for name, content in sorted(self._files().items()):
            digest.update(name.encode() + b"\n" + content)
        return digest.hexdigest()


def load(folder: str | Path, kinds: dict[str, type[TextPipeline]]) -> TextPipeline:
    """The pipeline saved in `folder`, every file of it checked."""
    folder = Path(folder)
    path = folder / PIPELINE_FILE
    check_plain(path)
    value = read_json(path)
    check_format_version(value, FORMAT_VERSION, path)
    try:
        languages = (str(value["source_language"]), str(value["target_language"]))
        names = (value["vocabularies"]["source"], value["vocabularies"]["target"])
        kind, longest_sentence = kinds[value["kind"]], int(value["longest_sentence"])
        files = {str(name): str(expected) for name, expected in value["files"].items()}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UserError(f"is damaged ({error})", where=path, remedy="restore it from the run that wrote it") from None
    if not set(names) <= files.keys():
        raise UserError("names a vocabulary without a checksum", where=path, remedy="restore it")
    check_files(folder, files, path)
    source = Vocabulary.load(folder / names[0])
    target = source if names[1] == names[0] else Vocabulary.load(folder / names[1])
    return kind._restore(folder, languages, (source, target), longest_sentence)


def chunks(sentences: Iterable[str], size: int = CHUNK) -> Iterator[list[str]]:
    iterator = iter(sentences)
    while chunk := list(islice(iterator, size)):
        yield chunk
