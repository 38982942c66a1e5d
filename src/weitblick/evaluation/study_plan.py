"""From a study to its steps: what is trained, translated and judged, in which order, and what it depends on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from weitblick.common.errors import UserError
from weitblick.common.files import sha256
from weitblick.common.recipe import ContextSection, ContextStageSection, DataSection, Recipe, StageSection
from weitblick.evaluation import study_work as work
from weitblick.evaluation.metrics import check_metric
from weitblick.evaluation.study import SPLITS, CorpusSection, Row, Study, data_of, suites_of
from weitblick.evaluation.study_cost import CorpusSize
from weitblick.evaluation.study_steps import Ledger, Step, fingerprint_of

GIVEN_SEED = 1  # of a model that is given, whichever seeds a study has
NO_INFLUENCE = {"output", "threads", "device", "base", "stage1"}  # of a recipe on the model, or known otherwise


@dataclass(frozen=True)
class Trained:
    """A model of a row: the step that trains it, its folder, and its seed; one that is given is the same for all."""

    step: Step
    folder: Path
    seed: int


@dataclass
class Plan:
    """All steps in order, those of each row by its id, and those that the tables show, by corpus (and suite)."""

    folder: Path
    steps: list[Step] = field(default_factory=list)
    of_row: dict[str, list[Step]] = field(default_factory=dict)
    scores: dict[str, Step] = field(default_factory=dict)
    contrasts: dict[tuple[str, str], dict[str, list[Step]]] = field(default_factory=dict)
    uses: dict[str, dict[str, list[Step]]] = field(default_factory=dict)
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


def finished_rows(plan: Plan, study: Study, rows: Sequence[Row], ledger: Ledger) -> list[str]:
    """The ids of rows that are trained and judged with all seeds; the baseline must be one of them."""
    found = [row for row, steps in plan.of_row.items() if all(map(ledger.done, steps))]
    if not any(row.id in found for row in rows if row.name == study.baseline):
        remedy = "wait, or ask for less: --seeds 1 judged_on=[dev]"
        raise UserError("no row is finished", where=plan.folder, remedy=remedy)
    return found


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
        """A row is trained and judged on dev and suites before the next one; tests follow when all of a round are."""
        self.source = self._data_step()
        runs: dict[str, list[Trained]] = {row.id: [] for row in self.rows}
        translations: dict[str, dict[str, list[tuple[Step, Path]]]] = {
            split: {row.id: [] for row in self.rows} for split in self.study.judged_on
        }
        contrasts: dict[str, dict[str, list[Step]]] = {}
        uses: dict[str, list[Step]] = {}
        for seed, rows in self._rounds():
            for row in rows:
                model = self._model(row, seed)
                runs[row.id].append(model)
                if "dev" in translations:
                    translations["dev"][row.id].append(self._translation(row, model, "dev"))
                for suite, path in self.suites.items():
                    contrasts.setdefault(suite, {}).setdefault(row.id, []).append(
                        self._contrast(row, model, suite, path)
                    )
                if self.study.context_use:
                    uses.setdefault(row.id, []).append(self._context_use(row, seed, model))
            if "test" in translations:
                for row in rows:
                    translations["test"][row.id].append(self._translation(row, runs[row.id][-1], "test"))
        for row in self.rows:
            judged = [step for found in translations.values() for step, _ in found[row.id]]
            judged += [step for found in contrasts.values() for step in found[row.id]]
            trained = [model.step for model in runs[row.id]]
            self.plan.of_row.setdefault(row.id, []).extend([*trained, *judged, *uses.get(row.id, [])])
        for split, found in translations.items():
            self.plan.scores[self.name if split == "test" else f"{self.name} {split}"] = self._scores(found, split)
        for suite in self.suites:
            self.plan.contrasts[self.name, suite] = contrasts[suite]
        if self.study.context_use:
            self.plan.uses[self.name] = uses
        self.plan.complexity[self.name] = self._complexity({row.id: runs[row.id][0] for row in self.rows})

    def _rounds(self) -> list[tuple[int, list[Row]]]:
        """Seeds and the rows that are done with them, in order: the first seed of all rows before any other."""
        first_seed, *others = self.study.seeds
        urgent = [row for row in self.rows if row.name in self.study.first]
        later = [row for row in self.rows if row not in urgent]
        rounds = [(first_seed, self.rows), *((seed, urgent) for seed in others), *((seed, later) for seed in others)]
        return [(seed, rows) for seed, rows in rounds if rows]

    def _data_step(self) -> Step:
        discourse = self.corpus.discourse
        if discourse is not None:
            inputs = {"discourse": discourse.model_dump(mode="json")}
            outputs = (self.generated / "discourse.json", self.generated / "contrast.jsonl")
            make = partial(work.generate_corpus, discourse, self.generated)
            return self.plan.add(Step("corpus", self.name, inputs, make, outputs=outputs))
        files = [path for split in SPLITS for path in getattr(self.data, split)] + (self.corpus.stage1_train or [])
        missing = [path for path in (*files, *self.suites.values()) if not Path(path).is_file()]
        self.plan.missing_files += missing
        hashes = {path: sha256(path) for path in files if path not in missing}
        return self.plan.add(Step("corpus", self.name, {"files": hashes}, partial(dict, hashes)))

    # Models

    def _model(self, row: Row, seed: int) -> Trained:
        recipe = row.recipe.model_copy(update={"seed": seed, "data": self._data(row.recipe.data)})
        recipe = recipe.model_copy(update={"device": self.study.device, "threads": self.study.threads})
        if row.sentence_level and not row.continued:
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

    def _stage1_data(self) -> DataSection:
        return self.data.model_copy(update={"train": self.corpus.stage1_train or self.data.train})

    def _stage1(self, recipe: Recipe) -> Trained:
        """Stage 1 knows nothing of context: all rows with the same data, text, model and seed share it. Where the study
        gives a trained model, its sentence model is taken as it is, for every seed."""
        taken = self.study.stage1.get(recipe.model.architecture)
        recipe = recipe.model_copy(
            update={
                "stage": "sentence",
                "stage1": taken,
                "context": ContextSection(),
                "context_stage": ContextStageSection(),
                "data": self.data if taken else self._stage1_data(),
            }
        )
        name = f"{self.name}.{recipe.model.architecture}"
        if taken is None:
            short = fingerprint_of("stage 1", _inputs(recipe), [self.source])[:8]
            return self._train("stage 1", f"{name}.seed{recipe.seed}.{short}", recipe, [self.source])
        weights = Path(taken) / "model.safetensors"
        if not weights.is_file():
            self.plan.missing_files.append(str(weights))
        none = StageSection(updates=0, result="last")
        recipe = recipe.model_copy(update={"sentence_stage": none, "seed": GIVEN_SEED})
        given = {"stage1": taken, "weights": _fingerprint(weights)}
        return self._train("stage 1", f"{name}.given", recipe, [self.source], given)

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
        return Trained(self.plan.add(step), folder / "best", recipe.seed)

    # Judgements

    def _translation(self, row: Row, model: Trained, split: str) -> tuple[Step, Path]:
        folder = self.plan.folder / "translations" / (self.name if split == "test" else f"{self.name}-{split}")
        output = folder / f"{row.id}.seed{model.seed}.txt"
        files = getattr(self.data, split)
        step = Step(
            "translate" if split == "test" else f"translate {split}",
            f"{self.name}.{row.id}.seed{model.seed}",
            {"beam": self.study.beam},
            partial(
                work.translate_corpus,
                *(model.folder, files, self.data.format, self.study.beam, self.study.device, output),
            ),
            [model.step, self.source],
            outputs=(output,),
            facts={"recipe": row.recipe, "corpus": self.size, "split": split},
        )
        return self.plan.add(step), output

    def _scores(self, translations: dict[str, list[tuple[Step, Path]]], split: str) -> Step:
        systems = {row: [path for _, path in runs] for row, runs in translations.items()}
        metrics, trials = self.study.metrics, self.study.trials
        others = {row.id: self._further_baselines(row) for row in self.rows}
        inputs = {"metrics": metrics, "trials": trials, "systems": list(systems), "by": self.study.test_by}
        if self.study.baselines:
            inputs["others"] = others
        do = partial(
            work.score_systems,
            *(systems, getattr(self.data, split), self.data.format, metrics, self.target_language, trials),
            *(self.study.test_by, others),
        )
        needs = [step for runs in translations.values() for step, _ in runs]
        kind = "score" if split == "test" else f"score {split}"
        name = f"{self.name}.{fingerprint_of(kind, inputs, needs)[:8]}"  # other rows or seeds leave this one in place
        return self.plan.add(Step(kind, name, inputs, do, needs))

    def _further_baselines(self, row: Row) -> dict[str, str]:
        """For each further baseline the row that this one is compared with: of the same integration, if it has one."""
        if row.sentence_level and not row.continued:
            return {}
        found = {}
        for name in self.study.baselines:
            rows = [other for other in self.rows if other.name == name and row.name != name]
            same = [other for other in rows if other.integration in (None, row.integration)]
            if same:
                found[name] = same[0].id
        return found

    def _context_use(self, row: Row, seed: int, model: Trained) -> Step:
        """What context is worth on dev. A model that reads target sentences reads those of the baseline's translation,
        where that is a sentence-level model: references would flatter it."""
        needs, contexts = [model.step, self.source], None
        baseline = self.rows[0]
        if row.integration == "decoder" and baseline.sentence_level:
            step, contexts = self._translation(baseline, self._model(baseline, seed), "dev")
            needs.append(step)
        return self.plan.add(
            Step(
                "context use",
                f"{self.name}.{row.id}.seed{model.seed}",
                {},
                partial(
                    work.measure_use,
                    *(model.folder, self.data.dev or [], self.data.format, contexts, self.study.device),
                ),
                needs,
                facts={"recipe": row.recipe, "corpus": self.size, "split": "dev"},
            )
        )

    def _contrast(self, row: Row, model: Trained, suite: str, path: str) -> Step:
        inputs: dict[str, Any] = {"suite": suite, "documents": self.corpus.documents}
        items = self.corpus.suite_items.get(suite)
        if items is not None:
            inputs["items"] = items
        if suite in self.corpus.suites:
            inputs["file"] = _fingerprint(Path(path))
        return self.plan.add(
            Step(
                "contrast",
                f"{self.name}.{suite}.{row.id}.seed{model.seed}",
                inputs,
                partial(work.contrast_suite, model.folder, path, self.corpus.documents, items, self.study.device),
                [model.step, self.source],
                facts={"recipe": row.recipe, "corpus": self.size, "suite": path, "items": items},
            )
        )

    def _complexity(self, models: dict[str, Trained]) -> Step:
        folders = {name: model.folder for name, model in models.items()}
        do = partial(work.measure_models, folders, self.study.speed_rounds, self.size, self.study.device)
        inputs = {"rounds": self.study.speed_rounds, "models": list(models)}
        needs = [model.step for model in models.values()]
        name = f"{self.name}.{fingerprint_of('complexity', inputs, needs)[:8]}"
        return self.plan.add(Step("complexity", name, inputs, do, needs))


def _inputs(recipe: Recipe) -> dict[str, Any]:
    """What of a recipe decides the model. Files count by their contents, which the corpus step knows."""
    values = recipe.model_dump(mode="json", exclude=NO_INFLUENCE)
    mix = recipe.data.mix
    values["data"] = {"mix_share": recipe.data.mix_share, "mix": [_fingerprint(Path(path)) for path in mix or ()]}
    return {"recipe": values}


def _fingerprint(path: Path) -> str:
    return sha256(path) if path.is_file() else "missing"
