"""A blind form: documents sampled from two systems' outputs, sides shuffled, the key kept in a file of its own."""

from __future__ import annotations

import hashlib
import html
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field, model_validator

from weitblick.common.characters import json_for_script, page_policy
from weitblick.common.errors import UserError, parse_value, short
from weitblick.common.files import check_format_version, read_json, text_writer, write_json
from weitblick.evaluation.translations import read_translations

FORMAT_VERSION = 1
KIND = "weitblick judgement key"
PLACEHOLDER = "/*FORM*/null"
POLICY = "{{policy}}"
DOCUMENTS = 18


@dataclass(frozen=True)
class Key:
    """Which system is on the left (first) for each item of the form with this `form_id`."""

    form_id: str
    systems: tuple[str, str]
    left: dict[str, str]


FormItem = dict[str, Any]
"""A document as raters see it: its id, and lists of sentences: source, left, right and, if shown, reference."""


def key_path(form: Path) -> Path:
    return form.with_suffix(".key.json")


def sample_form(
    systems: Sequence[Path],
    source: Path,
    output: Path,
    *,
    reference: Path | None = None,
    documents: int = DOCUMENTS,
    seed: int = 1,
) -> Key:
    """Write the form to `output` and its key beside it. Documents in which the systems do not differ are left out."""
    first, second = systems
    # the source is what everything must have as many sentences as
    texts = read_translations([source], [first, second, *([] if reference is None else [reference])])
    gold = None if reference is None else texts.hypotheses[reference]
    ends = [sum(texts.lengths[: i + 1]) for i in range(len(texts.lengths))]
    spans = [slice(end - length, end) for end, length in zip(ends, texts.lengths, strict=True)]
    outputs = texts.hypotheses[first], texts.hypotheses[second]
    different = [number for number, span in enumerate(spans) if outputs[0][span] != outputs[1][span]]
    _check_enough(documents, len(different), source)
    generator = random.Random(seed)
    chosen = generator.sample(different, documents)
    labels = _names(first, second)
    items: list[FormItem] = []
    left: dict[str, str] = {}
    for number, document in enumerate(chosen, 1):
        span, swapped = spans[document], generator.random() < 0.5
        sides = outputs[::-1] if swapped else outputs
        item: FormItem = {
            "id": f"d{number}",
            "source": texts.references[0][span],
            "left": sides[0][span],
            "right": sides[1][span],
        }
        if gold is not None:
            item["reference"] = gold[span]
        items.append(item)
        left[item["id"]] = labels[1] if swapped else labels[0]
    return _write(output, Key("", labels, left), items, [d + 1 for d in chosen], seed)


def _names(first: Path, second: Path) -> tuple[str, str]:
    """The files' names where they differ, otherwise their paths."""
    return (first.name, second.name) if first.name != second.name else (str(first), str(second))


def _check_enough(wanted: int, available: int, source: Path) -> None:
    if wanted < 1:
        raise UserError(f"{wanted} documents", where="--documents", remedy="ask for at least 1")
    if available < wanted:
        raise UserError(
            f"{wanted} documents asked for, but the systems differ in only {available}",
            where=source,
            remedy=f"use --documents {available}" if available else "compare two different systems",
        )


def _write(output: Path, key: Key, items: list[FormItem], documents: list[int], seed: int) -> Key:
    # the id ties answers to this form without telling anything of the systems
    content = json.dumps([items, seed], ensure_ascii=False, sort_keys=True)
    key = Key(hashlib.sha256(content.encode()).hexdigest()[:16], key.systems, key.left)
    form = {"format_version": FORMAT_VERSION, "form_id": key.form_id, "items": items}
    with text_writer(output) as stream:
        stream.write(_page(form))
    write_json(
        key_path(output),
        {
            "format_version": FORMAT_VERSION,
            "kind": KIND,
            "form_id": key.form_id,
            "systems": list(key.systems),
            "seed": seed,
            "documents": dict(zip(key.left, documents, strict=True)),
            "left": key.left,
        },
    )
    return key


def _page(form: Mapping[str, object]) -> str:
    """The form as one page, whose policy allows its own script and style and nothing else."""
    page = resources.files("weitblick.evaluation").joinpath("judgement_form.html").read_text(encoding="utf-8")
    page = page.replace(PLACEHOLDER, json_for_script(form))
    script, style = (page.partition(f"<{tag}>")[2].partition(f"</{tag}>")[0] for tag in ("script", "style"))
    return page.replace(POLICY, html.escape(page_policy(script, style)))


class _KeyFile(BaseModel):
    """What a key must hold to be read."""

    form_id: str
    systems: tuple[str, str]
    left: dict[str, str] = Field(min_length=1)

    @model_validator(mode="after")
    def _systems_are_known(self) -> _KeyFile:
        if self.systems[0] == self.systems[1]:
            raise ValueError(f"field 'systems' names {short(self.systems[0])} twice")
        for item, system in self.left.items():
            if system not in self.systems:
                raise ValueError(f"field 'left.{item}' is {short(system)}, not one of the systems")
        return self


def read_key(path: Path) -> Key:
    value = read_json(path)
    if not isinstance(value, dict) or value.get("kind") != KIND:
        raise UserError("is not the key of a form", where=path, remedy="name the .key.json written by judge sample")
    check_format_version(value, FORMAT_VERSION, path)
    key = parse_value(_KeyFile, value, path, remedy="make form and key again")
    return Key(key.form_id, key.systems, key.left)
