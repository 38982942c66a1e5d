"""Which drafts change when row after row of a document is confirmed, and whether they are better then.

    python benchmarks/confirming.py --source dev.en --target dev.de [--documents 10]

Every row is confirmed with its reference, from the first to the last, as a translator would. Of the drafts that change
on the way it is counted how many they are, how many words of them are new, and how many come nearer to their reference
or get further away (chrF, by more than half a point), with BLEU and chrF of all of them before and after.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from difflib import SequenceMatcher
from pathlib import Path
from typing import NamedTuple

import sacrebleu

from weitblick.documents.document import Sentence
from weitblick.translation.translator import Translator
from weitblick.workbench.app import create_app
from weitblick.workbench.service import Service

SECONDS = 600
CLEARLY = 0.5


class Changed(NamedTuple):
    before: str
    after: str
    reference: str


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--target", type=Path, required=True)
    parser.add_argument("--documents", type=int, default=10, help="the first of 8 to 22 sentences")
    parser.add_argument("-m", "--model")
    options = parser.parse_args()
    pairs = list(zip(documents(options.source), documents(options.target), strict=True))
    chosen = [pair for pair in pairs if 8 <= len(pair[0]) <= 22][: options.documents]
    translator = Translator.load(options.model, device="cpu")
    with tempfile.TemporaryDirectory() as folder:
        service: Service = create_app(translator, Path(folder)).state.service
        found = [confirmed(service, source, target) for source, target in chosen]
        report([one for changed, _ in found for one in changed], sum(seconds for _, seconds in found))
        service.close()


def documents(path: Path) -> list[list[str]]:
    return [text.split("\n") for text in path.read_text(encoding="utf-8").strip().split("\n\n")]


def confirmed(service: Service, source: list[str], target: list[str]) -> tuple[list[Changed], float]:
    """The drafts of one document that change while it is confirmed, and the processor time that this takes."""
    store, workbench = service.store, service.workbench
    text = "".join(f"{sentence}\n\n" for sentence in source).encode()
    document = workbench.add(store.add_project("one").id, "one.txt", [Sentence(one) for one in source], text)
    workbench._filling[document].result.result(SECONDS)
    began = time.process_time()
    changed = []
    for position, reference in enumerate(target):
        before = [row.target for row in store.segments(document)]
        workbench.edit(document, position, reference, "confirmed")
        if document in workbench._improving:
            workbench._improving[document].result.result(SECONDS)
        changed += [
            Changed(before[row.position], row.target, target[row.position])
            for row in store.segments(document)
            if row.state == "draft" and row.target != before[row.position]
        ]
    return changed, time.process_time() - began


def report(changed: list[Changed], seconds: float) -> None:
    before, after, references = (list(column) for column in zip(*changed, strict=True)) if changed else ([], [], [])
    gains = [
        sacrebleu.sentence_chrf(new, [reference]).score - sacrebleu.sentence_chrf(old, [reference]).score
        for old, new, reference in changed
    ]
    words = sum(new_words(old.split(), new.split()) for old, new, _ in changed)
    print(f"{len(changed)} drafts changed, {words} words of them new; {seconds:.1f} s of processor time")
    print(
        f"nearer to the reference: {sum(gain > CLEARLY for gain in gains)}, further: {sum(g < -CLEARLY for g in gains)}"
    )
    if changed:
        for name, score in (("BLEU", sacrebleu.corpus_bleu), ("chrF", sacrebleu.corpus_chrf)):
            print(f"{name} {score(before, [references]).score:.2f} -> {score(after, [references]).score:.2f}")


def new_words(before: list[str], after: list[str]) -> int:
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    return sum(end - start for kind, _, _, start, end in matcher.get_opcodes() if kind != "equal")


if __name__ == "__main__":
    main()
