"""A page of another site cannot touch a local server, a program can; elsewhere keys are needed."""

from __future__ import annotations

import base64
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from weitblick.common.errors import UserError
from weitblick.translation.translator import Translator
from weitblick.workbench.app import create_app
from weitblick.workbench.engine import Engine
from weitblick.workbench.requests import Limits
from weitblick.workbench.security import is_loopback, read_keys

KEY = "0123456789abcdef"
SECRET = "Xylophonversicherung"


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://127.0.0.1:81", "https://localhost.evil", "http://[::1", "a"]
)
def test_writes_of_other_sites_are_refused(client: TestClient, origin: str) -> None:
    answer = client.post("/v1/projects", json={"name": "x"}, headers={"Origin": origin})
    assert answer.status_code == 403
    assert client.get("/v1/projects").json() == []


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example"])
def test_other_names_of_this_machine_are_refused(client: TestClient, host: str) -> None:
    """DNS rebinding: a page of another site that is made to mean 127.0.0.1 cannot even read."""
    assert client.get("/v1/projects", headers={"Host": host}).status_code == 403


def test_our_own_page_and_programs_may_write(client: TestClient) -> None:
    ours = client.post("/v1/projects", json={"name": "x"}, headers={"Origin": "http://127.0.0.1"})
    assert ours.status_code == 201
    assert client.post("/v1/projects", json={"name": "y"}).status_code == 201
    named = client.get("/v1/projects", headers={"Host": "localhost:5005"})
    assert [project["name"] for project in named.json()] == ["x", "y"]


def test_every_answer_has_a_strict_policy(client: TestClient) -> None:
    for path in ("/", "/v1/projects", "/nothing"):
        headers = client.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("path", ["/page/../app.py", "/page/%2e%2e/app.py", "/page/index.html", "/../pyproject.toml"])
def test_no_path_reaches_the_disc(client: TestClient, path: str) -> None:
    assert client.get(path).status_code == 404


@pytest.fixture
def guarded(translator: Translator, tmp_path: Path) -> Iterator[TestClient]:
    app = create_app(translator, tmp_path, host="0.0.0.0", keys=[KEY], limits=Limits(requests_a_minute=30))
    with TestClient(app, base_url="http://translate.example") as client:
        yield client


def test_keys_are_needed_elsewhere(guarded: TestClient) -> None:
    assert guarded.get("/health").status_code == 200
    for path in ("/v1/projects", "/languages", "/v2/usage", "/openapi.json", "/metrics"):
        assert guarded.get(path).status_code == 403, path
    page = guarded.get("/", headers={"Accept": "text/html"})
    assert page.status_code == 401  # a browser asks for the key
    assert "Basic" in page.headers["www-authenticate"]


@pytest.mark.parametrize(
    "authorization",
    [f"Bearer {KEY}", f"DeepL-Auth-Key {KEY}", "Basic " + base64.b64encode(f"me:{KEY}".encode()).decode()],
)
def test_keys_come_as_each_api_sends_them(guarded: TestClient, authorization: str) -> None:
    assert guarded.get("/v2/usage", headers={"Authorization": authorization}).status_code == 200
    assert guarded.get("/v2/usage", headers={"Authorization": authorization[:-2] + "x="}).status_code == 403


def test_libretranslates_key_may_stand_in_the_body(guarded: TestClient) -> None:
    values = {"q": "Thank you.", "source": "en", "target": "de"}
    assert guarded.post("/translate", json={**values, "api_key": KEY}).status_code == 200
    assert guarded.post("/translate", data={**values, "api_key": KEY}).status_code == 200
    assert guarded.post("/translate", params={**values, "api_key": KEY}).status_code == 200
    for wrong in ({}, {"api_key": "wrong"}, {"api_key": 7}, {"api_key": [KEY]}):
        assert guarded.post("/translate", json={**values, **wrong}).status_code == 403


def test_requests_a_minute_are_limited(guarded: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.monotonic()
    monkeypatch.setattr("weitblick.workbench.security.monotonic", lambda: now)
    headers = {"Authorization": f"Bearer {KEY}"}
    statuses = [guarded.get("/v2/usage", headers=headers).status_code for _ in range(40)]
    assert statuses == [200] * 30 + [429] * 10
    refused = guarded.get("/v2/usage", headers=headers)
    assert refused.status_code == 429
    assert int(refused.headers["retry-after"]) >= 1
    now += 4  # seconds, in which two more may come
    assert [guarded.get("/v2/usage", headers=headers).status_code for _ in range(3)] == [200, 200, 429]


def test_ten_wrong_keys_close_the_door_for_a_while(guarded: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.monotonic()
    monkeypatch.setattr("weitblick.workbench.security.monotonic", lambda: now)
    wrong, right = ({"Authorization": f"Bearer {key}"} for key in ("wrong" * 4, KEY))
    assert guarded.get("/v2/usage").status_code == 403  # none is not a wrong one
    statuses = [guarded.get("/v2/usage", headers=wrong).status_code for _ in range(9)]
    body = {"q": "Yes.", "source": "en", "target": "de", "api_key": "wrong"}
    statuses.append(guarded.post("/translate", json=body).status_code)
    assert statuses == [403] * 10
    refused = guarded.get("/v2/usage", headers=right)  # else an answer would tell which key is right
    assert refused.status_code == 429
    assert 1 <= int(refused.headers["retry-after"]) <= 300
    assert guarded.post("/translate", json=body).status_code == 429
    now += 301
    assert guarded.get("/v2/usage", headers=right).status_code == 200


def test_an_error_that_nobody_foresaw_says_nothing_of_texts(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(self: Engine, *arguments: object) -> None:
        raise ValueError(SECRET)

    monkeypatch.setattr(Engine, "_translated", fail)
    answer = client.post("/v1/translate", json={"documents": [{"text": SECRET}]})
    assert (answer.status_code, answer.json()) == (500, {"error": "the server failed; its log says more"})
    assert "ValueError" in caplog.text
    assert "in fail" in caplog.text
    assert SECRET not in caplog.text


def test_key_files(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text(f"# ours\n{KEY}\n\n")
    assert read_keys(path) == [KEY]
    path.write_text(f"{KEY}\nshort\n")
    with pytest.raises(UserError, match="keys:2: is no key"):
        read_keys(path)
    path.write_text("\n")
    with pytest.raises(UserError, match="no key"):
        read_keys(path)


def test_what_is_loopback() -> None:
    assert all(map(is_loopback, ["127.0.0.1", "127.1.2.3", "::1", "[::1]", "localhost"]))
    assert not any(map(is_loopback, ["0.0.0.0", "::", "192.168.1.1", "localhost.evil", ""]))
