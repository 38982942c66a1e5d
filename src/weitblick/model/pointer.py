"""The pointer to approved translations: what a human has said for the same thing before, mixed into the output.

    p(word) = (1 - share) p_model(word) + share * sum of the weights of the places where the word was said

A *place* is a word of an approved translation. Its key is the decoder's state after attention to the source at the
step that predicts it, so that a step asks: where was something like this said, of something like this? Selection is
hierarchical: sentences first, each by its best-matching word, sparsely; then words in those. A place inside a word
counts for more where the piece before it is the one just written, and for less where it is not: a word once begun is
carried on. Of places that match alike the nearest sentence's counts most.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from weitblick.config.recipe import MemorySection
from weitblick.context.sparsemax import sparsemax
from weitblick.model.words import Pointed
from weitblick.sentence.sentence_model import DecoderStates

MOST_PLACES = 16
"""Places that share in the mixture: those with the greatest weights."""
FEATURES = 14
REFUSED = 9
"""Which of the features says how far the model wants again what a human did not want."""
SHARPNESS = 20.0
"""Of similarities between -1 and 1."""
CARRIED_ON, BROKEN_OFF, FOLLOWED = 1.0, -1.0, 0.3
"""Added to the score of a place: to continue a word with its own next piece, with that of another; to go on to the word
that followed before. Trained by gradient, these, sharpness and nearness stay where they are and gain nothing."""
NEARNESS = 0.313
"""Weighs the logarithm of the distance: of equal places that of the sentence before counts for twice that of ten
sentences before."""
SELECTION = 0.4
"""How sharply sentences are chosen: of two, that with a best score lower by 1 / this is left out."""
FAR_BELOW = -1e4
START_SHARE = -2.0

LookUp = Callable[[Tensor], tuple[Tensor, Tensor]]
"""ids [T, n] -> the model's log-probabilities of these words [T, n] and of its best word [T]"""


@dataclass(frozen=True)
class Places:
    """What S sentences may point at: C approved translations each, of at most W words.

    keys       [S, C, W, k] of length one         ids  [S, C, W] the word at each place
    previous   [S, C, W] the piece before it      inside  [S, C, W] whether it continues a word
    real       [S, C, W] false at padding         distance  [S, C] of the approval: 0 is the nearest
    overlap    [S, C] how much of the sentence's source the approved source has, 0 to 1
    expected   [S, C, W] log-probability that the model itself gave the word there: what a human has corrected is low
    favourite  [S, C, W] the word that the model itself would have said there
    """

    keys: Tensor
    ids: Tensor
    previous: Tensor
    inside: Tensor
    real: Tensor
    distance: Tensor
    overlap: Tensor
    expected: Tensor
    favourite: Tensor

    def rows(self, index: Tensor) -> Places:
        return Places(*(getattr(self, field.name).index_select(0, index) for field in fields(self)))


@dataclass(frozen=True)
class Found:
    """What T steps find: the n places with the greatest weights, ids and weights [T, n] and which these are, index
    [T, n]; features [T, FEATURES] by which the share is decided, and anything [T]: false where there is no place."""

    ids: Tensor
    weights: Tensor
    index: Tensor
    features: Tensor
    anything: Tensor


