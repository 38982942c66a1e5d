"""`weitblick data holdout`, `sample` and `mix`: text that training never reads, samples, and corpora mixed into one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from weitblick.cli.console import print_text, write_counted
from weitblick.cli.options import Corpus, InputFormat, OutputFormat, Outputs, Seed, SourceLanguage, TargetLanguage
from weitblick.common.errors import UserError
from weitblick.common.files import protect_inputs


def holdout(
    corpus: Corpus,
    output: Outputs,
    held_out: Annotated[
        list[str], typer.Option("--rest", metavar="FILE", help="File for what is held out; once for each side.")
    ],
    share: Annotated[float, typer.Option(min=0, max=1, help="About how much of the corpus is held out.")] = 0.1,
    by: Annotated[
        Literal["document", "sentence"],
        typer.Option(help="What is held out as a whole; unrelated sentences one by one."),
    ] = "document",
    from_format: InputFormat = None,
    to_format: OutputFormat = None,
) -> None:
    """Hold out a part of a corpus by a hash of its source text: the same part on every machine, in any order.

    Example: weitblick data holdout all.en all.de -o train.en -o train.de --rest rest.en --rest rest.de
    """
    from weitblick.documents.corpora.formats import read_documents, write_documents
    from weitblick.documents.splits import part_of

    protect_inputs(corpus, [*output, *held_out])
    for outputs, held in ((output, False), (held_out, True)):
        documents = part_of(read_documents(corpus, from_format), share, by, held_out=held)
        write_documents(documents, outputs, to_format)


def sample(
    corpus: Corpus,
    output: Outputs,
    count: Annotated[int, typer.Option("--count", "-n", min=1, metavar="N", help="How many sentences.")] = 1000,
    key: Annotated[str, typer.Option(help="Another key, another sample.")] = "",
    from_format: InputFormat = None,
    to_format: OutputFormat = None,
) -> None:
    """Choose N sentences with different sources by a hash of these, as one document.

    Example: weitblick data sample tatoeba.en tatoeba.de -n 1000 -o everyday.en -o everyday.de
    """
    from weitblick.documents.corpora.formats import read_documents, write_documents
    from weitblick.documents.document import Document
    from weitblick.documents.splits import sample as chosen_from

    protect_inputs(corpus, output)
    chosen = chosen_from(read_documents(corpus, from_format), count, key)
    write_documents([Document("1", tuple(chosen))], output, to_format)
    print_text(f"{len(chosen)} sentences in {', '.join(output)}")


# `weitblick data mix`: one training corpus of many, each so many times, varied as text varies.


def mix(
    corpora: Annotated[
        list[str], typer.Argument(metavar="NAME=TIMES", help="A corpus of the folder and how many times: tatoeba=4.")
    ],
    folder: Annotated[Path, typer.Option("--folder", metavar="DIR", help="Holds NAME.en and NAME.de of each corpus.")],
    output: Outputs,
    vary: Annotated[
        bool, typer.Option(help="Vary pairs: headings, capitals, numbers, masked spans, ... (English-German).")
    ] = True,
    seed: Seed = 1,
    to_format: OutputFormat = None,
    source_language: SourceLanguage = "en",
    target_language: TargetLanguage = "de",
) -> None:
    """Mix corpora, each so many times over (0.5: half of its sentences), every copy varied anew.

    Example: weitblick data mix tatoeba=4 speeches=0.6 --folder corpora -o train.en -o train.de
    """
    from weitblick.documents.corpora.reading import files_of_part
    from weitblick.training.augmentation import Variation, lexicon_of, mixed

    pair = source_language or "en", target_language or "de"
    chosen = {name: (files_of_part(folder, name, pair), times) for name, times in map(_parse, corpora)}
    variation = Variation(lexicon=lexicon_of(chosen)) if vary else None
    write_counted(mixed(chosen, seed, variation), output, to_format)


def _parse(text: str) -> tuple[str, float]:
    name, _, times = text.partition("=")
    try:
        value = float(times)
    except ValueError:
        value = 0.0
    if not name or not 0 < value < 1000:
        raise UserError(f"{text!r} is not a corpus and how many times", remedy="write NAME=TIMES, such as tatoeba=4")
    return name, value
