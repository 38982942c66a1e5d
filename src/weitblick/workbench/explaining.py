"""Why the words of one row are what they are: the explanation of the report, for a row of the workbench."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Any

from weitblick.documents.document import Document, Sentence
from weitblick.explanation.explain import explain_translations
from weitblick.explanation.influence import differences
from weitblick.explanation.masked import named, with_names
from weitblick.explanation.schema import ApprovedWord, DocumentTranslations, Explanation
from weitblick.explanation.storage import to_json
from weitblick.memory.store import Memory
from weitblick.text.base import TextPipeline
from weitblick.text.units import Unit
from weitblick.translation.options import Formality, TranslationOptions
from weitblick.translation.translator import Translator
from weitblick.workbench.engine import Engine
from weitblick.workbench.errors import Refused
from weitblick.workbench.placeholders import MaskedMemory, RowMask
from weitblick.workbench.schema import Segment

WITHOUT = TranslationOptions(context=False)


def explain_row(
    engine: Engine,
    name: str,
    rows: Sequence[Segment],
    position: int,
    mask: RowMask,
    memory: MaskedMemory | None,
    formality: Formality = "auto",
) -> Generator[None, None, Any]:
    """Steps to the explanation of one row as it stands now: what it reads, and how it would be translated alone, in the
    same form of address. In words that people read: what the model calls K1 is what that stands for."""
    if not rows[position].target.strip():
        raise Refused(409, "this row is not translated yet")
    masked = [mask.row(row) for row in rows]
    alone = ""
    options = replace(WITHOUT, formality=formality)
    for finished in engine.document_steps(Document("1", (Sentence(masked[position].source),)), options):
        alone = next((found[0].text for found in finished.values() if found), alone)
        yield
    found = _explained(engine.translator, name, masked, position, alone, memory)
    sentences = [with_names(sentence, mask.names(n)) for n, sentence in enumerate(found.sentences)]
    own = sentences[position]
    if own.fetched:
        sentences[position] = own = replace(own, fetched=tuple(_shown(f, rows, mask, memory) for f in own.fetched))
    return {
        **to_json(replace(found, sentences=tuple(sentences))),
        "differences": [differences(own.target_without, own.target)],
    }


def _explained(
    translator: Translator, name: str, rows: Sequence[Segment], position: int, alone: str, memory: Memory | None
) -> Explanation:
    """Of rows as the model reads them."""
    pipeline = translator.pipeline
    sources = _encoded(pipeline, [one.source for one in rows], "source")
    targets = _encoded(pipeline, [one.target for one in rows], "target")
    (without,) = _encoded(pipeline, [alone], "target")
    given = DocumentTranslations(
        [one.source for one in rows],
        sources,
        targets,
        [without if one.position == position else target for one, target in zip(rows, targets, strict=True)],
        targets,
    )
    units = [
        Unit(0, n, n, one.source, sources[n], targets[n], one.is_approved and n != position, one.target)
        for n, one in enumerate(rows)
        if n == position or one.is_approved
    ]
    pointer = translator.pointer_for(units, TranslationOptions(memory=memory))
    return explain_translations(
        translator.model, pipeline, given, title=name, model_name=name, only=[position], pointer=pointer
    )


def _shown(fetched: ApprovedWord, rows: Sequence[Segment], mask: RowMask, memory: MaskedMemory | None) -> ApprovedWord:
    """Where a word was fetched, as people read it."""
    if fetched.sentence is not None:
        row, names = rows[fetched.sentence], mask.names(fetched.sentence)
        return replace(fetched, source=row.source, target=row.target, text=named(fetched.text, names))
    if memory is None or fetched.pair is None or fetched.pair not in memory.of:
        return fetched
    pair = memory.of.pair(fetched.pair)
    names = memory.masked(pair).names
    return replace(fetched, source=pair.source, target=pair.target, text=named(fetched.text, names))


def _encoded(pipeline: TextPipeline, texts: Sequence[str], side: Any) -> list[list[int]]:
    """Ids, at most as many as a sentence may have."""
    return [ids[: pipeline.longest_sentence] for ids in pipeline.encode(texts, side)]
