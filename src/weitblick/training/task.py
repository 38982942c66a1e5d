"""What a stage trains, on what, and where it leaves its files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from weitblick.batches.batching import DocumentPlan, SentencePlan, document_plans, sentence_plans
from weitblick.batches.store import CorpusStore
from weitblick.config.recipe import ContextStageSection, StageSection
from weitblick.model.document_model import DocumentModel

Plan = SentencePlan | DocumentPlan
DEV_TOKENS = 4000


@dataclass(frozen=True)
class StageTask:
    """`documents`: batches are of whole documents (stage 2), not of sentences (stage 1). `translated`: a model's
    translations of the stores, which `translated_share` of the documents read as context. `bleu`: of dev, if wanted."""

    name: str
    folder: Path
    section: StageSection
    stores: Sequence[CorpusStore]
    dev: CorpusStore
    seed: int
    documents: bool
    mix_share: float = 0.0
    translated: Sequence[CorpusStore] | None = None
    translated_share: float = 0.0
    bleu: Callable[[DocumentModel], float] | None = None

    def plans(self, epoch: int) -> Sequence[Plan]:
        if not self.documents:
            return sentence_plans(self.stores[0], self.section.batch_tokens, self.seed, epoch)
        most = self.section.batch_documents if isinstance(self.section, ContextStageSection) else None
        return document_plans(
            self.stores,
            self.section.batch_tokens,
            self.seed,
            epoch,
            batch_documents=most,
            mix_share=self.mix_share,
            translated_share=self.translated_share,
        )

    def dev_plans(self) -> Sequence[Plan]:
        if not self.documents:
            return sentence_plans(self.dev, DEV_TOKENS, 0, 0)
        return document_plans([self.dev], DEV_TOKENS, 0, 0)
