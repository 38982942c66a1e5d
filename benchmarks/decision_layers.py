"""The paper's question on real decisions: flat attention or H-Attention, sparse or soft, as the layer that decides.

    weitblick data pronouns all.jsonl -o it.en -o it.de --es 1.6 --expletive 0.5 --contrast it.jsonl
    python benchmarks/decision_layers.py it.en it.de --model SENTENCE_MODEL --output RUNS --seeds 1 2

Every layer learns from the same decisions, which are read once, by the same recipe; the same share of them is held out.
Prints a table (right with own, removed and random context; nats; sentences with weight) and keeps each model in RUNS.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch

from weitblick.checkpoints.folder import LoadedModel, build, load_model, save_model
from weitblick.common.locks import StopRequest
from weitblick.common.recipe import Recipe
from weitblick.common.recipe_files import load_recipe
from weitblick.common.threads import use_threads
from weitblick.documents.corpora.formats import read_documents
from weitblick.model.document_model import DocumentModel
from weitblick.training.decisions import Decision, DecisionTraining
from weitblick.training.store import CorpusStore, prepare_store

LAYERS = {
    "flat": ["context.kind=word"],
    "sparse-soft": ["context.kind=hierarchical"],
    "sparse-sparse": ["context.kind=hierarchical", "context.word_attention=sparse"],
    "soft-soft": ["context.kind=hierarchical", "context.sentence_attention=soft"],
}
HEADER = "| layer | seed | own | removed | random | nats own | removed | random |\n|---|---|---|---|---|---|---|---|"


def main() -> None:
    options = parse_options()
    use_threads(options.threads)
    base = load_model(options.model)
    recipes = {name: load_recipe(options.recipe, [*LAYERS[name], *options.set]) for name in options.layers}
    reader = DecisionTraining(*new_layer(base, next(iter(recipes.values())), 1))
    found = list(reader.read(corpus(options, base), seed=1))
    print(f"{len(found[0])} decisions to learn from, {len(found[1])} held out", flush=True)
    print(HEADER, flush=True)
    for seed in options.seeds:
        for name, recipe in recipes.items():
            print(row(options, name, seed, recipe, base, found), flush=True)


def corpus(options: argparse.Namespace, base: LoadedModel) -> CorpusStore:
    folder = options.output / "data"
    if not folder.exists():
        options.output.mkdir(parents=True, exist_ok=True)
        prepare_store(read_documents([str(path) for path in options.corpus]), base.pipeline, folder)
    return CorpusStore(folder)


def new_layer(base: LoadedModel, recipe: Recipe, seed: int) -> tuple[DocumentModel, object, torch.Tensor, StopRequest]:
    """A model with the sentence model and the pointer of another and a new context layer, and how to train it."""
    torch.manual_seed(seed)
    sizes = len(base.pipeline.source_vocabulary), len(base.pipeline.target_vocabulary)
    model = build(base.model_section, recipe.context, *sizes)
    model.sentence.load_state_dict(base.model.sentence.state_dict())
    model.sentence.requires_grad_(False)
    model.pointer = base.model.pointer
    sets = recipe.context.decides
    model.decide_between([base.pipeline.single_pieces(words, "target", "context.decides") for words in sets])
    assert model.choice_words is not None
    return model, recipe.decision_stage, torch.ones(len(model.choice_words)), StopRequest()


def tried(training: DecisionTraining, own_odds: float, held_out: list[Decision]) -> str:
    """How right a layer is if the sentence model's own odds have another weight."""
    section = training.model.section
    chosen, section.own_odds = section.own_odds, own_odds
    judgement = training.judge(held_out)
    section.own_odds = chosen
    return f"{judgement}; nats own {judgement.nats['own']:.4f}, random {judgement.nats['random']:.4f}"


def row(
    options: argparse.Namespace,
    name: str,
    seed: int,
    recipe: Recipe,
    base: LoadedModel,
    found: list[list[Decision]],
) -> str:
    folder = options.output / f"{name}-{seed}"
    figures_file = folder / "decision_layers.json"
    if figures_file.exists():
        figures = json.loads(figures_file.read_text(encoding="utf-8"))
    else:
        training = DecisionTraining(*new_layer(base, recipe, seed))
        judgement = training.fit(found[0], found[1], seed, folder.with_suffix(".log"), quiet=True)
        figures = judgement.figures()
        for odds in options.own_odds:
            print(f"{name}-{seed}, own_odds {odds}: {tried(training, odds, found[1])}", flush=True)
        facts = {**base.facts, "decisions": len(found[0]), "decision_seed": seed}
        facts |= {f"decision_{key}": round(value, 4) for key, value in figures.items()}
        save_model(folder, training.model, base.pipeline, base.model_section, facts)
        figures_file.write_text(json.dumps(figures) + "\n", encoding="utf-8")
    values = [figures[f"{part}_{context}"] for part in ("accuracy", "nats") for context in ("own", "removed", "random")]
    return f"| {name} | {seed} | " + " | ".join(f"{value:.3f}" for value in values) + " |"


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", nargs=2, type=Path)
    parser.add_argument("--model", required=True, help="model folder whose sentence model is read")
    parser.add_argument("--recipe", default="recipes/europarl-small/pronouns.yaml")
    parser.add_argument("--set", nargs="*", default=[], metavar="KEY=VALUE", help="changes to the recipe")
    parser.add_argument("--layers", nargs="*", choices=LAYERS, default=list(LAYERS))
    parser.add_argument("--seeds", nargs="*", type=int, default=[1])
    parser.add_argument(
        "--own-odds", nargs="*", type=float, default=[], help="other weights to try on what is held out"
    )
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--output", type=Path, required=True)
    return parser.parse_args()


if __name__ == "__main__":
    main()
