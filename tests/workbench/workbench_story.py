"""What somebody does at the workbench in a browser, and what another program does to the same document meanwhile.

Everything is done and seen as a person does it: by keys, by the pointer, and by what stands on the page."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import Any

import httpx

from tests.patience import PATIENCE

TEXT = "The quotas are ready. They are high.\n\nThe committee has adopted the quotas.\n\nWe thank you for the quotas.\n"
"""With *Fangquoten* confirmed in the first row, the third and the fourth change."""
NUMBERS = itertools.count(1)


class Story:
    """One tab of a browser."""

    def __init__(self, page: Any, address: str) -> None:
        self.page, self.address = page, address
        page.set_default_timeout(1000 * PATIENCE)
        self.project = self.document = ""
        self.load(address)

    def load(self, address: str) -> None:
        self.page.goto(address)
        self.page.wait_for_selector("#project-select option", state="attached")

    def open_text(self, text: str = TEXT) -> Story:
        """A new project with one document, opened and translated."""
        name = f"Test {next(NUMBERS)}"
        with self.program() as client:
            self.project = client.post("/v1/projects", json={"name": name}).json()["id"]
            added = client.post(f"/v1/projects/{self.project}/documents", data={"text": text, "name": "letter.txt"})
            self.document = added.json()["id"]
        self.page.reload()
        self.page.wait_for_selector(f"#project-select option:text-is('{name}')", state="attached")
        self.page.select_option("#project-select", label=name)
        self.until(lambda: self.page.evaluate("location.hash") == f"#{self.document}")  # another one may be open still
        return self.translated()

    def translated(self) -> Story:
        self.page.wait_for_selector("#rows tr")
        self.page.wait_for_selector("tr[data-state=empty]", state="detached")
        return self

    def reload(self) -> Story:
        self.page.reload()
        return self.translated()

    def another_tab(self) -> Story:
        """A second tab of the same browser, with the same document."""
        page = self.page.context.new_page()
        other = Story(page, f"{self.address}/#{self.document}")
        other.project, other.document = self.project, self.document
        return other.translated()

    def crash(self) -> None:
        """The tab is gone in a moment, and has no time to send anything. `prepare_crash` comes before it is loaded."""
        self.page.close()

    def prepare_crash(self) -> None:
        """From the next load on the page is not told when it goes."""
        self.page.add_init_script(
            """addEventListener("pagehide", (event) => event.stopImmediatePropagation(), true);
            document.addEventListener("visibilitychange", (event) => event.stopImmediatePropagation(), true);"""
        )

    # What stands there

    def field(self, position: int) -> Any:
        return self.page.locator(f"textarea[data-position='{position}']")

    def row(self, position: int) -> Any:
        return self.page.locator(f"tr[data-position='{position}']")

    def text(self, position: int) -> str:
        return self.field(position).input_value()

    def state(self, position: int) -> str:
        return self.row(position).get_attribute("data-state")

    def cursor(self) -> int | None:
        """The row that holds the cursor."""
        focused = self.page.locator("#rows textarea:focus")
        return int(focused.get_attribute("data-position")) if focused.count() else None

    def said(self) -> str:
        return self.page.inner_text("#announcement")

    def until(self, reached: Callable[[], bool]) -> None:
        end = time.monotonic() + PATIENCE
        while not reached():
            assert time.monotonic() < end, "never reached"
            self.page.wait_for_timeout(50)

    # What is done

    def confirm(self, position: int, target: str) -> None:
        self.field(position).fill(target)
        self.field(position).press("Control+Enter")

    def change_others(self) -> None:
        """Confirms the first row so that two others change."""
        self.confirm(0, "Die Fangquoten sind fertig.")
        self.until(lambda: self.page.inner_text("#changes-text") == "2 sentences changed")

    def point_at_source(self, position: int) -> None:
        """At the first word."""
        self.row(position).locator(".source").hover(position={"x": 14, "y": 18})

    # Another program

    def program(self) -> httpx.Client:
        return httpx.Client(base_url=self.address, trust_env=False, timeout=PATIENCE)

    @property
    def path(self) -> str:
        return f"/v1/projects/{self.project}/documents/{self.document}"

    def stored(self) -> list[dict[str, Any]]:
        """The rows as the server has them."""
        with self.program() as client:
            return client.get(self.path).json()["rows"]

    def pairs(self) -> list[tuple[str, str]]:
        """The project's memory as the server has it."""
        with self.program() as client:
            return [
                (pair["source"], pair["target"]) for pair in client.get(f"/v1/projects/{self.project}/pairs").json()
            ]

    def put(self, position: int, target: str, state: str = "edited") -> None:
        """Another program writes a row that it has just read."""
        version = self.stored()[position]["version"]
        body = {"target": target, "state": state, "version": version, "writer": "program"}
        with self.program() as client:
            assert client.put(f"{self.path}/segments/{position}", json=body).status_code == 200
