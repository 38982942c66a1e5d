"""Where the model is unsure of most of a document, one line says so: by a figure that belongs to its very weights."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from workbench_story import Story

from weitblick.checkpoints.installed import default_model
from weitblick.translation.confidence import FILE, WEIGHTS, calibrate, read_calibration, write_calibration

PARLIAMENT = """Mr President, I would like to thank the rapporteur for her excellent report.

The Commission has presented a proposal for a directive to the Council and to Parliament.

We must ensure that the Member States implement this legislation as soon as possible.

I voted in favour of this report because it is important for the citizens of the European Union.

The committee has adopted the amendments that were tabled by my group.

Thank you very much, Commissioner, for your answer to this question.
"""
FAIRY_TALE = """The goblin hiccupped and dribbled porridge down his beard.

Grandmother's slippers were wet, so she hung them over the stove.

He whistled, kicked a pebble and wandered down to the creek.

A spider dangled above the cradle, spinning in the draught.

The witch stirred the cauldron with her crooked broomstick, humming.

The dragon sneezed, and all the candles went out at once.
"""


def judged(client: TestClient, text: str) -> dict[str, Any]:
    project = client.post("/v1/projects", json={"name": "Test"}).json()["id"]
    document = client.post(f"/v1/projects/{project}/documents", data={"text": text}).json()["id"]
    return client.get(f"/v1/projects/{project}/documents/{document}/confidence").json()


def test_the_shipped_model_is_sure_of_parliament_only(client: TestClient) -> None:
    """The shipped model's own figure; whoever replaces it measures anew (benchmarks/domains.py)."""
    if read_calibration(default_model()) is None:
        pytest.skip("nobody has measured what is usual for these weights")
    own, other = judged(client, PARLIAMENT), judged(client, FAIRY_TALE)
    assert other["mean_log_probability"] < own["mean_log_probability"]
    assert (own["unsure"], other["unsure"]) == (False, True)


def test_a_short_text_is_not_judged(client: TestClient) -> None:
    found = judged(client, "The cat jumped.\n")
    assert (found["unsure"], found["mean_log_probability"]) == (False, None)


def test_a_figure_holds_for_its_weights_only(tmp_path: Path) -> None:
    shutil.copyfile(default_model() / WEIGHTS, tmp_path / WEIGHTS)
    assert read_calibration(tmp_path) is None
    write_calibration(tmp_path, -1.25, 40)
    assert read_calibration(tmp_path) == -1.25
    with (tmp_path / WEIGHTS).open("ab") as weights:
        weights.write(b"other")
    assert read_calibration(tmp_path) is None
    assert (tmp_path / FILE).exists()


def test_the_lowest_share_is_unsure() -> None:
    assert calibrate([-0.1 * n for n in range(1, 21)], 0.05) == pytest.approx(-1.9)


@pytest.mark.browser
def test_the_notice_is_shown_until_it_is_understood(story: Story) -> None:
    page = story.page
    page.route("**/confidence", lambda route: route.fulfill(json={"unsure": True}))
    story.open_text()
    page.wait_for_selector("#domain:visible")
    assert "unsure of most of this document" in page.inner_text("#domain")
    page.click("#domain-close")
    story.reload()
    page.wait_for_timeout(300)
    assert not page.is_visible("#domain")
