"""The pointer to approved translations: what a human has said for the same thing before, mixed into the output.

    p(word) = (1 - share) p_model(word) + share * sum of the weights of the places where the word was said

A *place* is a word of an approved translation. Its key is the decoder's state after attention to the source at the
step that predicts it, so that a step asks: where was something like this said, of something like this? Selection is
hierarchical: sentences first, each by its best-matching word, sparsely; then words in those. A place inside a word
counts for more where the piece before it is the one just written, and for less where it is not: a word once begun is
carried on. Of places that match alike the nearest sentence's counts most. Where the best place was approved for source
words that the sentence does not have, its part of the share goes back to the model (`bounded`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from weitblick.common.recipe import MemorySection
from weitblick.model.modifiers import Pointed
from weitblick.model.output import LookedUp
from weitblick.model.sentence_model import DecoderStates
from weitblick.model.sparsemax import sparsemax

MOST_PLACES = 16
"""Places that share in the mixture: those with the greatest weights."""
STRIP = 16
"""Places that lie together: a translation is filled up to whole strips, not to the longest of all."""
FEATURES = 17
LIKEST, REFUSED = 0, 9
"""Which of the features says how like the best place is, and which how far the model wants again what a human did not
want."""
SHARPNESS = 20.0
"""Of similarities between -1 and 1."""
CARRIED_ON, BROKEN_OFF, FOLLOWED = 1.0, -1.0, 0.3
"""Added to the score of a place: to continue a word with its own next piece, with that of another; to go on to the word
that followed before. Trained by gradient, these, sharpness and nearness stay where they are and gain nothing."""
NEARNESS = 0.313
"""Weighs the logarithm of the distance: of equal places that of the sentence before counts for twice that of ten
sentences before."""
SELECTION = 0.2
"""How sharply sentences are chosen: of two, that with a best score lower by 1 / this is left out."""
SHARED = 2
"""Keys of all, in those of one sentence, up to which all are multiplied at once."""
FAR_BELOW = -1e4
SMALLEST = 1e-9
START_SHARE = -2.0

LookUp = Callable[[Tensor], LookedUp]
"""ids [T, n] -> what the model says of these words"""


@dataclass(frozen=True)
class Places:
    """What S sentences may point at: R strips each of STRIP places, P in all, of C approved translations. A strip is
    part of one translation, which may have several; what is missing is filled up. Strip r has the places r, R + r,
    2R + r, ...: the greatest of each strip are then found along contiguous memory.

    keys       [N, k] of length one, of all that anybody may point at, 0 at padding
    index      [S, P] which of these stands at each place
    ids        [S, P] the word at each place
    previous   [S, P] the piece before it                inside  [S, P] whether it continues a word
    expected   [S, P] log-probability that the model itself gave the word there: what a human has corrected is low
    favourite  [S, P] the word that the model itself would have said there
    before     [S, P] added to the score of a place: a word inside another, the distance of the approval; FAR_BELOW at
               padding
    number     [S, P] of a place among all that a sentence may point at, for whoever explains
    owner      [S, R] the translation that a strip is of
    there      [S, C] false where a sentence has fewer translations than others
    open       [S, P] whether the sentence may take the word from there (see `bounds`)
    overlap    [S, C] how much of the sentence's source the approved source has, 0 to 1
    nearness   [S, C] what the distance of the approval takes from scores
    own        [S, C] 1 where it was approved in the sentence's own document
    """

    keys: Tensor
    index: Tensor
    ids: Tensor
    previous: Tensor
    inside: Tensor
    expected: Tensor
    favourite: Tensor
    before: Tensor
    number: Tensor
    owner: Tensor
    there: Tensor
    open: Tensor
    overlap: Tensor
    nearness: Tensor
    own: Tensor

    @cached_property
    def same(self) -> Tensor:
        """[S, P] added to the score of a place where the piece before it is the one just written."""
        return torch.where(self.inside, CARRIED_ON - BROKEN_OFF, FOLLOWED)

    @cached_property
    def own_keys(self) -> Tensor | None:
        """[S, P, k]; None where all may point at much the same, so that one product with all keys is less work."""
        return None if len(self.keys) <= SHARED * self.index.shape[1] else self.keys[self.index]

    def similar(self, queries: Tensor) -> Tensor:
        """[S, Q, k] -> [S, Q, P]"""
        if self.own_keys is not None:  # the larger factor first: it is read as it stands
            return torch.bmm(self.own_keys, queries.transpose(1, 2)).transpose(1, 2)
        index = self.index[:, None].expand(-1, queries.shape[1], -1)
        return (queries @ self.keys.t()).gather(2, index)

    def rows(self, index: Tensor) -> Places:
        """Those of some of the sentences."""
        own = (getattr(self, field.name) for field in fields(self) if field.name != "keys")
        return Places(self.keys, *(table.index_select(0, index) for table in own))


@dataclass(frozen=True)
class Found:
    """What T steps find: the n places with the greatest weights, ids and weights [T, n] and which these are, index
    [T, n]; features [T, FEATURES] by which the share is decided, and anything [T]: false where there is no place;
    open [T, n]: of which of these places the word may be taken."""

    ids: Tensor
    weights: Tensor
    index: Tensor
    features: Tensor
    anything: Tensor
    open: Tensor


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
        return bounded(Pointed(share * found.anything, found.ids, found.weights, found.index), found.open)

    def find(self, queries: Tensor, previous: Tensor, places: Places, look_up: LookUp) -> Found:
        steps = queries.shape[1]
        similar = places.similar(queries)  # [S, Q, P]
        scores = torch.add(places.before[:, None], similar, alpha=SHARPNESS)
        scores = scores + (previous[:, :, None] == places.previous[:, None]) * places.same[:, None]
        best, index = self._select(scores, places)  # [S, Q, n]
        weights, index = best.softmax(-1).flatten(0, 1), index.flatten(0, 1)  # [T, n]
        ids, favourites, expected = (_of_places(x, index) for x in (places.ids, places.favourite, places.expected))
        likest = similar.amax(-1).flatten().clamp_min(0)
        inside = _of_places(places.inside, index[:, :1])[:, 0]
        owners = _of_places(places.owner, index % places.owner.shape[1])
        of_pairs = (_of_places(x, owners) for x in (places.overlap, places.own, places.nearness))
        follows = _of_places(places.previous, index) == previous.flatten()[:, None]
        means = ((weights * x).sum(-1) for x in (expected, *of_pairs, follows))
        of_places = likest, inside, *means, places.overlap.amax(-1).repeat_interleave(steps)
        features = _features(weights, ids, favourites, of_places, look_up)
        anything = places.there.any(1).repeat_interleave(steps)
        opened = _of_places(places.open, index)
        return Found(ids, weights, _of_places(places.number, index), features, anything, opened)

    def decide(
        self, weights: Tensor, ids: Tensor, favourites: Tensor, of_places: Sequence[Tensor], look_up: LookUp
    ) -> Tensor:
        """[T] the share of the pointer, from what `_features` reads."""
        return self.share(_features(weights, ids, favourites, of_places, look_up)).sigmoid()[:, 0]

    @property
    def share_layers(self) -> list[nn.Linear]:
        return [layer for layer in self.share if isinstance(layer, nn.Linear)]

    def _select(self, scores: Tensor, places: Places) -> tuple[Tensor, Tensor]:
        """Scores [S, Q, P] -> those of the best places and which these are [S, Q, n]: of the few sentences whose best
        words match best, the best words. The n best lie in the n strips with the best maxima."""
        strips = scores.unflatten(-1, (STRIP, -1))  # [S, Q, STRIP, R]
        best = strips.amax(-2)  # [S, Q, R]
        if self.section.sentence_attention == "sparse":
            owner, there = places.owner[:, None].expand_as(best), places.there[:, None]
            of_sentences = best.new_full((*best.shape[:2], there.shape[-1]), FAR_BELOW).scatter_reduce(
                2, owner, best, "amax"
            )  # [S, Q, C]
            chosen = sparsemax(of_sentences * SELECTION, there.expand(of_sentences.shape)) > 0
            best = best.masked_fill(~chosen.gather(2, owner), FAR_BELOW)
        maxima, top = best.topk(min(MOST_PLACES, best.shape[2]))  # [S, Q, m]
        few = strips.gather(3, top[:, :, None].expand(-1, -1, STRIP, -1))  # [S, Q, STRIP, m]
        few = few.masked_fill((maxima == FAR_BELOW)[:, :, None], FAR_BELOW).flatten(2)
        found, place = few.topk(min(MOST_PLACES, few.shape[2]))
        count = top.shape[2]
        return found, top.gather(2, place % count) + place // count * best.shape[2]


def bounded(pointed: Pointed, opened: Tensor) -> Pointed:
    """What a pointer adds, without the places that are not open [T, n]: their part of the share is the model's own
    again."""
    weights = pointed.weights * opened
    total = weights.sum(1)
    weights = weights / total.clamp_min(SMALLEST)[:, None]
    return replace(pointed, share=pointed.share * total, weights=weights)


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
    likest, inside, expected, overlap, own, nearness, follows, best_overlap = of_places
    words = torch.einsum("tn,tmn->tm", weights, (ids[:, :, None] == ids[:, None]).to(weights.dtype))  # [T, n]
    looked_up = look_up(torch.cat((ids, favourites), 1))
    highest = looked_up.highest
    found, wanted = looked_up.log_probabilities.split(ids.shape[1], 1)
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
            own,
            nearness,
            follows,
        ),
        -1,
    )


def _of_places(table: Tensor, index: Tensor) -> Tensor:
    """[S, P] at places [T, n] of the sentence of each step -> [T, n]"""
    return table.gather(1, index.reshape(len(table), -1)).view(index.shape)
