"""Files of Marian's own: the same probabilities and translations as CTranslate2 gives, which reads them, too."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np
import pytest
import torch
import yaml
from ctranslate2.converters import MarianConverter
from marian_models import SENTENCES, TEXTS, learn_sentencepiece

from weitblick.checkpoints.import_marian import TextOptions, import_marian
from weitblick.checkpoints.native_marian import read_vocabulary
from weitblick.cli.main import main
from weitblick.common.errors import UserError
from weitblick.model.batch import pack_pairs
from weitblick.model.transformer import Transformer
from weitblick.translation.translator import Translator

D, HIDDEN, LAYERS = 16, 24, 2
SETTINGS = {
    "type": "transformer", "dim-emb": D, "enc-depth": LAYERS, "dec-depth": LAYERS, "transformer-heads": 2,
    "transformer-dim-ffn": HIDDEN, "transformer-ffn-activation": "swish", "transformer-ffn-depth": 2,
    "transformer-decoder-autoreg": "self-attention", "transformer-no-projection": False,
    "transformer-postprocess-emb": "d", "transformer-guided-alignment-layer": "last",
    "transformer-preprocess": "", "transformer-postprocess": "dan", "transformer-postprocess-top": "",
}  # fmt: skip
PRE_NORM = {"transformer-preprocess": "n", "transformer-postprocess": "da", "transformer-postprocess-top": "n"}


def arrays(sizes: tuple[int, int], tied: str, pre_norm: bool) -> dict[str, np.ndarray]:
    """Random weights under Marian's names; tied: all tables are one, or target and output, or none."""
    random = np.random.default_rng(5)
    found: dict[str, np.ndarray] = {}

    def add(name: str, rows: int, columns: int, around: float = 0.0) -> None:
        found[name] = (around + 0.4 * random.standard_normal((rows, columns))).astype(np.float32)

    def norm(name: str) -> None:
        suffix = "_pre" if pre_norm and "top" not in name else ""
        add(f"{name}_ln_scale{suffix}", 1, D, 1.0)
        add(f"{name}_ln_bias{suffix}", 1, D)

    if tied == "all":
        add("Wemb", sizes[0], D)
    else:
        add("encoder_Wemb", sizes[0], D)
        add("decoder_Wemb", sizes[1], D)
    if tied == "none":
        add("decoder_ff_logit_out_W", D, sizes[1])
    add("decoder_ff_logit_out_b", 1, sizes[1])
    found["decoder_ff_logit_out_b"][0, 0] += 1.0  # sentences end
    for side in ("encoder", "decoder"):
        for number in range(1, LAYERS + 1):
            for attention in ("self", "context")[: 1 + (side == "decoder")]:
                for part in "qkvo":
                    add(f"{side}_l{number}_{attention}_W{part}", D, D)
                    add(f"{side}_l{number}_{attention}_b{part}", 1, D)
                norm(f"{side}_l{number}_{attention}_Wo")
            add(f"{side}_l{number}_ffn_W1", D, HIDDEN)
            add(f"{side}_l{number}_ffn_b1", 1, HIDDEN)
            add(f"{side}_l{number}_ffn_W2", HIDDEN, D)
            add(f"{side}_l{number}_ffn_b2", 1, D)
            norm(f"{side}_l{number}_ffn_ffn")
        if pre_norm:
            norm(f"{side}_top")
    return found


