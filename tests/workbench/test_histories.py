"""Random histories of two tabs, a server that dies and saves that are refused or lost, against a simple model.

The tabs run the page's own `drafts.js` (in Node), the server is the real workbench with its database, only the model is
missing: what it does to drafts is done here. After every step nothing that was typed is lost, nothing that somebody
confirmed was overwritten by a tab that had not seen it, and the memory holds what the confirmed rows say.

WEITBLICK_HISTORIES=10000 runs as many, of up to WEITBLICK_HISTORY_STEPS steps, each time others."""

from __future__ import annotations

import itertools
import os
import shutil
from contextlib import suppress
from dataclasses import asdict

import pytest
from histories_driver import PREFIX, Browser, Json, Seen, Server, Tab
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from weitblick.workbench.errors import Changed, Refused
from weitblick.workbench.row_acts import Act
from weitblick.workbench.schema import APPROVED, Write
from weitblick.workbench.steps import Direction, steps_of

HISTORIES = int(os.environ.get("WEITBLICK_HISTORIES", "40"))
STEPS = int(os.environ.get("WEITBLICK_HISTORY_STEPS", "30"))

SIDES = st.sampled_from(["left", "right"])
PLACES = st.sampled_from([0, 0, 0, 1])
ACTS = st.sampled_from(
    ["type"] * 4 + ["type and confirm"] * 3 + ["confirm"] * 2 + ["review"] * 2 + ["reopen", "confirm nothing"]
)
OFTEN = ["work"] * 8 + ["request"] * 4 + ["hear"] * 2 + ["decide"] * 2 + ["reload"] * 2 + ["model"] * 2
KINDS = st.sampled_from(
    [
        *OFTEN,
        "late",
        "retry",
        "crash",
        "connect",
        "settle",
        "settle all",
        "comment",
        "comment",
        "step",
        "step",
        "several",
    ]
)
FATES = st.sampled_from(["arrives"] * 6 + ["is lost", "loses its answer", "is too much", "kills", "kills afterwards"])


