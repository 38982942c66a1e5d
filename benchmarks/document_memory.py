"""What could be fetched from the rest of a document, at best: no training, a memory beside a sentence-level model.

For every target word, the other sentences of its document are searched for the most similar decoder steps, and the
model's probability is mixed with what was said there:

    words    the words that followed (context.values: words)
    states   what the model expected there (context.values: states, the paper)

    python benchmarks/document_memory.py MODEL dev.en dev.de [translations.de]

With translations, these are searched in place of the references; `random` searches another document. `gain` is in nats
per token, for the best share of the memory by decile of similarity, chosen on the same text: a bound, not a result.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from weitblick.checkpoints.folder import LoadedModel, load_model
from weitblick.documents.corpora.formats import read_documents
from weitblick.model.batch import pack_pairs
from weitblick.text.base import EOS

TEMPERATURE = 0.05
SHARES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5)


@dataclass(frozen=True)
class Steps:
    """The decoder's steps over a document: states after source attention [T, d], log-probabilities [T, V], words."""

    states: Tensor
    log_probabilities: Tensor
    words: Tensor
    sentence: Tensor


def steps(loaded: LoadedModel, sources: list[str], targets: list[str]) -> Steps:
    pairs = pack_pairs(loaded.pipeline.encode_source(sources), loaded.pipeline.encode_target(targets))
    model = loaded.model.sentence
    memory = model.encode(pairs.source.tokens, pairs.source.layout)
    decoded = model.decode(pairs.target.tokens, pairs.target.layout, memory, pairs.source.layout)
    weight, bias = model.output()
    scores = F.log_softmax(decoded.final @ weight.T + bias, -1)
    return Steps(F.normalize(decoded.attended, dim=-1), scores, pairs.labels, pairs.target.layout.sentence)


def remembered(current: Steps, memory: Steps, same: bool) -> dict[str, Tensor]:
    """For each step the probability of its word by the memory [T], and how similar the best step found is [T]."""
    similarity = current.states @ memory.states.T
    hidden = (memory.words == EOS).expand_as(similarity)
    if same:
        hidden = hidden | (current.sentence[:, None] == memory.sentence)
    similarity = similarity.masked_fill(hidden, -9.0)
    weights = F.softmax(similarity / TEMPERATURE, -1).masked_fill(hidden, 0.0)
    return {
        "words": (weights * (memory.words == current.words[:, None])).sum(1),
        "states": (weights * memory.log_probabilities.exp()[:, current.words].T).sum(1),
        "similarity": similarity.max(1).values,
    }


def gain(model: Tensor, memory: Tensor, similarity: Tensor) -> float:
    """Nats per token that the memory adds, with the best share for each decile of similarity."""
    decile = torch.bucketize(similarity, torch.quantile(similarity, torch.linspace(0.1, 0.9, 9)))
    total = 0.0
    for number in range(10):
        chosen = decile == number
        p, m = model[chosen], memory[chosen]
        total += max(float((((1 - share) * p + share * m) / p).log().sum()) for share in SHARES)
    return total / len(model)


@torch.no_grad()
def main(folder: str, source: str, target: str, translations: str | None = None) -> None:
    torch.set_num_threads(1)
    loaded = load_model(folder)
    documents = list(read_documents([source, target]))
    current = [steps(loaded, list(d.sources), [t or "" for t in d.targets]) for d in documents]
    memories = current
    if translations:
        found = read_documents([source, translations])
        memories = [steps(loaded, list(d.sources), [t or "" for t in d.targets]) for d in found]
    model = torch.cat([s.log_probabilities.gather(1, s.words[:, None])[:, 0] for s in current]).exp()
    print(f"{len(documents)} documents, {len(model)} tokens, loss {-float(model.log().mean()):.4f}")
    for name, turn in (("own", 0), ("random", 1)):
        others = memories[turn:] + memories[:turn]
        read = [remembered(c, m, same=not turn) for c, m in zip(current, others, strict=True)]
        columns = {key: torch.cat([r[key] for r in read]) for key in read[0]}
        for values in ("words", "states"):
            print(f"{name:7} {values:7} gain {gain(model, columns[values], columns['similarity']):+.4f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
