"""Our scores are sacreBLEU's; a corpus is the sum of its sentences; the commands say what is wrong with files."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest
import sacrebleu
from sacremoses import MosesTokenizer
from typer.testing import CliRunner

from weitblick.cli.main import app
from weitblick.common.errors import UserError
from weitblick.evaluation.metrics import (
    METRICS,
    build_metric,
    default_metrics,
    join_documents,
    metric_statistics,
    sum_documents,
)
from weitblick.evaluation.translations import read_translations

TEXT = "der die das ein Haus Baum geht steht (groß) klein, rot; und nicht gestern heute 3,5 z.B. kommt."
WORDS = TEXT.split()
LENGTHS = [4, 1, 7, 8]


def random_pairs(seed: int, size: int = sum(LENGTHS), kept: float = 0.75) -> tuple[list[str], list[str]]:
    generator = random.Random(seed)
    references = [" ".join(generator.choices(WORDS, k=generator.randint(1, 14))) for _ in range(size)]
    hypotheses = [
        " ".join(w if generator.random() < kept else generator.choice(WORDS) for w in line.split())
        for line in references
    ]
    return hypotheses, references


def corpus_score(name: str, hypotheses: list[str], references: list[str]) -> float:
    metric = build_metric(name, "de")
    return metric.corpus_score(metric_statistics(metric, hypotheses, [references], LENGTHS)).value


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("kept", [1.0, 0.75, 0.2, 0.02])
def test_corpus_scores_are_sacrebleus(seed: int, kept: float) -> None:
    hypotheses, references = random_pairs(seed, kept=kept)
    hypotheses[2] = ""
    tokens = [
        [MosesTokenizer("de").tokenize(x, return_str=True, escape=False) for x in side]
        for side in (hypotheses, references)
    ]
    joined = [join_documents(side, LENGTHS) for side in (hypotheses, references)]
    expected = {
        "bleu": sacrebleu.corpus_bleu(tokens[0], [tokens[1]], tokenize="none", force=True).score,
        "sacrebleu": sacrebleu.corpus_bleu(hypotheses, [references]).score,
        "dbleu": sacrebleu.corpus_bleu(joined[0], [joined[1]]).score,
        "chrf": sacrebleu.corpus_chrf(hypotheses, [references]).score,
    }
    assert {name: corpus_score(name, hypotheses, references) for name in expected} == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_sentence_scores_are_sacrebleus(seed: int) -> None:
    hypotheses, references = random_pairs(seed, size=40, kept=0.5)
    bleu, chrf = build_metric("sacrebleu"), build_metric("chrf")
    for metric, score in ((bleu, sacrebleu.sentence_bleu), (chrf, sacrebleu.sentence_chrf)):
        ours = metric.segment_scores(metric.statistics(hypotheses, references))
        theirs = [score(h, [r]).score for h, r in zip(hypotheses, references, strict=True)]
        np.testing.assert_allclose(ours, theirs, atol=1e-9)


def test_bleu_is_case_sensitive_and_zero_without_matches() -> None:
    reference = ["das Haus steht heute nicht"]
    metric = build_metric("sacrebleu")
    lower = metric.statistics(["das haus steht heute nicht"], reference)
    assert metric.score(lower.sum(0)) < metric.score(metric.statistics(reference, reference).sum(0))
    assert metric.score(metric.statistics(["x y z"], reference).sum(0)) == 0
    assert metric.score(metric.statistics([""], reference).sum(0)) == 0


@pytest.mark.parametrize("name", ["bleu", "sacrebleu", "chrf", "meteor"])
def test_documents_sum_to_the_corpus_and_rows_score_alike(name: str) -> None:
    metric = build_metric(name, "de")
    counts = metric.statistics(*random_pairs(1))
    documents = sum_documents(counts, LENGTHS)
    assert documents.shape == (len(LENGTHS), counts.shape[1])
    np.testing.assert_allclose(documents.sum(0), counts.sum(0))
    stacked = metric.score(documents)
    np.testing.assert_allclose(stacked, [float(metric.score(row)) for row in documents])


def test_document_bleu_counts_across_sentence_ends() -> None:
    references = ["das Haus", "steht heute", "ein Baum", "kommt nicht"]
    metric = build_metric("dbleu")
    one_document = metric_statistics(metric, references, [references], [4])
    alone = metric_statistics(metric, references, [references], [1, 1, 1, 1])
    assert metric.score(one_document.sum(0)) == pytest.approx(100)
    assert metric.score(alone.sum(0)) == 0, "no 4-gram inside a sentence of two words"


@pytest.mark.parametrize("name", METRICS)
def test_signatures_name_what_matters(name: str) -> None:
    signature = build_metric(name, "de").signature
    expected = {
        "bleu": "tok:moses-de",
        "sacrebleu": "tok:13a",
        "dbleu": "unit:document",
        "chrf": "nc:6",
        "ter": "tok:tercom",
        "meteor": "lang:de",
    }
    assert expected[name] in signature


def test_unknown_names_are_refused() -> None:
    with pytest.raises(UserError, match="unknown metric 'bleurt'"):
        build_metric("bleurt")
    with pytest.raises(UserError, match=r"METEOR is not there for the language 'fr'.*choose from bleu, sacrebleu"):
        build_metric("meteor", "fr")
    with pytest.raises(UserError, match="bleu needs to know the language"):
        build_metric("bleu")


def test_only_what_needs_the_language_asks_for_it(tmp_path: Path) -> None:
    """French is scored as French or without a language, never as German."""
    hyp, ref = (write(tmp_path / name, ["le chat dort", "il est noir"]) for name in ("hyp.txt", "ref.txt"))
    report = json.loads(CliRunner().invoke(app, ["score", str(hyp), "-r", str(ref), "--json"]).stdout)
    assert report["language"] is None
    assert set(report["hypotheses"][0]["scores"]) == {"sacrebleu", "dbleu", "chrf"}
    french = ["score", str(hyp), "-r", str(ref), "--language", "fr"]
    scores = json.loads(CliRunner().invoke(app, [*french, "--json"]).stdout)["hypotheses"][0]["scores"]
    assert set(scores) == {"bleu", "sacrebleu", "dbleu", "chrf"}
    assert "moses-fr" in scores["bleu"]["signature"]
    two = CliRunner().invoke(app, [*french, "--metrics", "sacrebleu,chrf", "--json"])
    assert set(json.loads(two.stdout)["hypotheses"][0]["scores"]) == {"sacrebleu", "chrf"}


@pytest.mark.parametrize("name", METRICS)
def test_of_several_references_the_nearest_counts(name: str) -> None:
    hypotheses, references = random_pairs(3)
    metric = build_metric(name, "de")

    def score(*given: list[str]) -> float:
        return metric.corpus_score(metric_statistics(metric, hypotheses, given, LENGTHS)).value

    best = 0 if name == "ter" else 100
    assert score(references, hypotheses) == score(hypotheses) == pytest.approx(best)
    assert "nrefs:2" in metric.signature or score(references, references) == pytest.approx(score(references))


def test_numbers_alone_are_a_line_for_each_file(tmp_path: Path) -> None:
    ref = write(tmp_path / "ref.de", ["das ist ein kleines Haus", "es ist alt"])
    other = write(tmp_path / "other.de", ["das ist ein altes Haus", "es ist alt"])
    call = ["score", str(ref), str(other), "--reference", str(ref), "-b", "--metrics", "sacrebleu"]
    lines = CliRunner().invoke(app, call).stdout.splitlines()
    assert lines[0] == "100.00"
    assert 0 < float(lines[1]) < 100


def write(path: Path, lines: list[str]) -> Path:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_different_numbers_of_lines_name_both_files(tmp_path: Path) -> None:
    reference = write(tmp_path / "ref", ["a b", "c d", "", "e f", "g h"])
    with pytest.raises(UserError, match=r"hyp: has 3 sentences where .*ref has 4 \(document 2"):
        read_translations([reference], [write(tmp_path / "hyp", ["a b", "c d", "", "e f"])])
    with pytest.raises(UserError, match="document 1 has 1 sentences, but 2"):
        read_translations([reference], [write(tmp_path / "hyp", ["a b", "", "c d", "e f", "g h"])])
    with pytest.raises(UserError, match=r"has no text|holds no document"):
        read_translations([reference], [write(tmp_path / "hyp", [""])])


def test_empty_translation_keeps_its_place_and_warns(tmp_path: Path) -> None:
    reference = write(tmp_path / "ref", ["a b", "c d", "", "e f", "g h"])
    hypothesis = write(tmp_path / "hyp", ["a b", "", "", "e f", "g h"])
    with pytest.warns(UserWarning, match=r"1 of 4 translations are empty \(first: sentence 2\)"):
        texts = read_translations([reference], [hypothesis])
    assert texts.hypotheses[hypothesis] == ["a b", "", "e f", "g h"]
    assert texts.lengths == [2, 2]


def test_documents_come_from_the_file_that_has_them(tmp_path: Path) -> None:
    flat = write(tmp_path / "ref", ["a", "b", "c"])
    source = write(tmp_path / "src", ["x", "y", "", "z"])
    assert read_translations([flat], [write(tmp_path / "hyp", ["a", "b", "c"])], source).lengths == [2, 1]


def test_score_command_reports_every_level(tmp_path: Path) -> None:
    hypotheses, references = random_pairs(4)
    ends = np.cumsum(LENGTHS)
    blocks = [
        [*side[end - n : end], ""] for side in (hypotheses, references) for end, n in zip(ends, LENGTHS, strict=True)
    ]
    half = len(LENGTHS)
    hyp = write(tmp_path / "hyp.de", [line for block in blocks[:half] for line in block])
    ref = write(tmp_path / "ref.de", [line for block in blocks[half:] for line in block])
    arguments = ["score", str(hyp), "--reference", str(ref), "--per-sentence", "--per-document", "--json"]
    whole = json.loads(CliRunner().invoke(app, arguments).stdout)
    assert (whole["sentences"], whole["documents"], whole["language"]) == (sum(LENGTHS), len(LENGTHS), "de")
    (report,) = whole["hypotheses"]
    assert set(report["scores"]) == set(default_metrics("de"))
    assert report["scores"]["sacrebleu"]["score"] == pytest.approx(corpus_score("sacrebleu", hypotheses, references))
    assert [row["sentences"] for row in report["per_document"]] == LENGTHS
    assert len(report["per_sentence"]) == sum(LENGTHS)
    assert {"bleu", "chrf", "meteor"} <= report["per_sentence"][0].keys()


def test_tokenised_files_score_like_their_text(tmp_path: Path) -> None:
    hypotheses, references = random_pairs(6)
    tokenizer = MosesTokenizer("de")
    plain = [write(tmp_path / n, side) for n, side in (("h", hypotheses), ("r", references))]
    tokens = [
        write(tmp_path / f"{n}.tok", [tokenizer.tokenize(line, return_str=True, escape=False) for line in side])
        for n, side in (("h", hypotheses), ("r", references))
    ]
    scores = []
    for (hyp, ref), extra in ((plain, []), (tokens, ["--tokenised"])):
        arguments = [
            "score",
            str(hyp),
            "--reference",
            str(ref),
            "--language",
            "de",
            "--metrics",
            "bleu",
            "--json",
            *extra,
        ]
        scores.append(json.loads(CliRunner().invoke(app, arguments).stdout)["hypotheses"][0]["scores"]["bleu"]["score"])
    assert scores[0] == pytest.approx(scores[1])
