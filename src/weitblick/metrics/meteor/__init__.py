"""METEOR, after Meteor 1.5 (Denkowski and Lavie 2014): normalise, match, align, score."""

from weitblick.metrics.meteor.scoring import METEOR_LANGUAGES, Meteor

__all__ = ["METEOR_LANGUAGES", "Meteor"]
