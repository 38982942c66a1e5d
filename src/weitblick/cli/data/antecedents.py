"""`weitblick data antecedents`: documents whose pronouns are decided in another sentence, made of one's own corpus."""

from __future__ import annotations

from typing import Annotated

import typer

from weitblick.cli.console import print_text
from weitblick.cli.options import Corpus, InputFormat, OutputFormat, Outputs, Seed
from weitblick.errors import UserError
from weitblick.files import STANDARD, protect_inputs


def register(app: typer.Typer) -> None:
    app.command("antecedents")(antecedents)


def antecedents(
    corpus: Corpus,
    output: Outputs,
    documents: Annotated[int, typer.Option(min=1, help="Documents to make.")] = 8000,
    sentences_from: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="Take the sentences from this corpus, and only the nouns from the other; once for each side.",
        ),
    ] = None,
    contrast: Annotated[
        str | None, typer.Option(metavar="FILE", help="The pronouns as a suite for `weitblick contrast` (JSONL), too.")
    ] = None,
    seed: Seed = 1,
    from_format: InputFormat = None,
    to_format: OutputFormat = None,
) -> None:
    """Make documents whose pronouns are decided by a noun in another sentence, from an English-German corpus.

    Nouns, their translations and genders are learned from the corpus; short sentences about them are taken from it,
    and behind each stands one like "We need it.". Mixed into stage 2 (data.mix), they teach what context is for.

    Example: weitblick data antecedents train.en train.de -o antecedents.en -o antecedents.de
    """
    from contextlib import ExitStack

    from weitblick.discourse.antecedents import antecedent_documents
    from weitblick.discourse.nouns import learn_nouns
    from weitblick.documents import read_documents, write_documents
    from weitblick.files import text_writer

    written = [*output, *([] if contrast is None else [contrast])]
    protect_inputs([*corpus, *(sentences_from or [])], written)
    texts = list(read_documents(corpus, from_format))
    if not any(sentence.target for document in texts for sentence in document.sentences):
        raise UserError("the corpus has no target", where=corpus[0], remedy="name SOURCE TARGET")
    nouns = learn_nouns(texts)
    if sentences_from:
        texts = list(read_documents(sentences_from, from_format))
    made = list(antecedent_documents(texts, nouns, documents, seed))
    with ExitStack() as stack:  # nothing is written if one of the files cannot be
        if contrast is not None:
            suite = stack.enter_context(text_writer(contrast))
            suite.writelines(item.to_line() for _, items in made for item in items)
        write_documents((document for document, _ in made), output, to_format)
    if STANDARD not in output:
        print_text(f"{documents} documents about {len(nouns)} nouns in {', '.join(written)}")
