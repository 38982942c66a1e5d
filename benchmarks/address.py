"""How many documents are addressed in one form throughout, *Sie* or *du* and *ihr*, and how many would be without that.

    python benchmarks/address.py [-m MODEL] chat=dev.en ted=dev.en [--sentences 40] [--documents 80]

A file has a sentence a line and an empty line between documents. Every document is translated whole, with
`--formality auto`, and again sentence by sentence, where nothing makes the forms agree. Of the documents in which two
or more translations show a form of address, it counts those that show one only. What shows a form is decided by
`weitblick.text.address`, which a translation itself goes by: forms that it does not see (requests such as *Komm mit*)
are not counted here either.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path

from weitblick.checkpoints.installed import default_model
from weitblick.documents.document import Document, Sentence
from weitblick.text.address import Form, forms_of_address
from weitblick.translation.translator import Translator


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", nargs="+", metavar="NAME=FILE")
    parser.add_argument("-m", "--model", type=Path)
    parser.add_argument("--documents", type=int, default=80)
    parser.add_argument("--sentences", type=int, default=40, help="of each document, its first ones")
    options = parser.parse_args()
    translator = Translator.load(options.model or default_model(), device="cpu")
    everything: dict[str, list[bool]] = {"whole": [], "sentence by sentence": []}
    for named in options.corpora:
        name, path = named.split("=", 1)
        blocks = Path(path).read_text("utf-8").strip().split("\n\n")
        texts = [block.split("\n")[: options.sentences] for block in blocks][: options.documents]
        alone = iter(translate(translator, [[sentence] for text in texts for sentence in text]))
        translations = {
            "whole": translate(translator, texts),
            "sentence by sentence": [[next(alone)[0] for _ in text] for text in texts],
        }
        for way, targets in translations.items():
            found = [agrees(text, target) for text, target in zip(texts, targets, strict=True)]
            counted = [own for own in found if own is not None]
            everything[way] += counted
            print(f"{name:>10}, {way}: {share_of(counted)}")
    for way, counted in everything.items():
        print(f"{'all':>10}, {way}: {share_of(counted)}")


def translate(translator: Translator, texts: list[list[str]]) -> list[list[str]]:
    documents = [Document(str(number), tuple(map(Sentence, text))) for number, text in enumerate(texts)]
    return [[target or "" for target in own.targets] for own in translator.translate_documents(documents)]


def agrees(sources: list[str], targets: list[str]) -> bool | None:
    """Whether the translations of a document show one form only; None if fewer than two of them show any."""
    shown: list[frozenset[Form]] = [forms_of_address(*pair) for pair in zip(sources, targets, strict=True)]
    addressed = [forms for forms in shown if forms]
    return None if len(addressed) < 2 else len(frozenset[Form]().union(*addressed)) == 1


def share_of(counted: list[bool], trials: int = 2000) -> str:
    """The share and its 95 % interval, by drawing documents again."""
    if not counted:
        return "no document addresses anybody twice"
    draw = random.Random(1)
    shares = sorted(sum(draw.choices(counted, k=len(counted))) / len(counted) for _ in range(trials))
    low, high = shares[int(0.025 * trials)], shares[int(0.975 * trials)]
    return f"{sum(counted)} of {len(counted)}, {sum(counted) / len(counted):.3f} [{low:.3f}, {high:.3f}]"


if __name__ == "__main__":
    main()
