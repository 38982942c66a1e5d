"""Models of Firefox's kind: what its own engine said (golden.json, by benchmarks/firefox.py) is what we say.

The model in tests/exchange/firefox is a small one of ours, trained on the toy corpus and exported in 8 bits.
"""

from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sentencepiece
import torch
import yaml
from typer.testing import CliRunner

from weitblick.checkpoints.folder import load_model
from weitblick.checkpoints.import_marian import HEADER, SHORTLIST, Imported, TextOptions, import_marian
from weitblick.checkpoints.marian_binary import INTGEMM8, read_binary, write_binary
from weitblick.cli.main import app, main
from weitblick.fast.shortlist import Shortlist
from weitblick.model.batch import pack_pairs
from weitblick.translation.translator import Translator

GOLDEN = Path(__file__).parent / "firefox"
WISHES = TextOptions("fr", "es")


@pytest.fixture(scope="module")
def golden() -> dict[str, Any]:
    return json.loads((GOLDEN / "golden.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def imported() -> Imported:
    return import_marian(GOLDEN, WISHES)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy to be changed, with a name that says the languages."""
    shutil.copytree(GOLDEN, tmp_path / "firefox-fr-es")
    return tmp_path / "firefox-fr-es"


def translate(imported: Imported, sources: list[str], shortlist: Shortlist | None = None) -> list[str]:
    return Translator(imported.model, imported.pipeline).translate(sources, shortlist=shortlist).targets


@torch.no_grad()
def word_scores(imported: Imported, source: str, translation: str) -> list[float]:
    pipeline, sentence = imported.pipeline, imported.model.sentence
    (target,) = pipeline.encode_target([translation])
    batch = pack_pairs(pipeline.encode_source([source]), [target])
    memory = sentence.encode(batch.source.tokens, batch.source.layout)
    states = sentence.decode(batch.target.tokens, batch.target.layout, memory, batch.source.layout).final
    weight, bias = sentence.output()
    found = (states @ weight.t() + bias).log_softmax(-1).gather(1, batch.labels[:, None])[:, 0]
    return [float(found[start:end].mean()) for start, end, _ in pipeline.words(target, "target")]


# Equal to the original


def test_translations_and_probabilities_are_the_engines(imported: Imported, golden: dict[str, Any]) -> None:
    section = imported.section
    assert (section.architecture, section.generation.beam, section.positions) == ("ssru", 1, "tensor2tensor")
    sources, expected = golden["sources"], golden["float32"]
    assert translate(imported, sources) == [line["translation"] for line in expected]
    for source, line in zip(sources, expected, strict=True):
        found = word_scores(imported, source, line["translation"])
        assert found == pytest.approx(line["word_scores"], abs=1e-4)


def test_the_engines_eight_bits_are_near(imported: Imported, golden: dict[str, Any]) -> None:
    """There activations are rounded to 8 bits, too."""
    sources, expected = golden["sources"], golden["int8"]
    ours = translate(imported, sources)
    same = [our == line["translation"] for our, line in zip(ours, expected, strict=True)]
    assert np.mean(same) >= 0.9
    differences = [
        abs(a - b)
        for source, line in zip(sources, expected, strict=True)
        for a, b in zip(word_scores(imported, source, line["translation"]), line["word_scores"], strict=True)
    ]
    assert np.mean(differences) < 0.05


def test_its_shortlist_is_the_engines(imported: Imported, golden: dict[str, Any], tmp_path: Path) -> None:
    imported.save(tmp_path / "ours")
    shortlist = Shortlist.load(tmp_path / "ours" / SHORTLIST, imported.pipeline)
    ours = translate(imported, golden["sources"], shortlist)
    # The engine fills its list up to a multiple of eight, and multiplies 8 bits.
    same = [our == their or len(their) > 50 for our, their in zip(ours, golden["shortlist"], strict=True)]
    assert np.mean(same) >= 0.8
    assert ours != translate(imported, golden["sources"])


# The same from other files


def test_exported_again_it_is_the_same_file(imported: Imported, tmp_path: Path) -> None:
    imported.save(tmp_path / "ours")
    for options in ([], ["--float32"]):
        result = CliRunner().invoke(
            app, ["export", "firefox", "-m", str(tmp_path / "ours"), "-o", str(tmp_path / "there"), *options]
        )
        assert result.exit_code == 0, result.exception
        found, expected = (read_binary(path / "model.bin") for path in (tmp_path / "there", GOLDEN))
        assert found.keys() == expected.keys()
        for name, array in expected.items():
            if name != "special:model.yml":
                np.testing.assert_allclose(found[name], array, atol=1e-6, err_msg=name)
    again = import_marian(tmp_path / "there", WISHES)
    for name, value in again.model.state_dict().items():
        torch.testing.assert_close(value, imported.model.state_dict()[name], msg=name)
    assert again.pipeline.source_vocabulary == imported.pipeline.source_vocabulary


def test_an_npz_of_it_is_the_same(imported: Imported, folder: Path) -> None:
    np.savez(folder / "model.npz", **read_binary(folder / "model.bin"))  # type: ignore[arg-type]
    (folder / "model.bin").unlink()
    for name, value in import_marian(folder).model.state_dict().items():
        assert torch.equal(value, imported.model.state_dict()[name]), name


def test_two_vocabularies_and_two_tables(folder: Path, golden: dict[str, Any]) -> None:
    arrays = read_binary(folder / "model.bin")
    table = arrays.pop("Wemb")
    write_binary(folder / "model.fres.bin", arrays | {"encoder_Wemb": table, "decoder_Wemb": table})
    (folder / "model.bin").unlink()
    shutil.copy(folder / "vocab.spm", folder / "srcvocab.fres.spm")
    shutil.move(folder / "vocab.spm", folder / "trgvocab.fres.spm")
    found = import_marian(folder.rename(folder.with_name("nameless")))  # the model's own name says the languages
    assert not found.pipeline.joint_vocabulary
    assert (found.pipeline.source_language, found.pipeline.target_language) == ("fr", "es")
    assert translate(found, golden["sources"]) == [line["translation"] for line in golden["float32"]]


def test_eight_bits_are_read_exactly(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    matrices = {"decoder_l1_rnn_W": (8, 16), "Wemb": (24, 8)}
    arrays = {name: random.standard_normal(shape).astype(np.float32) for name, shape in matrices.items()}
    write_binary(tmp_path / "m.bin", arrays, frozenset(arrays))
    content, found = (tmp_path / "m.bin").read_bytes(), read_binary(tmp_path / "m.bin")
    start = len(content) - sum(-(-(a.size + 4) // 256) * 256 for a in arrays.values())
    for name, array in arrays.items():
        values = np.frombuffer(content, np.int8, array.size, start)
        (multiplier,) = struct.unpack_from("<f", content, start + array.size)
        values = values.reshape(array.shape) if name == "Wemb" else values.reshape(array.T.shape).T
        assert np.array_equal(found[name], values.astype(np.float32) / np.float32(multiplier))
        assert np.abs(found[name] - array).max() <= 0.51 / multiplier
        start += -(-(array.size + 4) // 256) * 256


def test_imported_and_translated_by_the_commands(folder: Path, golden: dict[str, Any], tmp_path: Path) -> None:
    run = CliRunner().invoke(app, ["import", str(folder), "-o", str(tmp_path / "ours")])
    assert run.exit_code == 0, run.exception
    loaded = load_model(tmp_path / "ours")
    assert loaded.model_section.architecture == "ssru"
    (tmp_path / "t.fr").write_text("\n".join(golden["sources"]) + "\n")
    expected = [line["translation"] for line in golden["float32"]]
    run = CliRunner().invoke(app, ["translate", str(tmp_path / "t.fr"), "-m", str(tmp_path / "ours"), "-q"])
    assert run.stdout.splitlines() == expected, run.exception


# What is wrong


def change_settings(**changes: Any) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        arrays = read_binary(folder / "model.bin")
        text = arrays["special:model.yml"].tobytes().rstrip(b"\0")
        settings = yaml.safe_load(text) | {key.replace("_", "-"): value for key, value in changes.items()}
        arrays["special:model.yml"] = np.frombuffer(yaml.safe_dump(settings).encode() + b"\0", dtype=np.int8)
        write_binary(folder / "model.bin", arrays)

    return apply


def change_numbers(place: int, value: int, name: str = "model.bin") -> Callable[[Path], None]:
    """Puts another u64 at a place of a file."""

    def apply(folder: Path) -> None:
        content = bytearray((folder / name).read_bytes())
        struct.pack_into("<Q", content, place, value)
        (folder / name).write_bytes(content)

    return apply


def change_shape(folder: Path) -> None:
    """The first array gets rows without end."""
    content = bytearray((folder / "model.bin").read_bytes())
    (count,) = struct.unpack_from("<Q", content, 8)
    names = sum(struct.unpack_from("<Q", content, 16 + 32 * number)[0] for number in range(count))
    struct.pack_into("<i", content, 16 + 32 * count + names, 2**31 - 1)
    (folder / "model.bin").write_bytes(content)


def change_multiplier(folder: Path) -> None:
    content = bytearray((folder / "model.bin").read_bytes())
    kinds = [(s, struct.unpack_from("<4Q", content, s)) for s in range(16, 16 + 32 * 3, 32)]
    assert kinds[0][1][1] == INTGEMM8
    found = read_binary(folder / "model.bin")["Wemb"]
    start = len(content) - _data_bytes(content)
    struct.pack_into("<f", content, start + found.size, float("nan"))
    (folder / "model.bin").write_bytes(content)


def _data_bytes(content: bytearray) -> int:
    (count,) = struct.unpack_from("<Q", content, 8)
    return sum(struct.unpack_from("<4Q", content, 16 + 32 * number)[3] for number in range(count))


def other_vocabulary(folder: Path) -> None:
    with (folder / "vocab.spm").open("wb") as out:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(["another language altogether", "with other words"]), model_writer=out,
            vocab_size=40, hard_vocab_limit=False, bos_id=-1, eos_id=0, unk_id=1, minloglevel=2,
        )  # fmt: skip


def cut(share: float) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        content = (folder / "model.bin").read_bytes()
        (folder / "model.bin").write_bytes(content[: int(share * len(content))])

    return apply


BAD: dict[str, tuple[Callable[[Path], Any], str]] = {
    "cut in its data": (cut(0.7), "is cut short, or its sizes lie"),
    "cut in its head": (cut(0.004), "is cut short, or its sizes lie"),
    "empty": (cut(0), "is no binary model of Marian"),
    "another version": (change_numbers(0, 2), "version 2"),
    "arrays without end": (change_numbers(8, 2**61), "is cut short, or its sizes lie"),
    "a name without end": (change_numbers(16, 2**63), "is cut short, or its sizes lie"),
    "an unknown type": (change_numbers(24, 0x402), "type (0x402) that is not read here"),
    "dimensions without end": (change_numbers(32, 2**60), "has no shape of an array"),
    "data without end": (change_numbers(40, 2**62), "is cut short, or its sizes lie"),
    "less data than its shape": (change_numbers(40, 8), "needs"),
    "a shape without end": (change_shape, "needs"),
    "a multiplier that is no number": (change_multiplier, "has the multiplier nan"),
    "another vocabulary": (other_vocabulary, "vocabulary and model do not belong together"),
    "another unit": (change_settings(dec_cell="gru"), "dec-cell is 'gru', only 'ssru' is known here"),
    "another decoder": (
        change_settings(transformer_decoder_autoreg="average-attention"),
        "transformer-decoder-autoreg is 'average-attention'; known: self-attention, rnn",
    ),
    "another architecture": (change_settings(type="s2s"), "type is 's2s', only 'transformer' is known here"),
    "other sizes": (change_settings(dim_emb=128), "the configuration asks for"),
    "other layers": (change_settings(dec_depth=4), "decoder_layers is 4, the weights have 1"),
    "a shortlist cut short": (change_numbers(32, 2**60, "lex.bin"), "its head says"),
    "another shortlist": (change_numbers(16, 10**6, "lex.bin"), "is a shortlist of another vocabulary"),
    "no shortlist": (change_numbers(0, 7, "lex.bin"), "is no binary shortlist of Marian"),
    "two models": (lambda folder: shutil.copy(folder / "model.bin", folder / "other.bin"), "has 2 models"),
}


@pytest.mark.parametrize("what", BAD)
def test_what_is_wrong_is_one_line(
    what: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    damage, named = BAD[what]
    damage(folder)
    monkeypatch.setattr("sys.argv", ["weitblick", "import", str(folder), "-o", str(tmp_path / "ours")])
    with pytest.raises(SystemExit) as stop:
        main()
    printed = capsys.readouterr().err
    assert stop.value.code == 2
    assert named in printed
    assert printed.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == [folder.name]


def test_every_cut_is_noticed(folder: Path) -> None:
    """Wherever a download broke off."""
    content = (folder / "model.bin").read_bytes()
    for length in (*range(0, 4000, 97), *range(4000, len(content), 4001)):
        (folder / "model.bin").write_bytes(content[:length])
        with pytest.raises(Exception, match=r"cut short|no binary model"):
            read_binary(folder / "model.bin")
    assert HEADER.size == 48
