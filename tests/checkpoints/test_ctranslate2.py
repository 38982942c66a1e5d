"""Folders of CTranslate2 and packages of Argos Translate: the translations that CTranslate2's own engine gives."""

from __future__ import annotations

import json
import random
import re
import shutil
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ctranslate2
import pytest
import sentencepiece
import torch
import yaml
from ctranslate2.converters import MarianConverter, TransformersConverter
from marian_models import TEXTS, learn_sentencepiece, random_model
from opennmt_models import argos_package, opennmt_folder
from test_export import SPEECH, made
from test_native_marian import write_native
from test_trained import run

from weitblick.checkpoints.export_ctranslate2 import export_ctranslate2
from weitblick.checkpoints.export_marian import export_marian
from weitblick.checkpoints.folder import LoadedModel, load_model
from weitblick.checkpoints.import_marian import Imported, TextOptions
from weitblick.checkpoints.importing import import_model
from weitblick.cli.main import main
from weitblick.common.errors import UserError
from weitblick.common.recipe import ModelSection, TextSection
from weitblick.model.batch import pack_pairs
from weitblick.text.pipeline import learn_pipeline
from weitblick.translation.translator import Translator

EN_DE = TextOptions("en", "de")


def translations(model: Imported | LoadedModel, sentences: list[str], beam: int | None = 1) -> list[str]:
    found = Translator(model.model, model.pipeline).translate(sentences, beam=beam, context=False)
    return [target or "" for target in found.targets]


def by_engine(
    folder: Path, sentences: list[str], pieces: tuple[Path, Path], behind: tuple[str, ...] = (), **wishes: Any
) -> list[str]:
    """As Argos Translate asks CTranslate2, one by one; numbers of 8 and 16 bits as floats."""
    engine = ctranslate2.Translator(str(folder), compute_type="float32")
    source, target = (sentencepiece.SentencePieceProcessor(model_file=str(path)) for path in pieces)
    found = []
    for sentence in sentences:
        words = source.encode(sentence, out_type=str)
        ask = {"beam_size": 1, "disable_unk": True, "max_decoding_length": 2 * len(words) + 10} | wishes
        said = engine.translate_batch([[*words, *behind]], **ask)[0].hypotheses[0]
        found.append(target.decode(said).replace("▁", " "))  # of a piece that only the source's model has
    return found


def check_same(there: list[str], ours: list[str]) -> None:
    """Here a translation is never empty, as those of random models may be elsewhere."""
    pairs = [(a, b) for a, b in zip(there, ours, strict=True) if a]
    assert len(pairs) >= 4
    assert len({a for a, _ in pairs}) >= 4
    assert [a for a, _ in pairs] == [b for _, b in pairs]


def pieces_of(folder: Path) -> tuple[Path, Path]:
    return (folder / "sentencepiece.model",) * 2


@pytest.mark.parametrize("quantization", [None, "int8", "int8_float16", "int16", "float16"])
def test_models_of_opennmt(quantization: str | None, tmp_path: Path) -> None:
    """Positions whose sines and cosines take turns, norms before layers, sources without an end."""
    folder = opennmt_folder(tmp_path / "m", quantization=quantization)
    imported = import_model(folder)
    assert (imported.section.source_end, imported.section.norm) == (False, "pre")
    check_same(by_engine(folder / "model", SPEECH, pieces_of(folder)), translations(imported, SPEECH))


def test_numbers_of_bfloat16(tmp_path: Path) -> None:
    """The engine rounds its positions, too, so that its words may differ; the weights are what is stored."""
    exact = import_model(opennmt_folder(tmp_path / "m")).model.state_dict()
    found = import_model(opennmt_folder(tmp_path / "b", quantization="bfloat16")).model.state_dict()
    for name, value in exact.items():
        torch.testing.assert_close(found[name], value, rtol=2**-8, atol=1e-6)


@pytest.mark.parametrize("options", [{"shared": False}, {"biases": False}, {"pos_ffn_activation_fn": "gelu"}], ids=str)
def test_other_shapes_of_opennmt(options: dict[str, Any], tmp_path: Path) -> None:
    folder = opennmt_folder(tmp_path / "m", **options)
    shutil.move(folder / "sentencepiece.model", folder / "model")
    (folder / "metadata.json").unlink()
    imported = import_model(folder / "model", EN_DE)
    check_same(by_engine(folder / "model", SPEECH, pieces_of(folder / "model")), translations(imported, SPEECH))


