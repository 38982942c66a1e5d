"""The columns of a post-editing experiment: what each sentence has before it when it is translated.

`none` is the model as it is. Of the others every sentence sees approved pairs, which are references:

    approved   the sentences before it in its document
    project    and those of the documents before
    random     as many pairs as `project`, of other documents
    machine    the pairs of `project`, translated by the model itself instead of a human
    adapt      the sentences before it, each by one step of gradient descent on all weights, anew with each document
               (the field's standard for learning from approved sentences)
    terms      what was corrected in the sentences before it, where the word that was refused comes again
    both       that, in the translation of `approved`
    glossary   the nouns of its document's references that the drafts of `none` do not have

Translations of finished systems are kept in a folder: a run that was interrupted goes on with the rest.
"""

from __future__ import annotations

import copy
import hashlib
import json
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate
from pathlib import Path

import torch

from weitblick.common.errors import UserError
from weitblick.common.files import read_json, read_lines, text_writer, write_json
from weitblick.documents.document import Document, Sentence
from weitblick.evaluation.postedit_terms import TermsOfSentences, before_each, corrections, follow, glossaries
from weitblick.memory.approvals import ApprovedPair, Origin, stored_candidates
from weitblick.memory.matches import Sentences
from weitblick.memory.store import Memory
from weitblick.model.batch import pack_pairs
from weitblick.text.units import split_documents
from weitblick.translation.document_job import DocumentJob
from weitblick.translation.driver import translate_units
from weitblick.translation.options import TranslationOptions
from weitblick.translation.results import join_documents
from weitblick.translation.searching import reporting
from weitblick.translation.translator import Translator, windows

LEARNING_RATE = 0.03
"""Plain gradient descent on the mean negative log-likelihood of an approved sentence."""


class Adaptation:
    """A translator that learns from what is approved, and starts anew with each document."""

    def __init__(self, translator: Translator, options: TranslationOptions, rate: float = LEARNING_RATE) -> None:
        self.original, self.rate = translator, rate
        # Translations as context would all have to be made anew after each step.
        self.options = replace(options, context=options.context and not translator.model.reads_translations)

    def translate(self, document: Document, before: Sequence[tuple[str, str]] = ()) -> Iterator[str]:
        """The sentences each after the references of those before it; `before`: what is approved by then."""
        model = copy.deepcopy(self.original.model)
        translator = Translator(model, self.original.pipeline, warn=self.original.warn)
        for source, target in before:
            self._learn(translator, source, target)
        plain = replace(document, sentences=tuple(Sentence(s.source) for s in document.sentences))
        for index, sentence in enumerate(document.sentences):
            yield self._sentence(translator, plain, index)
            self._learn(translator, sentence.source, sentence.target or "")

    def _sentence(self, translator: Translator, document: Document, index: int) -> str:
        """One sentence, with the rest of its document as context."""
        for finished in DocumentJob(translator, document, self.options, [index]).steps():
            if found := finished.get(index):
                return found[0].text
        return document.sentences[index].source.strip()

    def _learn(self, translator: Translator, source: str, target: str) -> None:
        pipeline, model = translator.pipeline, translator.model
        longest = pipeline.longest_sentence
        ids = pipeline.encode_source([source])[0][:longest], pipeline.encode_target([target])[0][:longest]
        if not all(ids):
            return
        device = next(model.parameters()).device
        pairs = pack_pairs([ids[0]], [ids[1]]).to(device)
        with torch.enable_grad():
            encoded = model.sentence.encode(pairs.source.tokens, pairs.source.layout)
            words = model.decode(pairs.target, encoded, pairs.source.layout).words
            loss, _ = words.loss(pairs.labels, 0.0)
            parameters = list(model.sentence.parameters())
            gradients = torch.autograd.grad(loss / len(pairs.labels), parameters, allow_unused=True)
        with torch.no_grad():
            for parameter, gradient in zip(parameters, gradients, strict=True):
                if gradient is not None:
                    parameter.sub_(self.rate * gradient)


SYSTEMS = ("none", "approved", "project", "random", "machine", "adapt", "terms", "both", "glossary")
POINTING = ("approved", "project", "random", "machine", "both")
FOLLOWING = ("terms", "both", "glossary")

Progress = Callable[[str, int], None]
Pairs = list[tuple[str, str]]
"""The sentences of a document with their translations."""