def write_vocabulary(path: Path, pieces: list[str]) -> int:
    """As yaml-cpp writes it: quotes where need be."""
    lines = [
        f"{token if token.isalnum() else json.dumps(token, ensure_ascii=False)}: {n}" for n, token in enumerate(pieces)
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return len(pieces)


def write_native(folder: Path, tied: str = "all", pre_norm: bool = False, **settings: Any) -> Path:
    folder.mkdir(parents=True)
    pieces = {side: learn_sentencepiece(text, 90, folder / f"{side}.spm") for side, text in SENTENCES.items()}
    special = ["</s>", "<unk>"]
    if tied == "all":
        both = sorted({*pieces["source"], *pieces["target"]})
        sizes = (write_vocabulary(folder / "opus.vocab.yml", special + both),) * 2
        vocabularies = ["opus.vocab.yml"] * 2
    else:
        vocabularies = ["opus.src.vocab.yml", "opus.trg.vocab.yml"]
        count = [
            write_vocabulary(folder / name, special + sorted(words))
            for name, words in zip(vocabularies, pieces.values(), strict=True)
        ]
        sizes = (count[0], count[1])
    text = yaml.safe_dump({**SETTINGS, **(PRE_NORM if pre_norm else {}), **settings}).encode() + b"\0"
    model = folder / "model.npz.best-perplexity.npz"
    values = {**arrays(sizes, tied, pre_norm), "special:model.yml": np.frombuffer(text, dtype=np.int8)}
    np.savez(model, **values)  # type: ignore[arg-type]
    decoder = {"models": [model.name], "vocabs": vocabularies, "beam-size": 3, "normalize": 0.6}
    (folder / "decoder.yml").write_text(yaml.safe_dump(decoder))
    return model


@pytest.mark.parametrize("tied", ["all", "output", "none"])
@pytest.mark.parametrize("pre_norm", [False, True], ids=["post-norm", "pre-norm"])
def test_the_same_as_ctranslate2(tied: str, pre_norm: bool, tmp_path: Path) -> None:
    model = write_native(tmp_path / "opus", tied, pre_norm)
    imported = import_marian(tmp_path / "opus", TextOptions("en", "de"))
    pipeline, sentence = imported.pipeline, imported.model.sentence
    assert isinstance(sentence, Transformer)
    for embedding in (sentence.source_embedding, sentence.target_embedding):
        assert embedding.kind == "tensor2tensor"  # as Marian's own, which test_firefox.py compares with
        embedding.kind = "marian"  # as CTranslate2 and transformers have them
    generation = imported.section.generation
    assert (generation.beam, generation.length_penalty, imported.section.norm) == (
        3,
        0.6,
        "pre" if pre_norm else "post",
    )

    names = yaml.safe_load((tmp_path / "opus" / "decoder.yml").read_text())["vocabs"]
    converter = MarianConverter(str(model), [str(tmp_path / "opus" / name) for name in names])
    converter.convert(str(tmp_path / "there"))
    there = ctranslate2.Translator(str(tmp_path / "there"))
    sources = pipeline.encode_source(TEXTS)
    targets = pipeline.encode_target([SENTENCES["target"][0]] * len(TEXTS))
    pieces = [pipeline.pieces(ids, "source") for ids in sources]
    goals = [pipeline.pieces(ids, "target") for ids in targets]
    scores = there.score_batch(pieces, goals)
    for source, target, score in zip(sources, targets, scores, strict=True):
        pairs = pack_pairs([source], [target])
        with torch.no_grad():
            memory = sentence.encode(pairs.source.tokens, pairs.source.layout)
            states = sentence.decode(pairs.target.tokens, pairs.target.layout, memory, pairs.source.layout)
            weight, bias = sentence.output()
            found = (states.final @ weight.t() + bias).log_softmax(-1).gather(1, pairs.labels[:, None])[:, 0]
        torch.testing.assert_close(found, torch.tensor(score.log_probs), atol=1e-4, rtol=0)

    ours = Translator(imported.model, pipeline).translate(TEXTS, beam=1).targets
    same = 0
    for text, ids, translation in zip(pieces, sources, ours, strict=True):
        limit = 2 * len(ids) + 10
        (one,) = there.translate_batch([text], beam_size=1, disable_unk=True, max_decoding_length=limit)
        if words := one.hypotheses[0]:
            assert pipeline.decode_target([[pipeline.target_vocabulary.id(word) for word in words]]) == [translation]
            same += 1
    assert same >= 4


def test_one_file_is_enough_to_name_it(tmp_path: Path) -> None:
    """Without decoder.yml; a SentencePiece model that is the vocabulary."""
    model = write_native(tmp_path / "opus")
    expected = import_marian(tmp_path / "opus", TextOptions("en", "de")).model.state_dict()
    (tmp_path / "opus" / "decoder.yml").unlink()
    for name, value in import_marian(model, TextOptions("en", "de")).model.state_dict().items():
        assert torch.equal(value, expected[name])

    shutil.move(tmp_path / "opus" / "source.spm", tmp_path / "opus" / "vocab.spm")
    for name in ("opus.vocab.yml", "target.spm"):
        (tmp_path / "opus" / name).unlink()
    with pytest.raises(UserError, match="vocabulary and model do not belong together"):
        import_marian(model, TextOptions("en", "de"))
    count = len(read_vocabulary(tmp_path / "opus" / "vocab.spm"))
    with np.load(model) as file:
        values = {name: file[name] for name in file.files}
    values["Wemb"], values["decoder_ff_logit_out_b"] = (
        values["Wemb"][:count],
        values["decoder_ff_logit_out_b"][:, :count],
    )
    np.savez(model, **values)
    pipeline = import_marian(tmp_path / "opus", TextOptions("en", "de")).pipeline
    assert pipeline.decode_target(pipeline.encode_target(["Where is the old house?"])) == ["Where is the old house?"]


def test_words_that_mean_something_to_yaml(tmp_path: Path) -> None:
    words = ["</s>: 0", '"<unk>": 1', "~: 2", "yes: 3", "12: 4", "'it''s': 5", '"\\"": 6', '"\\\\": 7', "'#': 8"]
    words += ['"a: b": 9', '? long', ': 10', '"\\x85": 11', "▁: 12", ":: 13", "Yes: 14"]  # fmt: skip
    (tmp_path / "v.yml").write_text("\n".join(words) + "\n", encoding="utf-8")
    found = read_vocabulary(tmp_path / "v.yml")
    assert list(found.values()) == list(range(15))
    expected = ["</s>", "<unk>", "~", "yes", "12", "it's", '"', "\\", "#", "a: b", "long", "\x85", "▁", ":", "Yes"]
    assert list(found) == expected


def npz(folder: Path) -> Path:
    return folder / "model.npz.best-perplexity.npz"


def _without(name: str) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        with np.load(npz(folder)) as file:
            values = {key: file[key] for key in file.files if key != name}
        np.savez(npz(folder), **values)  # type: ignore[arg-type]

    return apply


DAMAGES: dict[str, tuple[dict[str, Any], Callable[[Path], Any]]] = {
    "type is 's2s', only 'transformer' is known": ({"type": "s2s"}, lambda folder: None),
    "known: relu, swish": ({"transformer-ffn-activation": "gelu"}, lambda folder: None),
    "encoder_layers is 3, the weights have 2": ({"enc-depth": 3}, lambda folder: None),
    "d_model is missing": ({"dim-emb": None}, lambda folder: None),
    "no such model here": ({"transformer-preprocess": "d"}, lambda folder: None),
    "'encoder_l2_ffn_W2' is missing": ({}, _without("encoder_l2_ffn_W2")),
    "has no special:model.yml": ({}, _without("special:model.yml")),
    "is not a model of Marian": ({}, lambda folder: npz(folder).write_bytes(b"PK nothing")),
    "source.spm: no such file": ({}, lambda folder: (folder / "source.spm").unlink()),
    "vocab.yml:1: is not a word": ({}, lambda folder: (folder / "opus.vocab.yml").write_text("no number\n")),
    "vocab.yml: no such file": ({}, lambda folder: (folder / "opus.vocab.yml").unlink()),
    "does not say its languages": ({}, lambda folder: None),
}


@pytest.mark.parametrize("named", DAMAGES)
def test_what_is_wrong_is_named(
    named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, damage = DAMAGES[named]
    write_native(tmp_path / "opus", **settings)
    damage(tmp_path / "opus")
    monkeypatch.setattr("sys.argv", ["weitblick", "import", str(tmp_path / "opus"), "-o", str(tmp_path / "ours")])
    with pytest.raises(SystemExit) as stop:
        main()
    printed = capsys.readouterr()
    assert stop.value.code == 2
    assert named in printed.err
    assert printed.err.count("\n") == 1
    assert not (tmp_path / "ours").exists()
