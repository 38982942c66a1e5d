"""SentencePiece: BPE on raw text that gives every character back exactly.

Text is only cleaned (white space), never normalised: SentencePiece's usual `nmt_nfkc` would turn “①” into “1”, “ﬁ” into
“fi”, “…” into “...” and full-width letters into plain ones, and no output could contain them again. Characters outside
the model are spelled in UTF-8 bytes, so nothing is unknown.
"""

from __future__ import annotations

import io
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path

import sentencepiece

from weitblick.errors import UserError
from weitblick.text.base import Side, TextPipeline, chunks
from weitblick.text.cleaning import clean
from weitblick.text.special import BOS, EOS, PAD, SPECIAL_TOKENS, UNK
from weitblick.text.vocabulary import Vocabulary
from weitblick.threads import cores

MODEL_FILE = "sentencepiece.model"
SPACE = "▁"  # how SentencePiece writes a space; typed by a user it is spelled in bytes, so that it stays itself
COVERAGE = 0.9999  # of the characters of the training text; the rest is spelled in bytes
_FIRST_BYTE = len(SPECIAL_TOKENS)
_FIRST_PIECE = _FIRST_BYTE + 256
_SPACE_BYTES = [_FIRST_BYTE + byte for byte in SPACE.encode()]


class SentencePiecePipeline(TextPipeline):
    """One SentencePiece model for both languages; vocabularies are all of it, or what each side uses of it.

    Ids of every vocabulary: the special ones, 256 bytes, pieces. With separate vocabularies a piece that one side has
    never seen is spelled in shorter ones that it has seen, or in bytes.
    """

    kind = "sentencepiece"

    def __init__(
        self,
        model: bytes,
        languages: tuple[str, str],
        vocabularies: tuple[Vocabulary, Vocabulary],
        longest_sentence: int,
    ) -> None:
        super().__init__(*languages, *vocabularies, longest_sentence)
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
    ) -> SentencePiecePipeline:
        """Learn from the counted words of both sides. Pieces never cross spaces, so counts are all there is to know."""
        model = _train(words[0] + words[1], pieces)
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        everything = [processor.id_to_piece(number) for number in range(_FIRST_BYTE, processor.get_piece_size())]
        if joint:
            source = target = Vocabulary(everything)
        else:
            source, target = (Vocabulary(_used(processor, everything, counts)) for counts in words)
        return cls(model, languages, (source, target), longest)

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

    def encode_stream(self, sentences: Iterable[str], side: Side, *, workers: int | None = None) -> Iterator[list[int]]:
        for chunk in chunks(sentences):
            yield from self._encode(chunk, side, threads=workers or cores())

    def _encode(self, sentences: Sequence[str], side: Side, threads: int) -> list[list[int]]:
        # A word begins with its space, the first one too.
        texts = [f" {text}" if text else "" for text in map(clean, sentences)]
        encoded: list[list[int]] = self._processor.encode(texts, num_threads=threads)
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
    def _restore(
        cls,
        folder: Path,
        languages: tuple[str, str],
        vocabularies: tuple[Vocabulary, Vocabulary],
        longest_sentence: int,
    ) -> SentencePiecePipeline:
        path = folder / MODEL_FILE
        try:
            return cls(path.read_bytes(), languages, vocabularies, longest_sentence)
        except (OSError, RuntimeError) as error:
            raise UserError(
                f"is not a SentencePiece model ({error})", where=path, remedy="restore it from the run that wrote it"
            ) from None


def _train(words: Mapping[str, int], pieces: int) -> bytes:
    """A model of `pieces` pieces in all, or the nearest number that the words allow. Independent of any order."""
    words = {word: count for word, count in words.items() if SPACE not in word}
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=(f" {word}\t{words[word]}" for word in sorted(words)),
        input_format="tsv",
        model_writer=model,
        model_type="bpe",
        vocab_size=max(pieces, _FIRST_PIECE + _characters_covered(words)),
        hard_vocab_limit=False,
        character_coverage=COVERAGE,
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
    return model.getvalue()


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
    processor: sentencepiece.SentencePieceProcessor, everything: Sequence[str], words: Mapping[str, int]
) -> list[str]:
    """All bytes, and those pieces into which the words are split, in the order of the model."""
    used = set(range(_FIRST_BYTE, _FIRST_PIECE))
    for chunk in chunks(word for word in words if SPACE not in word):
        for ids in processor.encode([f" {word}" for word in chunk]):
            used.update(ids)
    return [piece for number, piece in enumerate(everything, _FIRST_BYTE) if number in used]


def _token_bytes(vocabulary: Vocabulary) -> list[bytes]:
    """What each id writes: nothing for special ids, one byte for bytes, UTF-8 for pieces."""
    special = [b""] * _FIRST_BYTE
    single = [bytes([byte]) for byte in range(256)]
    return special + single + [piece.replace(SPACE, " ").encode() for piece in vocabulary.tokens[_FIRST_PIECE:]]
