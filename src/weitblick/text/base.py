"""What all text pipelines share: special ids and symbols, cleaning, vocabularies, and the interface itself."""

from __future__ import annotations

import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Literal

from weitblick.common.errors import UserError
from weitblick.common.files import (
    atomic_path,
    check_files,
    check_format_version,
    check_regular_file,
    make_folder,
    read_json,
    sha256,
    write_json,
)

PAD, BOS, EOS, UNK = 0, 1, 2, 3
"""Special ids, the same in every vocabulary. No text encodes to one of them, but to UNK for unknown words."""
SPECIAL_TOKENS = ("<pad>", "<s>", "</s>", "<unk>")


# Symbols that say something to a model beside the words: spans that are carried through, wishes, terms.
#
# A model knows those that its recipe names (`text.symbols`); each is one piece of its vocabulary.

SPANS = tuple(f"⟦{number}⟧" for number in range(1, 13))
"""Each stands for a span that is carried through as it is: an address, a tag, code, a name."""
NUMBERS = tuple(f"⟦#{number}⟧" for number in range(1, 7))
"""Each stands for a span that is a number, to which grammar bends the words around it."""
FORMAL, INFORMAL = "⟦formal⟧", "⟦informal⟧"
"""Before a source sentence: how the translation is to address people."""
TERM, TERM_TRANSLATION, TERM_END = "⟦term⟧", "⟦=⟧", "⟦end⟧"
"""A term with its translation in a source sentence: ⟦term⟧ source ⟦=⟧ target ⟦end⟧."""
RESERVED = tuple(f"⟦r{number}⟧" for number in range(1, 9))
"""For what nobody has thought of yet."""

SYMBOLS = (*SPANS, *NUMBERS, FORMAL, INFORMAL, TERM, TERM_TRANSLATION, TERM_END, *RESERVED)


# What every pipeline does to a sentence first: one line of valid Unicode with single spaces.

# Control characters that `str.split` does not take for white space, and halves of surrogate pairs, which are not
# characters and cannot be written as UTF-8.
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")


def clean(sentence: str) -> str:
    """White space of any kind (tabs, line ends, no-break spaces) and control characters become single spaces."""
    return " ".join(_CONTROL.sub(" ", without_surrogates(sentence)).split())


def without_surrogates(sentence: str) -> str:
    """Text in which halves of surrogate pairs, which are no characters, are U+FFFD."""
    return _SURROGATE.sub("\ufffd", sentence)


# Tokens and their ids.

FORMAT_VERSION = 1


class Vocabulary:
    """Ordinary tokens numbered from 4 on, behind the special ids.

    Looking up text never gives a special id other than UNK: a user may type `</s>`, and it may even be an ordinary
    token of its own.
    """

    def __init__(self, tokens: Iterable[str]) -> None:
        self.tokens: tuple[str, ...] = (*SPECIAL_TOKENS, *tokens)
        first = len(SPECIAL_TOKENS)
        self._ids = {token: number for number, token in enumerate(self.tokens[first:], first)}
        if len(self._ids) != len(self.tokens) - first:
            raise ValueError("a vocabulary with the same token twice")

    def __len__(self) -> int:
        return len(self.tokens)

    def __contains__(self, token: object) -> bool:
        return token in self._ids

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocabulary) and self.tokens == other.tokens

    def __hash__(self) -> int:
        return hash(self.tokens)

    def __repr__(self) -> str:
        return f"Vocabulary({len(self)} tokens)"

    def id(self, token: str) -> int:
        """The id of a token; UNK if there is none."""
        return self._ids.get(token, UNK)

    def token(self, number: int) -> str:
        """The token of an id."""
        return self.tokens[number]

    def save(self, path: str | Path) -> None:
        write_json(path, {"format_version": FORMAT_VERSION, "tokens": self.tokens[len(SPECIAL_TOKENS) :]})

    @classmethod
    def load(cls, path: str | Path) -> Vocabulary:
        value = read_json(path)
        check_format_version(value, FORMAT_VERSION, path)
        tokens = value.get("tokens")
        if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
            raise UserError("has no list of tokens", where=path, remedy="restore the file from the run that wrote it")
        if len(set(tokens)) != len(tokens):
            raise UserError(
                "holds the same token twice", where=path, remedy="restore the file from the run that wrote it"
            )
        return cls(tokens)


# Over-long sentences cut into parts: at punctuation if possible, else at a space, else anywhere.

# Ends of sentences and clauses, of smaller phrases, of words; each with the share of the text, on either side of its
# middle, in which such a cut is taken. Chinese and Japanese punctuation has no space after it.
_CUTS = (
    (re.compile(r"(?<=[.!?;:…])[\"'”“»)\]]*\s|(?<=[。！？；：])"), 0.30),
    (re.compile(r"(?<=[,)\]–—])\s|(?<=[，、])"), 0.30),
    (re.compile(r"\s"), 0.50),
)


def split_until(text: str, fits: Callable[[str], bool]) -> list[str]:
    """Parts of `text`, in order and together all of its words, each of which `fits` (or is a single character)."""
    if len(text) < 2 or fits(text):
        return [text]
    cut = _best_cut(text)
    return [part for half in (text[:cut], text[cut:]) if half.strip() for part in split_until(half.strip(), fits)]


