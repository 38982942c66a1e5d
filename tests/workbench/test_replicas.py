"""Two replicas on Ray Serve, where Ray is installed (`pip install 'weitblick[replicas]'`)."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.patience import PATIENCE

ray = pytest.importorskip("ray", reason="Ray is not installed (pip install 'ray[serve]')")
pytest.importorskip("ray.serve", reason="Ray Serve is not installed (pip install 'ray[serve]')")

SENTENCES = [f"The report number {number} is ready." for number in range(24)]


@pytest.fixture(scope="module")
def replicas() -> Iterator[httpx.Client]:
    from ray import serve

    from weitblick.workbench.replicas import Wishes, application

    with socket.create_server(("127.0.0.1", 0)) as found:
        port = found.getsockname()[1]
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
    serve.start(http_options={"host": "127.0.0.1", "port": port})
    serve.run(application(Wishes(replicas=2, cpus=0.5)), route_prefix="/")
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE, trust_env=False) as client:
        yield client
    serve.shutdown()
    ray.shutdown()


def ask(client: httpx.Client, sentence: str) -> str:
    answer = client.post("/translate", json={"q": sentence, "source": "en", "target": "de"})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["translatedText"])


def test_two_replicas_share_the_work(replicas: httpx.Client) -> None:
    with ThreadPoolExecutor(8) as clients:
        together = list(clients.map(lambda sentence: ask(replicas, sentence), SENTENCES))
    assert all("Bericht" in target for target in together)
    assert [ask(replicas, sentence) for sentence in SENTENCES[:4]] == together[:4]  # whoever answers
    counts = {_sentences(replicas.get("/metrics").text) for _ in range(40)}
    assert len(counts) == 2, counts
    assert min(counts) > 0
    assert sum(counts) >= len(SENTENCES) + 4


def test_what_needs_a_memory_between_requests_is_not_offered(replicas: httpx.Client) -> None:
    assert replicas.get("/health").json() == {"status": "ok"}
    assert replicas.get("/v1/projects").status_code == 404
    assert replicas.post("/translate", content=b"{").json() == {"error": "the body is not JSON"}


def _sentences(metrics: str) -> float:
    line = next(line for line in metrics.splitlines() if line.startswith("weitblick_sentences_total"))
    return float(line.split()[1])
