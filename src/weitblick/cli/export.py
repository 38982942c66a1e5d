"""`weitblick export`: the sentence model of a model folder for CTranslate2 or transformers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from weitblick.cli.console import log, set_log_level
from weitblick.cli.import_ import PANEL
from weitblick.cli.options import Model, ModelOutput, Quiet

if TYPE_CHECKING:
    from weitblick.model.folder import LoadedModel

Quantization = Literal["int8", "int8_float32", "int16", "float16", "bfloat16", "float32"]

export = typer.Typer(no_args_is_help=True, help="Write the sentence model for other programs.")


def register(app: typer.Typer) -> None:
    app.add_typer(export, name="export", rich_help_panel=PANEL)


@export.command("ctranslate2")
def to_ctranslate2(
    output: ModelOutput,
    model: Model = None,
    quantization: Annotated[Quantization | None, typer.Option(help="Smaller numbers; 32-bit floats if absent.")] = None,
    quiet: Quiet = False,
) -> None:
    """For CTranslate2: the translations that translate --no-context gives. What reads context stays behind.

    Example: weitblick export ctranslate2 -m runs/tiny/best -o exported --quantization int8
    """
    set_log_level(quiet)
    from weitblick.exchange.export_ctranslate2 import MARKS, export_ctranslate2

    loaded = _load(model, output, MARKS)
    export_ctranslate2(loaded, output, quantization)
    _report(loaded, output, "CTranslate2")


@export.command("marian")
def to_marian(output: ModelOutput, model: Model = None, quiet: Quiet = False) -> None:
    """For transformers: the translations that translate --no-context gives. What reads context stays behind.

    Example: weitblick export marian -m runs/tiny/best -o exported
    """
    set_log_level(quiet)
    from weitblick.exchange.export_marian import MARKS, export_marian

    loaded = _load(model, output, MARKS)
    kind = export_marian(loaded, output)
    _report(loaded, output, f"transformers, model type {kind}")


def _load(model: str | None, output: str, marks: tuple[str, ...]) -> LoadedModel:
    from weitblick.exchange.output import check_output_folder
    from weitblick.model.folder import load_model
    from weitblick.translation.translator import default_model

    folder = default_model() if model is None else model
    check_output_folder(output, marks, folder)
    return load_model(folder)


def _report(loaded: LoadedModel, output: str, kind: str) -> None:
    behind = "" if loaded.model.context is None else "; its context layer stays behind"
    log.info("%s: a sentence model for %s%s", output, kind, behind)
