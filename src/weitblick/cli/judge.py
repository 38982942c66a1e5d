"""`weitblick judge`: a blind form for human raters, and what their answers say."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weitblick.cli.console import print_json
from weitblick.cli.options import Json, Seed
from weitblick.common.files import protect_inputs

if TYPE_CHECKING:
    from weitblick.evaluation.judgement import Preference


judge_app = typer.Typer(
    help="Human judgement of two systems: a blind form, its answers, the sign test.", no_args_is_help=True
)


@judge_app.command("sample")
def sample(
    first: Annotated[Path, typer.Argument(help="Translations of the first system (the baseline).", metavar="A")],
    second: Annotated[Path, typer.Argument(help="Translations of the second system.", metavar="B")],
    source: Annotated[Path, typer.Option(help="The source that both have translated.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The form; its key is written beside it.")],
    reference: Annotated[Path | None, typer.Option(help="A human translation to be shown, too.")] = None,
    documents: Annotated[int, typer.Option(help="How many documents to sample.")] = 18,
    seed: Seed = 1,
) -> None:
    """Sample documents from two systems' outputs into a blind form (one HTML file that works offline).

    Example: weitblick judge sample baseline.de ours.de --source test.en -o form.html
    """
    from weitblick.evaluation.judgement_form import key_path, sample_form

    inputs = [first, second, source, *([] if reference is None else [reference])]
    protect_inputs(inputs, [output, key_path(output)])
    sample_form([first, second], source, output, reference=reference, documents=documents, seed=seed)
    typer.echo(f"{output}: {documents} documents; give it to the raters")
    typer.echo(f"{key_path(output)}: the key; keep it from them")


@judge_app.command("read")
def read(
    key: Annotated[Path, typer.Argument(help="The form's key.", metavar="KEY")],
    answers: Annotated[list[Path], typer.Argument(help="Files that the form has saved.", metavar="ANSWERS...")],
    as_json: Json = False,
) -> None:
    """Read raters' answers: preferences, two-sided sign test, agreement.

    Example: weitblick judge read form.key.json answers-anna.json answers-ben.json
    """
    from weitblick.evaluation.judgement import judge_answers, read_answers
    from weitblick.evaluation.judgement_form import read_key

    chosen = read_key(key)
    raters = [read_answers(path, chosen) for path in answers]
    preferences = judge_answers(chosen, raters)
    if as_json:
        report = {
            "systems": list(chosen.systems),
            "raters": [rater.rater for rater in raters],
            "items": len(chosen.left),
            "questions": {preference.question: _as_data(preference) for preference in preferences},
        }
        print_json(report)
        return
    for preference in preferences:
        _print_preference(preference, chosen.systems[1])


def _as_data(preference: Preference) -> dict[str, Any]:
    from dataclasses import asdict

    agreement = None if preference.agreement is None else asdict(preference.agreement)
    return {"wins": preference.wins, "ties": preference.ties} | asdict(preference.test) | {"agreement": agreement}


def _print_preference(preference: Preference, system: str) -> None:
    wins = ", ".join(f"{name} {count}" for name, count in preference.wins.items())
    test = preference.test
    typer.echo(f"{preference.question}: {wins}, ties {preference.ties}")
    typer.echo(
        f"  sign test by document for {system}, ties split: x = {test.x:g}, n = {test.n}, p = {test.p:.4f} (two-sided)"
    )
    if preference.agreement is not None:
        found = preference.agreement
        cohen, fleiss = ("undefined" if k is None else f"{k:.2f}" for k in (found.cohen, found.fleiss))
        typer.echo(
            f"  {found.raters} raters agree in {found.plain:.0%} (Cohen's kappa {cohen}, Fleiss' kappa {fleiss})"
        )


@judge_app.command("sign-test")
def sign(
    x: Annotated[float, typer.Argument(help="Judgements for the system; a tie counts 0.5.", metavar="X")],
    n: Annotated[int, typer.Argument(help="All judgements.", metavar="N")],
    as_json: Json = False,
) -> None:
    """Two-sided sign test of X preferences among N judgements; ties count half.

    Example: weitblick judge sign-test 39 54
    """
    from weitblick.evaluation.judgement import sign_test

    result = sign_test(x, n)
    if as_json:
        print_json({"x": result.x, "n": result.n, "p": result.p})
    else:
        typer.echo(f"x = {result.x:g}, n = {result.n}, p = {result.p:.4f} (two-sided sign test)")
