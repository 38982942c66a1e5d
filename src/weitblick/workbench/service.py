"""What the endpoints work with: one model, its scheduler, the store and the projects' memories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from weitblick.memory.store import SAMPLE, Memory
from weitblick.text.carried import Alphabet
from weitblick.translation.address import symbols_of
from weitblick.translation.options import Formality, TranslationOptions
from weitblick.translation.translator import Translator
from weitblick.workbench.engine import Engine
from weitblick.workbench.errors import Refused
from weitblick.workbench.memories import Memories
from weitblick.workbench.metrics import Metrics
from weitblick.workbench.parameters import Languages
from weitblick.workbench.requests import Limits
from weitblick.workbench.scheduler import RequestScheduler
from weitblick.workbench.security import Guard
from weitblick.workbench.store import Store
from weitblick.workbench.texts import Texts
from weitblick.workbench.uploads import Uploads
from weitblick.workbench.workbench import Workbench

SUGGESTIONS = "Suggestions"
"""The project whose memory holds what clients of LibreTranslate's API suggest; both compatible APIs read it."""


class Service:
    def __init__(self, translator: Translator, store: Store, guard: Guard, limits: Limits, name: str) -> None:
        self.name, self.limits, self.store, self.guard = name, limits, store, guard
        translator.borrows = False  # it would take seconds, in the middle of somebody's work
        self.engine = Engine(translator)
        self.scheduler = RequestScheduler(self.engine, limits)
        self.metrics = Metrics(self.scheduler)
        pipeline = translator.pipeline
        self.languages = Languages(pipeline.source_language, pipeline.target_language)
        self.alphabet = Alphabet(pipeline)
        self.memories = Memories(store)
        self.uploads = Uploads(self)
        self.workbench = Workbench(self)
        self.characters = 0  # translated since the start

    @property
    def knows_formality(self) -> bool:
        """Whether the model can be asked for a form of address."""
        return symbols_of(self.engine.translator.pipeline) is not None

    def check_formality(self, formality: Formality) -> None:
        """Refuses a form of address that the model cannot be asked for."""
        if formality != "auto" and not self.knows_formality:
            raise Refused(400, f"formality {formality}: this server's model knows no forms of address; leave it out")

    async def translate_texts(
        self, texts: Texts, options: TranslationOptions, *, linger: float = 0.0
    ) -> list[list[str]]:
        """Of each text its translations, as many as `n_best` asks for, best first."""
        documents = texts.documents(self.suggested())
        self.characters += sum(len(source) for document in documents for source in document.sources)
        options = replace(options, memory=self.suggestions())
        translated = await self.scheduler.translate(documents, options, linger=linger) if documents else []
        again = replace(options, n_best=1)
        versions = []
        for rank in range(options.n_best):
            targets = [
                [
                    found[min(rank, len(found) - 1)].text if found else sentence.target or ""
                    for sentence, found in zip(one.document.sentences, one.translations, strict=True)
                ]
                for one in translated
            ]
            join = partial(
                texts.join, targets, self.engine.translator.align, lambda lost: self.engine.translated(lost, again)
            )
            versions.append(await self.scheduler.call(join) if targets else join())
        return [list(dict.fromkeys(of_text)) for of_text in zip(*versions, strict=True)]

    def check_length(self, texts: Sequence[str]) -> None:
        """Before anything is made of texts."""
        if sum(map(len, texts)) > self.limits.characters:
            raise Refused(413, f"more than {self.limits.characters:,} characters in one request")

    def suggest(self, source: str, target: str) -> None:
        """Somebody's better translation, which is approved thereby."""
        project = self.store.project_id(SUGGESTIONS) or self.store.add_project(SUGGESTIONS).id
        self.store.add_pairs(project, "suggestion", [(source, target)], "suggested")

    def suggestions(self) -> Memory | None:
        """What the model reads of them."""
        project = self.store.project_id(SUGGESTIONS)
        return None if project is None else self.memory_of(project)

    def suggested(self) -> dict[str, str]:
        """Sentences that a client has suggested a translation of."""
        project = self.store.project_id(SUGGESTIONS)
        return {} if project is None else self.memories.approved(project)

    def memory_of(self, project: str) -> Memory | None:
        """What the model reads of a project's memory: nothing if that is empty, or if the model cannot read it."""
        if not self.reads_memory:
            return None
        memory = self.memories.of(project)
        self.engine.translator.approvals.trust(memory)
        return memory if len(memory) else None

    @property
    def reads_memory(self) -> bool:
        """Whether the model has a pointer to approved translations."""
        return self.engine.translator.model.pointer is not None

    @property
    def learns(self) -> bool:
        """Whether what is confirmed can change how other rows are translated."""
        return self.reads_memory or self.engine.translator.model.reads_translations

    async def check_direction(self, pairs: Sequence[tuple[str, str]]) -> None:
        """Refuses pairs whose sources are translations of their targets, if the model can tell."""
        if self.reads_memory:
            sample = [(source, target, "") for source, target in pairs[:: max(1, len(pairs) // SAMPLE)]]
            await self.scheduler.call(lambda: self.engine.translator.approvals.check(sample))

    def close(self) -> None:
        self.workbench.hub.close()
        self.workbench.checks.close()
        self.workbench.searching.close()
        self.engine.close()
        self.uploads.close()
        self.store.close()
