"""A sentence model for CTranslate2: `weitblick export ctranslate2`. What reads context stays behind."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import nn

from weitblick.checkpoints.folder import LoadedModel, as_array
from weitblick.common.errors import UserError
from weitblick.common.files import atomic_folder
from weitblick.common.imports import optional_package
from weitblick.model.layers import FeedForward, SelfAttention, SourceAttention, sinusoids
from weitblick.model.output import NEVER_PRODUCED
from weitblick.model.transformer import DecoderLayer, EncoderLayer, Transformer
from weitblick.text.base import BOS, EOS, SPECIAL_TOKENS, UNK

if TYPE_CHECKING:
    from ctranslate2.specs import TransformerSpec

POSITIONS = 2048  # of a sentence and of its translation
FORBIDDEN = -1e9  # the output bias of what is never produced: CTranslate2 has no such list in its folder
MARKS = ("model.bin", "config.json")

CARD = """# A Weitblick model for CTranslate2

Sentences on their own, {source} to {target}; what reads the rest of a document stays with Weitblick.

```python
import ctranslate2
from weitblick.text.base import load_pipeline

pipeline = load_pipeline(f"{{folder}}/text")
translator = ctranslate2.Translator(folder)
pieces = [pipeline.pieces(ids, "source") for ids in pipeline.encode_source(sentences)]
found = translator.translate_batch(pieces, beam_size=1)
ids = [[pipeline.target_vocabulary.id(piece) for piece in one.hypotheses[0]] for one in found]
translations = pipeline.decode_target(ids, sentences)
```
"""


def export_ctranslate2(loaded: LoadedModel, folder: str | Path, quantization: str | None = None) -> None:
    """Writes a folder of CTranslate2, with the text pipeline in `text` and a card that shows how to use it."""
    spec = specification(loaded)
    spec.validate()
    spec.optimize(quantization=quantization)
    with atomic_folder(folder) as temporary:
        spec.save(str(temporary))
        loaded.pipeline.save(temporary / "text")
        card = CARD.format(source=loaded.pipeline.source_language, target=loaded.pipeline.target_language)
        (temporary / "README.md").write_text(card, encoding="utf-8")


def specification(loaded: LoadedModel) -> TransformerSpec:
    with optional_package("ctranslate2"):
        from ctranslate2.specs import TransformerSpec
        from ctranslate2.specs.common_spec import Activation
    model, section = loaded.model.sentence, loaded.model_section
    if not isinstance(model, Transformer):
        raise UserError(f"CTranslate2 has no {section.architecture}", remedy="export a transformer")
    spec = TransformerSpec.from_config(
        (section.encoder_layers, section.decoder_layers),
        section.heads,
        pre_norm=section.norm == "pre",
        activation={"relu": Activation.RELU, "gelu": Activation.GELU, "swish": Activation.SWISH}[section.activation],
    )
    positions = sinusoids(POSITIONS, model.dimension, section.positions).numpy()
    for side in (spec.encoder, spec.decoder):
        side.scale_embeddings = model.embedding_scale
        side.position_encodings.encodings = positions
    spec.encoder.embeddings[0].weight = as_array(model.source_table.weight)
    spec.decoder.embeddings.weight = as_array(model.target_table.weight)
    for there, encoder in zip(spec.encoder.layer, model.encoder, strict=True):
        _encoder_layer(there, encoder)
    for there, decoder in zip(spec.decoder.layer, model.decoder, strict=True):
        _decoder_layer(there, decoder)
    if section.norm == "pre":
        _norm(spec.encoder.layer_norm, model.encoder_norm)
        _norm(spec.decoder.layer_norm, model.decoder_norm)
    weight, bias = model.output()
    spec.decoder.projection.weight = as_array(weight)
    spec.decoder.projection.bias = as_array(bias).copy()
    spec.decoder.projection.bias[[*range(NEVER_PRODUCED), *section.generation.forbidden]] = FORBIDDEN
    _vocabularies(spec, loaded)
    return spec


def _vocabularies(spec: TransformerSpec, loaded: LoadedModel) -> None:
    spec.register_source_vocabulary(list(loaded.pipeline.source_vocabulary.tokens))
    spec.register_target_vocabulary(list(loaded.pipeline.target_vocabulary.tokens))
    config = spec.config
    config.unk_token, config.bos_token, config.eos_token = (SPECIAL_TOKENS[number] for number in (UNK, BOS, EOS))
    config.decoder_start_token = SPECIAL_TOKENS[BOS]
    config.add_source_eos = loaded.model_section.source_end


def _encoder_layer(there: Any, layer: EncoderLayer | DecoderLayer) -> None:
    _self_attention(there.self_attention, layer.attention)
    _norm(there.self_attention.layer_norm, layer.around_attention.norm)
    _feed_forward(there.ffn, layer.feed_forward)
    _norm(there.ffn.layer_norm, layer.around_feed_forward.norm)


def _decoder_layer(there: Any, layer: DecoderLayer) -> None:
    _encoder_layer(there, layer)
    _source_attention(there.attention, layer.source_attention)
    _norm(there.attention.layer_norm, layer.around_source_attention.norm)


def _self_attention(there: Any, attention: SelfAttention) -> None:
    """Queries, keys and values are one matrix there, too."""
    _linear(there.linear[0], attention.input)
    _linear(there.linear[1], attention.output)


def _source_attention(there: Any, attention: SourceAttention) -> None:
    for linear, ours in zip(there.linear, (attention.query, attention.memory, attention.output), strict=True):
        _linear(linear, ours)


def _feed_forward(there: Any, ours: FeedForward) -> None:
    _linear(there.linear_0, ours.input)
    _linear(there.linear_1, ours.output)


def _linear(there: Any, linear: nn.Linear) -> None:
    there.weight = as_array(linear.weight)
    if linear.bias is not None:
        there.bias = as_array(linear.bias)


def _norm(there: Any, norm: nn.Module) -> None:
    assert isinstance(norm, nn.LayerNorm)
    there.gamma, there.beta = as_array(norm.weight), as_array(norm.bias)
