"""Models of Firefox's kind, translated by Firefox's own engine and by us: the same words, the same probabilities?

    npm install @browsermt/bergamot-translator
    python benchmarks/firefox.py node_modules/@browsermt/bergamot-translator TEXT [--sizes tiny base base-memory]
    python benchmarks/firefox.py node_modules/@browsermt/bergamot-translator TEXT --model RUN/best
    python benchmarks/firefox.py node_modules/@browsermt/bergamot-translator TEXT --golden FOLDER
    python benchmarks/firefox.py node_modules/@browsermt/bergamot-translator TEXT --rounding FOLDER

Models are random ones of Firefox's three sizes, or one that `weitblick train` made (`model.architecture: ssru`); they
are exported in float32 and in 8 bits, imported again, and searched greedily by both. The engine cuts off a translation
by the longest sentence of its batch: of a line that does not end, what both have counts. Mozilla's own weights are not
needed, and could not be had where this was written. --golden writes golden.json into a folder with model.bin (8 bits),
vocab.spm and a shortlist: what the engine says, for the tests, which have no engine. --rounding asks where the
differences in 8 bits come from, of a folder with model.bin and vocab.spm: the engine with itself, a line alone and in a
batch; ours as it is and with products as the engine computes them; what these make of a millionth on the embeddings.
"""

from __future__ import annotations

import argparse
import html
import json
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import mean

import torch

from weitblick.checkpoints.export_firefox import export_firefox
from weitblick.checkpoints.folder import LoadedModel, build, load_model
from weitblick.checkpoints.import_marian import Imported, TextOptions, import_marian
from weitblick.checkpoints.marian_binary import read_binary, write_binary
from weitblick.common.recipe import ContextSection, ModelSection, TextSection
from weitblick.fast.quantized import quantize_linears
from weitblick.model.batch import pack_pairs
from weitblick.model.layers import Linear
from weitblick.model.ssru import RecurrentTransformer
from weitblick.text.base import EOS, TextPipeline
from weitblick.text.pipeline import learn_pipeline
from weitblick.translation.beam import SearchOptions
from weitblick.translation.translator import Translator

ENGINE = Path(__file__).parent / "peers" / "bergamot.cjs"
SIZES = {"mini": (32, 64, 2, 2), "tiny": (256, 1536, 6, 2), "base": (512, 2048, 6, 2), "base-memory": (384, 1536, 6, 4)}
"""Width, width of feed-forward, layers of encoder and decoder; the last three are Firefox's."""
PRECISIONS = {"float32": "float32", "int8": "int8shiftAll"}
WORD = re.compile(r'x-bergamot-word-score="([^"]+)">(.*?)</font>')


@dataclass(frozen=True)
class Result:
    """Shares of lines whose translations are the same, differences of mean log-probabilities of words, and how many
    pieces each side produces in a second of processor time, all lines at once."""

    model: str
    numbers: str
    lines: int
    same: float
    mean_difference: float
    greatest_difference: float
    their_speed: float
    our_speed: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("package", type=Path, help="where npm put the engine")
    parser.add_argument("text", type=Path, help="sentences, one a line")
    parser.add_argument("--sizes", nargs="*", choices=SIZES, default=["tiny", "base", "base-memory"])
    parser.add_argument("--model", type=Path, help="a trained model folder instead of random ones")
    parser.add_argument("--golden", type=Path, help="a folder whose golden.json is written")
    parser.add_argument("--rounding", type=Path, help="a folder whose differences in 8 bits are explained")
    parser.add_argument("--languages", nargs=2, default=("en", "de"), help="of that folder")
    parser.add_argument("--lines", type=int, default=100)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    lines = [line for line in options.text.read_text(encoding="utf-8").splitlines() if line][: options.lines]
    if options.golden:
        write_golden(options.golden, options.package, lines)
        return
    if options.rounding:
        explain_rounding(options.rounding, options.package, lines, TextOptions(*options.languages))
        return
    results = []
    with tempfile.TemporaryDirectory() as temporary:
        models = (
            {options.model.name: load_model(options.model)} if options.model else random_models(options.sizes, lines)
        )
        for name, loaded in models.items():
            for numbers, precision in PRECISIONS.items():
                folder = Path(temporary) / f"{name}-{numbers}"
                export_firefox(loaded, folder, int8=numbers == "int8")
                results.append(compare(name, numbers, folder, options.package, precision, lines))
                print(results[-1], flush=True)
    if options.json:
        options.json.write_text(json.dumps([asdict(result) for result in results], indent=1))


