"""What the steps of a study do: each function does one, and gives its result as plain data."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from weitblick.checkpoints.folder import CONFIG
from weitblick.common.files import make_folder, read_json, read_lines, text_writer
from weitblick.common.process import tune_allocator
from weitblick.common.recipe import Recipe
from weitblick.common.threads import use_threads
from weitblick.documents.corpora.formats import read_documents
from weitblick.evaluation.complexity import measure_size, read_candidate
from weitblick.evaluation.context_use import encode_corpus, measure_context_use
from weitblick.evaluation.contrast import encode_suite, judge_suite, summarise, without_context
from weitblick.evaluation.metric import CountedBy, Counts, Metric
from weitblick.evaluation.metrics import build_metric, metric_statistics
from weitblick.evaluation.scoring import CONTEXT_MODES, score_candidates
from weitblick.evaluation.significance import compare_systems
from weitblick.evaluation.speed import Workload, measure_speed
from weitblick.evaluation.study import DiscourseSection
from weitblick.evaluation.study_cost import CorpusSize
from weitblick.evaluation.suites import read_suite
from weitblick.model.concatenation import reads_documents
from weitblick.training.run import train
from weitblick.translation.translator import Translator

MEASURED_TOKENS = 2000  # of the documents on which speed is measured


def generate_corpus(section: DiscourseSection, folder: Path) -> Any:
    from weitblick.documents.discourse.generator import generate, write_corpus

    return write_corpus(generate(section.preset, section.documents, section.seed), folder)


def train_model(recipe: Recipe, quiet: bool) -> Any:
    """Trains, or goes on where a run of the same recipe was interrupted; gives what the model card says."""
    return read_json(train(recipe, quiet=quiet) / CONFIG)["facts"]


def translate_corpus(
    model: Path, files: Sequence[str], format: str | None, beam: int, device: str, output: Path
) -> Any:
    """A translation a line, a blank line between documents."""
    translator = Translator.load(model, device)
    sources = read_documents(files[:1] if len(files) == 2 else files, format)
    bare = (replace(d, sentences=tuple(replace(s, target=None, status=None) for s in d.sentences)) for d in sources)
    documents = sentences = 0
    make_folder(output.parent)
    with text_writer(output) as stream:
        for document in translator.translate_documents(bare, beam=beam):
            stream.write("\n" if documents else "")
            stream.writelines(f"{target or ''}\n" for target in document.targets)
            documents, sentences = documents + 1, sentences + len(document.sentences)
    return {"documents": documents, "sentences": sentences}


def score_systems(
    systems: Mapping[str, Sequence[Path]],
    files: Sequence[str],
    format: str | None,
    metrics: Sequence[str],
    language: str,
    trials: int,
    unit: CountedBy,
    others: Mapping[str, Mapping[str, str]],
) -> Any:
    """Every metric of every system, the baseline first, with significance tests against it and against `others`."""
    documents = list(read_documents(files, format))
    lengths = [len(document.sentences) for document in documents]
    references = [target or "" for document in documents for target in document.targets]

    def count(metric: Metric, path: Path) -> Counts:
        return metric_statistics(metric, _read_translations(path, lengths), [references], lengths)

    chosen = [build_metric(name, language) for name in metrics]
    named = {name: list(paths) for name, paths in systems.items()}
    return compare_systems(chosen, named, count, lengths, unit=unit, trials=trials, seed=1, others=others).to_json()


def _read_translations(path: Path, lengths: Sequence[int]) -> list[str]:
    """What `translate_corpus` wrote; an empty line is an empty translation, except between documents."""
    lines = iter(read_lines(path))
    sentences: list[str] = []
    for number, length in enumerate(lengths):
        if number:
            next(lines)
        sentences += [next(lines) for _ in range(length)]
    return sentences


def measure_use(model: Path, files: Sequence[str], format: str | None, contexts: Path | None, device: str) -> Any:
    """Nats per token with own, removed and random context. `contexts`: translations to be read as target context."""
    documents = list(read_documents(files, format))
    translator = Translator.load(model, device)
    read = None
    if contexts is not None:
        lines = iter(_read_translations(contexts, [len(document.sentences) for document in documents]))
        read = [
            replace(document, sentences=tuple(replace(s, target=next(lines)) for s in document.sentences))
            for document in documents
        ]
    encoded = encode_corpus(translator.pipeline, documents, read)
    if reads_documents(translator.model):
        return measure_context_use(translator.model, encoded).to_json()
    scores = score_candidates(translator.model, encoded.documents, encoded.references)
    nats = round(float(scores.log_probabilities.sum() / scores.tokens.sum()), 6)
    return {"log_probability_per_token": {"own": nats}, "tokens": int(scores.tokens.sum())}


def contrast_suite(model: Path, suite: str, documents: str | None, count: int | None, device: str) -> Any:
    """Accuracy with own, removed and random context, on all items or on a sample of so many that stays the same."""
    items = list(read_suite(suite, documents=documents))
    if count is not None and count < len(items):
        chosen = sorted(random.Random(f"suite {count}").sample(range(len(items)), count))
        items = [items[number] for number in chosen]
    translator = Translator.load(model, device)
    encoded = encode_suite(translator, items)
    modes = CONTEXT_MODES if reads_documents(translator.model) else CONTEXT_MODES[:1]
    return {
        "without_context": without_context(translator.model, items),
        **{mode: summarise(judge_suite(translator.model, encoded, mode)).to_json() for mode in modes},
    }


def measure_models(models: Mapping[str, Path], rounds: int, corpus: CorpusSize, device: str) -> Any:
    """Parameters and speed of each model, on documents as long as those of dev. The first is measured beside every
    other, so that shares hold whatever else the machine does, and no more than two models are in memory."""
    size = corpus.size("dev")
    workload = Workload() if size is None else size.workload(MEASURED_TOKENS)
    candidates = [replace(read_candidate(folder), name=name) for name, folder in models.items()]
    rows = {candidate.name: measure_size(candidate).as_row() for candidate in candidates}
    for candidate in candidates if rounds else ():
        pair = candidates[:1] if candidate is candidates[0] else [candidates[0], candidate]
        rows[candidate.name] |= measure_speed(pair, workload, rounds, device=device)[-1].as_row()
    return rows


def prepare_torch(threads: int | None) -> None:
    """Sets the allocator and the threads of this process, before anything is computed."""
    tune_allocator()
    use_threads(threads)
