"""`weitblick data discourse`: a corpus in which context decides, and the suite that tells whether a model uses it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from weitblick.cli.console import print_json, print_text
from weitblick.cli.options import Json, Seed
from weitblick.files import make_folder

Preset = Literal["small", "rich"]


def register(app: typer.Typer) -> None:
    app.command("discourse")(discourse)


def discourse(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder for the corpus; made if it does not exist.")],
    preset: Annotated[
        Preset, typer.Option(help="small: pronouns, learned in minutes; rich: many phenomena and words, for studies.")
    ] = "small",
    documents: Annotated[int, typer.Option(metavar="N", help="Training documents.")] = 3000,
    seed: Seed = 1,
    as_json: Json = False,
) -> None:
    """Generate English-German documents in which the right translation depends on another sentence.

    Writes DIR/{train,dev,test}.{en,de}, the contrastive suite DIR/contrast.jsonl, and DIR/discourse.json with the
    counts and the chance level of each phenomenon.

    Example: weitblick data discourse corpora/small --preset small --documents 3000 --seed 1
    """
    from weitblick.discourse import generate, write_corpus

    make_folder(folder)  # before the work, not after it
    description = write_corpus(generate(preset, documents, seed), folder)
    if as_json:
        print_json(description)
        return
    for split, count in description["documents"].items():
        print_text(f"{split}: {count} documents, {description['sentences'][split]} sentences")
    for name, facts in description["phenomena"].items():
        print_text(f"{name}: {facts['items']} contrastive items, chance {facts['chance']:.3f}")
