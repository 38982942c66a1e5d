"""From a name to an installed model, against servers of this machine that answer as the real ones do."""

from __future__ import annotations

import errno
import io
import pickle
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from marian_models import random_model
from model_servers import COMMIT, ModelServer
from safetensors.torch import load
from typer.testing import CliRunner, Result

from weitblick.checkpoints.folder import load_model
from weitblick.checkpoints.installed import choose_model
from weitblick.cli.main import app, main
from weitblick.common.errors import UserError

GOLDEN = Path(__file__).parent / "firefox"
V1, V2 = "translations-models", "translations-models-v2"
OPUS = "Helsinki-NLP/opus-mt-fr-es"


def firefox_files() -> dict[str, tuple[str, bytes]]:
    return {
        "model": ("model.fres.intgemm.alphas.bin", (GOLDEN / "model.bin").read_bytes()),
        "lex": ("lex.50.50.fres.s2t.bin", (GOLDEN / "lex.bin").read_bytes()),
        "vocab": ("vocab.fres.spm", (GOLDEN / "vocab.spm").read_bytes()),
    }


@pytest.fixture
def server() -> Iterator[ModelServer]:
    server = ModelServer()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WEITBLICK_MODELS", str(tmp_path / "models"))
    return tmp_path / "models"


@pytest.fixture(scope="module")
def opus(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("opus") / "opus-mt-fr-es"
    random_model(folder)
    card = b"---\nlicense: apache-2.0\n---\n# OPUS-MT\n"
    found = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    return {**found, "README.md": card, "tf_model.h5": b"not asked for", "pytorch_model.bin": b"nor this"}


def fetch(server: ModelServer, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["fetch", *arguments, "--hub", server.address])


def refused(result: Result) -> str:
    assert isinstance(result.exception, UserError), result.exception
    assert "\n" not in str(result.exception)
    return str(result.exception)


def installed(models: Path) -> list[Path]:
    return sorted(
        path.parent.relative_to(models) for path in models.rglob("config.json") if (path.parent / "text").exists()
    )


# What works


@pytest.mark.parametrize(("collection", "pack"), [(V2, True), (V1, False)])
def test_a_model_of_firefox(collection: str, pack: bool, server: ModelServer, models: Path, tmp_path: Path) -> None:
    server.add_firefox(collection, firefox_files(), pack)
    result = fetch(server, "firefox:fr-es")
    assert result.exit_code == 0, result.exception
    assert result.stderr.index("licence mpl-2.0") < result.stderr.index("translate with")
    folder = models / "firefox" / "fr-es"
    assert installed(models) == [Path("firefox/fr-es")]
    assert "Mozilla Public License 2.0" in (folder / "LICENSE").read_text()
    facts = load_model(folder).facts
    assert (facts["license"], facts["imported_from"], facts["version"]) == ("mpl-2.0", "firefox:fr-es", "3.0")
    assert (folder / "shortlist").is_file()
    assert not list((models / "firefox" / ".downloads").iterdir())
    (tmp_path / "t.fr").write_text("Anne a vu la voiture.\n")
    told = ["translate", str(tmp_path / "t.fr"), "--source-language", "fr", "--target-language", "es", "-q"]
    assert CliRunner().invoke(app, told).stdout == "Anne vio el coche.\n"


def test_the_server_finds_it(
    server: ModelServer, models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.add_firefox(V2, firefox_files())
    assert fetch(server, "firefox:fr-es").exit_code == 0
    served: list[str] = []
    monkeypatch.setattr("weitblick.workbench.app.create_app", lambda *given, name, **others: served.append(name))
    monkeypatch.setattr("weitblick.workbench.app.run", lambda *given: None)
    told = ["serve", "--port", "0", "--data", str(tmp_path / "projects"), "--threads", "1", "--source-language", "fr"]
    result = CliRunner().invoke(app, [*told, "--target-language", "es"])
    assert result.exit_code == 0, result.exception
    assert served == ["fr-es"]
    assert "no model from fr to xx" in refused(CliRunner().invoke(app, [*told, "--target-language", "xx"]))


def test_packed_with_zstandard(server: ModelServer, models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    zstandard = pytest.importorskip("zstandard")
    monkeypatch.setattr("model_servers.gzip.compress", lambda content, mtime: zstandard.compress(content))
    server.add_firefox(V2, firefox_files())
    assert fetch(server, "firefox:fr-es").exit_code == 0
    assert installed(models) == [Path("firefox/fr-es")]


def test_the_best_of_several_is_taken(server: ModelServer, models: Path) -> None:
    """The newest that all users get; of these the largest, unless another is asked for."""
    files = firefox_files()
    server.add_firefox(V1, files, version="4.0")
    server.add_firefox(V2, files, version="2.9", architecture="base")
    server.add_firefox(V2, files, version="3.0", architecture="tiny")
    server.add_firefox(V2, files, version="3.0", architecture="base-memory")
    server.add_firefox(V2, files, version="3.1", architecture="base", filter_expression="env.channel == 'nightly'")
    server.add_firefox(V2, {"model": files["model"]}, version="9.0", architecture="base")  # no vocabulary
    for wanted, version, architecture in (("fr-es", "3.0", "base-memory"), ("fr-es/tiny", "3.0", "tiny")):
        assert fetch(server, f"firefox:{wanted}").exit_code == 0
        facts = load_model(models / "firefox" / "fr-es").facts
        assert (facts["version"], facts["architecture"]) == (version, architecture)


def test_a_marian_model_of_the_hub(server: ModelServer, models: Path, opus: dict[str, bytes]) -> None:
    server.add_hub(OPUS, opus)
    result = fetch(server, OPUS, "--source-language", "fr", "--target-language", "es")
    assert result.exit_code == 0, result.exception
    assert "licence apache-2.0" in result.stderr
    asked = {path.rpartition("/")[2] for path, _ in server.requests}
    assert "model.safetensors" in asked
    assert not asked & {"tf_model.h5", "pytorch_model.bin"}
    assert choose_model(None, "fr", "es") == models / OPUS
    facts = load_model(models / OPUS).facts
    assert (facts["license"], facts["imported_from"], facts["commit"]) == ("apache-2.0", OPUS, COMMIT)
    assert "apache-2.0" in (models / OPUS / "LICENSE").read_text()


def test_weights_that_are_tensors_and_nothing_else(server: ModelServer, models: Path, opus: dict[str, bytes]) -> None:
    """Where there are no safetensors. Of a pickle that asks for more, not even its beginning is run."""
    tensors, files = io.BytesIO(), {name: content for name, content in opus.items() if name != "model.safetensors"}
    torch.save(load(opus["model.safetensors"]), tensors)
    server.add_hub(OPUS, {**files, "pytorch_model.bin": tensors.getvalue()})
    assert fetch(server, OPUS).exit_code == 0
    assert installed(models) == [Path(OPUS)]
    server.add_hub("you/evil", {**files, "pytorch_model.bin": pickle.dumps(_Evil())})
    assert "more than tensors" in refused(fetch(server, "you/evil", "--source-language", "fr"))
    assert installed(models) == [Path(OPUS)]


class _Evil:
    def __reduce__(self) -> tuple[Any, ...]:
        return print, ("run",)


def test_what_there_is_for_a_language(server: ModelServer, models: Path, opus: dict[str, bytes]) -> None:
    server.add_firefox(V2, firefox_files())
    server.add_firefox(V2, firefox_files(), languages=("en", "de"))
    server.add_hub(OPUS, opus)
    listed = fetch(server, "--list", "fr").stdout
    assert "firefox:fr-es" in listed
    assert OPUS in listed
    assert "en-de" not in listed
    assert "nothing is there" in refused(fetch(server, "--list", "xx"))
    assert "say one thing" in refused(fetch(server))


# Connections that break


def test_a_broken_connection_goes_on_where_it_stopped(server: ModelServer, models: Path) -> None:
    server.add_firefox(V2, firefox_files(), pack=False)
    path = next(path for path in server.files if "model.fres" in path)
    server.breaks[path] = [30_000, 0, 20_000]
    assert fetch(server, "firefox:fr-es").exit_code == 0
    asked = [asked for where, asked in server.requests if where == path]
    assert asked == [None, "bytes=30000-", "bytes=30000-", "bytes=50000-"]


def test_a_server_that_cannot_go_on_begins_anew(server: ModelServer, models: Path) -> None:
    server.ranges = False
    server.add_firefox(V2, firefox_files(), pack=False)
    server.breaks[next(path for path in server.files if "model.fres" in path)] = [30_000]
    assert fetch(server, "firefox:fr-es").exit_code == 0


def test_given_up_and_taken_up_by_the_next_command(server: ModelServer, models: Path) -> None:
    server.add_firefox(V2, firefox_files(), pack=False)
    path = next(path for path in server.files if "model.fres" in path)
    server.breaks[path] = [40_000, 0, 0, 0, 0]
    refused(fetch(server, "firefox:fr-es"))
    assert installed(models) == []
    server.requests.clear()
    assert fetch(server, "firefox:fr-es").exit_code == 0
    assert [asked for where, asked in server.requests if where == path] == ["bytes=40000-"]


# What is wrong


def test_a_checksum_that_differs(server: ModelServer, models: Path, opus: dict[str, bytes]) -> None:
    server.add_firefox(V2, firefox_files(), pack=False)
    server.add_hub(OPUS, opus)
    for part, name in (("model.fres", "firefox:fr-es"), ("vocab.json", OPUS), ("model.safetensors", OPUS)):
        path = next(path for path in server.files if part in path)
        whole = server.files[path]
        server.files[path] = whole[:-9] + b"\1" + whole[-8:]
        assert "checksum differs" in refused(fetch(server, name, "--source-language", "fr"))
        server.files[path] = whole
    assert installed(models) == []
    assert fetch(server, "firefox:fr-es").exit_code == 0  # nothing wrong was kept


def test_what_unpacks_to_something_else(server: ModelServer, models: Path) -> None:
    server.add_firefox(V2, firefox_files())
    records = server.answers[f"/v1/buckets/main/collections/{V2}/records"]["data"]
    records[0]["decompressedSize"] = 1000  # it unpacks to more
    assert "checksum differs" in refused(fetch(server, "firefox:fr-es"))
    assert installed(models) == []


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("firefox:fr-xx", "from fr there are: es"),
        ("firefox:xx-es", "nothing is translated from 'xx'"),
        ("firefox:fr-es/huge", "has no architecture 'huge'; there are: tiny"),
        ("you/bert", "you/bert is of type bert: only Weitblick models and Marian models"),
        ("you/nothing", "you/nothing"),
    ],
)
def test_a_name_that_is_not_there(name: str, said: str, server: ModelServer, models: Path) -> None:
    server.add_firefox(V2, firefox_files(), architecture="tiny")
    server.add_hub("you/bert", {"config.json": b'{"model_type": "bert"}', "model.safetensors": b"much"})
    assert said in refused(fetch(server, name))
    assert not any("safetensors" in path for path, _ in server.requests)
    assert not models.exists() or installed(models) == []


def test_what_is_no_model_leaves_nothing_behind(server: ModelServer, models: Path) -> None:
    """It came as it was announced: to keep it would help no other try."""
    name, content = firefox_files()["model"]
    server.add_firefox(V2, {**firefox_files(), "model": (name, content[: len(content) // 2])})
    assert "cut short" in refused(fetch(server, "firefox:fr-es"))
    assert [path for path in models.rglob("*") if path.is_file()] == []


def test_a_full_disc(server: ModelServer, models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server.add_firefox(V2, firefox_files())
    usage = shutil.disk_usage(models.parent)
    with monkeypatch.context() as patch:
        patch.setattr("shutil.disk_usage", lambda path: usage._replace(free=1000))
        assert "50 MB are needed, to download and to unpack; 0 MB are free" in refused(fetch(server, "firefox:fr-es"))

    def full(self: Any, *arguments: Any, **named: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    for place in ("weitblick.checkpoints.downloads._continue", "weitblick.checkpoints.folder.write_json"):
        with monkeypatch.context() as patch:
            patch.setattr(place, full)
            assert "No space left on device" in refused(fetch(server, "firefox:fr-es"))
        assert installed(models) == []
    assert fetch(server, "firefox:fr-es").exit_code == 0


def test_no_server_is_one_line_and_exit_code_2(
    models: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("firefox:fr-es", OPUS):
        monkeypatch.setattr("sys.argv", ["weitblick", "fetch", name, "--hub", "http://127.0.0.1:9"])
        with pytest.raises(SystemExit) as stop:
            main()
        printed = capsys.readouterr().err
        assert stop.value.code == 2
        assert "127.0.0.1:9" in printed
        assert printed.count("\n") == 1
