"""The pointer to approved translations: what a human has said for the same thing before, mixed into the output.

    p(word) = (1 - share) p_model(word) + share * sum of the weights of the places where the word was said

A *place* is a word of an approved translation. Its key is the decoder's state after attention to the source at the
step that predicts it, so that a step asks: where was something like this said, of something like this? Selection is
hierarchical: sentences first, each by its best-matching word, sparsely; then words in those. A place inside a word
counts for more where the piece before it is the one just written, and for less where it is not: a word once begun is
carried on. Of places that match alike the nearest sentence's counts most.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from weitblick.config.recipe import MemorySection
from weitblick.context.sparsemax import sparsemax
from weitblick.model.words import Pointed
from weitblick.sentence.sentence_model import DecoderStates

MOST_PLACES = 16
"""Places that share in the mixture: those with the greatest weights."""
FEATURES = 9
SHARPNESS = 20.0
"""Of similarities between -1 and 1 at the start."""
SELECTION = 0.4
"""How sharply sentences are chosen: of two, that with a best score lower by 1 / this is left out."""
FAR_BELOW = -1e4
START_SHARE = -2.0
START_NEARNESS = -1.0
"""Its softplus weighs the logarithm of the distance: of equal places that of the sentence before counts for twice that
of ten sentences before."""

LookUp = Callable[[Tensor], tuple[Tensor, Tensor]]
"""ids [T, n] -> the model's log-probabilities of these words [T, n] and of its best word [T]"""


@dataclass(frozen=True)
class Places:
    """What S sentences may point at: C approved translations each, of at most W words.

    keys       [S, C, W, k] of length one         ids  [S, C, W] the word at each place
    previous   [S, C, W] the piece before it      inside  [S, C, W] whether it continues a word
    real       [S, C, W] false at padding         distance  [S, C] of the approval: 0 is the nearest
    expected   [S, C, W] log-probability that the model itself gave the word there: what a human has corrected is low
    """

    keys: Tensor
    ids: Tensor
    previous: Tensor
    inside: Tensor
    real: Tensor
    distance: Tensor
    expected: Tensor

    def rows(self, index: Tensor) -> Places:
        parts = (self.keys, self.ids, self.previous, self.inside, self.real, self.distance, self.expected)
        return Places(*(part.index_select(0, index) for part in parts))


