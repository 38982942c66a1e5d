"""`weitblick context-use`: is context used, or merely there?"""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from weitblick.cli.contrast import load_translator, model_and_files, progress_bar
from weitblick.errors import UserError

LABELS = {
    "cxmi": "own - removed (CXMI)",
    "cxmi_random": "random - removed",
    "own_over_random": "own - random",
}


def register(app: typer.Typer) -> None:
    app.command("context-use", rich_help_panel="Judge")(context_use)


def context_use(
    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="[MODEL] SOURCE TARGET",
            help="A model folder (the model that comes with weitblick if not named) and a corpus with its reference "
            "translations, in any format of `weitblick data convert`.",
        ),
    ],
    translate: Annotated[
        bool, typer.Option("--translate", help="Translate with own, removed and random context, too: BLEU of each.")
    ] = False,
    beam: Annotated[int, typer.Option(min=1, help="Beam of --translate.")] = 4,
    target_context: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Translations to read as target context in place of the references: a model's own are what it reads "
            "when it translates, references are what it reads after a human.",
        ),
    ] = None,
    from_format: Annotated[str | None, typer.Option("--from", metavar="FORMAT", help="Format (guessed).")] = None,
    limit: Annotated[int | None, typer.Option(min=1, metavar="N", help="Only the first N documents.")] = None,
    seed: Annotated[int, typer.Option(help="Of random contexts and of confidence intervals.")] = 1,
    batch_tokens: Annotated[int, typer.Option(min=1, help="Tokens scored at a time.")] = 8192,
    threads: Annotated[int | None, typer.Option(min=1, help="Threads on the CPU; all cores if not given.")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, ...")] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Measure how much a model uses its context, on a corpus with references.

    CXMI is how much more probable references become by their context; the context of a random other document is the
    control: what that gains as well is no use of context. Intervals (95%) are bootstrapped over documents.

    Example: weitblick context-use runs/tiny/best corpora/small/test.en corpora/small/test.de --translate
    """
    model, files = model_and_files(inputs, 2, "SOURCE TARGET")

    from itertools import islice

    from weitblick.documents import read_documents
    from weitblick.probing.context_use import encode_corpus, measure_context_use, measure_translations

    documents = list(islice(read_documents(files, from_format), limit))
    translator = load_translator(model, device, threads)
    if translator.model.context is None:
        raise UserError(
            "is a sentence-level model: it has no context to use", where=model, remedy="name a context-aware model"
        )
    contexts = None
    if target_context is not None:
        if not translator.model.reads_target:
            raise UserError("the model reads no target sentences as context", remedy="leave --target-context away")
        contexts = list(islice(read_documents([files[0], target_context], from_format), limit))
    corpus = encode_corpus(translator.pipeline, documents, contexts)
    with progress_bar(3 * len(corpus.references), "scoring") as advance:
        found = measure_context_use(translator.model, corpus, seed=seed, batch_tokens=batch_tokens, progress=advance)
    report: dict[str, Any] = {"model": model or "default", "source": files[0], "target": files[1]}
    report |= {"target_context": target_context or files[1], **found}
    if translate:
        report["bleu"] = measure_translations(translator, documents, beam=beam, seed=seed)
    if as_json:
        typer.echo(json.dumps(report, ensure_ascii=False))
    else:
        _print(report)


def _print(report: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    table = Table("log-probability", box=None, pad_edge=False)
    for name in ("per token", "95% interval", "better", "worse"):
        table.add_column(name, justify="right")
    for key, label in LABELS.items():
        row = report[key]
        gain = row["per_token"]
        low, high = gain["interval"]
        interval = f"[{low:+.4f}, {high:+.4f}]".replace("[", r"\[")
        table.add_row(
            label, f"{gain['mean']:+.4f}", interval, str(row["sentences_better"]), str(row["sentences_worse"])
        )
    console.print(table)
    console.print(
        f"\n{report['documents']} documents, {report['sentences']} sentences, {report['tokens']} tokens; "
        "log-probability per token: "
        + ", ".join(f"{mode} {value:.4f}" for mode, value in report["log_probability_per_token"].items())
    )
    if report["gate"] is not None:
        console.print(
            f"share of the context in the gate {report['gate']:.3f}, sentences attended {report['support']:.2f}"
        )
    if "bleu" in report:
        bleu = report["bleu"]
        console.print("BLEU: " + ", ".join(f"{mode} {bleu[mode]:.2f}" for mode in ("own", "removed", "random")))
        console.print(bleu["signature"], markup=False)
