"""Fixtures shared by all packages' tests."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import weitblick  # noqa: F401  before any test loads PyTorch, whose idle threads would take the cores of other tests

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


@pytest.fixture
def browser_page() -> Iterator[Any]:
    """A page of a real, headless Chromium that is offline and accepts downloads. Use with `@pytest.mark.browser`.

    A script error on the page fails the test.
    """
    with _page(offline=True) as page:
        yield page


@pytest.fixture
def local_page() -> Iterator[Any]:
    """As `browser_page`, but it may ask this machine, and nobody else."""
    with _page(offline=False) as page:
        page.route("**", lambda route: route.continue_() if "://127.0.0.1:" in route.request.url else route.abort())
        yield page


@contextmanager
def _page(*, offline: bool) -> Iterator[Any]:
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("no Chromium on this machine (apt-get install chromium)")
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed (pip install playwright)"
    )
    errors: list[str] = []
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=CHROMIUM_OPTIONS)
        page = browser.new_context(accept_downloads=True, offline=offline).new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        yield page
        browser.close()
    assert errors == []
