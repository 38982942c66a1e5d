"""A study that is done in seconds, one with everything that can be judged, and how they are run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from typer.testing import CliRunner

from weitblick.cli.main import app

RECIPE = """
text: {kind: sentencepiece, merges: 150, joint_vocabulary: true}
model: {dimension: 16, feed_forward: 32, encoder_layers: 1, decoder_layers: 1, heads: 2, tied_embeddings: all}
context: {kind: hierarchical}
sentence_stage: {updates: 3, batch_tokens: 200, validate_every: 3}
context_stage: {updates: 2, batch_tokens: 200, validate_every: 2}
"""
STUDY = """
name: toy
corpora: {talks: {dir: CORPUS, suites: {pronouns: CORPUS/contrast.jsonl}}}
metrics: [bleu, chrf]
beam: 1
trials: 50
speed_rounds: 0
threads: 1
rows:
  - {name: Transformer, recipe: recipe.yaml, overrides: [stage=sentence, context.kind=none]}
  - {name: H-Attention, recipe: recipe.yaml}
  - {name: H-Attention, recipe: recipe.yaml, overrides: [context.integration=decoder, context.direction=online]}
"""
JUDGED = """
judged_on: [dev, test]
context_use: true
seeds: [1, 2]
first: [H-Attention]
baselines: {Continued: "°"}
stage1: {transformer: MODEL}
"""
CONTINUED = """
  - {name: Continued, recipe: recipe.yaml, overrides: [context.kind=none], continued: true}
"""


def study_file(folder: Path, corpus: Path, text: str = STUDY) -> Path:
    (folder / "recipe.yaml").write_text(RECIPE, encoding="utf-8")
    path = folder / "study.yaml"
    path.write_text(text.replace("CORPUS", str(corpus)), encoding="utf-8")
    return path


def reproduce(*arguments: str | Path) -> dict[str, Any]:
    threads = torch.get_num_threads()
    try:
        command = ["reproduce", *map(str, arguments), "--json", "--quiet"]
        result = CliRunner().invoke(app, command, catch_exceptions=False)
    finally:
        torch.set_num_threads(threads)
    assert result.exit_code == 0
    return json.loads(result.stdout)


def refuse(*_: object) -> None:
    raise AssertionError("done twice")