def _best_cut(text: str) -> int:
    """The position nearest to the middle of the best kind there is: balanced parts translate best."""
    middle = len(text) / 2
    for pattern, reach in _CUTS:
        cuts = [match.end() for match in pattern.finditer(text) if 0 < match.end() < len(text)]
        cuts = [cut for cut in cuts if abs(cut - middle) <= reach * len(text)]
        if cuts:
            return min(cuts, key=lambda cut: abs(cut - middle))
    return len(text) // 2


# What a text pipeline is: strings to ids and back, with the vocabularies, for one pair of languages.

PIPELINE_VERSION = 1
PIPELINE_FILE = "pipeline.json"
CHUNK = 2000

Side = Literal["source", "target"]
Settings = tuple[tuple[str, str], tuple[Vocabulary, Vocabulary], int]
"""Languages, vocabularies and the longest sentence."""


class TextPipeline(ABC):
    """Encodes sentences of both languages to ids (without BOS and EOS) and decodes ids of the target language.

    Both vocabularies are the same object when they are joint. A pipeline may be used from several threads.
    """

    kind: ClassVar[str]

    def __init__(
        self, languages: tuple[str, str], vocabularies: tuple[Vocabulary, Vocabulary], longest_sentence: int
    ) -> None:
        self.source_language, self.target_language = languages
        self.source_vocabulary, self.target_vocabulary = vocabularies
        self.longest_sentence = longest_sentence

    # What a kind of pipeline defines

    @abstractmethod
    def encode(self, sentences: Sequence[str], side: Side) -> list[list[int]]:
        """Ids of each sentence, in this process. Only UNK, and no other special id, ever comes from text."""

    @abstractmethod
    def decode(self, ids: Sequence[Sequence[int]], side: Side, sources: Sequence[str] | None = None) -> list[str]:
        """Text of each sequence of ids on one line, special ids dropped, UNK copied from its source if possible."""

    @abstractmethod
    def words(self, ids: Sequence[int], side: Side) -> list[tuple[int, int, str]]:
        """The pieces grouped into words: (start, end, surface), in order and covering all of `ids`."""

    def is_spelled_out(self, ids: Sequence[int]) -> bool:
        """Whether something in an encoded source is not in the vocabulary: unknown, or spelled in bytes."""
        return UNK in ids

    def continuing(self, ids: Sequence[int], side: Side) -> list[bool]:
        """For each piece whether it continues a word that began before it."""
        starts = {start for start, _, _ in self.words(ids, side)}
        return [place not in starts for place in range(len(ids))]

    @abstractmethod
    def _files(self) -> dict[str, bytes]:
        """The learned parts, by file name."""

    @classmethod
    @abstractmethod
    def _restore(cls, folder: Path, settings: Settings) -> TextPipeline:
        """The pipeline whose `_files` are in `folder`; the settings are the arguments that every kind has."""

    # What all have

    @property
    def joint_vocabulary(self) -> bool:
        """Whether source and target share one vocabulary."""
        return self.source_vocabulary is self.target_vocabulary

    def vocabulary(self, side: Side) -> Vocabulary:
        """The vocabulary of a side."""
        return self.source_vocabulary if side == "source" else self.target_vocabulary

    def encode_source(self, sentences: Sequence[str]) -> list[list[int]]:
        return self.encode(sentences, "source")

    def encode_target(self, sentences: Sequence[str]) -> list[list[int]]:
        return self.encode(sentences, "target")

    def decode_target(self, ids: Sequence[Sequence[int]], sources: Sequence[str] | None = None) -> list[str]:
        return self.decode(ids, "target", sources)

    def single_pieces(self, words: Sequence[str], where: str) -> list[int]:
        """The id of each of these target words; `where` names them in the error about one that is no single piece."""
        found = []
        for word, ids in zip(words, self.encode_target(words), strict=True):
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
            "format_version": PIPELINE_VERSION,
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


KINDS = {
    "moses": "moses_pipeline.MosesPipeline",
    "sentencepiece": "sentencepiece_pipeline.SentencePiecePipeline",
    "marian": "marian_pipeline.MarianPipeline",
}
"""The module and class of each kind of pipeline; a model needs one of them."""


def _class_of(kind: str) -> type[TextPipeline]:
    module, _, name = KINDS[kind].partition(".")
    found: type[TextPipeline] = getattr(import_module(f"weitblick.text.{module}"), name)
    return found


def load_pipeline(folder: str | Path) -> TextPipeline:
    """The text pipeline that was saved in a folder, every file of it checked."""
    folder = Path(folder)
    path = folder / PIPELINE_FILE
    check_regular_file(path)
    value = read_json(path)
    check_format_version(value, PIPELINE_VERSION, path)
    try:
        languages = (str(value["source_language"]), str(value["target_language"]))
        names = (value["vocabularies"]["source"], value["vocabularies"]["target"])
        kind, longest_sentence = _class_of(value["kind"]), int(value["longest_sentence"])
        files = {str(name): str(expected) for name, expected in value["files"].items()}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UserError(f"is damaged ({error})", where=path, remedy="restore it from the run that wrote it") from None
    if not set(names) <= files.keys():
        raise UserError("names a vocabulary without a checksum", where=path, remedy="restore it")
    check_files(folder, files, path)
    source = Vocabulary.load(folder / names[0])
    target = source if names[1] == names[0] else Vocabulary.load(folder / names[1])
    return kind._restore(folder, (languages, (source, target), longest_sentence))


def chunks(sentences: Iterable[str], size: int = CHUNK) -> Iterator[list[str]]:
    """Sentences in lists of CHUNK, the last one shorter."""
    iterator = iter(sentences)
    while chunk := list(islice(iterator, size)):
        yield chunk
