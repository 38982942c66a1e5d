"""An imported Marian model is the original: the same log-probabilities, the same translations."""

from __future__ import annotations

import json
import pickle
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from marian_models import TEXTS, generate, random_model, save
from safetensors.torch import load_file, save_file
from transformers import MarianMTModel, MarianTokenizer
from typer.testing import CliRunner

from weitblick.checkpoints.folder import load_model
from weitblick.checkpoints.import_marian import TextOptions, import_marian
from weitblick.cli.main import app, main
from weitblick.common.errors import UserError
from weitblick.model.batch import pack_pairs
from weitblick.model.layers import sinusoids
from weitblick.text.base import load_pipeline
from weitblick.text.carried import Alphabet, corpus_spans
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
    "cut at the greatest length": {"generation": {"max_length": 6}},
    "new tokens": {"generation": {"max_new_tokens": 5, "max_length": None}},
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
    import_marian(folder, TextOptions(target_language="fr" if code else None)).save(tmp_path / "ours")
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
    pipeline = import_marian(tmp_path / "m", TextOptions(target_language="fr")).pipeline
    first = [pipeline.pieces(ids, "source")[0] for ids in pipeline.encode_source(["A house.", ">>de<< A house."])]
    assert first == [">>fr<<", ">>de<<"]
    assert pipeline.encode_source([""]) == [[]]
    ids = pipeline.encode_source(["The old house."])[0]
    assert [word for _, _, word in pipeline.words(ids, "source")] == [">>fr<<", "The", "old", "house."]


def test_punctuation_is_normalised_on_demand(tmp_path: Path) -> None:
    _, tokenizer = random_model(tmp_path / "m")
    text = "“Where” is  the house – near…?"
    pipeline = import_marian(tmp_path / "m", TextOptions(normalize_punctuation=True)).pipeline
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


def change(name: str, **values: Any) -> Callable[[Path], None]:
    """Changes a JSON file of a folder; None takes a key out."""

    def apply(folder: Path) -> None:
        content = {**json.loads((folder / name).read_text()), **values}
        (folder / name).write_text(json.dumps({key: value for key, value in content.items() if value is not None}))

    return apply


CONFIG, GENERATION = partial(change, "config.json"), partial(change, "generation_config.json")


def _pickle(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Harm()))


def _pickle_in_an_archive(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    torch.save({"model.shared.weight": Harm()}, folder / "pytorch_model.bin")


def _cut(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:1000])


