"""`weitblick import`: a Marian model of transformers, such as OPUS-MT, or of Marian itself, as a model folder."""

from __future__ import annotations

from typing import Annotated

import typer

from weitblick.cli.console import log, set_log_level
from weitblick.cli.options import ModelOutput, Quiet, SourceLanguage, TargetLanguage

PANEL = "Models from and for elsewhere"


def register(app: typer.Typer) -> None:
    app.command("import", rich_help_panel=PANEL)(import_model)


def import_model(
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="A folder of transformers or of Marian; or an .npz.")],
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
    """Take over a Marian model, as those of OPUS-MT: the same translations, ready for context and for a memory.

    FOLDER holds what transformers reads (config.json, vocab.json, *.spm, weights in safetensors or a pickle of tensors
    alone), or what Marian writes (*.npz, vocabularies, decoder.yml if any, *.spm). Of a multilingual model
    --target-language chooses the language to translate into.

    Example: weitblick import downloads/opus-mt-en-fi -o models/en-fi

    Example: weitblick import downloads/opus-mt-en-ROMANCE -o models/en-fr --source-language en --target-language fr

    Example: weitblick import downloads/opus-mt-tc-big-en-zle -o models/en-uk --target-language uk --code ukr
    """
    set_log_level(quiet)
    from weitblick.exchange.import_marian import TextWishes, import_marian
    from weitblick.exchange.output import check_output_folder
    from weitblick.model.folder import CONFIG, TEXT

    check_output_folder(output, [CONFIG, TEXT], folder)
    wishes = TextWishes(source_language, target_language, code, normalize_punctuation)
    imported = import_marian(folder, wishes)
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
