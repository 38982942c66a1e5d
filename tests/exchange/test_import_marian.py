"""An imported Marian model is the original: the same log-probabilities, the same translations."""

from __future__ import annotations

import json
import pickle
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from marian_models import TEXTS, generate, random_model, save
from typer.testing import CliRunner

from weitblick.batches.batch import pack_pairs
from weitblick.cli.main import app
from weitblick.errors import UserError
from weitblick.exchange.import_marian import import_marian
from weitblick.model.folder import load_model
from weitblick.translation.translator import Translator

CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "shared": {},
    "separate": {"separate": True},
    "separate, not tied": {"separate": True, "tie_word_embeddings": False},
    "shared, not tied": {"tie_word_embeddings": False},
    "multilingual": {"codes": (">>de<<", ">>fr<<")},
    "unscaled gelu": {"scale_embedding": False, "activation_function": "gelu"},
    "relu, one layer": {"activation_function": "relu", "encoder_layers": 1, "decoder_layers": 1},
    "early stopping": {"generation": {"early_stopping": True}},
    "never stopping": {"generation": {"early_stopping": "never", "length_penalty": 1.4}},
    "renormalized": {"generation": {"renormalize_logits": True, "num_beams": 6, "length_penalty": 0.6}},
    "forbidden words": {"generation": {"bad_words_ids": [[1], [5], [9], [30]], "renormalize_logits": True}},
    "clean-up of spaces": {"tokenizer": {"clean_up_tokenization_spaces": True}},
}


def write(folder: Path, configuration: dict[str, Any]) -> tuple[Any, Any]:
    model, tokenizer = random_model(folder, **configuration)
    pad = [model.config.pad_token_id]
    if pad not in model.generation_config.bad_words_ids:
        model.generation_config.bad_words_ids.append(pad)
        save(folder, model, tokenizer)
    return model, tokenizer


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_an_imported_model_is_the_original(name: str, tmp_path: Path) -> None:
    folder, configuration = tmp_path / "opus-mt-en-de", CONFIGURATIONS[name]
    model, tokenizer = write(folder, configuration)
    code = ">>fr<<" if "codes" in configuration else ""
    import_marian(folder, target_language="fr" if code else None).save(tmp_path / "ours")
    loaded = load_model(tmp_path / "ours")
    translator = Translator(loaded.model, loaded.pipeline)
    texts = [f"{code} {text}" if code else text for text in TEXTS]

    # The same ids, but for their order, and the same log-probabilities of a given translation.
    names = {number: token for token, number in json.loads((folder / "vocab.json").read_text()).items()}
    target = loaded.pipeline.encode_target([TEXTS[0]])
    original_ids = tokenizer(texts, text_target=[TEXTS[0]] * len(texts))
    for text, source, labels in zip(TEXTS, original_ids["input_ids"], original_ids["labels"], strict=True):
        ours = loaded.pipeline.encode_source([text])
        assert loaded.pipeline.pieces(ours[0], "source") == [names[number] for number in source[:-1]]
        pairs = pack_pairs(ours, target)
        with torch.no_grad():
            memory = loaded.model.sentence.encode(pairs.source.tokens, pairs.source.layout)
            states = loaded.model.sentence.decode(pairs.target.tokens, pairs.target.layout, memory, pairs.source.layout)
            weight, bias = loaded.model.sentence.output()
            found = (states.final @ weight.t() + bias).log_softmax(-1).gather(1, pairs.labels[:, None])[:, 0]
            labels = torch.tensor([labels])
            logits = model(input_ids=torch.tensor([source]), labels=labels).logits
        expected = logits[0].log_softmax(-1).gather(1, labels[0, :, None])[:, 0]
        torch.testing.assert_close(found, expected, atol=1e-4, rtol=0)

    for wishes in ({}, {"num_beams": 1}):
        expected_texts = generate(model, tokenizer, texts, **wishes)
        ours = list(translator.translate(TEXTS, beam=wishes.get("num_beams")).targets)
        same = [(a, b) for a, b in zip(expected_texts, ours, strict=True) if a]  # a sentence of ours is never empty
        assert len(same) >= 4
        assert [a for a, _ in same] == [b for _, b in same]


def test_a_code_in_the_text_wins(tmp_path: Path) -> None:
    random_model(tmp_path / "m", codes=(">>de<<", ">>fr<<"))
    pipeline = import_marian(tmp_path / "m", target_language="fr").pipeline
    first = [pipeline.pieces(ids, "source")[0] for ids in pipeline.encode_source(["A house.", ">>de<< A house."])]
    assert first == [">>fr<<", ">>de<<"]
    assert pipeline.encode_source([""]) == [[]]
    ids = pipeline.encode_source(["The old house."])[0]
    assert [word for _, _, word in pipeline.words(ids, "source")] == [">>fr<<", "The", "old", "house."]