class MemoryPointer(nn.Module):
    def __init__(self, section: MemorySection, dimension: int) -> None:
        super().__init__()
        self.section = section
        self.key = nn.Linear(dimension, section.dimension)
        nn.init.orthogonal_(self.key.weight)
        nn.init.zeros_(self.key.bias)
        self.share = share_network(section.hidden)

    @torch.no_grad()
    def start_from(self, attended: Tensor) -> None:
        """Keys are the principal components of decoder states [T, d], less what these all share: of as many numbers
        they tell the most about which states are alike."""
        mean = attended.mean(0)
        apart = attended - mean
        components = torch.linalg.eigh(apart.t() @ apart).eigenvectors.flip(1)  # [d, d], the strongest first
        kept = components[:, : self.section.dimension].t()
        self.key.weight[: len(kept)] = kept
        self.key.bias.copy_(-(self.key.weight @ mean))

    def keys(self, states: DecoderStates) -> Tensor:
        """[..., d] -> [..., k], of the words that these states predict; a step asks with the key of its own."""
        return F.normalize(self.key(states.attended), dim=-1)

    def forward(self, queries: Tensor, previous: Tensor, places: Places, look_up: LookUp) -> Pointed:
        """What S sentences find at Q steps each: queries [S, Q, k], previous [S, Q] the piece that each step has read.
        Rows of the result are steps, sentence by sentence."""
        found = self.find(queries, previous, places, look_up)
        share = self.share(found.features).sigmoid()[:, 0]
        return Pointed(share * found.anything, found.ids, found.weights, found.index)

    def find(self, queries: Tensor, previous: Tensor, places: Places, look_up: LookUp) -> Found:
        s, c, w, k = places.keys.shape
        steps = queries.shape[1]
        similar = torch.bmm(queries, places.keys.view(s, c * w, k).transpose(1, 2)).unflatten(
            -1, (c, w)
        )  # [S, Q, C, W]
        scores = similar * SHARPNESS + _carried_on(previous, places)
        scores = scores - (NEARNESS * places.distance.log1p())[:, None, :, None]
        scores = scores.masked_fill(~places.real[:, None], FAR_BELOW)
        weights = self._select(scores, places.real.any(-1)[:, None]).flatten(2).flatten(0, 1)  # [T, C * W]
        chosen, index = weights.topk(min(MOST_PLACES, weights.shape[-1]))
        chosen = chosen / chosen.sum(-1, keepdim=True).clamp_min(1e-9)
        ids, favourites = (_of_places(table, index) for table in (places.ids, places.favourite))
        likest = similar.flatten(2).amax(-1).flatten().clamp_min(0)  # padding has no key, and a similarity of 0
        inside = _of_places(places.inside, index[:, :1])[:, 0]
        expected = (chosen * _of_places(places.expected, index)).sum(-1)
        overlaps = places.overlap.repeat_interleave(steps, 0)
        sentence = (chosen * overlaps.gather(1, index // w)).sum(-1), overlaps.amax(-1)
        features = _features(chosen, ids, favourites, (likest, inside, expected, *sentence), look_up)
        anything = places.real.flatten(1).any(1).repeat_interleave(steps)
        return Found(ids, chosen, index, features, anything)

    def decide(
        self, weights: Tensor, ids: Tensor, favourites: Tensor, of_places: Sequence[Tensor], look_up: LookUp
    ) -> Tensor:
        """[T] the share of the pointer, from what `_features` reads."""
        return self.share(_features(weights, ids, favourites, of_places, look_up)).sigmoid()[:, 0]

    @property
    def share_layers(self) -> list[nn.Linear]:
        return [layer for layer in self.share if isinstance(layer, nn.Linear)]

    def _select(self, scores: Tensor, there: Tensor) -> Tensor:
        """Scores [S, Q, C, W] -> weights: the few sentences whose best words match best, then the words of those;
        there [S, 1, C]: sentences that there are."""
        if self.section.sentence_attention == "sparse":
            best = scores.amax(-1)  # [S, Q, C]
            chosen = sparsemax(best * SELECTION, there.expand(best.shape)) > 0
            scores = scores.masked_fill(~chosen[..., None], FAR_BELOW)
        return scores.flatten(2).softmax(-1).view(scores.shape)


def _carried_on(previous: Tensor, places: Places) -> Tensor:
    """[S, Q, C, W] what the piece before a place adds to its score."""
    same = previous[:, :, None, None] == places.previous[:, None]
    inside = places.inside[:, None]
    return same * torch.where(inside, CARRIED_ON - BROKEN_OFF, FOLLOWED) + torch.where(inside, BROKEN_OFF, 0.0)


def share_network(hidden: int) -> nn.Sequential:
    """features [T, FEATURES] -> [T, 1], the logit of the pointer's share."""
    decision = nn.Linear(hidden, 1)
    nn.init.constant_(decision.bias, START_SHARE)
    return nn.Sequential(
        nn.Linear(FEATURES, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh(), decision
    )  # fmt: skip


def _features(weights: Tensor, ids: Tensor, favourites: Tensor, of_places: Sequence[Tensor], look_up: LookUp) -> Tensor:
    """[T, FEATURES] what memory and model say: how like, how sure, and whether they agree, here and where the word was
    approved. Where the model wants again what a human did not want there, it is likely to be corrected again."""
    likest, inside, expected, overlap, best_overlap = of_places
    words = torch.einsum("tn,tmn->tm", weights, (ids[:, :, None] == ids[:, None]).to(weights.dtype))  # [T, n]
    found, highest = look_up(torch.cat((ids, favourites), 1))
    found, wanted = found.split(ids.shape[1], 1)
    said, place = words.max(-1)
    best = place[:, None]
    agree = found >= highest[:, None] - 1e-4
    refused = (favourites != ids) & (wanted >= highest[:, None] - 1e-4)
    return torch.stack(
        (
            likest,
            (weights * words.clamp_min(1e-9).log()).sum(-1),
            highest / 3,
            said,
            found.gather(1, best)[:, 0].clamp_min(-20) / 5,
            agree.gather(1, best)[:, 0].to(weights.dtype),
            (weights * agree).sum(-1),
            inside.to(weights.dtype),
            expected.clamp_min(-20) / 5,
            (weights * refused).sum(-1),
            (weights * (refused & (ids == ids.gather(1, best)))).sum(-1) / said.clamp_min(1e-6),
            (weights * wanted.clamp_min(-20)).sum(-1) / 5,
            overlap,
            best_overlap,
        ),
        -1,
    )


def _of_places(table: Tensor, index: Tensor) -> Tensor:
    """[S, C, W] at places [T, n] of the sentence of each step -> [T, n]"""
    return table.flatten(1).gather(1, index.reshape(len(table), -1)).view(index.shape)