class MemoryPointer(nn.Module):
    def __init__(self, section: MemorySection, dimension: int) -> None:
        super().__init__()
        self.section = section
        self.query = nn.Linear(dimension, section.dimension)
        self.key = nn.Linear(dimension, section.dimension)
        self.sharpness = nn.Parameter(torch.tensor(SHARPNESS).log())
        # To continue a word with its own next piece, with that of another; to go on to the word that followed before.
        self.carry_on = nn.Parameter(torch.tensor([1.0, -1.0, 0.3]))
        self.nearness = nn.Parameter(torch.tensor(START_NEARNESS))
        decision = nn.Linear(section.hidden, 1)
        nn.init.constant_(decision.bias, START_SHARE)
        self.share = nn.Sequential(
            nn.Linear(FEATURES, section.hidden),
            nn.Tanh(),
            nn.Linear(section.hidden, section.hidden),
            nn.Tanh(),
            decision,
        )
        self._initialise()

    def _initialise(self) -> None:
        """Like attends to like from the first update: queries and keys are the same orthogonal projection."""
        nn.init.orthogonal_(self.query.weight)
        nn.init.zeros_(self.query.bias)
        self.key.load_state_dict(self.query.state_dict())

    @torch.no_grad()
    def start_from(self, attended: Tensor) -> None:
        """Queries and keys start as the principal components of decoder states [T, d], less what these all share: of
        as many numbers they tell the most about which states are alike."""
        mean = attended.mean(0)
        apart = attended - mean
        components = torch.linalg.eigh(apart.t() @ apart).eigenvectors.flip(1)  # [d, d], the strongest first
        kept = components[:, : self.section.dimension].t()
        self.query.weight[: len(kept)] = kept
        self.query.bias.copy_(-(self.query.weight @ mean))
        self.key.load_state_dict(self.query.state_dict())

    def keys(self, states: DecoderStates) -> Tensor:
        """[..., d] -> [..., k]"""
        return F.normalize(self.key(states.attended), dim=-1)

    def forward(self, attended: Tensor, previous: Tensor, places: Places, look_up: LookUp) -> Pointed:
        """What S sentences find at Q steps each: attended [S, Q, d], previous [S, Q] the piece that each step has
        read. Rows of the result are steps, sentence by sentence."""
        queries = F.normalize(self.query(attended), dim=-1)
        s, c, w, k = places.keys.shape
        similar = torch.bmm(queries, places.keys.view(s, c * w, k).transpose(1, 2)).unflatten(
            -1, (c, w)
        )  # [S, Q, C, W]
        scores = similar * self.sharpness.exp() + self._carried_on(previous, places)
        scores = scores - (F.softplus(self.nearness) * places.distance.log1p())[:, None, :, None]
        scores = scores.masked_fill(~places.real[:, None], FAR_BELOW)
        weights = self._select(scores, places.real.any(-1)[:, None]).flatten(2).flatten(0, 1)  # [T, C * W]
        chosen, index = weights.topk(min(MOST_PLACES, weights.shape[-1]))
        chosen = chosen / chosen.sum(-1, keepdim=True).clamp_min(1e-9)
        ids = _of_places(places.ids, index, queries.shape[1])
        best = similar.masked_fill(~places.real[:, None], -1.0).flatten(2).amax(-1).flatten()
        inside = _of_places(places.inside, index[:, :1], queries.shape[1])[:, 0]
        expected = (chosen * _of_places(places.expected, index, queries.shape[1])).sum(-1)
        share = self._share(chosen, ids, best, inside, expected, look_up)
        anything = places.real.flatten(1).any(1).repeat_interleave(queries.shape[1])
        return Pointed(share * anything, ids, chosen, index)

    def _carried_on(self, previous: Tensor, places: Places) -> Tensor:
        """[S, Q, C, W] what the piece before a place adds to its score."""
        same = previous[:, :, None, None] == places.previous[:, None]
        inside = places.inside[:, None]
        begun, other, followed = self.carry_on
        return torch.where(inside, torch.where(same, begun, other), same * followed)

    def _select(self, scores: Tensor, there: Tensor) -> Tensor:
        """Scores [S, Q, C, W] -> weights: the few sentences whose best words match best, then the words of those;
        there [S, 1, C]: sentences that there are."""
        if self.section.sentence_attention == "sparse":
            best = scores.amax(-1)  # [S, Q, C]
            chosen = sparsemax(best * SELECTION, there.expand(best.shape)) > 0
            scores = scores.masked_fill(~chosen[..., None], FAR_BELOW)
        return scores.flatten(2).softmax(-1).view(scores.shape)

    def _share(
        self, weights: Tensor, ids: Tensor, similar: Tensor, inside: Tensor, expected: Tensor, look_up: LookUp
    ) -> Tensor:
        """[T] from what memory and model say: how like, how sure, and whether they agree, here and where the word was
        approved. A word that the model did not expect there either was put there by a human."""
        words = torch.einsum("tn,tmn->tm", weights, (ids[:, :, None] == ids[:, None]).to(weights.dtype))  # [T, n]
        found, highest = look_up(ids)
        said, place = words.max(-1)
        own = found.gather(1, place[:, None])[:, 0]
        agree = found >= highest[:, None] - 1e-4
        features = torch.stack(
            (
                similar,
                (weights * words.clamp_min(1e-9).log()).sum(-1),
                highest / 3,
                said,
                own.clamp_min(-20) / 5,
                agree.gather(1, place[:, None])[:, 0].to(weights.dtype),
                (weights * agree).sum(-1),
                inside.to(weights.dtype),
                expected.clamp_min(-20) / 5,
            ),
            -1,
        )
        return self.share(features).sigmoid()[:, 0]


def _of_places(table: Tensor, index: Tensor, steps: int) -> Tensor:
    """[S, C, W] at places [T, n] of the sentence of each step -> [T, n]"""
    return table.flatten(1).repeat_interleave(steps, 0).gather(1, index)
