"""A run: prepares corpora, trains stage 1 and stage 2, leaves a model folder. Started again, it goes on."""

from __future__ import annotations

import json
import logging
import os
import platform
import sys
import time
from collections.abc import Collection
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import torch
from pydantic import BaseModel
from torch import nn

from weitblick import __version__
from weitblick.checkpoints.folder import LoadedModel, build, load_model, save_model
from weitblick.checkpoints.starting import start_from
from weitblick.common.errors import UserError, parse_value
from weitblick.common.files import (
    atomic_folder,
    check_regular_file,
    make_folder,
    read_json,
    recover_folders,
    sha256,
    write_json,
)
from weitblick.common.locks import run_lock
from weitblick.common.process import World, join_world
from weitblick.common.recipe import ContextSection, Recipe, StageSection
from weitblick.common.threads import use_threads
from weitblick.documents.corpora.formats import read_documents
from weitblick.documents.corpora.reading import files_of_part
from weitblick.model.document_model import DocumentModel
from weitblick.text.base import TextPipeline, load_pipeline
from weitblick.text.pipeline import learn_pipeline
from weitblick.training.stage import StageRun
from weitblick.training.store import CorpusStore, prepare_store
from weitblick.training.translated_store import translated_store
from weitblick.training.update import StageTask

log = logging.getLogger("weitblick")

MANIFEST_VERSION: Literal[1] = 1
TRANSLATED_SHARE = {"reference": 0.0, "translation": 1.0, "mixed": 0.5}  # documents that read translations
TRANSLATIONS = "stage1-translations"  # beside the folders of runs, which share it
ORIGIN = ("imported_from", "license", "datasets")  # what a model's card says of it, whatever it is trained on later
FREE_TO_CHANGE = {
    *("output", "threads", "device", "base", "stage"),
    *("sentence_stage.updates", "context_stage.updates"),  # to end sooner or later; a falling rate falls accordingly
}
"""What a resumed run may change."""


@dataclass(frozen=True)
class StageResult:
    """What a stage came to; part of the model card."""

    dev_perplexity: float
    updates: int
    best_update: int
    training_minutes: float
    stopped_because: str


def train(recipe: Recipe, *, quiet: bool = False, finish: bool = False) -> Path:
    """Runs a recipe; returns the folder of the best model. `finish` ends a run's current stage where it stands."""
    world = join_world(recipe.device)
    use_threads(recipe.threads)
    try:
        with run_lock(Path(recipe.output)) if world.first else nullcontext():
            return _Run.open(recipe, world, quiet, finish).train()
    finally:
        world.close()


