"""`weitblick data discourse`: a corpus in which context decides, and the suite that tells whether a model uses it."""

from __future__ import annotations

import json
from pathlib import Path

import typer


def register(data_app: typer.Typer) -> None:
    data_app.command("discourse")(discourse)


def discourse(
    folder: Path = typer.Argument(..., metavar="DIR", help="Folder for the corpus; made if it does not exist."),
    preset: str = typer.Option(
        "small", help="small: pronouns, learned in minutes; rich: many phenomena and words, for studies."
    ),
    documents: int = typer.Option(3000, metavar="N", help="Training documents."),
    seed: int = typer.Option(1, metavar="S", help="The same seed gives the same bytes."),
    as_json: bool = typer.Option(False, "--json", help="Print what was made as one JSON object."),
) -> None:
    """Generate English-German documents in which the right translation depends on another sentence.

    Writes DIR/{train,dev,test}.{en,de}, the contrastive suite DIR/contrast.jsonl, and DIR/discourse.json with the
    counts and the chance level of each phenomenon.

    Example: weitblick data discourse corpora/small --preset small --documents 3000 --seed 1
    """
    from weitblick.discourse import check_folder, generate, write_corpus

    check_folder(folder)  # before the work, not after it
    description = write_corpus(generate(preset, documents, seed), folder)
    if as_json:
        typer.echo(json.dumps(description, ensure_ascii=False))
        return
    for split, count in description["documents"].items():
        typer.echo(f"{split}: {count} documents, {description['sentences'][split]} sentences")
    for name, facts in description["phenomena"].items():
        typer.echo(f"{name}: {facts['items']} contrastive items, chance {facts['chance']:.3f}")
