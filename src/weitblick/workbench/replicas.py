"""The API on Ray Serve: replicas of the application, on one machine or many, behind one address.

    serve run weitblick.workbench.replicas:application replicas=2 model=runs/tiny/best keys=keys

Every replica has a model and an engine of its own, which translates together what waits together, up to a budget of
tokens; so Ray hands requests over at once instead of batching them. Replicas share nothing, so what needs a memory
between requests (projects, uploads, suggestions) is not offered: that is `weitblick serve`, which is one process.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from typing import Any

from pydantic import BaseModel, Field
from ray import serve

from weitblick.workbench.security import read_keys

WAITING = 1000
"""Requests that a replica holds; its own queue, counted in tokens, refuses earlier."""


class Wishes(BaseModel):
    """What `serve run` is told after the name of the application, as `name=value`."""

    model_config = {"extra": "forbid"}

    replicas: int = Field(2, ge=1, description="processes with a model each")
    model: str | None = Field(None, description="model folder; without it, the one that comes with weitblick")
    keys: str | None = Field(None, description="file of API keys, one a line; without it anybody may ask")
    threads: int = Field(1, ge=1, description="threads of a replica on the CPU")
    cpus: float = Field(1.0, ge=0, description="what Ray reserves for a replica")


def application(wishes: Wishes) -> serve.Application:
    """The deployment that `serve run` and `serve deploy` start."""
    keys = [] if wishes.keys is None else read_keys(wishes.keys)
    build = _builder(wishes.model, keys, wishes.threads)
    replica = serve.deployment(
        num_replicas=wishes.replicas,
        max_ongoing_requests=WAITING,
        ray_actor_options={"num_cpus": wishes.cpus},
    )(serve.ingress(build)(type("Replica", (), {})))
    return replica.bind()


def _builder(model: str | None, keys: list[str], threads: int) -> Callable[[], Any]:
    """Makes the application, in the process of a replica."""

    def build() -> Any:
        from weitblick.common.process import tune_allocator
        from weitblick.common.threads import use_threads
        from weitblick.translation.translator import Translator
        from weitblick.workbench.app import create_app

        tune_allocator()
        use_threads(threads)
        translator = Translator.load(model, warn=lambda message: None)
        folder = tempfile.mkdtemp(prefix="weitblick-replica-")
        return create_app(translator, folder, host="0.0.0.0", keys=keys, projects=False)

    return build