def test_punctuation_is_normalised_on_demand(tmp_path: Path) -> None:
    _, tokenizer = random_model(tmp_path / "m")
    text = "“Where” is  the house – near…?"
    pipeline = import_marian(tmp_path / "m", normalize_punctuation=True).pipeline
    expected = tokenizer(tokenizer.normalize(text))["input_ids"]
    assert (
        pipeline.pieces(pipeline.encode_source([text])[0], "source") == tokenizer.convert_ids_to_tokens(expected)[:-1]
    )


def test_text_stays_on_one_line_and_special_tokens_stay_text(tmp_path: Path) -> None:
    random_model(tmp_path / "m")
    pipeline = import_marian(tmp_path / "m").pipeline
    ids = pipeline.encode(["the house </s> \ud800\n is <pad>"], "source")[0]
    assert min(ids) >= 3
    assert "\n" not in pipeline.decode([ids], "target")[0]


def test_pickled_weights_are_the_same(tmp_path: Path) -> None:
    model, _ = random_model(tmp_path / "m")
    ours = import_marian(tmp_path / "m").model.state_dict()
    (tmp_path / "m" / "model.safetensors").unlink()
    torch.save(model.state_dict(), tmp_path / "m" / "pytorch_model.bin")
    for name, value in import_marian(tmp_path / "m").model.state_dict().items():
        assert torch.equal(value, ours[name])


class Harm:
    def __reduce__(self) -> Any:
        return print, ("harm",)


def _other_architecture(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "model_type": "bart"}))


def _other_size(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32}))


def _fewer_words(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "vocab_size": 20}))


def _pickle(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Harm()))


def _cut(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:1000])


def _sampling(folder: Path) -> None:
    config = json.loads((folder / "generation_config.json").read_text())
    (folder / "generation_config.json").write_text(json.dumps({**config, "no_repeat_ngram_size": 3}))


DAMAGES = {
    "bart": _other_architecture,
    "fc1": _other_size,
    "vocab.json": _fewer_words,
    "asks for more than tensors": _pickle,
    "cut short": _cut,
    "no_repeat_ngram_size": _sampling,
    "source.spm": lambda folder: (folder / "source.spm").unlink(),
    "not a SentencePiece model": lambda folder: (folder / "target.spm").write_bytes(b"nothing"),
    "has no model.safetensors": lambda folder: (folder / "model.safetensors").unlink(),
    "config.json": lambda folder: (folder / "config.json").write_text("[]"),
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("marian") / "opus-mt-en-de"
    random_model(folder)
    return folder


@pytest.mark.parametrize("named", DAMAGES)
def test_what_is_wrong_is_named(named: str, whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(whole, tmp_path / "m")
    DAMAGES[named](tmp_path / "m")
    with pytest.raises(UserError, match=named):
        import_marian(tmp_path / "m", "en", "de").save(tmp_path / "ours")
    assert not (tmp_path / "ours").exists()
    assert "harm" not in capsys.readouterr().out


def test_languages_are_asked_for(whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole, tmp_path / "m")
    (tmp_path / "m" / "tokenizer_config.json").unlink()
    with pytest.raises(UserError, match="--source-language"):
        import_marian(tmp_path / "m")
    shutil.copytree(tmp_path / "m", tmp_path / "opus-mt-fi-et")
    pipeline = import_marian(tmp_path / "opus-mt-fi-et").pipeline
    assert (pipeline.source_language, pipeline.target_language) == ("fi", "et")


def test_the_commands(whole: Path, tmp_path: Path) -> None:
    """weitblick import FOLDER -o M && weitblick translate -m M --beam 1 --no-context"""
    from transformers import MarianMTModel, MarianTokenizer

    model, tokenizer = MarianMTModel.from_pretrained(whole).eval(), MarianTokenizer.from_pretrained(whole)
    (tmp_path / "t.en").write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    run = CliRunner().invoke
    ours = str(tmp_path / "ours")
    result = run(app, ["import", str(whole), "-o", ours])
    assert result.exit_code == 0, result.output
    for options, wishes in (([], {}), (["--beam", "1"], {"num_beams": 1})):
        result = run(app, ["translate", str(tmp_path / "t.en"), "-m", ours, "--no-context", *options, "-q"])
        assert result.exit_code == 0, result.output
        lines = result.stdout.splitlines()
        assert len(lines) == len(TEXTS)
        for ours_line, expected in zip(lines, generate(model, tokenizer, TEXTS, **wishes), strict=True):
            assert ours_line == expected or not expected
