"""`weitblick context-use`: is context used, or merely there?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from weitblick.cli.console import (
    SHIPPED,
    check_inputs,
    figure_table,
    load_translator,
    print_json,
    progress_bar,
    set_log_level,
)
from weitblick.cli.options import (
    BatchTokens,
    Beam,
    Device,
    InputFormat,
    Json,
    Limit,
    Model,
    Quiet,
    Seed,
    Threads,
    Verbose,
)
from weitblick.common.errors import UserError

if TYPE_CHECKING:
    from rich.table import Table

    from weitblick.documents.document import Document
    from weitblick.evaluation.context_use import ContextUse, TranslationScores

LABELS = {
    "cxmi": "own - removed (CXMI)",
    "cxmi_random": "random - removed",
    "own_over_random": "own - random",
}


METRICS = {"bleu": "BLEU", "chrf": "chrF"}


def context_use(
    corpus: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE [TARGET]",
            help="A corpus with its reference translations, in any format of `weitblick data convert`: one file that "
            "holds both sides, or one for each.",
        ),
    ],
    model: Model = None,
    translate: Annotated[
        bool,
        typer.Option("--translate", help="Translate with own, removed and random context, too: BLEU and chrF of each."),
    ] = False,
    beam: Beam = None,
    target_context: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Translations to read as target context in place of the references: a model's own are what it reads "
            "when it translates, references are what it reads after a human.",
        ),
    ] = None,
    from_format: InputFormat = None,
    limit: Limit = None,
    seed: Seed = 1,
    batch_tokens: BatchTokens = 8192,
    threads: Threads = None,
    device: Device = "auto",
    quiet: Quiet = False,
    verbose: Verbose = False,
    as_json: Json = False,
) -> None:
    """Measure how much a model uses its context, on a corpus with references.

    CXMI is how much more probable references become by their context; the context of a random other document is the
    control: what that gains as well is no use of context. Intervals (95%) are bootstrapped over documents.

    Example: weitblick context-use -m runs/tiny/best corpora/small/test.en corpora/small/test.de --translate
    """
    set_log_level(quiet, verbose)
    check_inputs(corpus)

    from itertools import islice

    from weitblick.documents.corpora.formats import read_documents
    from weitblick.evaluation.context_use import encode_corpus, measure_context_use, measure_translations
    from weitblick.model.concatenation import reads_documents

    documents = list(islice(read_documents(corpus, from_format), limit))
    _check_references(documents, corpus)
    translator = load_translator(model, device, threads)
    if not reads_documents(translator.model):
        raise UserError(
            "is a sentence-level model: it has no context to use", where=model, remedy="name a context-aware model"
        )
    contexts = None
    if target_context is not None:
        if not translator.model.reads_translations:
            raise UserError("the model reads no target sentences as context", remedy="do without --target-context")
        if len(corpus) > 1:
            contexts = list(islice(read_documents([corpus[0], target_context], from_format), limit))
        else:
            contexts = _with_targets(documents, target_context)
    encoded = encode_corpus(translator.pipeline, documents, contexts)
    with progress_bar(3 * len(encoded.references), "scoring") as advance:
        found = measure_context_use(translator.model, encoded, seed=seed, batch_tokens=batch_tokens, progress=advance)
    scores = measure_translations(translator, documents, beam=beam, seed=seed) if translate else {}
    if as_json:
        given = {"model": model or SHIPPED, "source": corpus[0], "target": corpus[-1]}
        given["target_context"] = target_context or corpus[-1]
        print_json({**given, **found.to_json(), **{name: score.to_json() for name, score in scores.items()}})
    else:
        _print(found, scores)


def _check_references(documents: list[Document], corpus: list[str]) -> None:
    for document in documents:
        if any(sentence.target is None for sentence in document.sentences):
            raise UserError(
                f"document {document.id!r} has no reference translation",
                where=corpus[0],
                remedy="name a second file with the references, or one that holds both sides",
            )


def _with_targets(documents: list[Document], path: str) -> list[Document]:
    """The same documents with the translations of a file, a sentence a line, in place of their own."""
    from weitblick.evaluation.translations import read_text

    lines = read_text(path).sentences
    wanted = sum(len(document.sentences) for document in documents)
    if len(lines) < wanted:
        raise UserError(f"has {len(lines)} sentences where the corpus has {wanted}", where=path, remedy="align them")
    remaining = iter(lines)
    return [
        replace(document, sentences=tuple(replace(s, target=next(remaining)) for s in document.sentences))
        for document in documents
    ]


def _print(found: ContextUse, scores: Mapping[str, TranslationScores]) -> None:
    from rich.console import Console

    console = Console()
    table = figure_table("log-probability", ("per token", "95% interval", "better", "worse"))
    for key, label in LABELS.items():
        row = found.differences[key]
        gain = row.per_token
        interval = f"\\[{gain.low:+.4f}, {gain.high:+.4f}]"
        table.add_row(label, f"{gain.mean:+.4f}", interval, str(row.sentences_better), str(row.sentences_worse))
    console.print(table)
    console.print(
        f"\n{found.documents} documents, {found.sentences} sentences, {found.tokens} tokens; "
        "log-probability per token: "
        + ", ".join(f"{mode} {value:.4f}" for mode, value in found.log_probability_per_token.items())
    )
    if found.gate is not None:
        console.print(f"share of the context in the gate {found.gate:.3f}, sentences attended {found.support:.2f}")
    if scores:
        console.print()
        console.print(_translation_table(scores))
        for name in METRICS:
            console.print(scores[name].signature, markup=False)


def _translation_table(scores: Mapping[str, TranslationScores]) -> Table:

    table = figure_table("translations", ("own", "removed", "random", "own - removed", "p", "own - random", "p"))
    for name, label in METRICS.items():
        found = scores[name]
        cells = [f"{value:.2f}" for value in found.scores.values()]
        for pair in found.differences.values():
            interval = f"\\[{pair.interval.low:+.2f}, {pair.interval.high:+.2f}]"
            cells += [f"{pair.difference:+.2f} {interval}", f"{pair.p_randomisation:.3f}"]
        table.add_row(label, *cells)
    return table