def test_the_same_probabilities(tmp_path: Path) -> None:
    folder = opennmt_folder(tmp_path / "m")
    imported = import_model(folder)
    pipeline, sentence = imported.pipeline, imported.model.sentence
    sources, targets = pipeline.encode_source(SPEECH), pipeline.encode_target(SPEECH[::-1])
    words = [[pipeline.pieces(ids, "source") for ids in sources], [pipeline.pieces(ids, "target") for ids in targets]]
    pairs = pack_pairs(sources, targets)  # together: nothing depends on neighbours
    with torch.no_grad():
        memory = sentence.encode(pairs.source.tokens, pairs.source.layout)
        states = sentence.decode(pairs.target.tokens, pairs.target.layout, memory, pairs.source.layout)
        weight, bias = sentence.output()
        found = (states.final @ weight.t() + bias).log_softmax(-1).gather(1, pairs.labels[:, None])[:, 0]
    there = ctranslate2.Translator(str(folder / "model")).score_batch(*words)
    expected = torch.tensor([score for one in there for score in one.log_probs])
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=0)


def test_models_that_transformers_had(tmp_path: Path) -> None:
    random_model(tmp_path / "t", max_position_embeddings=512)
    spm = ["source.spm", "target.spm"]
    TransformersConverter(str(tmp_path / "t"), copy_files=spm).convert(str(tmp_path / "c"), quantization="int8")
    imported = import_model(tmp_path / "c", EN_DE)
    assert imported.section.source_end
    there = by_engine(tmp_path / "c", TEXTS, (tmp_path / "c" / spm[0], tmp_path / "c" / spm[1]), ("</s>",))
    check_same(there, translations(imported, TEXTS))


@pytest.mark.parametrize("pre_norm", [False, True], ids=["post-norm", "pre-norm"])
def test_models_that_marian_had(pre_norm: bool, tmp_path: Path) -> None:
    model = write_native(tmp_path / "opus", "output", pre_norm)
    names = yaml.safe_load((tmp_path / "opus" / "decoder.yml").read_text())["vocabs"]
    MarianConverter(str(model), [str(tmp_path / "opus" / name) for name in names]).convert(str(tmp_path / "c"))
    spm = tmp_path / "c" / "source.spm", tmp_path / "c" / "target.spm"
    for path in spm:
        shutil.copy(tmp_path / "opus" / path.name, path)
    imported = import_model(tmp_path / "c", EN_DE)
    check_same(by_engine(tmp_path / "c", TEXTS, spm), translations(imported, TEXTS))


@pytest.mark.parametrize("quantization", [None, "int8", "float16"])
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_what_we_export_comes_back(norm: str, quantization: str | None, tmp_path: Path) -> None:
    text = TextSection(kind="moses", merges=100) if norm == "pre" else TextSection(kind="sentencepiece", merges=320)
    loaded = made(learn_pipeline((SPEECH, [sentence[::-1] for sentence in SPEECH]), text), norm=norm)
    export_ctranslate2(loaded, tmp_path / "c", quantization)
    imported = import_model(tmp_path / "c")
    assert imported.pipeline.fingerprint() == loaded.pipeline.fingerprint()
    if quantization is None:
        assert translations(imported, SPEECH) == translations(loaded, SPEECH)
    engine = ctranslate2.Translator(str(tmp_path / "c"), compute_type="float32")
    there = []
    for sentence, ids in zip(SPEECH, loaded.pipeline.encode_source(SPEECH), strict=True):
        words = [loaded.pipeline.pieces(ids, "source")]
        limit = 2 * len(ids) + 10
        said = engine.translate_batch(words, beam_size=1, max_decoding_length=limit, disable_unk=True)[0].hypotheses[0]
        there += loaded.pipeline.decode_target([[loaded.pipeline.target_vocabulary.id(w) for w in said]], [sentence])
    check_same(there, translations(imported, SPEECH))


def test_a_model_without_ends_goes_out_again(tmp_path: Path) -> None:
    imported = import_model(opennmt_folder(tmp_path / "m"))
    imported.save(tmp_path / "ours")
    loaded = load_model(tmp_path / "ours")
    ours = translations(imported, SPEECH)
    assert translations(loaded, SPEECH) == ours
    export_ctranslate2(loaded, tmp_path / "c")
    assert json.loads((tmp_path / "c" / "config.json").read_text())["add_source_eos"] is False
    assert translations(import_model(tmp_path / "c"), SPEECH) == ours
    with pytest.raises(UserError, match="no end of sentence"):
        export_marian(loaded, tmp_path / "t")


