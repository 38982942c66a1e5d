"""`weitblick data select`: the part of a corpus in which context decides."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from weitblick.cli.console import print_text
from weitblick.cli.options import Corpus, InputFormat, OutputFormat, Outputs
from weitblick.errors import UserError
from weitblick.files import STANDARD, protect_inputs

if TYPE_CHECKING:
    from weitblick.documents import Document


def register(app: typer.Typer) -> None:
    app.command("select")(select)


def select(
    corpus: Corpus,
    output: Outputs,
    source_has: Annotated[str | None, typer.Option(metavar="REGEX", help="What the source must have.")] = None,
    target_has: Annotated[str | None, typer.Option(metavar="REGEX", help="What the target must have.")] = None,
    source_lacks: Annotated[str | None, typer.Option(metavar="REGEX", help="What the source must not have.")] = None,
    target_lacks: Annotated[str | None, typer.Option(metavar="REGEX", help="What the target must not have.")] = None,
    before: Annotated[int, typer.Option(min=0, help="Sentences kept before each that matches.")] = 3,
    after: Annotated[int, typer.Option(min=0, help="Sentences kept after it.")] = 0,
    from_format: InputFormat = None,
    to_format: OutputFormat = None,
) -> None:
    """Select sentences that match, each with the sentences around it, as documents of their own.

    Mixed into stage 2 (data.mix), such documents teach what context is for. Stretches that touch become one document.

    Example: weitblick data select train.en train.de -o it.en -o it.de --source-has '(?i)\\bit\\b'
    --target-has '\\b(er|sie|ihn|ihm)\\b' --source-lacks '(?i)\\b(he|she|they|them|you)\\b'
    """
    from weitblick.documents import read_documents, write_documents
    from weitblick.documents.selection import Pattern
    from weitblick.documents.selection import select as select_from

    if not (source_has or target_has or source_lacks or target_lacks):
        raise UserError(
            "nothing to look for", remedy="give --source-has, --target-has, --source-lacks or --target-lacks"
        )
    pattern = Pattern(
        source=_compiled("--source-has", source_has),
        target=_compiled("--target-has", target_has),
        not_source=_compiled("--source-lacks", source_lacks),
        not_target=_compiled("--target-lacks", target_lacks),
    )
    protect_inputs(corpus, output)
    counts = [0, 0]

    def counted() -> Iterator[Document]:
        for document in select_from(read_documents(corpus, from_format), pattern, before, after):
            counts[0] += 1
            counts[1] += len(document.sentences)
            yield document

    write_documents(counted(), output, to_format)
    if STANDARD not in output:
        print_text(f"{counts[0]} documents, {counts[1]} sentences in {', '.join(output)}")


def _compiled(option: str, text: str | None) -> re.Pattern[str] | None:
    try:
        return None if text is None else re.compile(text)
    except re.error as error:
        raise UserError(
            f"{option} {text!r} is no regular expression: {error}", remedy="see Python's re module"
        ) from None
