"""Translations that training itself wants: dev BLEU, and the training corpus as the stage-1 model translates it."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import torch

from weitblick.batches.store import CorpusStore, StoreWriter
from weitblick.distributed import World
from weitblick.documents.corpora import read_documents
from weitblick.documents.document import Document
from weitblick.files import settled_folder
from weitblick.model.document_model import DocumentModel
from weitblick.text.pipeline import TextPipeline
from weitblick.translation.options import TranslationOptions
from weitblick.translation.translator import Translator
from weitblick.translation.units import Unit
from weitblick.translation.window import translate_units

GREEDY = TranslationOptions(beam=1, context=False)
WINDOW_DOCUMENTS = 100


class DevBleu:
    """Detokenised BLEU (sacreBLEU's own settings) of greedy translations of the first documents of dev."""

    def __init__(self, paths: Sequence[str], format: str | None, pipeline: TextPipeline, sentences: int) -> None:
        self.pipeline = pipeline
        self.documents: list[Document] = []
        for document in read_documents(paths, format):
            if sum(len(d.sentences) for d in self.documents) >= sentences:
                break
            self.documents.append(document)

    @torch.no_grad()
    def __call__(self, model: DocumentModel) -> float:
        import sacrebleu

        training = model.training
        model.eval()
        translated = Translator(model, self.pipeline).translate_documents(self.documents, beam=1)
        hypotheses = [target or "" for document in translated for target in document.targets]
        model.train(training)
        references = [target or "" for document in self.documents for target in document.targets]
        return sacrebleu.corpus_bleu(hypotheses, [references]).score


def translated_store(model: DocumentModel, store: CorpusStore, world: World) -> CorpusStore:
    """The same documents with the model's own greedy translations as targets, beside the store. Made once: each
    process translates its share of the documents, the first one puts them together."""
    folder = store.folder.with_name(f"{store.folder.name}-translation")
    settled_folder(folder)
    if not folder.exists():
        shares = [folder.with_name(f"{folder.name}.{rank}") for rank in range(world.size)]
        if world.size == 1:
            _translate(model, store, range(len(store)), folder, world)
        else:
            bounds = [len(store) * rank // world.size for rank in range(world.size + 1)]
            _translate(model, store, range(bounds[world.rank], bounds[world.rank + 1]), shares[world.rank], world)
            world.barrier()
            if world.first:
                _put_together([CorpusStore(share) for share in shares if share.exists()], folder, _vocabulary(model))
                for share in shares:
                    shutil.rmtree(share, ignore_errors=True)
    world.barrier()
    return CorpusStore(folder)


def _vocabulary(model: DocumentModel) -> int:
    return max(len(model.sentence.source_table.weight), len(model.sentence.target_table.weight))


def _translate(model: DocumentModel, store: CorpusStore, documents: range, folder: Path, world: World) -> None:
    if not len(documents) or folder.exists():
        return
    model.eval().to(world.device)
    with StoreWriter(folder, _vocabulary(model)) as writer:
        for start in range(documents.start, documents.stop, WINDOW_DOCUMENTS):
            _translate_window(model, store, range(start, min(start + WINDOW_DOCUMENTS, documents.stop)), writer)


def _translate_window(model: DocumentModel, store: CorpusStore, numbers: range, writer: StoreWriter) -> None:
    units = [
        Unit(index, position, position, "", [int(i) for i in store.sentence("source", sentence)])
        for index, number in enumerate(numbers)
        for position, sentence in enumerate(store.document(number))
    ]
    found = iter(translate_units(model, units, GREEDY))
    for number in numbers:
        sources = [store.sentence("source", sentence) for sentence in store.document(number)]
        writer.add(str(number), sources, [next(found)[0].ids for _ in sources])


def _put_together(shares: Sequence[CorpusStore], folder: Path, vocabulary: int) -> None:
    with StoreWriter(folder, vocabulary) as writer:
        for share in shares:
            for number in range(len(share)):
                sentences = share.document(number)
                sources = [share.sentence("source", sentence) for sentence in sentences]
                writer.add(str(number), sources, [share.sentence("target", sentence) for sentence in sentences])
