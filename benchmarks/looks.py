"""How text looks: of headings, capitals, numbers, names, masked spans, ... how many come out as they should.

    python benchmarks/looks.py [--model FOLDER] [--suite looks.yaml] [--beam 4] [--show] [--json FILE]

The suite asks in wordings that training did not use; it judges what can be judged without a reference, not the words.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any

import yaml

from weitblick import Translator
from weitblick.documents.document import Document, Sentence

SUITE = Path(__file__).parent / "looks.yaml"


def main() -> None:
    options = parse_options()
    suite: dict[str, list[dict[str, Any]]] = yaml.safe_load(options.suite.read_text(encoding="utf-8"))
    items = [(kind, item) for kind, group in suite.items() for item in group]
    translator = Translator.load(options.model) if options.model else Translator.load()
    documents = [Document(str(place), (Sentence(item["source"]),)) for place, (_, item) in enumerate(items)]
    translated = translator.translate_documents(documents, beam=options.beam)
    outputs = [document.sentences[0].target or "" for document in translated]
    passed: dict[str, list[bool]] = {kind: [] for kind in suite}
    for (kind, item), output in zip(items, outputs, strict=True):
        good = passes(item, output)
        passed[kind].append(good)
        if options.show and not good:
            print(f"{kind}: {item['source']} -> {output}")
    rows = {kind: (sum(results), len(results)) for kind, results in passed.items()}
    rows["all"] = (sum(good for good, _ in rows.values()), sum(size for _, size in rows.values()))
    print("| kind | as it should be | of |\n|---|---|---|")
    for kind, (good, size) in rows.items():
        print(f"| {kind} | {good} | {size} |")
    if options.json:
        results = [{"kind": kind, **item, "output": out} for (kind, item), out in zip(items, outputs, strict=True)]
        options.json.write_text(json.dumps({"passed": rows, "items": results}, ensure_ascii=False, indent=1) + "\n")


def passes(item: dict[str, Any], output: str) -> bool:
    """Whether a translation has what it must have."""
    return (
        bool(output)
        and (item.get("has") is None or re.search(item["has"], output) is not None)
        and (item.get("lacks") is None or re.search(item["lacks"], output) is None)
        and (item.get("is") is None or re.fullmatch(item["is"], output) is not None)
        and all(output.count(text) == 1 for text in item.get("keeps", ()))
    )


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="model folder; the shipped model if absent")
    parser.add_argument("--suite", type=Path, default=SUITE)
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--show", action="store_true", help="print what fails")
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    main()
