"""`weitblick data select`: the part of a corpus in which context decides."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from weitblick.cli.variadic import InputFormat, OutputFormat, Outputs, OutputsCommand
from weitblick.errors import UserError
from weitblick.files import STANDARD

if TYPE_CHECKING:
    from weitblick.documents import Document


def register(app: typer.Typer) -> None:
    app.command("select", cls=OutputsCommand)(select)


def select(
    inputs: Annotated[
        list[str], typer.Argument(metavar="SOURCE [TARGET]", help="Files, plain, .gz or .xz; - is standard input.")
    ],
    output: Outputs,
    source: Annotated[str | None, typer.Option(metavar="REGEX", help="What the source must have.")] = None,
    target: Annotated[str | None, typer.Option(metavar="REGEX", help="What the target must have.")] = None,
    not_source: Annotated[str | None, typer.Option(metavar="REGEX", help="What the source must not have.")] = None,
    not_target: Annotated[str | None, typer.Option(metavar="REGEX", help="What the target must not have.")] = None,
    before: Annotated[int, typer.Option(min=0, help="Sentences kept before each that matches.")] = 3,
    after: Annotated[int, typer.Option(min=0, help="Sentences kept after it.")] = 0,
    from_format: InputFormat = None,
    to_format: OutputFormat = None,
) -> None:
    """Select sentences that match, each with the sentences around it, as documents of their own.

    Mixed into stage 2 (data.mix), such documents teach what context is for. Stretches that touch become one document.

    Example: weitblick data select train.en train.de -o it.en it.de --source '(?i)\\bit\\b'
    --target '\\b(er|sie|ihn|ihm)\\b' --not-source '(?i)\\b(he|she|they|them|you)\\b'
    """
    from weitblick.cli.corpora import print_text
    from weitblick.documents import read_documents, write_documents
    from weitblick.documents.selection import Pattern
    from weitblick.documents.selection import select as select_from

    given = {"source": source, "target": target, "not_source": not_source, "not_target": not_target}
    if not any(given.values()):
        raise UserError("nothing to look for", remedy="give --source, --target, --not-source or --not-target")
    pattern = Pattern(**{name: _compiled(name, text) for name, text in given.items()})
    counts = [0, 0]

    def counted() -> Iterator[Document]:
        for document in select_from(read_documents(inputs, from_format), pattern, before, after):
            counts[0] += 1
            counts[1] += len(document.sentences)
            yield document

    write_documents(counted(), output, to_format)
    if STANDARD not in output:
        print_text(f"{counts[0]} documents, {counts[1]} sentences in {', '.join(output)}")


def _compiled(name: str, text: str | None) -> re.Pattern[str] | None:
    try:
        return None if text is None else re.compile(text)
    except re.error as error:
        option = f"--{name.replace('_', '-')}"
        raise UserError(
            f"{option} {text!r} is no regular expression: {error}", remedy="see Python's re module"
        ) from None
