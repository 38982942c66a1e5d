"""`weitblick data pronouns`: sentences of a corpus in which *it* became er, sie or es, to train on and to judge by."""

from __future__ import annotations

from typing import Annotated

import typer

from weitblick.cli.console import print_text
from weitblick.cli.options import Corpus, InputFormat, OutputFormat, Outputs, Seed
from weitblick.errors import UserError
from weitblick.files import STANDARD, protect_inputs


def register(app: typer.Typer) -> None:
    app.command("pronouns")(pronouns)


def pronouns(
    corpus: Corpus,
    output: Outputs,
    before: Annotated[int, typer.Option(min=1, help="Sentences kept before each.")] = 4,
    inside: Annotated[
        float, typer.Option(min=0, max=1, help="Share of pronouns kept that do not open their sentence.")
    ] = 0.25,
    es: Annotated[float, typer.Option(min=0, help="How many es to keep for each er and sie.")] = 1.0,
    expletive: Annotated[
        float, typer.Option(min=0, max=1, help='Share of these es that stand for no noun, as in "it is clear that".')
    ] = 0.4,
    whole: Annotated[int, typer.Option(min=0, help="So many of them keep all that stands before them.")] = 2000,
    held_out: Annotated[
        float, typer.Option(min=0, max=1, help="Share of the documents that only the suites take from.")
    ] = 0.1,
    contrast: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="A suite for `weitblick contrast` of the documents held out: opening pronouns that stand for a noun "
            "one to three sentences before, er, sie and es alike.",
        ),
    ] = None,
    contrast_es: Annotated[
        str | None, typer.Option(metavar="FILE", help="Another one: es that stands for no noun, or a predicate.")
    ] = None,
    seed: Seed = 1,
    from_format: InputFormat = None,
    to_format: OutputFormat = None,
) -> None:
    """Find sentences in which English says it and German er, sie or es, each with the sentences before it.

    A context layer learns from them what it stands for (stage: decision, recipes/europarl-small/pronouns.yaml).
    Which documents are held out depends on their text alone.

    Example: weitblick data pronouns train.en.xz train.de.xz -o it.en -o it.de --contrast it.jsonl
    """
    from contextlib import ExitStack

    from weitblick.discourse.nouns import learn_nouns
    from weitblick.discourse.pronouns import mine_pronouns
    from weitblick.documents import read_documents, write_documents
    from weitblick.files import text_writer

    suites = [path for path in (contrast, contrast_es) if path is not None]
    protect_inputs(corpus, [*output, *suites])
    if STANDARD in corpus:
        raise UserError("the corpus is read twice, standard input only once", remedy="name files")
    nouns = learn_nouns(read_documents(corpus, from_format)) if suites else {}
    found = mine_pronouns(
        read_documents(corpus, from_format),
        nouns,
        before=before,
        inside=inside,
        es=es,
        expletive=expletive,
        held_out=held_out if suites else 0.0,
        whole=whole,
        seed=seed,
    )
    if not any(found.counts.values()):
        raise UserError(
            "no sentence with it and er, sie or es behind another one", where=corpus[0], remedy="name SOURCE TARGET"
        )
    with ExitStack() as stack:  # nothing is written if one of the files cannot be
        for path, items in ((contrast, found.suite), (contrast_es, found.suite_es)):
            if path is not None:
                stack.enter_context(text_writer(path)).writelines(item.to_line() for item in items)
        write_documents(iter(found.documents), output, to_format)
    if STANDARD not in output:
        counts = ", ".join(f"{count} {pronoun}" for pronoun, count in found.counts.items())
        print_text(f"{len(found.documents)} documents ({counts}) in {', '.join(output)}")
        for path, items in ((contrast, found.suite), (contrast_es, found.suite_es)):
            if path is not None:
                print_text(f"{len(items)} items in {path}")
