"""`weitblick publish`, `weitblick fetch` and `weitblick models`: model folders on the hub and on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from weitblick.cli.console import log, print_json, set_log_level, warn
from weitblick.cli.import_ import PANEL
from weitblick.cli.options import Json, Quiet

Name = Annotated[str, typer.Argument(metavar="OWNER/MODEL", help="The model's name on the hub.")]
Hub = Annotated[str | None, typer.Option("--hub", metavar="URL", help="Another server that speaks the hub's language.")]


def register(app: typer.Typer) -> None:
    app.command("publish", rich_help_panel=PANEL)(publish_model)
    app.command("fetch", rich_help_panel=PANEL)(fetch_model)
    app.command("models", rich_help_panel=PANEL)(list_models)


def publish_model(
    name: Name,
    model: Annotated[str, typer.Option("--model", "-m", metavar="FOLDER", help="The model folder to send.")],
    license: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Licence in the card, such as cc-by-4.0; the model's own if absent."),
    ] = None,
    dataset: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="What it was trained on, for the card. Repeatable.")
    ] = None,
    private: Annotated[bool, typer.Option("--private", help="For you alone.")] = False,
    hub: Hub = None,
    quiet: Quiet = False,
) -> None:
    """Send a model folder to the Hugging Face hub, with its card. Uses the network; needs weitblick\\[hub].

    Example: weitblick publish you/en-fi-documents -m runs/en-fi/best --license cc-by-4.0
    """
    set_log_level(quiet)
    from weitblick.exchange.hub import CardWishes, publish

    card = CardWishes(license, tuple(dataset or ()))
    log.info("published: %s", publish(Path(model), name, card, private=private, hub=hub))


def fetch_model(
    name: Name,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FOLDER", help="Where to; the models folder if absent."),
    ] = None,
    hub: Hub = None,
    quiet: Quiet = False,
) -> None:
    """Take a Weitblick model from the Hugging Face hub. Uses the network; needs weitblick\\[hub].

    Example: weitblick fetch you/en-fi-documents
    """
    set_log_level(quiet)
    from weitblick.exchange.hub import fetch
    from weitblick.exchange.installed import models_folder

    folder = Path(output) if output is not None else models_folder() / name
    fetch(name, folder, hub=hub)
    log.info("%s: translate with: weitblick translate -m %s", folder, output or name)


def list_models(as_json: Json = False) -> None:
    """List the installed models and their languages. They are in $WEITBLICK_MODELS, or in a folder of your data.

    Example: weitblick models
    """
    from weitblick.exchange.installed import installed_models, models_folder

    models = installed_models(warn)
    if as_json:
        rows: list[dict[str, Any]] = [
            {
                "name": model.name,
                "folder": str(model.folder),
                "source_language": model.source_language,
                "target_language": model.target_language,
                "context": model.kind,
            }
            for model in models
        ]
        print_json({"folder": str(models_folder()), "models": rows})
        return
    from rich.console import Console
    from rich.table import Table

    table = Table("model", "languages", "context", "folder", box=None)
    for model in models:
        table.add_row(model.name, " -> ".join(model.languages), model.kind, str(model.folder))
    Console().print(table)