def _learned_positions(folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    tensors["model.encoder.embed_positions.weight"] = torch.rand(128, 16)
    save_file(tensors, folder / "model.safetensors")


DAMAGES: dict[str, Callable[[Path], Any]] = {
    "the model is bart": CONFIG(model_type="bart"),
    "fc1": CONFIG(encoder_ffn_dim=32, decoder_ffn_dim=32),
    "vocab.json": CONFIG(vocab_size=20),
    "asks for (1000000000000": CONFIG(vocab_size=10**12),
    "encoder_layers is 1000000000, the weights have 2": CONFIG(encoder_layers=10**9),
    "decoder_layers is 1, the weights have 2": CONFIG(decoder_layers=1),
    "is not a multiple of heads 5": CONFIG(encoder_attention_heads=5, decoder_attention_heads=5),
    "d_model is 'wide', not a number": CONFIG(d_model="wide"),
    "dropout": CONFIG(dropout="much"),
    "eos_token_id is 4000, not one of": GENERATION(eos_token_id=4000),
    "eos_token_id is [0, 5]": GENERATION(eos_token_id=[0, 5]),
    "pad_token_id is missing": lambda folder: [
        change(name, pad_token_id=None)(folder) for name in ("config.json", "generation_config.json")
    ],
    "no_repeat_ngram_size": GENERATION(no_repeat_ngram_size=3),
    "forced_bos_token_id": GENERATION(forced_bos_token_id=3),
    "max_length is 'long'": GENERATION(max_length="long"),
    "not one word": GENERATION(bad_words_ids=[[1, 2]]),
    "asks for more than tensors": _pickle,
    "tensors, and is not opened": _pickle_in_an_archive,
    "cut short": _cut,
    "no sinusoids": _learned_positions,
    "source.spm": lambda folder: (folder / "source.spm").unlink(),
    "not a SentencePiece model": lambda folder: (folder / "target.spm").write_bytes(b"nothing"),
    "has no model.safetensors": lambda folder: (folder / "model.safetensors").unlink(),
    "config.json": lambda folder: (folder / "config.json").write_text("[]"),
    "config.json: no such file": lambda folder: (folder / "config.json").unlink(),
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("marian") / "opus-mt-en-de"
    random_model(folder)
    return folder


@pytest.mark.parametrize("named", DAMAGES)
def test_what_is_wrong_is_named(
    named: str, whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line, exit code 2, nothing written and nothing run."""
    shutil.copytree(whole, tmp_path / "m")
    DAMAGES[named](tmp_path / "m")
    monkeypatch.setattr("sys.argv", ["weitblick", "import", str(tmp_path / "m"), "-o", str(tmp_path / "ours")])
    with pytest.raises(SystemExit) as stop:
        main()
    printed = capsys.readouterr()
    assert stop.value.code == 2
    assert named in printed.err
    assert printed.err.count("\n") == 1
    assert "harm" not in printed.out
    assert not (tmp_path / "ours").exists()


def same_translations(folder: Path, start: str = "") -> None:
    """As transformers reads the folder, as it stands; it shows a start that is an ordinary word."""
    model, tokenizer = MarianMTModel.from_pretrained(folder).eval(), MarianTokenizer.from_pretrained(folder)
    imported = import_marian(folder)
    for beam in (None, 1):
        ours = Translator(imported.model, imported.pipeline).translate(TEXTS, beam=beam).targets
        expected = generate(model, tokenizer, TEXTS, **({} if beam is None else {"num_beams": beam}))
        assert all(text.startswith(start) for text in expected)
        expected = [text.removeprefix(start).strip() for text in expected]
        pairs = [(a, b) for a, b in zip(expected, ours, strict=True) if a]
        assert len(pairs) >= 4
        assert [a for a, _ in pairs] == [b for _, b in pairs]


def test_settings_of_older_folders(whole: Path, tmp_path: Path) -> None:
    """They are in config.json, and weights in a pickle of an older kind."""
    shutil.copytree(whole, tmp_path / "m")
    (tmp_path / "m" / "generation_config.json").unlink()
    pad = json.loads((whole / "config.json").read_text())["pad_token_id"]
    old = {"num_beams": 3, "max_length": 12, "length_penalty": 0.7, "bad_words_ids": [[pad]], "forced_eos_token_id": 0}
    unused = {"static_position_embeddings": True, "normalize_before": False, "add_final_layer_norm": False}
    change("config.json", **old, **unused)(tmp_path / "m")
    torch.save(
        load_file(whole / "model.safetensors"),
        tmp_path / "m" / "pytorch_model.bin",
        _use_new_zipfile_serialization=False,
    )
    (tmp_path / "m" / "model.safetensors").unlink()
    generation = import_marian(tmp_path / "m").section.generation
    assert (generation.beam, generation.longest, generation.length_penalty) == (3, 12, 0.7)
    same_translations(tmp_path / "m")


def test_a_translation_that_nothing_forces_to_end_is_cut(whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole, tmp_path / "m")
    GENERATION(forced_eos_token_id=None, max_length=5)(tmp_path / "m")
    same_translations(tmp_path / "m")


@pytest.mark.parametrize("start", ["an ordinary word", "the end"])
def test_a_decoder_may_start_elsewhere(start: str, tmp_path: Path) -> None:
    """Not from <pad>: from a word that it can say as well."""
    number = {"an ordinary word": 7, "the end": 0}[start]
    random_model(tmp_path / "m", decoder_start_token_id=number, generation={"decoder_start_token_id": number})
    names = {n: token for token, n in json.loads((tmp_path / "m" / "vocab.json").read_text()).items()}
    same_translations(tmp_path / "m", names[number].strip("▁") if number else "")


def test_padding_may_be_the_end(tmp_path: Path) -> None:
    ids = {"pad_token_id": 0, "decoder_start_token_id": 0}
    random_model(tmp_path / "m", generation={**ids, "bad_words_ids": None}, **ids)
    same_translations(tmp_path / "m")


@pytest.mark.parametrize("kind", ["marian", "tensor2tensor"])
def test_positions_that_are_stored_are_used(kind: str, whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole, tmp_path / "m")
    tensors = load_file(tmp_path / "m" / "model.safetensors")
    for side in ("encoder", "decoder"):
        tensors[f"model.{side}.embed_positions.weight"] = sinusoids(128, 16, kind)
    save_file(tensors, tmp_path / "m" / "model.safetensors", metadata={"format": "pt"})
    assert import_marian(tmp_path / "m").section.positions == kind
    same_translations(tmp_path / "m")


def test_a_code_need_not_be_the_language(tmp_path: Path) -> None:
    random_model(tmp_path / "m", codes=(">>deu<<", ">>fra<<"))
    pipeline = import_marian(tmp_path / "m", TextOptions("en", "fr", "fra")).pipeline
    assert (pipeline.target_language, pipeline.pieces(pipeline.encode_source(["A house."])[0], "source")[0]) == (
        "fr",
        ">>fra<<",
    )
    for wishes, message in (
        (TextOptions(), "translates into 2 languages: deu, fra"),
        (TextOptions("en", "fr"), "choose one with --code: deu, fra"),
        (TextOptions("en", "fr", "fre"), "has no code 'fre'"),
    ):
        with pytest.raises(UserError, match=message):
            import_marian(tmp_path / "m", wishes)


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
    model, tokenizer = MarianMTModel.from_pretrained(whole).eval(), MarianTokenizer.from_pretrained(whole)
    (tmp_path / "t.en").write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    run = CliRunner().invoke
    ours = str(tmp_path / "ours")
    result = run(app, ["import", str(whole), "-o", ours])
    assert result.exit_code == 0, result.output
    alphabet = Alphabet(load_pipeline(Path(ours) / "text"))
    for options, wishes in (([], {}), (["--beam", "1"], {"num_beams": 1})):
        arguments = [str(tmp_path / "t.en"), "-m", ours, "--no-context", "--from", "text", *options, "-q"]
        result = run(app, ["translate", *arguments])
        assert result.exit_code == 0, result.output
        lines = result.stdout.splitlines()
        assert len(lines) == len(TEXTS)
        for text, ours_line, expected in zip(TEXTS, lines, generate(model, tokenizer, TEXTS, **wishes), strict=True):
            assert (
                ours_line == expected or not expected or corpus_spans(text, alphabet)
            )  # what it cannot read is carried