# Packages of Argos Translate


@pytest.mark.parametrize("root", ["translate-en_de-1_0/", ""], ids=["in a folder", "without"])
def test_a_package(root: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = opennmt_folder(tmp_path / "m", quantization="int8")
    package = argos_package(tmp_path / "translate-en_de-1_0.argosmodel", folder, root)
    caplog.set_level("INFO", "weitblick")
    imported = import_model(package)
    assert "stanza is left out" in caplog.text
    assert (imported.pipeline.source_language, imported.pipeline.target_language) == ("en", "de")
    assert imported.facts["imported_from"] == "translate-en_de-1_0"
    generation = imported.section.generation
    assert (generation.beam, generation.length_penalty) == (4, 0.2)
    check_same(by_engine(folder / "model", SPEECH, pieces_of(folder)), translations(imported, SPEECH))
    asked = {"beam_size": 4, "length_penalty": 0.2}
    there, ours = by_engine(folder / "model", SPEECH, pieces_of(folder), **asked), translations(imported, SPEECH, None)
    assert sum(a == b for a, b in zip(there, ours, strict=True)) >= len(SPEECH) - 2  # searches end in their own ways


def test_from_a_package_to_a_translation_with_a_memory(tmp_path: Path) -> None:
    package = argos_package(tmp_path / "p.argosmodel", opennmt_folder(tmp_path / "m"))
    (tmp_path / "x.en").write_text("\n".join(SPEECH) + "\n")
    (tmp_path / "pairs.tsv").write_text(f"{SPEECH[1]}\tEs ist lang.\n")
    run("import", package, "-o", tmp_path / "ours")
    found = run("translate", tmp_path / "x.en", "-m", tmp_path / "ours", "--memory", tmp_path / "pairs.tsv", "-q")
    assert len(found.splitlines()) == len(SPEECH)
    run("explain", tmp_path / "x.en", "-m", tmp_path / "ours", "-o", tmp_path / "report.html", "-q")


# Bad input: one line, exit code 2, nothing installed


def binary(folder: Path) -> Path:
    return folder / "model" / "model.bin"


def rewrite(change: Callable[[bytearray], Any]) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        content = bytearray(binary(folder).read_bytes())
        change(content)
        binary(folder).write_bytes(content)

    return apply


def first_variable(content: bytearray) -> int:
    """Where the name of the first variable begins."""
    (length,) = struct.unpack_from("<H", content, 4)
    return 6 + length + 8


def lie(content: bytearray) -> None:
    """Of the first array of two dimensions: 4,000 million rows."""
    place = content.index(b"decoder/embeddings/weight\0") + len(b"decoder/embeddings/weight\0")
    assert content[place] == 2
    struct.pack_into("<I", content, place + 1, 4_000_000_000)


def _json(name: str, **changes: Any) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        value = json.loads((folder / name).read_text())
        (folder / name).write_text(json.dumps(value | changes))

    return apply


def _shorten(folder: Path) -> None:
    path = next((folder / "model").glob("*_vocabulary.json"))
    path.write_text(json.dumps(json.loads(path.read_text())[:-5]))


def _other_pieces(folder: Path) -> None:
    learn_sentencepiece(["0123456789 ΑΒΓΔΕΖΗΘΙΚΛΜ αβγδεζηθικλμ"], 40, folder / "sentencepiece.model")


Damage = Callable[[Path], Any]
NOTHING: Damage = lambda folder: None  # noqa: E731
RELATIVE = {"position_encoding": False, "max_relative_positions": 2}
DAMAGES: dict[str, tuple[dict[str, Any], Damage]] = {
    "are relative": (RELATIVE, NOTHING),
    "activation gelu by tanh; known here: relu, swish, gelu": ({"pos_ffn_activation_fn": "fast_gelu"}, NOTHING),
    "is of the kind WhisperrrrrSpec; read here": (
        {},
        rewrite(lambda content: content.__setitem__(slice(6, 21), b"WhisperrrrrSpec")),
    ),
    "(version 99)": ({}, rewrite(lambda content: content.__setitem__(0, 99))),
    "is cut short": ({}, rewrite(lambda content: content.__delitem__(slice(len(content) // 2, None)))),
    "is no model of CTranslate2": ({}, lambda folder: binary(folder).write_bytes(b"")),
    "bytes too many": ({}, rewrite(lambda content: content.extend(b"more"))),
    "the file gives it": ({}, rewrite(lie)),
    "4294967295 variables are announced": (
        {},
        rewrite(lambda content: struct.pack_into("<I", content, first_variable(content) - 4, 2**32 - 1)),
    ),
    "vocabulary has": ({}, _shorten),
    "is of another vocabulary": ({}, _other_pieces),
    "has no source_vocabulary": ({}, lambda folder: next((folder / "model").glob("*_vocab*")).unlink()),
    "nothing that cuts text": ({}, lambda folder: (folder / "sentencepiece.model").unlink()),
    "is not a SentencePiece model": ({}, lambda folder: (folder / "sentencepiece.model").write_bytes(b"no")),
    "layer_norm_epsilon is 0.1": ({}, _json("model/config.json", layer_norm_epsilon=0.1)),
    "reads a start of sentence": ({}, _json("model/config.json", add_source_bos=True)),
    "its vocabulary has no '<start>'": ({}, _json("model/config.json", decoder_start_token="<start>")),
    "type 'sbd'": ({}, _json("metadata.json", type="sbd")),
    "starts every translation with '>>de<<'": ({}, _json("metadata.json", target_prefix=">>de<<")),
    "does not say its languages": ({}, _json("metadata.json", from_code=None)),
}


@pytest.mark.parametrize("packed", [False, True], ids=["folder", "package"])
@pytest.mark.parametrize("named", DAMAGES)
def test_what_is_wrong_is_named(
    named: str, packed: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    options, damage = DAMAGES[named]
    folder = opennmt_folder(tmp_path / "m", **options)
    damage(folder)
    if packed:
        shutil.make_archive(str(tmp_path / "m"), "zip", folder)
        folder = (tmp_path / "m.zip").rename(tmp_path / "m.argosmodel")
    check_refused(folder, named, tmp_path, capsys, monkeypatch)


def check_refused(
    path: Path, named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["weitblick", "import", str(path), "-o", str(tmp_path / "ours"), "-q"])
    with pytest.raises(SystemExit) as stop:
        main()
    printed = capsys.readouterr()
    assert stop.value.code == 2
    assert named in printed.err
    assert printed.err.count("\n") == 1
    assert not (tmp_path / "ours").exists()


@pytest.mark.parametrize("name", ["../evil.txt", "/tmp/evil.txt", "a/../../evil.txt", "..\\evil.txt", "C:\\evil.txt"])
def test_a_package_stays_in_its_folder(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    package = argos_package(tmp_path / "p.argosmodel", opennmt_folder(tmp_path / "m"))
    with zipfile.ZipFile(package, "a") as more:
        more.writestr(name, b"evil")
    check_refused(package, "leaves its folder", tmp_path, capsys, monkeypatch)
    assert not list(tmp_path.rglob("evil*"))


PACKAGES: dict[str, bytes | None] = {
    "is no package of Argos Translate": b"PK nothing",
    "no such file": None,
}


@pytest.mark.parametrize("named", PACKAGES)
def test_a_file_that_is_no_package(
    named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    content = PACKAGES[named]
    if content is not None:
        (tmp_path / "p.argosmodel").write_bytes(content)
    check_refused(tmp_path / "p.argosmodel", named, tmp_path, capsys, monkeypatch)


def test_a_package_that_was_cut(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    package = argos_package(tmp_path / "p.argosmodel", opennmt_folder(tmp_path / "m"))
    package.write_bytes(package.read_bytes()[:-100])
    check_refused(package, "is no package of Argos Translate", tmp_path, capsys, monkeypatch)


def test_damaged_files_are_refused_or_read(tmp_path: Path) -> None:
    """Wherever bytes of the head are others, it is a user's error or a model, never another failure."""
    folder = opennmt_folder(tmp_path / "m")
    content, chance, refused = binary(folder).read_bytes(), random.Random(1), 0
    heads = [found.start() for found in re.finditer(rb"(en|de)coder/\w", content)]
    for _ in range(60):
        damaged = bytearray(content)
        place = chance.choice(heads) + chance.randrange(-3, 60)
        damaged[min(max(0, place), len(damaged) - 1)] = chance.randrange(256)
        binary(folder).write_bytes(damaged)
        try:
            import_model(folder)
        except UserError:
            refused += 1
    assert refused > 20


def test_rnnsearch_has_ends() -> None:
    with pytest.raises(ValueError, match="always reads an end"):
        ModelSection(architecture="rnnsearch", source_end=False)
