"""A run: prepares corpora, trains stage 1 and stage 2, leaves a model folder. Started again, it goes on."""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from collections.abc import Collection
from pathlib import Path
from typing import Any

import torch
from torch import nn

from weitblick import __version__
from weitblick.batches.store import CorpusStore, prepare_store
from weitblick.config.recipe import ContextSection, Recipe, StageSection
from weitblick.distributed import World, join_world
from weitblick.documents.corpora import read_documents
from weitblick.documents.corpora.folders import files_of_part
from weitblick.errors import UserError
from weitblick.files import make_folder, read_json, sha256, write_json
from weitblick.model.build import build
from weitblick.model.document_model import DocumentModel
from weitblick.model.folder import load_model, save_model
from weitblick.text.pipeline import TextPipeline, learn_pipeline, load_pipeline
from weitblick.training.dev_translation import DevBleu, translated_store
from weitblick.training.stage import StageRun, StageTask

MANIFEST_VERSION = 1
FREE_TO_CHANGE = {"output", "threads", "device", "base", "stage"}  # what a resumed run may change


def train(recipe: Recipe, *, quiet: bool = False, finish: bool = False) -> Path:
    """Runs a recipe; returns the folder of the best model. `finish` ends a run's current stage where it stands."""
    world = join_world(recipe.device)
    if recipe.threads:
        torch.set_num_threads(recipe.threads)
    try:
        return _train(recipe, world, quiet, finish)
    finally:
        world.close()


def _train(recipe: Recipe, world: World, quiet: bool, finish: bool) -> Path:
    folder = Path(recipe.output)
    corpora = corpus_files(recipe)
    if world.first:
        _open_run(folder, recipe, corpora)
    world.barrier()
    base = load_model(recipe.stage1) if recipe.stage1 else None
    if world.first:
        _prepare(recipe, corpora, folder, base.pipeline if base else None)
    world.barrier()
    pipeline = load_pipeline(folder / "data" / "text")
    stores = {name: CorpusStore(folder / "data" / name) for name in corpora if name != "test"}

    sentence_model = base.model if base else None
    figures: dict[str, Any] = {}
    if recipe.stage == "sentence" or (recipe.stage == "both" and base is None):
        sentence_model = _new_model(recipe, ContextSection(), pipeline)
        if base:  # trained on
            _take_over(sentence_model, base.model)
        figures = _run_stage(
            StageTask("stage 1", folder / "sentence", recipe.sentence_stage, [stores["train"]], stores["dev"],
                      recipe.seed, documents=False),
            sentence_model, pipeline, recipe, world, folder / "sentence" / "model", quiet, finish,
        )  # fmt: skip
    if recipe.stage == "sentence":
        assert sentence_model is not None
        if world.first:
            save_model(folder / "best", sentence_model, pipeline, recipe.model, _facts(recipe, figures))
        world.barrier()
        return folder / "best"
    if sentence_model is None:
        raise UserError("stage: context needs a stage-1 model", where=folder, remedy="set stage1=FOLDER, or stage=both")
    model = _new_model(recipe, recipe.context, pipeline)
    _take_over(model, sentence_model)
    train_stores = [stores["train"], *([stores["mix"]] if "mix" in stores else [])]
    translated = None
    wish = recipe.context_stage.target_context
    if wish != "reference" and model.reads_translations:
        every = 2 if wish == "mixed" else 1
        translated = [
            translated_store(sentence_model, store, store.folder.with_name(f"{store.folder.name}-{wish}"), world, every)
            for store in train_stores
        ]
    figures = _run_stage(
        StageTask("stage 2", folder / "context", recipe.context_stage, train_stores, stores["dev"],
                  recipe.seed, documents=True, mix_share=recipe.data.mix_share, translated=translated),
        model, pipeline, recipe, world, folder / "best", quiet, finish,
    )  # fmt: skip
    return folder / "best"


def _run_stage(
    task: StageTask,
    model: DocumentModel,
    pipeline: TextPipeline,
    recipe: Recipe,
    world: World,
    result: Path,
    quiet: bool,
    finish: bool,
) -> dict[str, Any]:
    _set_dropout(model, task.section)
    run = StageRun(task, model, world, quiet=quiet, finish=finish)
    if task.section.bleu_sentences:
        run.bleu = DevBleu(corpus_files(recipe)["dev"], recipe.data.format, pipeline, task.section.bleu_sentences)
    progress = run.run()
    perplexity = run.take_best()
    figures = {
        "dev_perplexity": round(perplexity, 4),
        "updates": progress.update,
        "best_update": progress.best_update,
        "training_minutes": round(progress.seconds / 60, 1),
        "stopped_because": progress.reason,
    }
    if world.first:
        save_model(result, model, pipeline, recipe.model, _facts(recipe, figures))
        from weitblick.training.curves import draw_curves

        draw_curves(task.folder / "log.jsonl", task.folder / "curves.png")
    world.barrier()
    return figures


