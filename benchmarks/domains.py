"""How sure a model is of documents of several domains, and the value below which it is unsure: for the domain notice.

    python benchmarks/domains.py [-m MODEL] --own parliament=dev.en --other news=news.en ted=ted.en [--write]

A file has a sentence a line and an empty line between documents, or none at all. Of each domain `--documents` documents
of `--sentences` sentences are translated, and each has one figure: the mean log-probability of its words
(`translation/confidence.py`). A document is unsure below the lowest `--share` of the own domain. `--write` stores that
with the model; it holds for these weights and no others.
"""

from __future__ import annotations

import argparse
import lzma
from collections.abc import Iterator
from pathlib import Path
from statistics import mean, quantiles

from weitblick.checkpoints.installed import default_model
from weitblick.translation.confidence import calibrate, mean_log_probability, write_calibration
from weitblick.translation.translator import Translator


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-m", "--model", type=Path)
    parser.add_argument("--own", nargs="+", required=True, metavar="NAME=FILE", help="what the model is made for")
    parser.add_argument("--other", nargs="*", default=[], metavar="NAME=FILE")
    parser.add_argument("--documents", type=int, default=40)
    parser.add_argument("--sentences", type=int, default=16)
    parser.add_argument("--share", type=float, default=0.05, help="of own documents that may be called unsure")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    folder = options.model or default_model()
    translator = Translator.load(folder, device="cpu")
    figures: dict[str, list[float]] = {}
    for named in (*options.own, *options.other):
        name, path = named.split("=", 1)
        texts = list(documents(Path(path), options.sentences))
        chosen = texts[:: max(1, len(texts) // options.documents)][: options.documents]
        figures[name] = [found for text in chosen if (found := mean_log_probability(translator, text)) is not None]
    own = [figure for named in options.own for figure in figures[named.split("=", 1)[0]]]
    found = calibrate(own, options.share)
    print(f"unsure below {found:.3f}")
    for name, values in figures.items():
        low, *_, high = quantiles(values, n=10)
        unsure = mean(value < found for value in values)
        print(f"{name:>12}: {len(values):3} documents, mean {mean(values):.3f} ({low:.3f} to {high:.3f})", end="")
        print(f", {unsure:.0%} unsure")
    if options.write:
        write_calibration(folder, found, len(own))


def documents(path: Path, sentences: int) -> Iterator[list[str]]:
    """The beginnings of documents, of so many sentences; shorter documents are left out."""
    content = path.read_bytes()
    text = (lzma.decompress(content) if path.suffix == ".xz" else content).decode()
    blocks = [block.split("\n") for block in text.strip().split("\n\n")]
    if len(blocks) == 1:
        lines = blocks[0]
        blocks = [lines[start : start + sentences] for start in range(0, len(lines), sentences)]
    for block in blocks:
        if len(block) >= sentences:
            yield block[:sentences]


if __name__ == "__main__":
    main()