class Simulation:
    """Documents with references, translated under every system."""

    def __init__(
        self,
        translator: Translator,
        documents: Sequence[Document],
        options: TranslationOptions,
        *,
        memory: Memory | None = None,
        before: int = 5,
        seed: int = 1,
        rate: float = LEARNING_RATE,
    ) -> None:
        self.translator, self.documents, self.options = translator, documents, options
        self.memory, self.before, self.seed, self.rate = memory, before, seed, rate
        self.progress: Progress = lambda name, count: None
        self.references: list[Pairs] = [[(s.source, s.target or "") for s in d.sentences] for d in documents]
        self._encoded: dict[str, list[int]] = {}
        self._corrections: TermsOfSentences | None = None
        self.random_order = random.Random(seed).sample(range(len(documents)), len(documents))

    def translate(self, name: str, translated: Mapping[str, list[list[str]]]) -> list[list[str]]:
        """The translations of every document under a system; `translated`: those of the systems before it."""
        if name == "none":
            return self._with_candidates(name, None)
        if name == "adapt":
            return self._adapted()
        machine = translated["none"]
        if name in FOLLOWING:
            return self._following(name, translated)
        pairs = self.references
        if name == "machine":
            pairs = [
                [(source, target) for (source, _), target in zip(own, translated, strict=True)]
                for own, translated in zip(self.references, machine, strict=True)
            ]
        return self._with_candidates(name, pairs)

    def _with_candidates(self, name: str, pairs: Sequence[Pairs] | None) -> list[list[str]]:
        approvals = self.translator.approvals if pairs is not None else None
        found: list[list[str]] = []
        plain = [_without_targets(document) for document in self.documents]
        for window in windows(plain):
            first = len(found)
            units = split_documents(window, self.translator.pipeline, self.translator.warn)
            pointer = None
            if approvals is not None and pairs is not None:
                chosen = [
                    self._candidates(name, pairs, first + number, approvals.most) for number in range(len(window))
                ]
                candidates = [chosen[unit.document][unit.sentence] for unit in units]
                pointer = approvals.pointer_to(units, candidates, self.memory)
            with reporting(lambda count: self.progress(name, count)):
                hypotheses = translate_units(self.translator.model, units, self.options, pointer)
            translated = join_documents(window, units, hypotheses, self.translator.pipeline)
            found += [[sentence.target or "" for sentence in one.document.sentences] for one in translated]
        return found

    def corrections(self, none: list[list[str]]) -> TermsOfSentences:
        """What references have changed in the drafts of `none`."""
        if self._corrections is None:
            self._corrections = corrections(self.translator, self.references, none)
        return self._corrections

    def _following(self, name: str, translated: Mapping[str, list[list[str]]]) -> list[list[str]]:
        none = translated["none"]
        if name == "glossary":
            terms = glossaries(self.translator, self.references, none)
        else:
            terms = before_each(self.corrections(none))
        drafts = translated["approved"] if name == "both" else none
        advance = partial(self.progress, name)
        return follow(self.translator, self.references, drafts, terms, self.options, advance)

    def work(self, name: str) -> int:
        """How many sentences a system has to translate, in all passes."""
        passes = self.options.passes_of(self.translator.model)
        return sum(map(len, self.references)) * (1 if name in ("adapt", *FOLLOWING) else passes)

    def _candidates(self, name: str, pairs: Sequence[Pairs], document: int, most: int) -> list[list[ApprovedPair]]:
        """What each sentence of a document may look at."""
        own = self.references[document]
        before = self._before(name, pairs, document)
        pool = before if name == "random" else [*before, *pairs[document]]
        search = Sentences([self._pieces(source) for source, _ in pool])
        origins = [Origin(*pair, sentence=None if n < len(before) else n - len(before)) for n, pair in enumerate(pool)]
        # A random memory grows with that of `project`, sentence by sentence.
        first, last = (self._earlier(document), len(pool)) if name == "random" else (len(before), math.inf)
        seen = [int(min(last, first + index)) for index in range(len(own))]
        kept = stored_candidates(self.memory, [source for source, _ in own], most, seen)
        rows = []
        for (source, _), visible, stored in zip(own, seen, kept, strict=True):
            room = max(most // 2, most - len(stored))
            numbers = search.nearest(self._pieces(source), room, range(visible))
            near = [ApprovedPair(origins[n], float(visible - 1 - n)) for n in numbers]
            usable = [candidate for candidate in near if all(text.strip() for text in candidate.text)]
            rows.append(usable + stored[: most - len(usable)])
        return rows

    def _pieces(self, source: str) -> list[int]:
        """What candidates are looked for by, as in translating and in training."""
        if source not in self._encoded:
            self._encoded[source] = self.translator.pipeline.encode_source([source])[0]
        return self._encoded[source]

    def _before(self, name: str, pairs: Sequence[Pairs], document: int) -> Pairs:
        first = max(0, document - self.before)
        if name == "approved":
            return []
        if name != "random":
            return [pair for number in range(first, document) for pair in pairs[number]]
        wanted = self._earlier(document) + len(pairs[document]) - 1
        strangers: Pairs = []
        for number in self._strangers(document):
            if len(strangers) >= wanted:
                break
            strangers += pairs[number]
        return strangers[: max(0, wanted)]

    def _earlier(self, document: int) -> int:
        """Pairs that a project has when a document begins."""
        return sum(len(self.references[number]) for number in range(max(0, document - self.before), document))

    def _strangers(self, document: int) -> list[int]:
        """Documents that do not belong to the project of one, in random order, beginning at another place for each;
        those that follow it, which may be of the same debate, only after all others."""
        place = self.random_order.index(document)
        others = self.random_order[place + 1 :] + self.random_order[:place]
        far = [n for n in others if not document - self.before <= n <= document + self.before]
        return far + [n for n in others if document < n <= document + self.before]

    def without_random_memory(self) -> int:
        """Documents for which `random` has nothing to read."""
        return sum(not self._strangers(number) for number in range(len(self.documents)))

    def _adapted(self) -> list[list[str]]:
        """One step of gradient descent after each sentence, with its reference. Of a memory, the pairs that are best
        for the sentences of a document come first."""
        adaptation = Adaptation(self.translator, self.options, self.rate)
        found = []
        for document in self.documents:
            translated = []
            for text in adaptation.translate(document, self._best_of_memory(document)):
                translated.append(text)
                self.progress("adapt", 1)
            found.append(translated)
        return found

    def _best_of_memory(self, document: Document) -> Pairs:
        if self.memory is None:
            return []
        best = self.memory.candidates(list(document.sources), 1)
        return list(dict.fromkeys((pair.source, pair.target) for pairs in best for pair in pairs))


def _without_targets(document: Document) -> Document:
    return Document(document.id, tuple(type(s)(s.source) for s in document.sentences), document.metadata)


def chosen_systems(names: str | None) -> list[str]:
    """The systems named, in the order of the table; `none` is always among them."""
    wanted = set(SYSTEMS) if names is None else {name.strip() for name in names.split(",") if name.strip()}
    if unknown := sorted(wanted - set(SYSTEMS)):
        raise UserError(f"unknown system {unknown[0]!r}", where="--systems", remedy=f"use {', '.join(SYSTEMS)}")
    needed = {"none", "approved"} if "both" in wanted else {"none"}
    return [name for name in SYSTEMS if name in wanted | needed]


RUN = "run.json"


class KeptTranslations:
    """NAME.txt for every finished system, a sentence a line, an empty line between documents; run.json tells of which
    run they are. Those of another run are written over."""

    def __init__(self, folder: Path, simulation: Simulation) -> None:
        self.folder, self.identity = folder, identity(simulation)
        self.lengths = [len(document) for document in simulation.references]
        self.finished = self._finished()

    def get(self, name: str) -> list[list[str]] | None:
        path = self.folder / f"{name}.txt"
        if name not in self.finished or not path.is_file():
            return None
        lines = list(read_lines(path))
        if len(lines) != sum(self.lengths) + len(self.lengths) - 1:
            return None
        starts = accumulate((length + 1 for length in self.lengths), initial=0)
        return [lines[start : start + length] for start, length in zip(starts, self.lengths, strict=False)]

    def put(self, name: str, translations: Sequence[Sequence[str]]) -> None:
        with text_writer(self.folder / f"{name}.txt") as stream:
            stream.write("\n\n".join("\n".join(document) for document in translations) + "\n")
        self.finished = [*(other for other in self.finished if other != name), name]
        write_json(self.folder / RUN, {"identity": self.identity, "finished": self.finished})

    def _finished(self) -> list[str]:
        if not (self.folder / RUN).is_file():
            return []
        try:
            run = read_json(self.folder / RUN)
        except UserError:
            return []
        same = isinstance(run, dict) and run.get("identity") == self.identity
        return [str(name) for name in run.get("finished", [])] if same else []


def kept_files(folder: Path) -> list[Path]:
    """All that a run may write to a folder."""
    return [folder / RUN, *(folder / f"{name}.txt" for name in SYSTEMS)]


def identity(simulation: Simulation) -> str:
    """Of all that decides on the translations: model, documents, options and memory."""
    digest = hashlib.sha256()
    for parameter in simulation.translator.model.state_dict().values():
        digest.update(parameter.detach().cpu().float().numpy().tobytes())
    options = simulation.options
    pairs = [] if simulation.memory is None else [(pair.source, pair.target) for pair in simulation.memory]
    settings = (options.beam, options.length_penalty, options.context, options.passes)
    rest = (simulation.references, settings, simulation.before, simulation.seed, simulation.rate, pairs)
    digest.update(json.dumps(rest).encode())
    return digest.hexdigest()
