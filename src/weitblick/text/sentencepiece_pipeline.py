"""SentencePiece: BPE on raw text that gives every character back exactly.

Text is only cleaned (white space), never normalised: SentencePiece's usual `nmt_nfkc` would turn “①” into “1”, “ﬁ” into
“fi”, “…” into “...” and full-width letters into plain ones, and no output could contain them again. Characters outside
the model are spelled in UTF-8 bytes, so nothing is unknown.

Symbols of a recipe (`text.symbols`) are user-defined pieces of SentencePiece: one piece wherever they stand. Text of a
user that has the very same characters is encoded to that piece, too, and decoded to the same characters; whoever gives
symbols a meaning has to keep such text away from the model.
"""

from __future__ import annotations

import io
import struct
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

import sentencepiece

from weitblick.common.errors import UserError
from weitblick.common.threads import cores
from weitblick.text.base import (
    BOS,
    EOS,
    PAD,
    SPECIAL_TOKENS,
    UNK,
    Settings,
    Side,
    TextPipeline,
    Vocabulary,
    chunks,
    clean,
)

MODEL_FILE = "sentencepiece.model"
SPACE = "▁"  # how SentencePiece writes a space; typed by a user it is spelled in bytes, so that it stays itself
REQUIRED_WORD_SHARE = 5_000  # a word that is to be one piece counts as if at least one in so many words were it
FEWEST_REQUIRED = 20  # and so often at least
COVERAGE = 0.9999  # of the characters of the training text; the rest is spelled in bytes
_FIRST_BYTE = len(SPECIAL_TOKENS)
_FIRST_PIECE = _FIRST_BYTE + 256
_SPACE_BYTES = [_FIRST_BYTE + byte for byte in SPACE.encode()]


@dataclass(frozen=True)
class PieceOptions:
    """What a recipe asks of the pieces: `symbols` and `words` that are one piece, digits that are one each."""

    symbols: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    split_digits: bool = False


class SentencePiecePipeline(TextPipeline):
    """One SentencePiece model for both languages; vocabularies are all of it, or what each side uses of it.

    Ids of every vocabulary: the special ones, 256 bytes, learned pieces, symbols. With separate
    vocabularies a piece that one side has never seen is spelled in shorter ones that it has seen, or in bytes.
    """

    kind = "sentencepiece"

    def __init__(
        self,
        model: bytes,
        languages: tuple[str, str],
        vocabularies: tuple[Vocabulary, Vocabulary],
        longest_sentence: int,
    ) -> None:
        super().__init__(languages, vocabularies, longest_sentence)
        self.model = model
        self._processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        self._spellings = {"source": self._spell("source"), "target": self._spell("target")}
        self._bytes = {"source": _token_bytes(self.source_vocabulary), "target": _token_bytes(self.target_vocabulary)}

    @classmethod
    def learn(
        cls,
        words: tuple[Counter[str], Counter[str]],
        languages: tuple[str, str],
        pieces: int,
        joint: bool,
        longest: int,
        options: PieceOptions = PieceOptions(),
    ) -> SentencePiecePipeline:
        """Learn from the counted words of both sides. Pieces never cross spaces, so counts are all there is to know."""
        model = _train(words[0] + words[1], pieces, options)
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        everything = [processor.id_to_piece(number) for number in range(_FIRST_BYTE, processor.get_piece_size())]
        if joint:
            source = target = Vocabulary(everything)
        else:
            source, target = (Vocabulary(_used(processor, everything, counts, options)) for counts in words)
        pipeline = cls(model, languages, (source, target), longest)
        pipeline.single_pieces(options.words, "text.words")
        return pipeline

    def _spell(self, side: Side) -> list[tuple[int, ...]] | None:
        """For each piece of the model its ids in the vocabulary of a side; None if they are the same."""
        vocabulary = self.vocabulary(side)
        if len(vocabulary) == self._processor.get_piece_size():
            return None

        def spell(piece: str) -> tuple[int, ...]:
            """Fewest ids: known pieces where there are some, bytes elsewhere."""
            best: list[tuple[int, ...]] = [()]
            for end in range(1, len(piece) + 1):
                ways = [
                    (*best[start], vocabulary.id(piece[start:end]))
                    for start in range(end)
                    if piece[start:end] in vocabulary
                ]
                character = piece[end - 1].replace(SPACE, " ")
                ways.append((*best[end - 1], *(_FIRST_BYTE + byte for byte in character.encode())))
                best.append(min(ways, key=len))
            return best[-1]

        ordinary = range(_FIRST_BYTE, self._processor.get_piece_size())
        return [(UNK,)] * _FIRST_BYTE + [spell(self._processor.id_to_piece(number)) for number in ordinary]

    def encode(self, sentences: Sequence[str], side: Side) -> list[list[int]]:
        return self._encode(sentences, side, threads=1 if len(sentences) < 500 else cores())

    def _encode(self, sentences: Sequence[str], side: Side, threads: int) -> list[list[int]]:
        # A word begins with its space, the first one too.
        texts = [f" {text}" if text else "" for text in map(clean, sentences)]
        if len(texts) == 1:  # no thread is begun for it
            encoded: list[list[int]] = [self._processor.encode(texts[0])]
        else:
            encoded = self._processor.encode(texts, num_threads=threads)
        for number, text in enumerate(texts):
            if SPACE in text:
                encoded[number] = self._encode_spelling_space(text)
        spelling = self._spellings[side]
        if spelling is None:
            return encoded
        return [[number for piece in sentence for number in spelling[piece]] for sentence in encoded]

    def _encode_spelling_space(self, text: str) -> list[int]:
        first, *others = (self._processor.encode(part) for part in text.split(SPACE))
        for part in others:
            first += _SPACE_BYTES + part
        return first

    def is_spelled_out(self, ids: Sequence[int]) -> bool:
        return any(number < _FIRST_PIECE for number in ids)

    def decode(self, ids: Sequence[Sequence[int]], side: Side, sources: Sequence[str] | None = None) -> list[str]:
        return [clean(self._surface(sentence, side)) for sentence in ids]

    def words(self, ids: Sequence[int], side: Side) -> list[tuple[int, int, str]]:
        table = self._bytes[side]
        starts: list[int] = []
        for position, number in enumerate(ids):
            after_special = position > 0 and ids[position - 1] <= UNK
            if position == 0 or number <= UNK or after_special or table[number].startswith(b" "):
                starts.append(position)
        ends = [*starts[1:], len(ids)][: len(starts)]
        return [(start, end, self._word_surface(ids[start:end], side)) for start, end in zip(starts, ends, strict=True)]

    def _word_surface(self, ids: Sequence[int], side: Side) -> str:
        if ids[0] <= UNK:
            return self.vocabulary(side).token(ids[0])
        return self._surface(ids, side).strip()

    def _surface(self, ids: Iterable[int], side: Side) -> str:
        table = self._bytes[side]
        return b"".join([table[number] for number in ids]).decode("utf-8", errors="replace")

    def _files(self) -> dict[str, bytes]:
        return {MODEL_FILE: self.model}

    @classmethod
    def _restore(cls, folder: Path, settings: Settings) -> SentencePiecePipeline:
        path = folder / MODEL_FILE
        try:
            return cls(path.read_bytes(), *settings)
        except (OSError, RuntimeError) as error:
            raise UserError(
                f"is not a SentencePiece model ({error})", where=path, remedy="restore it from the run that wrote it"
            ) from None