def _set_dropout(model: DocumentModel, section: StageSection) -> None:
    from weitblick.sentence.layers import Dropout

    if section.dropout is not None:
        for module in model.modules():
            if isinstance(module, Dropout):
                module.rate = section.dropout


def _new_model(recipe: Recipe, context: ContextSection, pipeline: TextPipeline) -> DocumentModel:
    torch.manual_seed(recipe.seed)
    return build(recipe.model, context, len(pipeline.source_vocabulary), len(pipeline.target_vocabulary))


def _take_over(model: DocumentModel, base: DocumentModel) -> None:
    """Starts from the weights of another model: its sentence model, and its context layer where that is of the same
    kind. Frozen context states come from the stage-1 model for ever."""
    _copy(model.sentence, base.sentence)
    if model.provider is not model.sentence:
        _copy(model.provider, base.provider)
    if model.context is not None and base.context is not None and _place(model) == _place(base):
        _copy(model.context, base.context, model.context.zero_started())


def _place(model: DocumentModel) -> tuple[str, str, str]:
    return model.section.kind, model.section.integration, model.section.values


def _copy(module: nn.Module, base: nn.Module, new: Collection[str] = ()) -> None:
    """Copies weights; those named in `new` may be missing, and stay as they start."""
    weights = base.state_dict()
    own = {name: value for name, value in module.state_dict().items() if name in new and name not in weights}
    try:
        module.load_state_dict({**weights, **own})
    except RuntimeError as error:
        raise UserError(
            f"the stage-1 model has another architecture ({str(error).splitlines()[1].strip()})",
            remedy="give the recipe the same model and context sections",
        ) from None


def corpus_files(recipe: Recipe) -> dict[str, list[str]]:
    """The files of each corpus, checked to exist before anything long begins."""
    data, text = recipe.data, recipe.text
    corpora: dict[str, list[str]] = {}
    for name in ("train", "dev", "mix"):
        given = getattr(data, name)
        if given is None and name != "mix":
            if data.dir is None:
                raise UserError(f"data.{name} is not set", remedy="set data.dir=FOLDER, or data.train and data.dev")
            given = files_of_part(data.dir, name, (text.source_language, text.target_language))
        if given is None:
            continue
        for path in given:
            if not Path(path).is_file():
                raise UserError(f"no such file (data.{name})", where=path, remedy="check data.dir, or name the files")
        corpora[name] = given
    return corpora


def _prepare(recipe: Recipe, corpora: dict[str, list[str]], folder: Path, given: TextPipeline | None) -> None:
    """The text pipeline (learned on the training side, or stage 1's) and the stores, unless they are there."""
    data = folder / "data"
    languages = (recipe.text.source_language, recipe.text.target_language)
    if not (data / "text").exists():
        documents = read_documents(corpora["train"], recipe.data.format, languages=languages)
        pipeline = given or learn_pipeline(documents, recipe.text, seed=recipe.seed)
        pipeline.save(data / "text")
    pipeline = load_pipeline(data / "text")
    for name, paths in corpora.items():
        if not (data / name).exists():
            prepare_store(read_documents(paths, recipe.data.format, languages=languages), pipeline, data / name)


def _open_run(folder: Path, recipe: Recipe, corpora: dict[str, list[str]]) -> None:
    """Writes the manifest of a new run; compares that of a resumed one."""
    path = folder / "manifest.json"
    values = recipe.model_dump(mode="json")
    hashes = {name: {p: sha256(p) for p in paths} for name, paths in corpora.items()}
    if path.exists():
        old = read_json(path)
        differences = _differences(old["recipe"], values)
        differences += [
            f"{n}: other contents" for n in hashes if list(old["data"].get(n, {}).values()) != list(hashes[n].values())
        ]
        if differences:
            raise UserError(
                f"the run there was started with another recipe: {'; '.join(differences)}",
                where=folder,
                remedy="undo the change, or choose another output",
            )
        return
    make_folder(folder)
    write_json(path, {
        "format_version": MANIFEST_VERSION,
        "command": sys.argv,
        "time": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "versions": {"weitblick": __version__, "torch": torch.__version__, "python": platform.python_version()},
        "processes": int(os.environ.get("WORLD_SIZE", "1")),
        "threads": torch.get_num_threads(),
        "seed": recipe.seed,
        "data": hashes,
        "recipe": values,
    })  # fmt: skip


def _differences(old: dict[str, Any], new: dict[str, Any], prefix: str = "") -> list[str]:
    found = []
    for key in sorted(old.keys() | new.keys()):
        if not prefix and key in FREE_TO_CHANGE:
            continue
        a, b = old.get(key), new.get(key)
        if isinstance(a, dict) and isinstance(b, dict):
            found += _differences(a, b, f"{prefix}{key}.")
        elif a != b:
            found.append(f"{prefix}{key}: {json.dumps(a)} -> {json.dumps(b)}")
    return found


def _facts(recipe: Recipe, figures: dict[str, Any]) -> dict[str, Any]:
    return {
        "languages": f"{recipe.text.source_language} -> {recipe.text.target_language}",
        "seed": recipe.seed,
        **figures,
    }
