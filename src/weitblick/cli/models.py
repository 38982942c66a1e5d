"""`weitblick import`, `export`, `publish`, `fetch` and `models`: models of other programs, and models on the hub."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from weitblick.cli.console import log, print_json, progress_bar, set_log_level, warn, wide_console
from weitblick.cli.options import Json, Model, ModelOutput, Quiet, SourceLanguage, TargetLanguage
from weitblick.common.errors import UserError

if TYPE_CHECKING:
    from weitblick.checkpoints.folder import LoadedModel
    from weitblick.checkpoints.import_marian import Imported, TextOptions


def import_model(
    folder: Annotated[
        str,
        typer.Argument(
            metavar="FOLDER",
            help="A folder of transformers, Marian, Firefox or CTranslate2; or an .npz, .bin or .argosmodel.",
        ),
    ],
    output: ModelOutput,
    source_language: SourceLanguage = None,
    target_language: TargetLanguage = None,
    code: Annotated[
        str | None,
        typer.Option(metavar="CODE", help="What a multilingual model calls the target language, such as fra for fr."),
    ] = None,
    normalize_punctuation: Annotated[
        bool, typer.Option("--normalize-punctuation", help="Treat source text with Moses' normaliser first.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Take over a model of OPUS-MT, Firefox, CTranslate2 or Argos: the same translations, and a memory for it.

    FOLDER holds what transformers reads (config.json, vocab.json, *.spm, weights in safetensors or a pickle of tensors
    alone), or what Marian writes (*.npz or *.bin, vocabularies, decoder.yml if any, *.spm). Of a multilingual model
    --target-language chooses the language to translate into. Firefox's models are of the second kind (model.*.bin,
    *vocab.*.spm, lex.*.bin); the shortlist is kept as FOLDER/shortlist, for translate --shortlist. Transformers of
    CTranslate2 (model.bin, vocabularies) need the SentencePiece model that they were trained with in their folder;
    packages of Argos Translate have it.

    Example: weitblick import downloads/opus-mt-en-fi -o models/en-fi

    Example: weitblick import downloads/opus-mt-en-ROMANCE -o models/en-fr --source-language en --target-language fr

    Example: weitblick import downloads/firefox-en-de -o models/en-de

    Example: weitblick import downloads/translate-en_es-1_0.argosmodel -o models/en-es

    Example: weitblick import downloads/opus-mt-tc-big-en-zle -o models/en-uk --target-language uk --code ukr
    """
    set_log_level(quiet)
    from weitblick.checkpoints.folder import CONFIG, TEXT
    from weitblick.checkpoints.hub import check_output_folder
    from weitblick.checkpoints.import_marian import TextOptions
    from weitblick.checkpoints.importing import import_model as read_model

    check_output_folder(output, [CONFIG, TEXT], folder)
    options = TextOptions(source_language, target_language, code, normalize_punctuation)
    imported = _with_pointer(read_model(folder, options))
    imported.save(output)
    pipeline, section = imported.pipeline, imported.section
    log.info(
        "%s: %s to %s, %d+%d layers of %d, %d words; translate with: weitblick translate -m %s",
        output,
        pipeline.source_language,
        pipeline.target_language,
        section.encoder_layers,
        section.decoder_layers,
        section.dimension,
        len(pipeline.target_vocabulary),
        output,
    )


def _with_pointer(imported: Imported) -> Imported:
    """Gives an imported model the shipped model's pointer to approved translations, without training; says what it can
    do then, and what not."""
    from weitblick.translation.borrowed_pointer import borrow_pointer

    imported.model.pointer = borrow_pointer(imported.model, imported.pipeline)
    facts = dict(imported.facts)
    if imported.model.pointer is not None:
        facts["memory"] = (
            "a pointer to approved translations: its share is the shipped model's, its keys are fitted on what the "
            "model itself says; not trained"
        )
        log.info("approved translations: yes (--memory), by the shipped model's pointer, taken over without training")
    log.info("context and decisions: none; weitblick train recipes/imported/context.yaml adds them")
    return replace(imported, facts=facts)


# `weitblick export`: the sentence model of a model folder for CTranslate2, transformers or Firefox's engine.

Quantization = Literal["int8", "int8_float32", "int16", "float16", "bfloat16", "float32"]

export = typer.Typer(no_args_is_help=True, help="Write the sentence model for other programs.")


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
    from weitblick.checkpoints.export_ctranslate2 import MARKS, export_ctranslate2

    loaded = _load(model, output, MARKS)
    export_ctranslate2(loaded, output, quantization)
    _report(loaded, output, "CTranslate2")


@export.command("marian")
def to_marian(output: ModelOutput, model: Model = None, quiet: Quiet = False) -> None:
    """For transformers: the translations that translate --no-context gives. What reads context stays behind.

    Example: weitblick export marian -m runs/tiny/best -o exported
    """
    set_log_level(quiet)
    from weitblick.checkpoints.export_marian import MARKS, export_marian

    loaded = _load(model, output, MARKS)
    kind = export_marian(loaded, output)
    _report(loaded, output, f"transformers, model type {kind}")


@export.command("firefox")
def to_firefox(
    output: ModelOutput,
    model: Model = None,
    float32: Annotated[bool, typer.Option("--float32", help="Floats of 32 bits; weights of 8 bits if absent.")] = False,
    quiet: Quiet = False,
) -> None:
    """For Bergamot, the engine of Firefox's translations; from architecture ssru. What reads context stays behind.

    Example: weitblick export firefox -m runs/ssru/best -o exported
    """
    set_log_level(quiet)
    from weitblick.checkpoints.export_firefox import MARKS, export_firefox

    loaded = _load(model, output, MARKS)
    export_firefox(loaded, output, int8=not float32)
    _report(loaded, output, "Firefox's engine")


