"""Documents shared out over the processes of `torchrun`: the first reads, hands out, collects in order and writes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from itertools import islice
from typing import Any

import torch
import torch.distributed as dist

from weitblick.common.process import World
from weitblick.documents.document import Document, Sentence
from weitblick.translation.options import TranslationOptions
from weitblick.translation.results import TranslatedDocument, Translation
from weitblick.translation.translator import Translator, windows


class Team:
    """The processes of `torchrun`, or one alone. The first calls `translations`, any number of times, and at the end
    `end_work`; the others call `work_for_first`."""

    def __init__(
        self,
        translator: Translator,
        options: TranslationOptions,
        world: World,
        watch: Callable[[Document], None] | None = None,
    ) -> None:
        """`watch` is called with every translated document."""
        self.translator, self.options, self.world, self.watch = translator, options, world, watch

    def translations(self, documents: Iterable[Document]) -> Iterator[TranslatedDocument]:
        """The translated documents, in order."""
        for translated in self._translations(documents):
            if self.watch is not None:
                self.watch(translated.document)
            yield translated

    def _translations(self, documents: Iterable[Document]) -> Iterator[TranslatedDocument]:
        remaining = windows(documents)
        while shares := list(islice(remaining, self.world.size)):
            for rank, share in enumerate(shares[1:], 1):
                _send(_plain_documents(share), rank, self.world)
            yield from self.translator.translate_window(shares[0], self.options)
            for rank, share in enumerate(shares[1:], 1):
                yield from _restore(share, _receive(rank, self.world))

    def end_work(self) -> None:
        for rank in range(1, self.world.size):
            _send(None, rank, self.world)

    def work_for_first(self) -> None:
        """Translates what the first process hands out, until that ends."""
        while (share := _receive(0, self.world)) is not None:
            documents = [
                Document(identity, tuple(Sentence(*fields) for fields in sentences)) for identity, sentences in share
            ]
            translated = self.translator.translate_window(documents, self.options)
            _send(_plain_translations(translated), 0, self.world)


def _plain_documents(documents: Sequence[Document]) -> list[Any]:
    return [[d.id, [[s.source, s.target, s.status] for s in d.sentences]] for d in documents]


def _plain_translations(translated: Sequence[TranslatedDocument]) -> list[Any]:
    return [
        [
            [sentence.target, [[t.text, t.log_probability, t.length, list(map(asdict, t.terms))] for t in translations]]
            for sentence, translations in zip(one.document.sentences, one.translations, strict=True)
        ]
        for one in translated
    ]


def _restore(documents: Sequence[Document], plain: list[Any]) -> Iterator[TranslatedDocument]:
    """The documents as they were read, metadata and all, with what another process found."""
    for document, rows in zip(documents, plain, strict=True):
        sentences = tuple(
            replace(sentence, target=target) for sentence, (target, _) in zip(document.sentences, rows, strict=True)
        )
        translations = tuple(tuple(_translation(*fields) for fields in found) for _, found in rows)
        yield TranslatedDocument(replace(document, sentences=sentences), translations)


def _translation(text: str, log_probability: float, length: int, terms: list[dict[str, Any]]) -> Translation:
    from weitblick.memory.terms import Term, TermUse

    uses = (TermUse(**{**use, "term": Term(**use["term"])}) for use in terms)
    return Translation(text, log_probability, length, tuple(uses))


def _send(value: Any, rank: int, world: World) -> None:
    data = torch.frombuffer(bytearray(json.dumps(value).encode()), dtype=torch.uint8).to(world.device)
    dist.send(torch.tensor([len(data)], device=world.device), rank)
    dist.send(data, rank)


def _receive(rank: int, world: World) -> Any:
    size = torch.zeros(1, dtype=torch.long, device=world.device)
    dist.recv(size, rank)
    data = torch.empty(int(size), dtype=torch.uint8, device=world.device)
    dist.recv(data, rank)
    return json.loads(data.cpu().numpy().tobytes())
