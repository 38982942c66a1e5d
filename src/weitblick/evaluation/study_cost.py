"""How long the missing steps of a study will take on this machine, from a short timing of each kind of model."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from weitblick.common.files import read_lines
from weitblick.common.recipe import ContextSection, ContextStageSection, DataSection, Recipe, StageSection
from weitblick.documents.discourse.generator import DiscourseCorpus, generate
from weitblick.evaluation.complexity import PAPER_SOURCE, PAPER_TARGET, ModelPlan
from weitblick.evaluation.speed import Workload, measure_speed
from weitblick.evaluation.study import DiscourseSection
from weitblick.evaluation.study_steps import Ledger, Step

TIMED_TOKENS = 1000  # of an update that is timed
SAMPLE = 100  # documents generated to see how large a corpus will be
PIECES_PER_WORD = 1.4
FORWARD_SPEED = 3.0  # scoring is a forward pass: about so many times as fast as a training update
CONTEXTS = 3  # own, removed, random
CHARACTERS_PER_TOKEN = 10


@dataclass(frozen=True)
class Planned:
    """A step, whether it is done, and its seconds: those it took, or an estimate (None where nothing is known)."""

    step: Step
    done: bool
    seconds: float | None

    def as_row(self) -> dict[str, Any]:
        seconds = None if self.seconds is None else round(self.seconds, 1)
        return {"step": f"{self.step.kind} {self.step.name}", "done": self.done, "seconds": seconds}


def estimate_plan(steps: Sequence[Step], ledger: Ledger, device: str, say: Callable[[str], None]) -> list[Planned]:
    """Every step with its time: what it took, or an estimate from a short timing on the device that will be used."""
    speeds = _Speeds(device, say)
    planned = []
    for step in steps:
        record = ledger.record(step)
        if record is not None:
            planned.append(Planned(step, True, float(record["seconds"])))
        else:
            planned.append(Planned(step, False, _estimate(step, speeds)))
    return planned


def _estimate(step: Step, speeds: _Speeds) -> float | None:
    """Seconds of a step; None where it has no model, or its corpus is missing."""
    recipe, corpus = step.facts.get("recipe"), step.facts.get("corpus")
    if recipe is None or corpus is None:
        return None
    size = corpus.size(step.facts.get("split", "train"))
    if size is None:
        return None
    contexts = 1 if recipe.context.kind == "none" else CONTEXTS
    training, decoding = speeds.of(recipe, corpus.size("train") or size)
    match step.kind:
        case "stage 1" | "stage 2":
            section = recipe.sentence_stage if step.kind == "stage 1" else recipe.context_stage
            updates, per_update = _training_size(section, size)
            return updates * per_update / training
        case "translate" | "translate dev":
            return size.tokens / decoding
        case "context use":
            return contexts * size.tokens / (FORWARD_SPEED * training)
        case "contrast":
            tokens = corpus.suite_tokens(step.facts["suite"], step.facts.get("items"))
            return None if tokens is None else contexts * tokens / (FORWARD_SPEED * training)
    return None


class _Speeds:
    """Target words per second in training and decoding on documents as long as those of a corpus; each kind of model is
    timed once for each corpus."""

    def __init__(self, device: str, say: Callable[[str], None]) -> None:
        self.device, self.say = device, say
        self._known: dict[tuple[str, Workload], tuple[float, float]] = {}

    def of(self, recipe: Recipe, size: _Size) -> tuple[float, float]:
        context = ContextSection() if recipe.stage == "sentence" else recipe.context
        key = json.dumps([recipe.model.model_dump(), context.model_dump(exclude={"direction"}), recipe.text.merges])
        workload = size.workload(TIMED_TOKENS)
        if (key, workload) not in self._known:
            joint = recipe.text.joint_vocabulary
            sizes = (recipe.text.merges,) * 2 if joint else (PAPER_SOURCE, PAPER_TARGET)
            name = f"{recipe.model.architecture}, {context.kind} {context.integration}"
            self.say(f"timing a few updates: {name}")
            candidate = ModelPlan(name, recipe.model, context, *sizes, ContextStageSection())
            (speed,) = measure_speed([candidate], workload, rounds=1, device=self.device)
            self._known[key, workload] = speed.training, speed.decoding
        return self._known[key, workload]


@dataclass(frozen=True)
class _Size:
    """Target tokens, about, documents and sentences."""

    tokens: float
    documents: int
    sentences: int

    @classmethod
    def of_lines(cls, lines: Iterable[str]) -> _Size:
        words, documents, sentences, inside = 0, 0, 0, False
        for line in lines:
            boundary = not line.strip() or line.strip() == "<d>"
            documents += not boundary and not inside
            inside = not boundary
            sentences += not boundary
            words += 0 if boundary else line.count(" ") + 2  # and the end of the sentence
        return cls(words * PIECES_PER_WORD, max(1, documents), max(1, sentences))

    def workload(self, tokens: int) -> Workload:
        """Documents to be timed that are as long as those of the corpus, about so many target tokens together."""
        words = max(1, round(self.tokens / self.sentences))
        sentences = max(1, round(self.sentences / self.documents))
        documents = max(1, round(tokens / (sentences * words)))
        return Workload(documents, min(sentences, max(1, round(tokens / words))), words)


class CorpusSize:
    """How large the corpora of a study are: those on disk, or those that it is going to generate."""

    def __init__(self, data: DataSection, discourse: DiscourseSection | None) -> None:
        self.data, self.discourse = data, discourse
        self._sizes: dict[str, _Size | None] = {}

    @cached_property
    def _sample(self) -> DiscourseCorpus:
        assert self.discourse is not None
        return generate(self.discourse.preset, min(SAMPLE, self.discourse.documents), self.discourse.seed)

    def size(self, split: str) -> _Size | None:
        if split not in self._sizes:
            self._sizes[split] = self._generated(split) if self.discourse is not None else self._read(split)
        return self._sizes[split]

    def _generated(self, split: str) -> _Size:
        documents = self._sample.split(split)
        lines = (line for document in documents for line in (*(target or "" for target in document.targets), ""))
        size = _Size.of_lines(lines)
        share = self.discourse.documents / len(documents) if self.discourse and split == "train" else 1.0
        return _Size(size.tokens * share, round(size.documents * share), round(size.sentences * share))

    def _read(self, split: str) -> _Size | None:
        files = getattr(self.data, split) or [""]
        return _Size.of_lines(read_lines(files[-1])) if Path(files[-1]).is_file() else None

    def suite_tokens(self, path: str, items: int | None = None) -> float | None:
        """Characters tell roughly: both languages and all candidates against the tokens that are computed. Of a suite
        of which so many items count, these."""
        if Path(path).is_file():
            lengths = [len(line) for line in read_lines(path)]
            share = 1.0 if items is None else min(1.0, items / max(1, len(lengths)))
            return sum(lengths) * share / CHARACTERS_PER_TOKEN
        if self.discourse is None:
            return None
        return sum(len(item.to_line()) for item in self._sample.contrast) / CHARACTERS_PER_TOKEN


def _training_size(section: StageSection, size: _Size) -> tuple[float, float]:
    """Updates, at most (patience may end training before), and the target tokens of each."""
    per_update = float(section.batch_tokens * section.accumulate)
    most = section.batch_documents if isinstance(section, ContextStageSection) else None
    if most is not None:
        per_update = min(per_update, most * section.accumulate * size.tokens / size.documents)
    return min(section.updates, section.epochs * size.tokens / per_update), per_update
