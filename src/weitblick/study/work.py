"""What the steps of a study do: each function does one, and gives its result as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from weitblick.config.recipe import DataSection, Recipe
from weitblick.documents.corpora import read_documents
from weitblick.files import make_folder, read_json, read_lines, text_writer
from weitblick.metrics.comparison import compare_systems
from weitblick.metrics.metric import Counts, Metric
from weitblick.metrics.metrics import build_metric, metric_statistics
from weitblick.metrics.scoring import CONTEXT_MODES
from weitblick.model.folder import CONFIG
from weitblick.probing.contrast import encode_suite, judge_suite, summarise, without_context
from weitblick.probing.suites import read_suite
from weitblick.profiling.complexity import measure_size, read_candidate
from weitblick.profiling.speed import Workload, measure_speed
from weitblick.study.study import DiscourseSection
from weitblick.threads import use_threads
from weitblick.training.run import train
from weitblick.translation.translator import Translator

WORKLOAD = Workload(documents=1, sentences=16, words=16)


def generate_corpus(section: DiscourseSection, folder: Path) -> Any:
    from weitblick.discourse import generate, write_corpus

    return write_corpus(generate(section.preset, section.documents, section.seed), folder)


def train_model(recipe: Recipe, quiet: bool) -> Any:
    """Trains, or goes on where a run of the same recipe was interrupted; gives what the model card says."""
    return read_json(train(recipe, quiet=quiet) / CONFIG)["facts"]


def translate_test(model: Path, data: DataSection, beam: int, device: str, output: Path) -> Any:
    """A translation a line, a blank line between documents."""
    assert data.test is not None
    translator = Translator.load(model, device)
    sources = read_documents(data.test[:1] if len(data.test) == 2 else data.test, data.format)
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
    systems: Mapping[str, Sequence[Path]], data: DataSection, metrics: Sequence[str], language: str, trials: int
) -> Any:
    """Every metric of every system, the baseline first, with significance tests against it."""
    assert data.test is not None
    documents = list(read_documents(data.test, data.format))
    lengths = [len(document.sentences) for document in documents]
    references = [target or "" for document in documents for target in document.targets]

    def count(metric: Metric, path: Path) -> Counts:
        return metric_statistics(metric, _read_translations(path, lengths), [references], lengths)

    chosen = [build_metric(name, language) for name in metrics]
    named = {name: list(paths) for name, paths in systems.items()}
    return compare_systems(chosen, named, count, lengths, trials=trials, seed=1).to_json()


def _read_translations(path: Path, lengths: Sequence[int]) -> list[str]:
    """What `translate_test` wrote; an empty line is an empty translation, except between documents."""
    lines = iter(read_lines(path))
    sentences: list[str] = []
    for number, length in enumerate(lengths):
        if number:
            next(lines)
        sentences += [next(lines) for _ in range(length)]
    return sentences


def contrast_suite(model: Path, suite: str, documents: str | None, device: str) -> Any:
    """Accuracy with own, removed and random context."""
    items = read_suite(suite, documents=documents)
    translator = Translator.load(model, device)
    encoded = encode_suite(translator, items)
    modes = CONTEXT_MODES if translator.model.context is not None else CONTEXT_MODES[:1]
    return {
        "without_context": without_context(translator.model, items),
        **{mode: summarise(judge_suite(translator.model, encoded, mode)).to_json() for mode in modes},
    }


def measure_models(models: Mapping[str, Path], rounds: int) -> Any:
    """Parameters and speed of each model. The first is measured beside every other, so that shares hold whatever else
    the machine does, and no more than two models are in memory."""
    candidates = [replace(read_candidate(folder), name=name) for name, folder in models.items()]
    rows = {candidate.name: measure_size(candidate).as_row() for candidate in candidates}
    for candidate in candidates if rounds else ():
        pair = candidates[:1] if candidate is candidates[0] else [candidates[0], candidate]
        rows[candidate.name] |= measure_speed(pair, WORKLOAD, rounds)[-1].as_row()
    return rows


def set_threads(threads: int | None) -> None:
    use_threads(threads)