def write_golden(folder: Path, package: Path, lines: list[str]) -> None:
    """The engine's translations of lines: with the weights of 8 bits as floats, as they are, and with the shortlist."""
    found: dict[str, object] = {"sources": lines}
    with tempfile.TemporaryDirectory() as temporary:
        plain = Path(temporary)
        shutil.copy(folder / "vocab.spm", plain)
        write_binary(plain / "model.bin", read_binary(folder / "model.bin"))
        found["float32"] = scored_lines(package, plain, "float32", lines)
        shutil.copy(folder / "model.bin", plain)
        found["int8"] = scored_lines(package, plain, "int8shiftAll", lines)
        shutil.copy(folder / "lex.bin", plain)  # the engine has one shortlist for a batch: a line at a time
        found["shortlist"] = [run_engine(package, plain, "int8shiftAll", [line])[0] for line in lines]
    (folder / "golden.json").write_text(json.dumps(found, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def scored_lines(package: Path, folder: Path, precision: str, lines: list[str]) -> list[dict[str, object]]:
    plain = run_engine(package, folder, precision, lines)
    marked = run_engine(package, folder, precision, lines, scores=True)
    return [
        {"translation": text, "word_scores": [float(score) for score, _ in WORD.findall(scored)]}
        for text, scored in zip(plain, marked, strict=True)
    ]


def random_models(sizes: list[str], lines: list[str]) -> dict[str, LoadedModel]:
    text = TextSection(kind="sentencepiece", merges=1000, joint_vocabulary=True, longest_sentence=100)
    pipeline = learn_pipeline((lines, lines), text, workers=1)
    return {size: random_model(pipeline, *SIZES[size]) for size in sizes}


def random_model(
    pipeline: TextPipeline, dimension: int, feed_forward: int, encoder_layers: int, decoder_layers: int, seed: int = 7
) -> LoadedModel:
    """Weights for which a state says little of the word that led to it, so that words differ and sentences end."""
    torch.manual_seed(seed)
    section = ModelSection(
        architecture="ssru",
        dimension=dimension,
        feed_forward=feed_forward,
        encoder_layers=encoder_layers,
        decoder_layers=decoder_layers,
        heads=8,
        attention_biases=True,
        tied_embeddings="all",
    )
    size = len(pipeline.target_vocabulary)
    model = build(section, ContextSection(), size, size).eval()
    sentence = model.sentence
    assert isinstance(sentence, RecurrentTransformer)
    with torch.no_grad():
        for name, parameter in sentence.named_parameters():
            if "norm" in name or name.endswith("bias"):
                parameter += 0.2 * torch.randn_like(parameter)
        for layer in sentence.decoder:
            layer.source_attention.output.weight *= 3
            layer.feed_forward.output.weight *= 12
        sentence.decoder[-1].around_feed_forward.norm.weight *= 3
        sentence.output_bias[EOS] += 0.2 * dimension**0.5
    return LoadedModel(model, pipeline, section, ContextSection())


def compare(name: str, numbers: str, folder: Path, package: Path, precision: str, lines: list[str]) -> Result:
    imported = import_marian(folder, TextOptions("en", "de"))
    theirs, seconds = timed_engine(package, folder, precision, lines)
    scored = run_engine(package, folder, precision, lines, scores=True)
    ours = Translator(imported.model, imported.pipeline).translate(lines, beam=1).targets
    model = quantize_linears(imported.model) if numbers == "int8" else imported.model
    translator = Translator(model, imported.pipeline)
    translator.translate(lines[:2], beam=1)  # what is made once is made
    start = time.process_time()
    produced = translator.translate(lines, beam=1).targets
    our_speed = pieces(imported, produced) / (time.process_time() - start)
    same = [agree(imported, *triple) for triple in zip(lines, ours, theirs, strict=True)]
    differences = []
    for line, our, their, marked in zip(lines, ours, theirs, scored, strict=True):
        found = [(float(score), html.unescape(word)) for score, word in WORD.findall(marked)]
        if our == their and [word for _, word in found] == our.split():
            pairs = zip(word_scores(imported, line, our), found, strict=True)
            differences += [abs(mine - score) for mine, (score, _) in pairs]
    if not differences:
        differences = [float("nan")]
    return Result(
        name,
        numbers,
        len(lines),
        round(mean(same), 4),
        round(mean(differences), 6),
        round(max(differences), 6),
        round(pieces(imported, theirs) / seconds),
        round(our_speed),
    )


def pieces(imported: Imported, texts: Sequence[str]) -> int:
    """With the end of each."""
    return sum(len(ids) + 1 for ids in imported.pipeline.encode_target(texts))


def agree(imported: Imported, line: str, our: str, their: str) -> bool:
    """Whether they are the same; of one that we cut off at its greatest length, as far as both go."""
    (source,), (target,) = imported.pipeline.encode_source([line]), imported.pipeline.encode_target([our])
    if our == their or len(target) < SearchOptions().most_words(torch.tensor(len(source))):
        return our == their
    our, their = our.rstrip("\ufffd"), their.rstrip("\ufffd")  # a byte that was cut off
    return our.startswith(their) or their.startswith(our)


def explain_rounding(folder: Path, package: Path, lines: list[str], options: TextOptions) -> None:
    """Prints how many lines are the same, and how far log-probabilities of the engine's words differ."""
    imported = import_marian(folder, options)
    together = run_engine(package, folder, PRECISIONS["int8"], lines)
    alone = run_engine(package, folder, PRECISIONS["int8"], lines, alone=True)
    marked = run_engine(package, folder, PRECISIONS["int8"], lines, scores=True, alone=True)
    print(f"the engine, a line alone and in a batch: {sum(map(str.__eq__, alone, together))} of {len(lines)} the same")
    scores: list[list[float]] = []
    products: list[EngineProduct] = []
    for label in ("ours", "ours, products as there", "the same, embeddings off by 1e-6"):
        if label == "ours, products as there":
            assert isinstance(imported.model.sentence, RecurrentTransformer)
            products = round_as_the_engine(imported.model.sentence)
        if label == "the same, embeddings off by 1e-6":
            torch.manual_seed(1)
            table = imported.model.sentence.source_table.weight
            table.data *= 1 + 1e-6 * torch.randn_like(table)
        translator = Translator(imported.model, imported.pipeline)
        ours = [translator.translate([line], beam=1).targets[0] or "" for line in lines]
        same = sum(agree(imported, *triple) for triple in zip(lines, ours, alone, strict=True))
        scores.append([x for line, text in zip(lines, alone, strict=True) for x in word_scores(imported, line, text)])
        theirs = [float(score) for text in marked for score, _ in WORD.findall(text)]
        apart = f", words {spread(scores[-1], theirs)}" if len(theirs) == len(scores[-1]) else ""
        print(f"{label}: {same} of {len(lines)} the same as the engine, alone{apart}", flush=True)
    print(f"a millionth on the embeddings, products as there: words {spread(scores[1], scores[2])}")
    print(
        f"sums of two products that 16 bits cut off: {sum(p.cut for p in products) / sum(p.sums for p in products):.1e}"
    )


def spread(these: list[float], those: list[float]) -> str:
    found = [abs(a - b) for a, b in zip(these, those, strict=True)]
    return f"{mean(found):.6f} apart, at most {max(found):.6f}"


def round_as_the_engine(sentence: RecurrentTransformer) -> list[EngineProduct]:
    """Gives a model products as the engine computes them, and returns them; where states were, there are logits now."""
    products = []
    for name, module in sentence.named_modules():
        if isinstance(module, Linear):
            by_step = name.startswith("decoder") and not name.endswith("source_attention.memory")
            parts = {"attention.input": 3, "source_attention.memory": 2}
            count = next((count for ending, count in parts.items() if name.endswith(ending)), 1)
            product = EngineProduct(module.weight.chunk(count), by_step)
            module.forward = partial(affine, product, module.bias)  # type: ignore[method-assign]
            products.append(product)
    weight, bias = sentence.output()
    product = EngineProduct((weight,), by_step=True)
    sentence.output = lambda: (torch.eye(len(weight)), bias)  # type: ignore[method-assign]
    sentence.decoder_norm = product
    return [*products, product]


def affine(product: EngineProduct, bias: torch.Tensor | None, x: torch.Tensor, rectified: bool = False) -> torch.Tensor:
    found = product(x) if bias is None else product(x) + bias
    return found.relu() if rectified else found


class EngineProduct(torch.nn.Module):
    """x W' by 8-bit integers, as intgemm has it on a machine without VNNI, and in WebAssembly.

    x is rounded to 127 levels of its greatest magnitude (of all words of the source, of each step of the decoder), and
    127 is added, so that it is not negative; sums of two products are cut off at 16 bits; 127 W is taken away again.
    """

    def __init__(self, parts: Sequence[torch.Tensor], by_step: bool) -> None:
        super().__init__()
        self.by_step = by_step
        self.scales = [127 / part.abs().max() for part in parts]
        self.integers = [(part * scale).round() for part, scale in zip(parts, self.scales, strict=True)]
        self.sums = self.cut = 0

    @torch.no_grad()
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scale = 127 / (x.abs().amax(-1, keepdim=True) if self.by_step else x.abs().max())
        shifted = (x * scale).round().clamp(-127, 127) + 127
        rows = []
        for row in shifted.flatten(0, -2):
            found = []
            for integers, own in zip(self.integers, self.scales, strict=True):
                pairs = (row * integers).unflatten(-1, (-1, 2)).sum(-1)  # [n, k / 2]
                self.sums, self.cut = self.sums + pairs.numel(), self.cut + int((pairs.abs() > 32767).sum())
                found.append((pairs.clamp(-32768, 32767).sum(-1) - 127 * integers.sum(-1)) / own)
            rows.append(torch.cat(found))
        return torch.stack(rows).view(*x.shape[:-1], -1) / scale


def run_engine(
    package: Path, folder: Path, precision: str, lines: list[str], scores: bool = False, alone: bool = False
) -> list[str]:
    return timed_engine(package, folder, precision, lines, scores, alone)[0]


def timed_engine(
    package: Path, folder: Path, precision: str, lines: list[str], scores: bool = False, alone: bool = False
) -> tuple[list[str], float]:
    """Its translations, and the processor's seconds that they took."""
    given = [html.escape(line, quote=False) for line in lines] if scores else lines
    flags = [flag for flag, wanted in (("--scores", scores), ("--alone", alone)) if wanted]
    command = ["node", str(ENGINE), str(package), str(folder), precision, *flags]
    done = subprocess.run(command, input="\n".join(given) + "\n", capture_output=True, text=True, check=True)
    return done.stdout.splitlines(), float(done.stderr.rpartition("seconds ")[2])


@torch.no_grad()
def word_scores(imported: Imported, line: str, translation: str) -> list[float]:
    """The mean log-probability of the pieces of every word, among the words that may be said."""
    pipeline, sentence = imported.pipeline, imported.model.sentence
    (target,) = pipeline.encode_target([translation])
    batch = pack_pairs(pipeline.encode_source([line]), [target])
    memory = sentence.encode(batch.source.tokens, batch.source.layout)
    states = sentence.decode(batch.target.tokens, batch.target.layout, memory, batch.source.layout).final
    weight, bias = sentence.output()
    found = (states @ weight.t() + bias).log_softmax(-1).gather(1, batch.labels[:, None])[:, 0]
    return [float(found[start:end].mean()) for start, end, _ in pipeline.words(target, "target")]


if __name__ == "__main__":
    main()