def _train(words: Counter[str], pieces: int, options: PieceOptions) -> bytes:
    """A model of `pieces` pieces in all, or the nearest number that the words allow. Independent of any order."""
    least = max(words.total() // REQUIRED_WORD_SHARE, FEWEST_REQUIRED)
    counts = words | Counter(dict.fromkeys(options.words, least))  # the greater count of the two
    counts = Counter({
        word: count
        for word, count in counts.items()
        if SPACE not in word and not any(symbol in word for symbol in options.symbols)
    })  # fmt: skip
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=(f" {word}\t{counts[word]}" for word in sorted(counts)),
        input_format="tsv",
        model_writer=model,
        model_type="bpe",
        vocab_size=max(pieces - len(options.symbols), _FIRST_PIECE + _characters_covered(counts)),
        hard_vocab_limit=False,
        character_coverage=COVERAGE,
        split_digits=options.split_digits,
        byte_fallback=True,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        add_dummy_prefix=False,
        pad_id=PAD,
        bos_id=BOS,
        eos_id=EOS,
        unk_id=UNK,
        num_threads=1,
        minloglevel=2,
    )
    return model.getvalue() + b"".join(map(_user_defined_piece, options.symbols))


def _user_defined_piece(symbol: str) -> bytes:
    """A user-defined piece as an entry of the serialised model. Entries that are appended to a Protocol Buffers message
    become the last of its list: learned pieces keep their ids, which SentencePiece itself would move behind symbols."""
    score, kind = b"\x15" + struct.pack("<f", 0.0), b"\x18\x04"  # field 2; field 3: USER_DEFINED
    return message(1, message(1, symbol.encode()) + score + kind)  # pieces are field 1 of a model


def message(field: int, content: bytes) -> bytes:
    """A field of Protocol Buffers whose content is bytes."""
    return varint(field << 3 | 2) + varint(len(content)) + content


def varint(number: int) -> bytes:
    """A whole number as Protocol Buffers writes it: seven bits a byte, the lowest first."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def _characters_covered(words: Mapping[str, int]) -> int:
    """How many characters, at most, COVERAGE asks for: the least number of pieces of a model."""
    counts: Counter[str] = Counter()
    for word, count in words.items():
        for character in f" {word}":
            counts[character] += count
    ranked = sorted(counts.values(), reverse=True)
    covered = list(accumulate(ranked))
    return bisect_left(covered, COVERAGE * counts.total()) + 2


def _used(
    processor: sentencepiece.SentencePieceProcessor,
    everything: Sequence[str],
    words: Mapping[str, int],
    options: PieceOptions,
) -> list[str]:
    """All bytes, symbols and required words, and those pieces into which the words are split, in the model's order."""
    used = set(range(_FIRST_BYTE, _FIRST_PIECE))
    used.update(processor.piece_to_id(symbol) for symbol in options.symbols)
    for chunk in chunks(word for word in (*options.words, *words) if SPACE not in word):
        for ids in processor.encode([f" {word}" for word in chunk]):
            used.update(ids)
    return [piece for number, piece in enumerate(everything, _FIRST_BYTE) if number in used]


def _token_bytes(vocabulary: Vocabulary) -> list[bytes]:
    """What each id writes: nothing for special ids, one byte for bytes, UTF-8 for pieces."""
    special = [b""] * _FIRST_BYTE
    single = [bytes([byte]) for byte in range(256)]
    return special + single + [piece.replace(SPACE, " ").encode() for piece in vocabulary.tokens[_FIRST_PIECE:]]