class Histories(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.server, self.browser = Server(), Browser()
        self.texts, self.names = itertools.count(), itertools.count()
        self.tabs: dict[str, Tab | None] = {"left": None, "right": None}
        self.flying: list[Json] = []  # requests of tabs that are gone
        self.checked: object = None
        # the model
        self.owed: dict[str, int] = {}  # texts that were typed, and nobody has given up: their rows
        self.seen: dict[tuple[str, str], frozenset[Seen]] = {}  # by tab and path: what the writer of its draft has seen
        self.seen_by: dict[tuple[str, int], frozenset[Seen]] = {}  # the same by tab and number, when that was written
        self.comments: dict[int, tuple[int, str]] = {}  # that nobody has deleted: their rows and texts
        for side in self.tabs:
            self.open(side)

    @rule(kind=KINDS, side=SIDES, position=PLACES, act=ACTS, fate=FATES, flag=st.booleans(), which=st.integers(0, 5))
    def step(self, kind: str, side: str, position: int, act: str, fate: str, flag: bool, which: int) -> None:
        """One rule, so that what people do all day comes more often than what happens once a year."""
        match kind:
            case "work":
                self.work(side, position, act, fate if flag else None)
            case "request":
                self.request(fate, which)
            case "late":
                self.late_request(which)
            case "hear":
                self.hear(side)
            case "decide":
                self.decide(side, position, flag)
            case "retry":
                self.retry(side)
            case "reload":
                self.reload(side, flag)
            case "crash":
                self.crash(side)
            case "connect":
                self.connect_again(side, flag)
            case "model":
                self.model_changes_a_draft(position)
            case "settle":
                self.settle(side, position, "keep" if flag else "accept")
            case "comment":
                self.comment(side, position, which)
            case "step":
                self.go(side, "undo" if flag else "redo")
            case "several":
                self.several(side, "confirm" if flag else "clear")
            case "settle all":
                self.settle_all(side, "undo_changes" if flag else "accept_changes")

    # Tabs

    def open(self, side: str) -> None:
        name = f"tab{next(self.names)}"
        tab = self.tabs[side] = Tab(name, [asdict(row) for row in self.server.rows()])
        self.server.listeners.append(tab)
        left = {path: draft for draft in self.browser.kept for path in [draft["path"]]}
        self.browser.do("open", tab=name)
        rows = {f"{PREFIX}{row['position']}": row for row in tab.rows}
        before = {(draft["path"], draft["target"]): draft["tab"] for draft in self.browser.kept}
        for path in self.browser.do("adopt", tab=name, prefix=PREFIX, rows=rows):
            old = before[path, self.browser.drafts[name, path]["target"]]
            self.note_seen(name, path, self.seen[old, path])
        assert set(left) >= {draft["path"] for draft in self.browser.drafts.values() if draft["tab"] == name}
        self.browser.do("retry", tab=name)

    def shut(self, side: str) -> None:
        tab = self.tabs[side]
        assert tab is not None
        self.flying += [request["draft"] for request in self.browser.requests if request["tab"] == tab.name]
        self.browser.do("close", tab=tab.name)
        self.server.listeners.remove(tab)
        self.tabs[side] = None

    def draft(self, tab: Tab, position: int) -> Json | None:
        return self.browser.drafts.get((tab.name, f"{PREFIX}{position}"))

    def shown(self, tab: Tab, position: int) -> tuple[str, str]:
        own = self.draft(tab, position) or tab.rows[position]
        return own["target"], own["state"]

    def write(self, tab: Tab, position: int, target: str, state: str) -> None:
        path, row, draft = f"{PREFIX}{position}", tab.rows[position], self.draft(tab, position)
        if draft is None:
            seen = frozenset({(row["target"], row["state"])})
        else:
            seen = self.seen[tab.name, path]
            if draft["target"] != target:
                self.owed.pop(draft["target"], None)  # typed over by whoever saw it
        self.browser.do("keep", tab=tab.name, path=path, target=target, state=state, version=row["version"])
        self.note_seen(tab.name, path, seen | {(target, state)})

    def note_seen(self, tab: str, path: str, seen: frozenset[Seen]) -> None:
        """What stood before the eyes of whoever wrote a tab's draft, up to what it says now."""
        self.seen[tab, path] = self.seen_by[tab, self.browser.drafts[tab, path]["number"]] = seen

    def work(self, side: str, position: int, act: str, fate: str | None) -> None:
        """Somebody types, confirms or reopens a row. Without a fate, what is sent is on its way for a while."""
        tab = self.tabs[side]
        if tab is None:
            return
        draft = self.draft(tab, position)
        text, state = self.shown(tab, position)
        if act in ("type", "type and confirm"):
            text = f"Text {next(self.texts)}."
            self.write(tab, position, text, "edited")
            self.owed[text] = position
        elif act == "confirm nothing" and draft is None:  # the server will not have it
            self.write(tab, position, " ", "confirmed")
        if act in ("confirm", "type and confirm") and not (draft and draft["stopped"] == "conflict") and text.strip():
            self.write(tab, position, text, "confirmed")
        elif act == "review" and not draft and text.strip():
            self.write(tab, position, text, "reviewed")
        elif act == "reopen" and state in APPROVED and not draft:
            self.write(tab, position, text, "edited")
        if act != "type" or fate is not None:
            self.browser.do("send", tab=tab.name, path=f"{PREFIX}{position}")
        if fate is not None:
            self.request(fate, -1)

    def retry(self, side: str) -> None:
        if tab := self.tabs[side]:
            self.browser.do("retry", tab=tab.name)

    def decide(self, side: str, position: int, mine: bool) -> None:
        tab, path = self.tabs[side], f"{PREFIX}{position}"
        draft = self.draft(tab, position) if tab else None
        if tab is None or draft is None or draft["stopped"] != "conflict":
            return
        if mine:
            other = tab.rows[position]
            self.browser.do("keepMine", tab=tab.name, path=path, row=other)
            self.note_seen(tab.name, path, self.seen[tab.name, path] | {(other["target"], other["state"])})
            self.browser.do("send", tab=tab.name, path=path)
        else:
            self.owed.pop(draft["target"], None)
            self.browser.do("forget", tab=tab.name, path=path)

    def reload(self, side: str, politely: bool) -> None:
        """By hand, or after a crash, which does not send what is left."""
        if tab := self.tabs[side]:
            if politely:
                self.browser.do("flush", tab=tab.name)
            self.shut(side)
        self.open(side)

    def crash(self, side: str) -> None:
        if self.tabs[side]:
            self.shut(side)

    # The way to the server and back

    def request(self, fate: str, which: int) -> None:
        """One of the requests that are on their way meets its fate; a later one may be first."""
        if not self.browser.requests:
            return
        request = self.browser.requests[which % len(self.browser.requests)]
        answer: Json = {"kind": "failed", "reason": fate}
        if fate == "kills":
            self.server.die()
        elif fate not in ("is lost", "is too much"):
            arrived = self.arrive(request["draft"])
            if fate == "arrives":
                answer = arrived
        if fate == "kills afterwards":
            self.server.die()
        tab = next(tab for tab in self.tabs.values() if tab and tab.name == request["tab"])
        self.browser.do("answer", id=request["id"], answer=answer)
        if "row" in answer:
            tab.take(answer["row"])

    def late_request(self, which: int) -> None:
        """Sent by a tab that is gone."""
        if self.flying:
            self.arrive(self.flying.pop(which % len(self.flying)))

    def arrive(self, draft: Json) -> Json:
        position = int(draft["path"].removeprefix(PREFIX))
        before = self.server.rows()[position]
        answer = self.server.edit(draft)
        after = self.server.rows()[position]
        if after != before:
            assert (after.target, after.state) == (draft["target"], draft["state"])
            if before.is_approved:
                seen = self.seen_by[draft["tab"], draft["number"]]
                assert (before.target, before.state) in seen, "a confirmed text was overwritten unseen"
        return answer

    def hear(self, side: str) -> None:
        """The next piece of news reaches a tab."""
        tab = self.tabs[side]
        if tab and tab.news:
            tab.take(tab.news.pop(0))

    def connect_again(self, side: str, dies: bool) -> None:
        """A tab that has lost its connection, perhaps since the server died, takes the document as it is."""
        if dies:
            self.server.die()
        if tab := self.tabs[side]:
            tab.news.clear()
            for row in self.server.rows():
                tab.take(asdict(row))

    # The model's drafts, and what is done about them

    def model_changes_a_draft(self, position: int) -> None:
        store, document = self.server.store, self.server.document
        row = store.segment(document, position)
        changed = store.translate(document, position, f"Entwurf {next(self.texts)}.", row, cause=1)
        assert (changed is not None) == (row.state in ("empty", "draft"))
        if changed:
            self.server.bench.tell(document, changed)

    def settle(self, side: str, position: int, how: str) -> None:
        tab = self.tabs[side]
        if tab and tab.rows[position]["before"] is not None:
            with suppress(Changed):
                getattr(self.server.bench, how)(self.server.document, position, tab.rows[position]["version"])

    def settle_all(self, side: str, how: str) -> None:
        if tab := self.tabs[side]:
            seen = {row["position"]: row["version"] for row in tab.rows if row["before"] is not None}
            before = self.server.rows()
            rows, left = getattr(self.server.bench, how)(self.server.document, seen)
            assert {row.position for row in [*rows, *left]} == set(seen)
            for old, new in zip(before, self.server.rows(), strict=True):
                if old.position not in seen or old.version != seen[old.position]:
                    assert new == old

    # Comments, steps, several rows

    def comment(self, side: str, position: int, which: int) -> None:
        """Somebody comments on a row, or changes or deletes a comment that may have changed since it was seen."""
        tab, bench, document = self.tabs[side], self.server.bench, self.server.document
        if tab is None:
            return
        known, by = tab.rows[position]["comments"], Write("", "draft", 0, tab.name)
        text = f"Comment {next(self.texts)}." if which else None
        if not known or which > 3:
            row = bench.acts.comment(document, position, text or "New.", by)
            self.comments[row.comments[-1].id] = (position, row.comments[-1].text)
            return
        one = known[which % len(known)]
        row = self.server.rows()[position]
        now = next((comment for comment in row.comments if comment.id == one["id"]), None)
        try:
            bench.acts.change_comment(document, position, one["id"], text, one["version"], by)
        except Refused:
            assert now is None or now.version != one["version"]
            assert self.server.rows()[position] == row
            return
        assert now is not None
        assert now.version == one["version"]
        self.comments.pop(one["id"])
        if text is not None:
            self.comments[one["id"]] = (position, text)

    def go(self, side: str, direction: Direction) -> None:
        """Somebody takes the latest step back or does it again. Rows that have changed since are left."""
        tab, store, document = self.tabs[side], self.server.store, self.server.document
        steps = steps_of(store, document)
        step = steps.undo if direction == "undo" else steps.redo
        if tab is None or step is None:
            return
        before = self.server.rows()
        done = self.server.bench.acts.go(document, direction, step.id, Write("", "draft", 0))
        changed = {row.position for row in done.rows}
        for old, new in zip(before, self.server.rows(), strict=True):
            assert new == old or old.position in changed
        again = steps_of(store, document)
        assert (again.redo if direction == "undo" else again.undo) is not None
        self.comments = {one.id: (row.position, one.text) for row in self.server.rows() for one in row.comments}

    def several(self, side: str, act: Act) -> None:
        """All rows at once, as a tab has seen them. Approved text is not cleared."""
        tab = self.tabs[side]
        if tab is None:
            return
        before = self.server.rows()
        seen = {row["position"]: row["version"] for row in tab.rows}
        self.server.bench.acts.several(self.server.document, act, seen, Write("", "draft", 0))
        for old, new in zip(before, self.server.rows(), strict=True):
            assert new == old or (old.version == seen[old.position] and not old.is_approved)

    # What always holds

    @invariant()
    def comments_are_what_was_said_last(self) -> None:
        found = {one.id: (row.position, one.text) for row in self.server.rows() for one in row.comments}
        assert found == self.comments

    @invariant()
    def nothing_typed_is_lost(self) -> None:
        kept = {(draft["path"], draft["target"]) for draft in [*self.browser.kept, *self.browser.drafts.values()]}
        for text, position in self.owed.items():
            if (f"{PREFIX}{position}", text) not in kept:
                history = self.server.store.edits(self.server.document, position)
                assert text in {edit.after for edit in history}, f"{text} is gone"

    @invariant()
    def memory_and_history_equal_rows(self) -> None:
        rows = self.server.rows()
        if (rows, self.server.store) == self.checked:
            return
        self.checked = rows, self.server.store
        confirmed = {(row.source, row.target) for row in rows if row.is_approved}
        assert {(pair.source, pair.target) for pair in self.server.memories.of(self.server.project)} == confirmed
        for row in rows:
            history = self.server.store.edits(self.server.document, row.position)
            assert [edit.before for edit in history[1:]] == [edit.after for edit in history[:-1]]
            assert not history or (history[-1].after, history[-1].state_after) == (row.target, row.state)

    def teardown(self) -> None:
        """When everything works again, everything arrives, but for what waits for somebody's decision."""
        for side, tab in self.tabs.items():
            if tab is None:
                self.open(side)
        for _ in range(100):
            for tab in self.tabs.values():
                assert tab is not None
                self.browser.do("retry", tab=tab.name)
            if not self.browser.requests:
                break
            self.request(fate="arrives", which=0)
        assert [draft for draft in self.browser.drafts.values() if not draft["stopped"]] == []
        self.nothing_typed_is_lost()
        self.memory_and_history_equal_rows()
        self.server.end()


TestHistories = pytest.mark.skipif(shutil.which("node") is None, reason="no Node to run the page's script with")(
    Histories.TestCase
)
Histories.TestCase.settings = settings(
    max_examples=HISTORIES,
    stateful_step_count=STEPS,
    deadline=None,
    database=None,
    derandomize="WEITBLICK_HISTORIES" not in os.environ,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)
