"""`weitblick data shortlist`: which target words may translate which source words."""

from __future__ import annotations

from typing import Annotated

import typer

from weitblick.cli.console import print_text
from weitblick.cli.loading import files_read
from weitblick.cli.options import Corpus, InputFormat, Model
from weitblick.files import protect_inputs


def register(app: typer.Typer) -> None:
    app.command("shortlist")(shortlist)


def shortlist(
    corpus: Corpus,
    output: Annotated[str, typer.Option("-o", "--output", metavar="FILE", help="Where the shortlist goes.")],
    model: Model = None,
    each: Annotated[int, typer.Option(min=1, help="Target words of a source word.")] = 40,
    common: Annotated[int, typer.Option(min=1, help="Frequent target words that every sentence may use.")] = 200,
    from_format: InputFormat = None,
) -> None:
    """Learn from a corpus which target words may translate which source words, for `translate --shortlist`.

    Example: weitblick data shortlist train.en train.de -o en-de.shortlist
    """
    from weitblick.documents import read_documents
    from weitblick.model.folder import load_model
    from weitblick.translation.shortlist import Shortlist
    from weitblick.translation.translator import default_model

    protect_inputs([*corpus, *files_read(model)], [output])
    pipeline = load_model(default_model() if model is None else model, "cpu").pipeline
    sentences = (sentence for document in read_documents(corpus, from_format) for sentence in document.sentences)
    pairs = ((sentence.source, sentence.target) for sentence in sentences if sentence.target)
    learned = Shortlist.learn(pairs, pipeline, common=common, each=each)
    learned.save(output)
    print_text(f"{len(learned.common)} common words and up to {each} for each of {len(learned.table)} in {output}")
