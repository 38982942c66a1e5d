"""Pipelines of every kind, learned from the small corpus."""

from __future__ import annotations

import pytest
from text_corpus import learn

from weitblick.text.base import TextPipeline


@pytest.fixture(scope="session", params=[True, False], ids=["joint", "separate"])
def sentencepiece(request: pytest.FixtureRequest) -> TextPipeline:
    return learn("sentencepiece", request.param)


@pytest.fixture(scope="session", params=[True, False], ids=["joint", "separate"])
def moses(request: pytest.FixtureRequest) -> TextPipeline:
    return learn("moses", request.param)


_ALL = [(kind, joint) for kind in ("sentencepiece", "moses") for joint in (True, False)]


@pytest.fixture(
    scope="session", params=_ALL, ids=[f"{kind}-{'joint' if joint else 'separate'}" for kind, joint in _ALL]
)
def pipeline(request: pytest.FixtureRequest) -> TextPipeline:
    return learn(*request.param)
