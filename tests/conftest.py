"""Fixtures shared by all packages' tests."""

from __future__ import annotations

import logging
import os
import random
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.patience import PATIENCE
from weitblick.common import logs, threads
from weitblick.documents.discourse.small import SmallPreset

threads.set_environment()  # before a test loads PyTorch
os.environ.setdefault("WEITBLICK_KERNELS", "off")  # nothing is built behind a test, nor depends on what was
import numpy as np  # noqa: E402
import torch  # noqa: E402

import weitblick.fast.compiled_doubles  # noqa: E402, F401  models in tests compute as those that are loaded

# The suite runs the same examples each time, however busy the machine is; `make torture` looks for others. Examples may
# share what fixtures have made.
IGNORED = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
settings.register_profile("suite", derandomize=True, deadline=None, suppress_health_check=IGNORED)
settings.register_profile("torture", settings.get_profile("suite"), derandomize=False, print_blob=True)
settings.load_profile("torture" if "TORTURE_SEED" in os.environ else "suite")

# no sandbox as root, and nothing that looks for the network
CHROMIUM_OPTIONS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


DRAW_CURVES = logs.draw_curves


@pytest.fixture(scope="session", autouse=True)
def _no_pictures() -> Iterator[None]:
    """A picture of its curves takes longer than most stages that are trained here; `DRAW_CURVES` brings it back."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(logs, "draw_curves", lambda log, picture: None)
        yield


@pytest.fixture
def short_splits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Generated corpora of a short dev and test, and a short suite: for tests that go through many commands."""
    monkeypatch.setattr(SmallPreset, "dev_documents", 20)
    monkeypatch.setattr(SmallPreset, "test_documents", 60)


LONGEST = (
    "torture/test_kills.py",
    "torture/test_inputs.py",
    "torture/test_options.py",
    "training/test_training.py",
    "workbench/test_workbench_page.py",
    "test_docs_run.py",
    "fast/test_building.py",
    "evaluation/test_study_jobs.py",
    "torture/test_damage.py",
    "torture/test_workbench_attacks.py",
    "documents/test_commands.py",
    "workbench/test_workbench_typing.py",
    "model/test_learning.py",
    "fast/test_kernels.py",
    "checkpoints/test_trained.py",
    "files/test_real_programs.py",
)
"""Files that take longest, in seconds of the processor."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files come first, so that no process waits for another at the end."""
    places = {Path(__file__).parent / name: place for place, name in enumerate(LONGEST)}
    assert all(path.is_file() for path in places)
    items.sort(key=lambda item: places.get(item.path, len(places)))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Random numbers of a test and of what is made for it do not depend on the tests before."""
    random.seed(1)
    np.random.seed(1)
    torch.manual_seed(1)


@pytest.fixture(autouse=True)
def _process_as_before() -> Iterator[None]:
    """A command sets its process up (the log, threads, the environment); the next test finds it as this one did."""
    log = logging.getLogger("weitblick")
    level, handlers, propagate = log.level, list(log.handlers), log.propagate
    environment, folder, count = dict(os.environ), os.getcwd(), torch.get_num_threads()
    yield
    log.level, log.handlers, log.propagate = level, handlers, propagate
    for name in os.environ.keys() | environment.keys():
        if name in environment:
            os.environ[name] = environment[name]
        else:
            del os.environ[name]
    os.chdir(folder)
    if torch.get_num_threads() != count:
        torch.set_num_threads(count)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """A real, headless Chromium for the tests of one file."""
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("no Chromium on this machine (apt-get install chromium)")
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed (pip install playwright)"
    )
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=CHROMIUM_OPTIONS)
        yield browser
        browser.close()


@pytest.fixture
def browser_page(chromium: Any) -> Iterator[Any]:
    """A page of a real, headless Chromium that is offline and accepts downloads. Use with `@pytest.mark.browser`.

    A script error on the page fails the test.
    """
    with _page(chromium, offline=True) as page:
        yield page


@pytest.fixture
def local_page(chromium: Any) -> Iterator[Any]:
    """As `browser_page`, but it may ask this machine, and nobody else."""
    with _page(chromium, offline=False) as page:
        page.context.route(
            "**", lambda route: route.continue_() if "://127.0.0.1:" in route.request.url else route.abort()
        )
        yield page


@contextmanager
def _page(chromium: Any, *, offline: bool) -> Iterator[Any]:
    errors: list[str] = []
    context = chromium.new_context(accept_downloads=True, offline=offline)
    context.set_default_timeout(1000 * PATIENCE)
    context.on("weberror", lambda error: errors.append(str(error.error)))
    yield context.new_page()
    context.close()
    assert errors == []
