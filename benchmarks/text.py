"""Words per second of the text pipelines, next to the libraries they stand on.

    python benchmarks/text.py SOURCE TARGET [--source-language en] [--target-language de] [--merges 8000] [--json]

Pipelines are learned from both files and timed on SOURCE (plain, gzip or xz): once as it comes (`cold`, with all caches
empty) and once more (`warm`). The libraries do the same work: sacremoses alone (normalise, tokenise, truecase), and
subword-nmt behind it. Figures are per second of one core's time, so that a busy machine does not spoil them; only
those on several cores are by the clock.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

from weitblick.common.files import read_lines
from weitblick.common.recipe import TextSection
from weitblick.text.base import load_pipeline
from weitblick.text.moses_pipeline import MosesPipeline
from weitblick.text.moses_text import moses_tokens
from weitblick.text.pipeline import learn_pipeline


def main() -> None:
    options = parse_options()
    sources, targets = (list(islice(read_lines(path), options.sentences)) for path in (options.source, options.target))
    sources, targets = ([line for line in side if line.strip()] for side in (sources, targets))
    words = sum(len(line.split()) for line in sources)
    results: dict[str, float] = {}

    def measure(
        name: str, work: Callable[[], Any], count: int = words, clock: Callable[[], float] = time.process_time
    ) -> Any:
        start = clock()
        result = work()
        results[name] = count / (clock() - start)
        return result

    languages = {"source_language": options.source_language, "target_language": options.target_language}
    both = words + sum(len(line.split()) for line in targets)
    for kind in ("moses", "sentencepiece"):
        section = TextSection(kind=kind, merges=options.merges, **languages)
        pipeline = measure(
            f"{kind}: learn", lambda section=section: learn_pipeline((sources, targets), section, workers=1), both
        )
        moses_tokens.cache_clear()
        with tempfile.TemporaryDirectory() as folder:  # a loaded pipeline has met no word yet
            pipeline.save(folder)
            pipeline = load_pipeline(folder)
        for cache in ("cold", "warm"):
            encoded = measure(f"{kind}: encode, {cache}", lambda p=pipeline: p.encode(sources, "source"))
        measure(f"{kind}: decode", lambda p=pipeline, e=encoded: p.decode(e, "source"))
        if isinstance(pipeline, MosesPipeline):
            measure_libraries(pipeline, sources, measure)
    report(results, words, len(sources), options.json)


def measure_libraries(pipeline: MosesPipeline, sentences: list[str], measure: Callable[..., Any]) -> None:
    """sacremoses and subword-nmt with what `pipeline` has learned."""
    import io

    from sacremoses import MosesPunctNormalizer, MosesTokenizer, MosesTruecaser
    from subword_nmt.apply_bpe import BPE

    normaliser, tokeniser = MosesPunctNormalizer(pipeline.source_language), MosesTokenizer(pipeline.source_language)
    truecaser = MosesTruecaser()
    own = pipeline._truecasers[0]
    truecaser.model = {"best": own.best, "known": own.known}

    def tokens(lines: Iterable[str]) -> list[list[str]]:
        return [tokeniser.tokenize(normaliser.normalize(line), escape=False) for line in lines]

    def truecased() -> list[list[str]]:
        return [truecaser.truecase(" ".join(line), use_known=True) for line in tokens(sentences)]

    ready = measure("sacremoses alone", truecased)
    codes = io.StringIO(pipeline._files()["bpe.codes"].decode())
    segmenter = BPE(codes, vocab=set(pipeline.source_vocabulary.tokens))
    measure("subword-nmt behind it (cold)", lambda: [segmenter.segment_tokens(line) for line in ready])


def report(results: dict[str, float], words: int, sentences: int, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"sentences": sentences, "words": words, "words_per_second": results}))
        return
    print(f"{sentences:,} sentences, {words:,} words (before tokenisation)")
    base = results["sacremoses alone"]
    for name, speed in results.items():
        print(f"{name:32} {speed:12,.0f} words/s {speed / base:8.1f}x")


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source")
    parser.add_argument("target")
    parser.add_argument("--source-language", default="en")
    parser.add_argument("--target-language", default="de")
    parser.add_argument("--merges", type=int, default=8000)
    parser.add_argument("--sentences", type=int, default=None, help="read only so many lines")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()
