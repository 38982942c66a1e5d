"""Why the words of one row are what they are: the explanation of the report, for a row of the workbench."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

from weitblick.documents.document import Document, Sentence
from weitblick.explanation.explain import DocumentTranslations, explain_translations
from weitblick.explanation.influence import differences
from weitblick.explanation.storage import to_json
from weitblick.memory import Memory
from weitblick.server.engine import Engine
from weitblick.server.errors import Refused
from weitblick.server.records import Segment
from weitblick.text.base import TextPipeline
from weitblick.translation.options import TranslationOptions
from weitblick.translation.units import Unit

WITHOUT = TranslationOptions(context=False)


def explain_row(
    engine: Engine, name: str, rows: Sequence[Segment], position: int, memory: Memory | None
) -> Generator[None, None, Any]:
    """Steps to the explanation of one row as it stands now: what it reads, and how it would be translated alone."""
    row, translator = rows[position], engine.translator
    if not row.target.strip():
        raise Refused(409, "this row is not translated yet")
    alone = ""
    for finished in engine.document_steps(Document("1", (Sentence(row.source),)), WITHOUT):
        alone = next((found[0].text for found in finished.values() if found), alone)
        yield
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
        Unit(0, n, n, one.source, sources[n], targets[n], one.state == "confirmed" and n != position, one.target)
        for n, one in enumerate(rows)
        if n == position or one.state == "confirmed"
    ]
    pointer = translator.pointer_for(units, TranslationOptions(memory=memory))
    found = explain_translations(
        translator.model, pipeline, given, title=name, model_name=name, only=[position], pointer=pointer
    )
    sentence = found.sentences[position]
    return {
        **to_json(found),
        "differences": [differences(sentence.target_without, sentence.target)],
    }


def _encoded(pipeline: TextPipeline, texts: Sequence[str], side: Any) -> list[list[int]]:
    """Ids, at most as many as a sentence may have."""
    return [ids[: pipeline.longest_sentence] for ids in pipeline.encode(texts, side)]
