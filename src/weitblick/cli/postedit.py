"""`weitblick postedit`: a translator simulated with references, sentence after sentence."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weitblick.cli.console import (
    check_inputs,
    files_read,
    load_translator,
    log,
    print_text,
    read_memory,
    set_log_level,
    shows_progress,
)
from weitblick.cli.options import Beam, Device, InputFormat, Json, MemoryFiles, Model, Seed, Threads
from weitblick.common.errors import UserError
from weitblick.common.files import make_folder, protect_inputs

if TYPE_CHECKING:
    from weitblick.documents.document import Document
    from weitblick.evaluation.postedit import DifferenceFigures, Figures
    from weitblick.evaluation.postedit_systems import Progress


def postedit(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="Documents in any corpus format.")],
    reference: Annotated[
        str | None, typer.Argument(metavar="[REFERENCE]", help="Their translations; not for formats with both sides.")
    ] = None,
    model: Model = None,
    memory: MemoryFiles = None,
    systems: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES", help="Of none, approved, project, random, machine, adapt, terms, both, glossary: all."
        ),
    ] = None,
    before: Annotated[int, typer.Option(min=0, help="Documents before that belong to the project.")] = 5,
    beam: Beam = None,
    trials: Annotated[int, typer.Option(min=1, help="Random trials of each test.")] = 2000,
    seed: Seed = 1,
    rate: Annotated[float, typer.Option(min=0, help="Learning rate of adapt.")] = 0.03,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="DIR", help="Folder for the translations of each system; goes on from there."
        ),
    ] = None,
    from_format: InputFormat = None,
    as_json: Json = False,
    threads: Threads = None,
    device: Device = "auto",
) -> None:
    """Simulate a translator who approves sentence after sentence, and measure what that does for the rest.

    References take the place of the translator: sentence i sees what was approved before it.

    Example: weitblick postedit dev.en dev.de

    Example: weitblick postedit dev.en dev.de --systems none,approved,random --memory approved.tmx --json
    """
    set_log_level()
    from weitblick.evaluation.postedit_systems import POINTING, KeptTranslations, Simulation, chosen_systems, kept_files

    chosen = chosen_systems(systems)

    from weitblick.evaluation.postedit import postedit as run
    from weitblick.translation.options import TranslationOptions

    options = TranslationOptions(beam=beam)
    given = [name for name in (source, reference) if name is not None]
    check_inputs(given)
    if output is not None:
        protect_inputs([*given, *files_read(model, memory)], kept_files(output))
        make_folder(output)  # before anything long begins
    translator = load_translator(model, device, threads)
    translator.warn = log.debug
    languages = (translator.pipeline.source_language, translator.pipeline.target_language)
    documents = _documents(given, from_format, languages)
    if "random" in chosen and len(documents) < 2:
        raise UserError(
            "holds one document, and a random memory needs another",
            where=source,
            remedy="give several documents, or --systems without random",
        )
    pairs = read_memory(translator, memory)
    if set(chosen) & set(POINTING):
        translator.approvals.ready()
        _ = translator.approvals.pointer  # a model that cannot use them says so before anything long begins
    simulation = Simulation(translator, documents, options, memory=pairs, before=before, seed=seed, rate=rate)
    if "random" in chosen and (lonely := simulation.without_random_memory()):
        log.warning("%d of %d documents have no other text to read at random: give more", lonely, len(documents))
    kept = None if output is None else KeptTranslations(output, simulation)
    try:
        with _progress({name: simulation.work(name) for name in chosen}) as simulation.progress:
            report = run(simulation, chosen, trials=trials, seed=seed, kept=kept)
    except KeyboardInterrupt:
        remedy = "next time, -o DIR keeps what is finished" if output is None else "the same command goes on from there"
        raise KeyboardInterrupt(f"interrupted; {remedy}") from None
    if as_json:
        print_text(json.dumps(report.figures, ensure_ascii=False, indent=2))
    else:
        typer.echo(table(report.figures))


def _documents(paths: list[str], format: str | None, languages: tuple[str, str]) -> list[Document]:
    from weitblick.documents.corpora.formats import read_documents

    documents = [d for d in read_documents(paths, format, languages=languages) if d.sentences]
    for document in documents:
        for number, sentence in enumerate(document.sentences, 1):
            if sentence.target is None:
                raise UserError(
                    f"sentence {number} of document {document.id} has no reference",
                    where=paths[0],
                    remedy="name the file of references as well",
                )
    return documents


def table(figures: Figures) -> str:
    """The figures for people: a row for each system."""
    columns = (("", 10), ("BLEU", 6), ("to none", 29), ("over random", 29), ("chrF", 7), ("TER", 7), ("recall", 8))
    titles = (*columns, ("first", 7), ("sticks", 15), ("harm", 15))
    head = "".join(f"{title:>{width}}" for title, width in titles)
    lines = [f"{figures['documents']} documents, {figures['sentences']} sentences", "", head]
    for name, scores in figures["systems"].items():
        recall, sticks = figures["recall"][name], figures["sticks"][name]
        lines.append(
            f"{name:<10}{scores['sacrebleu']:6.2f}{_difference(figures['difference'].get(name)):>29}"
            f"{_difference(figures['over_random'].get(name)):>29}{scores['chrf']:7.2f}{scores['ter']:7.2f}"
            f"{recall['approved']:8.3f}{recall['first']:7.3f}{_rate(sticks['right'], sticks['cases']):>15}"
            f"{_rate(sticks['harmed'], sticks['varied']):>15}"
        )
    lines += ["", f"{'':<10}{'followed':>15}{'row below':>15}{'spilled words':>18}{'moved sentences':>18}"]
    for name, own in figures["follows"].items():
        below = _rate(own["right_below"], own["cases_below"])
        spilled, moved = f"{own['spilled']}/{own['words']}", f"{own['moved']}/{own['sentences']}"
        lines.append(f"{name:<10}{_rate(own['right'], own['cases']):>15}{below:>15}{spilled:>18}{moved:>18}")
    positions = next(iter(figures["positions"].values()))
    lines += ["", f"{'BLEU by position':<18}" + "".join(f"{place:>9}" for place in positions)]
    for name, rows in figures["positions"].items():
        values = (row["sacrebleu"] for row in rows.values())
        lines.append(f"{name:<18}" + "".join(f"{'' if value is None else format(value, '.2f'):>9}" for value in values))
    lines += [
        "",
        "recall: content words approved before in the document; first: those of first occurrences.",
        "sticks: of words that come again, alike in both references and wrong in none, those that are right.",
        "harm: where the human varied and none was right, those that are wrong now. Intervals and p by documents.",
        "followed: corrected source words that come again, wrong in none, and are right, by lemma; row below: at once.",
        "spilled: words of an earlier reference, not of their own, without their source words; moved: changed without a"
        " corrected word.",
    ]
    return "\n".join(lines)


def _difference(of_metrics: Mapping[str, DifferenceFigures] | None) -> str:
    if of_metrics is None:
        return ""
    found = of_metrics["sacrebleu"]
    low, high = found["interval"]
    return f"  {found['value']:+.2f} [{low:+.2f}, {high:+.2f}] p {found['p']:.3f}"


def _rate(part: int, whole: int) -> str:
    return f"{part}/{whole} {part / whole:.3f}" if whole else "-"


@contextmanager
def _progress(work: dict[str, int]) -> Iterator[Progress]:
    """A bar for each system on a terminal, with the time that is left; nothing anywhere else."""
    if not shows_progress():
        yield lambda name, count: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        tasks = {name: bars.add_task(name, total=total) for name, total in work.items()}
        yield lambda name, count: bars.advance(tasks[name], count)
