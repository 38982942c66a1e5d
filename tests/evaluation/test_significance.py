"""Tests of differences are calibrated, agree with sacreBLEU's, and treat runs and documents as they should."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.significance import PairedTest
from typer.testing import CliRunner

from weitblick.cli.main import app
from weitblick.common.errors import UserError
from weitblick.evaluation.metric import Counts, Metric
from weitblick.evaluation.metrics import build_metric, sum_documents
from weitblick.evaluation.significance import BETTER, CLEARLY_BETTER, WORSE, compare, estimate, mark, parse_systems

TEXT = "der die das ein Haus Baum geht steht groß klein rot und nicht gestern heute kommt"
VOCABULARY = np.array(TEXT.split())


def translate(references: list[str], kept: float, generator: np.random.Generator) -> list[str]:
    """A system that gets each word right with probability `kept`."""
    return [
        " ".join(w if generator.random() < kept else str(generator.choice(VOCABULARY)) for w in line.split())
        for line in references
    ]


def make_references(size: int, generator: np.random.Generator) -> list[str]:
    return [" ".join(generator.choice(VOCABULARY, generator.integers(4, 16))) for _ in range(size)]


def simulated_counts(units: int, quality: float, generator: np.random.Generator) -> Counts:
    """chrF-like counts of one system: matches out of 60 characters of every order."""
    matched = generator.binomial(60, quality, size=(units, 6))
    counts = np.full((units, 18), 60.0)
    counts[:, 2::3] = matched
    return counts


@pytest.fixture(scope="module")
def chrf() -> Metric:
    return build_metric("chrf")


def test_null_hypothesis_is_rejected_about_as_often_as_promised(chrf: Metric) -> None:
    """Over 2000 comparisons of 60 units: randomisation 5.5%, bootstrap 6.2%, interval covers 93.6%.

    The bounds are three standard deviations of the 800 comparisons made here around those.
    """
    generator = np.random.default_rng(7)
    results = []
    for number in range(800):
        first, second = (simulated_counts(60, 0.5, generator) for _ in range(2))
        results.append(compare(chrf, [first], [second], trials=250, seed=number))
    randomised = np.array([result.p_randomisation for result in results])
    bootstrapped = np.array([result.p_bootstrap for result in results])
    assert 0.03 <= np.mean(randomised < 0.05) <= 0.08
    assert 0.035 <= np.mean(bootstrapped < 0.05) <= 0.09
    assert 0.44 <= np.mean(randomised < 0.5) <= 0.56
    assert 0.91 <= np.mean([result.interval.low <= 0 <= result.interval.high for result in results]) <= 0.965


def test_null_with_several_runs_is_calibrated(chrf: Metric) -> None:
    generator = np.random.default_rng(8)
    p = []
    for number in range(300):
        first, second = ([simulated_counts(40, 0.5, generator) for _ in range(3)] for _ in range(2))
        p.append(compare(chrf, first, second, trials=300, seed=number).p_randomisation)
    assert 0.015 <= np.mean(np.array(p) < 0.05) <= 0.09


def test_real_difference_is_found_and_identical_systems_are_not(chrf: Metric) -> None:
    generator = np.random.default_rng(9)
    first, second = simulated_counts(200, 0.5, generator), simulated_counts(200, 0.53, generator)
    found = compare(chrf, [first], [second], trials=1000)
    assert found.difference > 0
    assert found.interval.low > 0
    assert max(found.p_randomisation, found.p_bootstrap) < 0.01
    same = compare(chrf, [first], [first], trials=1000)
    assert (same.difference, same.p_randomisation, same.p_bootstrap) == (0, 1, 1)


def test_tests_agree_with_sacrebleus() -> None:
    generator = np.random.default_rng(3)
    references = make_references(150, generator)
    first, second = translate(references, 0.70, generator), translate(references, 0.725, generator)
    theirs = PairedTest(
        [("a", first), ("b", second)], {"BLEU": BLEU(), "chrF2": CHRF()}, [references], test_type="ar", n_samples=4000
    )()[1]
    for name, label in (("sacrebleu", "BLEU"), ("chrf", "chrF2")):
        metric = build_metric(name, "de")
        ours = compare(metric, *([metric.statistics(h, references)] for h in (first, second)), trials=4000)
        assert ours.p_randomisation == pytest.approx(theirs[label][1].p_value, abs=0.04)
        scores = [result.score for result in theirs[label]]
        assert ours.difference == pytest.approx(scores[1] - scores[0])


@pytest.mark.parametrize("name", ["bleu", "sacrebleu", "dbleu", "chrf", "meteor"])
def test_every_metric_can_be_tested(name: str) -> None:
    generator = np.random.default_rng(4)
    references = make_references(40, generator)
    metric = build_metric(name, "de")
    runs = [[metric.statistics(translate(references, kept, generator), references)] for kept in (0.4, 0.9)]
    assert compare(metric, *runs, trials=200).p_randomisation < 0.05
    own = estimate(metric, runs[0], trials=200)
    assert own.interval.low < own.score < own.interval.high


def test_documents_are_the_more_cautious_unit(chrf: Metric) -> None:
    """Sentences of a document that rise and fall together are less evidence than their number suggests."""
    generator = np.random.default_rng(5)
    lengths = [20] * 12
    quality = np.repeat(generator.uniform(0.35, 0.65, size=12), 20)
    baseline = simulated_counts(240, 0.5, generator)
    system = np.concatenate([simulated_counts(1, q, generator) for q in quality])
    by_sentence = compare(chrf, [baseline], [system], trials=1000)
    by_document = compare(chrf, [sum_documents(baseline, lengths)], [sum_documents(system, lengths)], trials=1000)
    assert by_sentence.difference == pytest.approx(by_document.difference)
    assert by_document.interval.high - by_document.interval.low > 1.5 * (
        by_sentence.interval.high - by_sentence.interval.low
    )
    assert by_document.p_randomisation > by_sentence.p_randomisation


def test_spread_of_runs_widens_the_interval(chrf: Metric) -> None:
    generator = np.random.default_rng(6)
    steady = [simulated_counts(300, 0.5, generator) for _ in range(3)]
    shaky = [simulated_counts(300, quality, generator) for quality in (0.45, 0.5, 0.55)]
    narrow, wide = estimate(chrf, steady, trials=500), estimate(chrf, shaky, trials=500)
    assert wide.deviation is not None
    assert narrow.deviation is not None
    assert wide.deviation > 5 * narrow.deviation
    assert wide.interval.high - wide.interval.low > 2 * (narrow.interval.high - narrow.interval.low)
    assert estimate(chrf, steady[:1], trials=10).deviation is None


def test_same_seed_same_result_and_unpaired_runs_are_refused(chrf: Metric) -> None:
    generator = np.random.default_rng(2)
    runs = [simulated_counts(30, 0.5, generator) for _ in range(5)]
    assert compare(chrf, runs[:2], runs[2:4], 200, seed=5) == compare(chrf, runs[:2], runs[2:4], 200, seed=5)
    assert compare(chrf, runs[:1], runs[1:4], 200).p_randomisation > 0
    with pytest.raises(UserError, match="2 runs of the baseline cannot be paired with 3"):
        compare(chrf, runs[:2], runs[2:], 10)


def test_marks_and_system_names() -> None:
    assert [mark(1, 0.2), mark(1, 0.04), mark(1, 0.001), mark(-1, 0.001)] == ["", BETTER, CLEARLY_BETTER, WORSE]
    assert parse_systems(["a.de", "ours=x,y"]) == {"a.de": [Path("a.de")], "ours": [Path("x"), Path("y")]}
    for wrong in (["a.de"], ["a.de", "ours="], ["a.de", "=x"], ["a.de", "a.de"]):
        with pytest.raises(UserError):
            parse_systems(wrong)


def test_compare_command(tmp_path: Path) -> None:
    generator = np.random.default_rng(1)
    references = make_references(60, generator)
    paths = {"ref": references} | {
        name: translate(references, kept, generator) for name, kept in (("a", 0.5), ("b1", 0.8), ("b2", 0.8))
    }
    for name, lines in paths.items():
        text = "".join(f"{line}\n" + ("\n" if number % 6 == 5 else "") for number, line in enumerate(lines))
        (tmp_path / name).write_text(text, encoding="utf-8")
    a, b1, b2, ref = (str(tmp_path / name) for name in ("a", "b1", "b2", "ref"))
    common = ["compare", ref, a, f"ours={b1},{b2}", "--metrics", "sacrebleu,dbleu", "--trials", "500"]
    for unit in ("sentence", "document"):
        report = json.loads(CliRunner().invoke(app, [*common, "--unit", unit, "--json"]).stdout)
        bleu = report["metrics"]["sacrebleu"]
        assert (bleu["unit"], report["metrics"]["dbleu"]["unit"]) == (unit, "document")
        ours = bleu["systems"]["ours"]
        assert ours["score"] == pytest.approx(np.mean(ours["runs"]))
        assert ours["mark"] == CLEARLY_BETTER
    table = CliRunner().invoke(app, common).stdout
    assert f"{ours['score']:.2f}{CLEARLY_BETTER}" in table
    assert CliRunner().invoke(app, [*common, "--unit", "word"]).exit_code == 2