@dataclass(frozen=True)
class _Run:
    """A run whose corpora are prepared. `base` is the model that it starts from, if it is not trained from scratch."""

    recipe: Recipe
    world: World
    folder: Path
    pipeline: TextPipeline
    stores: dict[str, CorpusStore]
    base: DocumentModel | None
    origin: dict[str, Any]
    quiet: bool
    finish: bool

    @classmethod
    def open(cls, recipe: Recipe, world: World, quiet: bool, finish: bool) -> _Run:
        folder = Path(recipe.output)
        base = load_model(recipe.stage1) if recipe.stage1 else None
        if base is not None:
            recipe = started_from(recipe, base)
        corpora = corpus_files(recipe)
        if world.first:
            _open_run(folder, recipe, corpora)
        world.barrier()
        if world.first:
            _prepare(recipe, corpora, folder, base.pipeline if base else None)
        world.barrier()
        pipeline = load_pipeline(folder / "data" / "text")
        stores = {name: CorpusStore(folder / "data" / name) for name in corpora if name != "text"}
        if world.first:
            for store in stores.values():
                store.check(len(pipeline.source_vocabulary), len(pipeline.target_vocabulary))
        origin = {key: base.facts[key] for key in ORIGIN if key in base.facts} if base else {}
        return cls(recipe, world, folder, pipeline, stores, base.model if base else None, origin, quiet, finish)

    def train(self) -> Path:
        best, model = self.folder / "best", self.base
        if self.recipe.stage in ("decision", "memory"):
            base = self._base()
            if self.world.first:  # minutes on one core: other processes would only be in the way
                (self._train_decisions if self.recipe.stage == "decision" else self._train_memory)(base, best)
            self.world.barrier()
            return best
        if self.recipe.stage == "sentence" or (self.recipe.stage == "both" and self.base is None):
            model, result = self._train_sentence_model()
            if self.recipe.stage == "sentence":
                self._save(best, model, result)
                return best
        if model is None:
            raise UserError(
                "stage: context needs a stage-1 model", where=self.folder, remedy="set stage1=FOLDER, or stage=both"
            )
        self._train_document_model(model, best)
        return best

    def _train_sentence_model(self) -> tuple[DocumentModel, StageResult]:
        recipe, folder = self.recipe, self.folder / "sentence"
        model = _new_model(recipe, ContextSection(), self.pipeline)
        if self.base is not None:  # trained on
            _take_over(model, self.base)
        elif recipe.start is not None:
            start_from(model.sentence, self.pipeline, load_model(recipe.start))
        stores = [self.stores["train"]]
        task = StageTask(
            "stage 1", folder, recipe.sentence_stage, stores, self.stores["dev"], recipe.seed, documents=False
        )
        return model, self._train_stage(task, model, folder / "model")

    def _train_document_model(self, sentence_model: DocumentModel, result: Path) -> StageResult:
        recipe, section = self.recipe, self.recipe.context_stage
        model = _new_model(recipe, recipe.context, self.pipeline)
        _take_over(model, sentence_model)
        stores = [self.stores["train"], *([self.stores["mix"]] if "mix" in self.stores else [])]
        share = TRANSLATED_SHARE[section.target_context] if model.reads_translations else 0.0
        task = StageTask(
            "stage 2",
            self.folder / "context",
            section,
            stores,
            self.stores["dev"],
            recipe.seed,
            documents=True,
            mix_share=recipe.data.mix_share,
            translated_share=share,
        )
        if share:
            task = self._with_translations(task, sentence_model)
        return self._train_stage(task, model, result)

    def _with_translations(self, task: StageTask, sentence_model: DocumentModel) -> StageTask:
        """The task with the stage-1 model's translations of what its updates read and of dev as target context."""
        cache = self.folder.parent / TRANSLATIONS
        translated = [
            translated_store(sentence_model, store, sorted(documents), cache, self.world)
            for store, documents in zip(task.stores, task.documents_translated(self.world.size), strict=True)
        ]
        dev = translated_store(sentence_model, task.dev, range(len(task.dev)), cache, self.world)
        return replace(task, translated=translated, dev_translated=dev)

    def _base(self) -> LoadedModel:
        """The model of another run, of which a part is to be added or changed and the rest is left as it is."""
        if self.recipe.stage1 is None:
            raise UserError(
                f"stage: {self.recipe.stage} needs a trained model", where=self.folder, remedy="set stage1=FOLDER"
            )
        return load_model(self.recipe.stage1, self.world.device)

    def _train_decisions(self, base: LoadedModel, result: Path) -> None:
        """A context layer that decides between a few words."""
        from weitblick.training.decisions import train_decisions

        model = _new_model(self.recipe, self.recipe.context, self.pipeline).to(self.world.device)
        _take_over(model, base.model)
        model.pointer = base.model.pointer
        model.sentence.requires_grad_(False)
        folder = self.folder / "decision"
        figures = train_decisions(model, self.pipeline, self.recipe, self.stores["train"], folder, self.quiet)
        save_model(result, model, self.pipeline, base.model_section, {**base.facts, **figures})

    def _train_memory(self, base: LoadedModel, result: Path) -> None:
        """A pointer to approved translations."""
        from weitblick.memory.training import train_pointer

        stores = self.stores["train"], self.stores["dev"]
        figures = train_pointer(base.model, base.pipeline, self.recipe, *stores, self.folder / "memory", self.quiet)
        facts = {key: fact for key, fact in base.facts.items() if key != "memory"}  # of a pointer that was there before
        save_model(result, base.model, base.pipeline, base.model_section, {**facts, **figures})

    def _train_stage(self, task: StageTask, model: DocumentModel, result: Path) -> StageResult:
        """Trains a stage, or goes on with it, and leaves its model in a folder of its own."""
        _set_dropout(model, task.section)
        run = StageRun(task, model, self.world, quiet=self.quiet, finish=self.finish)
        progress = run.run()
        found = StageResult(
            round(run.take_best(), 4),
            progress.update,
            progress.best_update,
            round(progress.seconds / 60, 1),
            progress.reason,
        )
        self._save(result, model, found)
        if self.world.first:
            from weitblick.common.logs import draw_curves

            try:
                draw_curves(task.folder / "log.jsonl", task.folder / "curves.png")
            except UserError as missing:
                log.info("no picture of the curves: %s", missing)
        return found

    def _save(self, folder: Path, model: DocumentModel, result: StageResult) -> None:
        if self.world.first:
            save_model(folder, model, self.pipeline, self.recipe.model, {**_facts(self.recipe, result), **self.origin})
        self.world.barrier()


