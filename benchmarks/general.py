"""BLEU and chrF of models, and of others' translations, on many sets, with intervals, as one table.

    python benchmarks/general.py --model old=FOLDER --model new=FOLDER \\
        --set flores=dev.en,dev.de --other flores:Firefox=dev.bergamot-tiny.de --set everyday=everyday.en,everyday.de

Sentences are translated one by one, without their documents. `--limit 300` takes the first sentences of every set. The
intervals are the middle 95% of the score over resampled sentences.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any, NamedTuple

from weitblick import Translator
from weitblick.documents.corpora.formats import read_documents
from weitblick.documents.document import Document, Sentence
from weitblick.evaluation.metrics import Bleu, Chrf
from weitblick.evaluation.significance import estimate

TRIALS = 1000


class EvaluationSet(NamedTuple):
    """Sentences with references, and what others made of them, by their names."""

    sources: list[str]
    references: list[str]
    others: dict[str, list[str]]


def main() -> None:
    options = parse_options()
    sets = read_sets(options)
    rows: list[dict[str, Any]] = []
    for name, one in sets.items():
        rows += [scores(name, other, lines, one.references) for other, lines in one.others.items()]
    for name, folder in (entry.split("=", 1) for entry in options.model):
        translator = Translator.load(None if folder == "shipped" else folder)
        for set_name, one in sets.items():
            clock = time.process_time()
            outputs = translate(translator, one.sources, options.beam)
            seconds = time.process_time() - clock
            words = sum(len(source.split()) for source in one.sources)
            row = scores(set_name, name, outputs, one.references)
            rows.append({**row, "words_per_cpu_second": words / seconds})
            print(f"{name} on {set_name}: {row['bleu']:.2f} BLEU, {row['chrf']:.2f} chrF", flush=True)
            if options.outputs:
                options.outputs.mkdir(parents=True, exist_ok=True)
                (options.outputs / f"{set_name}.{name}.de").write_text("\n".join(outputs) + "\n", encoding="utf-8")
    print(table(rows))
    if options.json:
        options.json.write_text(
            json.dumps({"beam": options.beam, "limit": options.limit, "rows": rows}, indent=1) + "\n"
        )


def read_sets(options: argparse.Namespace) -> dict[str, EvaluationSet]:
    sets: dict[str, EvaluationSet] = {}
    for entry in options.set:
        name, paths = entry.split("=", 1)
        pairs = [s for document in read_documents(paths.split(",")) for s in document.sentences][: options.limit]
        sets[name] = EvaluationSet([s.source for s in pairs], [s.target or "" for s in pairs], {})
    for entry in options.other:
        place, path = entry.split("=", 1)
        name, other = place.split(":", 1)
        lines = Path(path).read_text(encoding="utf-8").splitlines()
        sets[name].others[other] = lines[: len(sets[name].sources)]
    return sets


def translate(translator: Translator, sources: list[str], beam: int) -> list[str]:
    documents = (Document(str(place), (Sentence(source),)) for place, source in enumerate(sources))
    return [d.sentences[0].target or "" for d in translator.translate_documents(documents, beam=beam)]


def scores(set_name: str, system: str, outputs: list[str], references: list[str]) -> dict[str, Any]:
    row: dict[str, Any] = {"set": set_name, "system": system, "sentences": len(outputs)}
    for metric in (Bleu("sacrebleu", "sacreBLEU"), Chrf()):
        found = estimate(metric, [metric.statistics(outputs, references)], trials=TRIALS)
        name = "bleu" if isinstance(metric, Bleu) else "chrf"
        row |= {name: found.score, f"{name}_interval": [found.interval.low, found.interval.high]}
    return row


def table(rows: list[dict[str, Any]]) -> str:
    """A system a row, a set a column: BLEU with its interval, and chrF."""
    sets, systems = (list(dict.fromkeys(row[key] for row in rows)) for key in ("set", "system"))
    found = {(row["system"], row["set"]): row for row in rows}
    lines = ["| | " + " | ".join(sets) + " |", "|---" * (len(sets) + 1) + "|"]
    for system in systems:
        cells = []
        for name in sets:
            row = found.get((system, name))
            low, high = row["bleu_interval"] if row else (0, 0)
            cells.append(f"{row['bleu']:.1f} [{low:.1f}, {high:.1f}] / {row['chrf']:.1f}" if row else "")
        lines.append(f"| {system} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--model", action="append", default=[], metavar="NAME=FOLDER", help="shipped: the shipped model"
    )
    parser.add_argument("--set", action="append", required=True, metavar="NAME=SOURCE,TARGET")
    parser.add_argument("--other", action="append", default=[], metavar="SET:NAME=FILE", help="others' translations")
    parser.add_argument("--limit", type=int, help="only so many sentences of each set")
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--outputs", type=Path, help="folder for the translations")
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    main()