def _load(model: str | None, output: str, marks: tuple[str, ...]) -> LoadedModel:
    from weitblick.checkpoints.folder import load_model
    from weitblick.checkpoints.hub import check_output_folder
    from weitblick.checkpoints.installed import default_model

    folder = default_model() if model is None else model
    check_output_folder(output, marks, folder)
    return load_model(folder)


def _report(loaded: LoadedModel, output: str, kind: str) -> None:
    behind = "" if loaded.model.context is None else "; its context layer stays behind"
    log.info("%s: a sentence model for %s%s", output, kind, behind)


# `weitblick publish`, `weitblick fetch` and `weitblick models`: model folders on the hub and on this machine.

Name = Annotated[str, typer.Argument(metavar="OWNER/MODEL", help="The model's name on the hub.")]
Hub = Annotated[str | None, typer.Option("--hub", metavar="URL", help="Another server that speaks the same language.")]


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
    from weitblick.checkpoints.hub import CardDetails, publish

    card = CardDetails(license, tuple(dataset or ()))
    log.info("published: %s", publish(Path(model), name, card, private=private, hub=hub))


def fetch_model(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="OWNER/MODEL on the hub, or firefox:SOURCE-TARGET.", show_default=False),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FOLDER", help="Where to; the models folder if absent."),
    ] = None,
    list_language: Annotated[
        str | None, typer.Option("--list", metavar="LANGUAGE", help="List what there is for a language instead.")
    ] = None,
    source_language: SourceLanguage = None,
    target_language: TargetLanguage = None,
    hub: Hub = None,
    quiet: Quiet = False,
) -> None:
    """Take a model from the network and install it: of Weitblick, of OPUS-MT, or Firefox's. Shows its licence.

    A Marian model of the Hugging Face hub (OWNER/MODEL) and a model of Firefox (firefox:en-de, or firefox:en-de/tiny
    for one of its architectures) are downloaded, checked, imported and installed under their languages; a download that
    breaks off goes on where it stopped. --hub names another server, of either kind.

    Example: weitblick fetch Helsinki-NLP/opus-mt-fr-es

    Example: weitblick fetch firefox:en-de

    Example: weitblick fetch --list fr
    """
    set_log_level(quiet)
    if (name is None) == (list_language is None):
        raise UserError("say one thing: the NAME of a model, or --list LANGUAGE", remedy="see weitblick fetch --help")
    if list_language is not None:
        _list_fetchable(list_language, hub)
        return
    assert name is not None
    from weitblick.checkpoints.firefox_models import PREFIX
    from weitblick.checkpoints.import_marian import TextOptions

    if name.startswith(PREFIX):
        _fetch_firefox(name.removeprefix(PREFIX), output, hub)
    else:
        _fetch_hub(name, output, hub, TextOptions(source_language, target_language))


def _fetch_firefox(wanted: str, output: str | None, server: str | None) -> None:
    from weitblick.checkpoints.firefox_models import LICENSE, choose_firefox_model, install
    from weitblick.checkpoints.installed import models_folder

    model = choose_firefox_model(wanted, server)
    folder = Path(output) if output is not None else models_folder() / "firefox" / f"{model.source}-{model.target}"
    kind = f" ({model.architecture})" if model.architecture else ""
    log.info("%s %s%s by Mozilla; licence %s", model.name, model.version, kind, LICENSE)
    with progress_bar(model.size, "downloading") as advance:
        install(model, folder, advance, server, _with_pointer)
    _say_how(folder)


def _fetch_hub(name: str, output: str | None, hub: str | None, options: TextOptions) -> None:
    from weitblick.checkpoints.downloads import NotFound
    from weitblick.checkpoints.hub import fetch
    from weitblick.checkpoints.hub_marian import hub_model, install
    from weitblick.checkpoints.installed import models_folder

    folder = Path(output) if output is not None else models_folder() / name
    try:
        model = hub_model(name, hub)
    except NotFound:
        model = None  # or for those who are logged in: huggingface_hub knows them
    if model is None or model.ours:
        fetch(name, folder, hub=hub)
    else:
        log.info("%s: licence %s, see %s/%s", name, model.license, model.hub, name)
        with progress_bar(None, "downloading") as advance:
            install(model, folder, advance, options, _with_pointer)
    _say_how(folder)


def _say_how(folder: Path) -> None:
    from weitblick.checkpoints.installed import models_folder, read_model

    found = read_model(folder, str(folder))
    named = f"--source-language {found.source_language} --target-language {found.target_language}"
    how = named if models_folder() in folder.parents else f"-m {folder}"
    log.info("%s: translate with: weitblick translate %s", folder, how)


def _list_fetchable(language: str, hub: str | None) -> None:
    from rich.table import Table

    from weitblick.checkpoints.firefox_models import firefox_models
    from weitblick.checkpoints.hub_marian import opus_models

    table = Table("name", "languages", "size", box=None)
    seen: set[str] = set()
    for model in firefox_models(hub):
        if language in (model.source, model.target) and model.name not in seen:
            seen.add(model.name)
            table.add_row(model.name, f"{model.source} -> {model.target}", f"{model.size / 2**20:.0f} MB")
    for name in opus_models(language, hub):
        seen.add(name)
        table.add_row(name, "", "")
    if not seen:
        raise UserError(f"nothing is there for the language {language!r}", remedy="use a code such as en or fr")
    wide_console().print(table)


def list_models(as_json: Json = False) -> None:
    """List the installed models and their languages. They are in $WEITBLICK_MODELS, or in a folder of your data.

    Example: weitblick models
    """
    from weitblick.checkpoints.installed import installed_models, models_folder

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