def _set_dropout(model: DocumentModel, section: StageSection) -> None:
    from weitblick.model.layers import Dropout

    if section.dropout is not None:
        for module in model.modules():
            if isinstance(module, Dropout):
                module.rate = section.dropout


def _new_model(recipe: Recipe, context: ContextSection, pipeline: TextPipeline) -> DocumentModel:
    torch.manual_seed(recipe.seed)
    try:
        model = build(recipe.model, context, len(pipeline.source_vocabulary), len(pipeline.target_vocabulary))
    except ValueError as error:
        raise UserError(str(error), remedy="change the recipe") from None
    model.decide_between([pipeline.single_pieces(words, "context.decides") for words in context.decides])
    return model


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


def started_from(recipe: Recipe, base: LoadedModel) -> Recipe:
    """The recipe with the sentence model and the languages of the model that it starts from. What it says itself of the
    model must agree; its dropout may be another."""
    ours, theirs = recipe.model, base.model_section
    for key in sorted(ours.model_fields_set - {"dropout", "generation"}):
        if getattr(ours, key) != getattr(theirs, key):
            raise UserError(
                f"the stage-1 model has another architecture (model.{key} is {getattr(theirs, key)!r} there, "
                f"{getattr(ours, key)!r} here)",
                where=recipe.stage1,
                remedy="leave the recipe's model section out: it comes from stage 1",
            )
    kept = {key: getattr(ours, key) for key in ours.model_fields_set & {"dropout", "generation"}}
    languages = {"source_language": base.pipeline.source_language, "target_language": base.pipeline.target_language}
    return recipe.model_copy(
        update={"model": theirs.model_copy(update=kept), "text": recipe.text.model_copy(update=languages)}
    )


def corpus_files(recipe: Recipe) -> dict[str, list[str]]:
    """The files of each corpus, checked to exist before anything long begins."""
    data, text = recipe.data, recipe.text
    corpora: dict[str, list[str]] = {}
    for name in ("train", "text", "dev", "mix"):
        given = getattr(data, name)
        if given is None and name in ("train", "dev"):
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
    """The text pipeline (learned, or stage 1's) and the stores, unless they are there."""
    data = folder / "data"
    languages = (recipe.text.source_language, recipe.text.target_language)
    recover_folders(data)
    if not (data / "text").exists():
        learned_from = corpora.get("text", corpora["train"])
        documents = read_documents(learned_from, recipe.data.format, languages=languages)
        pipeline = given or learn_pipeline(documents, recipe.text)
        with atomic_folder(make_folder(data) / "text") as temporary:
            pipeline.save(temporary)
    pipeline = load_pipeline(data / "text")
    for name, paths in corpora.items():
        if name != "text" and not (data / name).exists():
            prepare_store(read_documents(paths, recipe.data.format, languages=languages), pipeline, data / name)


class _Manifest(BaseModel):
    """What of a run's manifest.json is compared when it is resumed."""

    format_version: Literal[1]
    data: dict[str, dict[str, str]]
    recipe: dict[str, Any]


def _open_run(folder: Path, recipe: Recipe, corpora: dict[str, list[str]]) -> None:
    """Writes the manifest of a new run; compares that of a resumed one."""
    path = folder / "manifest.json"
    values = recipe.model_dump(mode="json")
    hashes = {name: {p: sha256(p) for p in paths} for name, paths in corpora.items()}
    if path.exists():
        check_regular_file(path, remedy="choose another output")
        old = parse_value(_Manifest, read_json(path), path, remedy="choose another output")
        differences = _differences(old.recipe, values)
        differences += [
            f"{n}: other contents" for n in hashes if list(old.data.get(n, {}).values()) != list(hashes[n].values())
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
        a, b = old.get(key), new.get(key)
        if f"{prefix}{key}" in FREE_TO_CHANGE or (key not in new and not a):  # a key of before that was not used
            continue
        if isinstance(a, dict) and isinstance(b, dict):
            found += _differences(a, b, f"{prefix}{key}.")
        elif a != b:
            found.append(f"{prefix}{key}: {json.dumps(a)} -> {json.dumps(b)}")
    return found


def _facts(recipe: Recipe, result: StageResult) -> dict[str, Any]:
    return {
        "languages": f"{recipe.text.source_language} -> {recipe.text.target_language}",
        "seed": recipe.seed,
        **asdict(result),
    }
