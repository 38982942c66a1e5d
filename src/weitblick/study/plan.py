"""From a study to its steps: what is trained, translated and judged, in which order, and what it depends on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from weitblick.config.recipe import ContextSection, ContextStageSection, DataSection, Recipe
from weitblick.errors import UserError
from weitblick.files import sha256
from weitblick.metrics.metrics import check_metric
from weitblick.study import work
from weitblick.study.cost import CorpusSize
from weitblick.study.steps import Step, fingerprint_of
from weitblick.study.study import CorpusSection, Row, Study, data_of, suites_of

NO_INFLUENCE = {"output", "threads", "device", "base", "stage1"}  # of a recipe on the model, or known otherwise


@dataclass(frozen=True)
class Trained:
    """A model of a row for one seed: the step that trains it, and its folder."""

    step: Step
    folder: Path


@dataclass
class Plan:
    """All steps in order, and those whose results the tables show, by corpus (and suite)."""

    folder: Path
    steps: list[Step] = field(default_factory=list)
    scores: dict[str, Step] = field(default_factory=dict)
    contrasts: dict[tuple[str, str], dict[str, list[Step]]] = field(default_factory=dict)
    complexity: dict[str, Step] = field(default_factory=dict)
    missing_files: list[str] = field(default_factory=list)

    def add(self, step: Step) -> Step:
        """The step, or the one of the same name and inputs that is planned already."""
        for known in self.steps:
            if (known.kind, known.name) == (step.kind, step.name):
                return known
        self.steps.append(step)
        return step

    def check_files(self) -> None:
        if self.missing_files:
            raise UserError("no such file", where=self.missing_files[0], remedy="check the corpora of the study")


def plan_study(study: Study, rows: Sequence[Row], folder: Path, *, quiet: bool = False) -> Plan:
    plan = Plan(folder)
    for name, corpus in study.corpora.items():
        _CorpusPlan(plan, study, rows, name, corpus, quiet).add_steps()
    return plan


class _CorpusPlan:
    """The steps of one corpus."""

    def __init__(
        self, plan: Plan, study: Study, rows: Sequence[Row], name: str, corpus: CorpusSection, quiet: bool
    ) -> None:
        self.plan, self.study, self.name, self.corpus, self.quiet = plan, study, name, corpus, quiet
        baseline = next(row for row in rows if row.name == study.baseline)
        self.rows = [baseline, *(row for row in rows if row is not baseline)]
        text = baseline.recipe.text
        self.target_language = text.target_language
        for metric in study.metrics:
            check_metric(metric, self.target_language)
        self.generated = plan.folder / "corpora" / name
        self.data = data_of(corpus, self.generated, (text.source_language, text.target_language))
        self.suites = suites_of(corpus, self.generated)
        self.size = CorpusSize(self.data, corpus.discourse)

    def add_steps(self) -> None:
        self.source = self._data_step()
        runs = {row.id: [self._model(row, seed) for seed in self.study.seeds] for row in self.rows}
        translations = {
            row.id: [self._translation(row, seed, model) for seed, model in zip(self.study.seeds, models, strict=True)]
            for row, models in zip(self.rows, runs.values(), strict=True)
        }
        self.plan.scores[self.name] = self._scores(translations)
        for suite, path in self.suites.items():
            self.plan.contrasts[self.name, suite] = {
                row.id: [
                    self._contrast(row, seed, model, suite, path)
                    for seed, model in zip(self.study.seeds, runs[row.id], strict=True)
                ]
                for row in self.rows
            }
        self.plan.complexity[self.name] = self._complexity({row.id: runs[row.id][0] for row in self.rows})

    def _data_step(self) -> Step:
        discourse = self.corpus.discourse
        if discourse is not None:
            inputs = {"discourse": discourse.model_dump(mode="json")}
            outputs = (self.generated / "discourse.json", self.generated / "contrast.jsonl")
            make = partial(work.generate_corpus, discourse, self.generated)
            return self.plan.add(Step("corpus", self.name, inputs, make, outputs=outputs))
        files = [path for split in ("train", "dev", "test") for path in getattr(self.data, split)]
        missing = [path for path in (*files, *self.suites.values()) if not Path(path).is_file()]
        self.plan.missing_files += missing
        hashes = {path: sha256(path) for path in files if path not in missing}
        return self.plan.add(Step("corpus", self.name, {"files": hashes}, lambda: hashes))

    # Models

    def _model(self, row: Row, seed: int) -> Trained:
        recipe = row.recipe.model_copy(update={"seed": seed, "data": self._data(row.recipe.data)})
        recipe = recipe.model_copy(update={"device": self.study.device, "threads": self.study.threads})
        if row.sentence_level:
            return self._stage1(recipe)
        if recipe.stage1 is not None:
            given = {"stage1": recipe.stage1, "weights": _fingerprint(Path(recipe.stage1) / "model.safetensors")}
            return self._train("stage 2", f"{self.name}.{row.id}.seed{seed}", recipe, [self.source], given)
        base = self._stage1(recipe)
        recipe = recipe.model_copy(update={"stage1": str(base.folder), "stage": "context"})
        return self._train("stage 2", f"{self.name}.{row.id}.seed{seed}", recipe, [self.source, base.step])

    def _data(self, own: DataSection) -> DataSection:
        """The corpus of the study; what a recipe mixes into stage 2 is part of its row."""
        return self.data.model_copy(update={"mix": own.mix, "mix_share": own.mix_share})

    def _stage1(self, recipe: Recipe) -> Trained:
        """Stage 1 knows nothing of context: all rows with the same data, text, model and seed share it."""
        recipe = recipe.model_copy(
            update={
                "stage": "sentence",
                "stage1": None,
                "context": ContextSection(),
                "context_stage": ContextStageSection(),
                "data": self.data,
            }
        )
        name = f"{self.name}.{recipe.model.architecture}.seed{recipe.seed}"
        short = fingerprint_of("stage 1", _inputs(recipe), [self.source])[:8]
        return self._train("stage 1", f"{name}.{short}", recipe, [self.source])

    def _train(
        self, kind: str, name: str, recipe: Recipe, needs: Sequence[Step], given: dict[str, Any] | None = None
    ) -> Trained:
        inputs = {**_inputs(recipe), **(given or {})}
        # A changed recipe is another run, in another folder: the old one stays whole.
        short = fingerprint_of(kind, inputs, needs)[:8]
        folder = self.plan.folder / "runs" / (name if name.endswith(short) else f"{name}.{short}")
        recipe = recipe.model_copy(update={"output": str(folder)})
        step = Step(
            kind,
            name,
            inputs,
            partial(work.train_model, recipe, self.quiet),
            needs,
            outputs=(folder / "best",),
            facts={"recipe": recipe, "corpus": self.size},
        )
        return Trained(self.plan.add(step), folder / "best")

    # Judgements

    def _translation(self, row: Row, seed: int, model: Trained) -> tuple[Step, Path]:
        output = self.plan.folder / "translations" / self.name / f"{row.id}.seed{seed}.txt"
        step = Step(
            "translate",
            f"{self.name}.{row.id}.seed{seed}",
            {"beam": self.study.beam},
            partial(work.translate_test, model.folder, self.data, self.study.beam, self.study.device, output),
            [model.step, self.source],
            outputs=(output,),
            facts={"recipe": row.recipe, "corpus": self.size},
        )
        return self.plan.add(step), output

    def _scores(self, translations: dict[str, list[tuple[Step, Path]]]) -> Step:
        systems = {row: [path for _, path in runs] for row, runs in translations.items()}
        inputs = {"metrics": self.study.metrics, "trials": self.study.trials, "systems": list(systems)}
        do = partial(
            work.score_systems, systems, self.data, self.study.metrics, self.target_language, self.study.trials
        )
        needs = [step for runs in translations.values() for step, _ in runs]
        return self.plan.add(Step("score", self.name, inputs, do, needs))

    def _contrast(self, row: Row, seed: int, model: Trained, suite: str, path: str) -> Step:
        inputs: dict[str, Any] = {"suite": suite, "documents": self.corpus.documents}
        if suite in self.corpus.suites:
            inputs["file"] = _fingerprint(Path(path))
        return self.plan.add(
            Step(
                "contrast",
                f"{self.name}.{suite}.{row.id}.seed{seed}",
                inputs,
                partial(work.contrast_suite, model.folder, path, self.corpus.documents, self.study.device),
                [model.step, self.source],
                facts={"recipe": row.recipe, "corpus": self.size, "suite": path},
            )
        )

    def _complexity(self, models: dict[str, Trained]) -> Step:
        do = partial(
            work.measure_models, {name: model.folder for name, model in models.items()}, self.study.speed_rounds
        )
        inputs = {"rounds": self.study.speed_rounds, "models": list(models)}
        return self.plan.add(Step("complexity", self.name, inputs, do, [model.step for model in models.values()]))


def _inputs(recipe: Recipe) -> dict[str, Any]:
    """What of a recipe decides the model. Files count by their contents, which the corpus step knows."""
    values = recipe.model_dump(mode="json", exclude=NO_INFLUENCE)
    mix = recipe.data.mix
    values["data"] = {"mix_share": recipe.data.mix_share, "mix": [_fingerprint(Path(path)) for path in mix or ()]}
    return {"recipe": values}


def _fingerprint(path: Path) -> str:
    return sha256(path) if path.is_file() else "missing"
