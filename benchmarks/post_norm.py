"""The shipped model with norms behind its layers, as Marian's models have them, almost without a loss: to be exported.

    WEITBLICK_KERNELS=off python benchmarks/post_norm.py SOURCE REFERENCE FOLDER
    weitblick export marian -m FOLDER -o MARIAN
    weitblick import MARIAN -o IMPORTED

A layer that reads norm(x) and adds to x is one that reads x / s and adds to x / s, s the spread of x: norms see no
factor. s differs from word to word, which the mean that stands here does not; hence the loss, which is printed.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from torch import Tensor, nn

from weitblick.checkpoints.folder import build, load_model, save_model
from weitblick.checkpoints.installed import default_model
from weitblick.common.recipe import ContextSection
from weitblick.model.batch import Pairs, pack_pairs
from weitblick.model.transformer import Transformer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs=2, type=Path, metavar="FILE", help="source and reference, for spreads and loss")
    parser.add_argument("output", type=Path)
    parser.add_argument("--lines", type=int, default=150)
    options = parser.parse_args()
    loaded = load_model(default_model())
    pipeline, old = loaded.pipeline, loaded.model.sentence
    assert isinstance(old, Transformer)
    texts = [[t for t in f.read_text("utf-8").split("\n") if t][: options.lines] for f in options.files]
    pairs = pack_pairs(pipeline.encode_source(texts[0]), pipeline.encode_target(texts[1]))
    section = loaded.model_section.model_copy(update={"norm": "post", "attention_biases": True})
    model = build(section, ContextSection(), len(pipeline.source_vocabulary), len(pipeline.target_vocabulary)).eval()
    assert isinstance(model.sentence, Transformer)
    convert(old.eval(), model.sentence, spreads(old, pairs))
    print(f"nats a token: {loss(old, pairs):.3f} before, {loss(model.sentence, pairs):.3f} with norms behind")
    save_model(options.output, model, pipeline, section, {"languages": "en -> de"})


@torch.no_grad()
def loss(model: Transformer, pairs: Pairs) -> float:
    encoded = model.encode(pairs.source.tokens, pairs.source.layout)
    states = model.decode(pairs.target.tokens, pairs.target.layout, encoded, pairs.source.layout).final
    weight, bias = model.output()
    return -float((states @ weight.t() + bias).log_softmax(-1).gather(1, pairs.labels[:, None]).mean())


def spreads(model: Transformer, pairs: Pairs) -> dict[nn.Module, float]:
    """The mean standard deviation of what each norm reads."""
    found: dict[nn.Module, float] = {}

    def see(norm: nn.Module, given: tuple[Tensor, ...], _: Tensor) -> None:
        found[norm] = float(given[0].std(-1, unbiased=False).mean())

    hooks = [m.register_forward_hook(see) for m in model.modules() if isinstance(m, nn.LayerNorm)]
    loss(model, pairs)
    for hook in hooks:
        hook.remove()
    if not found:
        raise SystemExit("kernels see no hooks: set WEITBLICK_KERNELS=off")
    return found


@torch.no_grad()
def convert(old: Transformer, new: Transformer, spread: dict[nn.Module, float]) -> None:
    new.source_table.weight.copy_(old.source_table.weight)
    new.target_table.weight.copy_(old.target_table.weight)
    new.output_bias.copy_(old.output_bias)
    for layers, own, final in (
        (old.encoder, new.encoder, old.encoder_norm),
        (old.decoder, new.decoder, old.decoder_norm),
    ):
        first = True  # what the first sub-layer reads has passed no norm yet
        for layer, other in zip(layers, own, strict=True):
            for name, around in (("attention", "around_attention"), ("source_attention", "around_source_attention")):
                if hasattr(layer, name):
                    parts = getattr(layer, name), getattr(other, name)
                    reads = [p.input if name == "attention" else p.query for p in parts]
                    norm = getattr(layer, around).norm
                    _copy(reads, [p.output for p in parts], norm, spread[norm], first)
                    first = False
            if hasattr(layer, "source_attention"):
                _take(other.source_attention.memory, layer.source_attention.memory, 1.0)
            wide = layer.feed_forward, other.feed_forward
            norm = layer.around_feed_forward.norm
            _copy([w.input for w in wide], [w.output for w in wide], norm, spread[norm], False)
        last = own[-1].around_feed_forward.norm
        last.load_state_dict(final.state_dict())


def _copy(reads: list[nn.Linear], writes: list[nn.Linear], norm: nn.LayerNorm, spread: float, first: bool) -> None:
    """The norm's factors go into what reads it; what is added is measured by the spread, or what is read, if first."""
    (old, new), bias = reads, reads[0].weight @ norm.bias
    new.weight.copy_(old.weight * norm.weight / (spread if first else 1.0))
    new.bias.copy_(bias if old.bias is None else bias + old.bias)
    _take(writes[1], writes[0], 1.0 if first else spread)


def _take(new: nn.Linear, old: nn.Linear, scale: float) -> None:
    new.weight.copy_(old.weight / scale)
    new.bias.zero_()
    if old.bias is not None:
        new.bias.copy_(old.bias / scale)


if __name__ == "__main__":
    main()
