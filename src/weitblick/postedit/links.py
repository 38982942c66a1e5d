"""Which source word each reference word translates: the word that the model's attention looks at most."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from weitblick.batches.batch import pack_source, pack_target
from weitblick.postedit.measures import ContentWords, Links
from weitblick.translation.translator import Translator

PART_TOKENS = 2000


@torch.no_grad()
def link_words(translator: Translator, documents: Sequence[Sequence[tuple[str, str]]]) -> list[list[Links]]:
    """Links between the content words of all (source, target) sentences of all documents."""
    pipeline = translator.pipeline
    content = ContentWords(pipeline.source_language), ContentWords(pipeline.target_language)
    flat = [pair for document in documents for pair in document]
    longest = pipeline.longest_sentence
    sources = [ids[:longest] for ids in pipeline.encode_source([source for source, _ in flat])]
    targets = [ids[:longest] for ids in pipeline.encode_target([target for _, target in flat])]
    links: list[Links] = [[] for _ in flat]
    usable = [index for index in range(len(flat)) if sources[index] and targets[index]]
    for part in _parts(usable, sources, targets):
        weights = _weights(translator, [sources[i] for i in part], [targets[i] for i in part])
        for row, index in enumerate(part):
            own = weights[row, : len(targets[index]), : len(sources[index])]
            links[index] = _links(translator, own, sources[index], targets[index], content)
    rows = iter(links)
    return [[next(rows) for _ in document] for document in documents]


def _parts(order: list[int], sources: Sequence[list[int]], targets: Sequence[list[int]]) -> Iterator[list[int]]:
    order = sorted(order, key=lambda index: len(sources[index]) + len(targets[index]))
    while order:
        count = max(1, PART_TOKENS // (len(sources[order[0]]) + len(targets[order[0]])))
        yield order[:count]
        order = order[count:]


def _weights(translator: Translator, sources: list[list[int]], targets: list[list[int]]) -> torch.Tensor:
    sentence = translator.model.sentence
    device = next(sentence.parameters()).device
    source, target = pack_source(sources).to(device), pack_target(targets)[0].to(device)
    memory = sentence.encode(source.tokens, source.layout)
    return sentence.source_weights(target.tokens, target.layout, memory, source.layout).cpu()


def _links(
    translator: Translator,
    weights: torch.Tensor,
    source: list[int],
    target: list[int],
    content: tuple[ContentWords, ContentWords],
) -> Links:
    pipeline = translator.pipeline
    source_words, target_words = pipeline.words(source, "source"), pipeline.words(target, "target")
    found = []
    for start, end, text in target_words:
        shares = [float(weights[start:end, first:last].sum()) for first, last, _ in source_words]
        best = max(range(len(shares)), key=shares.__getitem__)
        ours, theirs = source_words[best][2].strip(".,;:!?()\"'»«„“”"), text.strip(".,;:!?()\"'»«„“”")
        if content[0].counts(ours) and content[1].counts(theirs):
            found.append((ours, theirs))
    return found
