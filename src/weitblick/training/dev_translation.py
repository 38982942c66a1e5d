"""Translations that training itself wants: dev BLEU, and the training corpus as the stage-1 model translates it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

from weitblick.batches.store import CorpusStore, Ids, StoreWriter
from weitblick.distributed import World
from weitblick.documents.corpora import read_documents
from weitblick.documents.document import Document
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


def translated_store(
    model: DocumentModel, store: CorpusStore, folder: Path, world: World, every: int = 1
) -> CorpusStore:
    """The same documents with the model's own greedy translations as targets, or of `every` second,
    third, ... document; the others keep their references. Made once, by the first process."""
    if world.first and not folder.exists():
        model.eval().to(world.device)
        vocabulary = max(len(model.sentence.source_table.weight), len(model.sentence.target_table.weight))
        with StoreWriter(folder, vocabulary) as writer:
            for start in range(0, len(store), WINDOW_DOCUMENTS):
                numbers = range(start, min(start + WINDOW_DOCUMENTS, len(store)))
                _translate_window(model, store, numbers, writer, every)
    world.barrier()
    return CorpusStore(folder)


def _translate_window(
    model: DocumentModel, store: CorpusStore, numbers: range, writer: StoreWriter, every: int
) -> None:
    units = [
        Unit(index, position, position, "", [int(i) for i in store.sentence("source", sentence)])
        for index, number in enumerate(numbers)
        if number % every == 0
        for position, sentence in enumerate(store.document(number))
    ]
    found = iter(translate_units(model, units, GREEDY))
    for number in numbers:
        sentences = store.document(number)
        sources = [store.sentence("source", sentence) for sentence in sentences]
        targets: Sequence[Ids] = [store.sentence("target", sentence) for sentence in sentences]
        if number % every == 0:
            targets = [next(found)[0].ids for _ in sentences]
        writer.add(str(number), sources, targets)
