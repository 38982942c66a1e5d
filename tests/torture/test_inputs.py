"""Thousands of generated files for everything that reads one: right, or refused in one line; never a stack trace, never
without end, never by changing what was given."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path

import pytest
from attacks import Attack, attacks
from commands import Commands, Outcome
from mutations import mutate
from samples import CORPORA, FILES, GLOSSARY, PACKAGES, SUITE

TOGETHER = 25  # attacks in one process
Files = dict[str, bytes]
Make = Callable[[Attack], tuple[Files, list[str]]]


def run(
    weitblick: Commands,
    folder: Path,
    found: Iterable[Attack],
    make: Make,
    check: Callable[[Path, Outcome], None] | None = None,
) -> None:
    """Carries attacks out, some together, each in a folder of its own, named by its number."""
    found = iter(found)
    while some := list(islice(found, TOGETHER)):
        made = []
        for attack in some:
            files, command = make(attack)
            place = folder / str(attack.number)
            place.mkdir()
            for name, content in files.items():
                (place / name).parent.mkdir(exist_ok=True)
                (place / name).write_bytes(content)
            made.append((place, files, [part.replace("HERE", str(place)) for part in command]))
        outcomes = weitblick.each(folder, [command for _, _, command in made])
        for attack, (place, files, _), outcome in zip(some, made, outcomes, strict=True):
            try:
                outcome.sound()
                assert outcome.seconds < 30, f"takes {outcome.seconds:.0f} s"
                for name, content in files.items():
                    assert (place / name).read_bytes() == content, f"{name} was changed"
                left = [path.name for path in place.iterdir() if ".weitblick-" in path.name]
                assert not left, f"left lying about: {left}"
                if check is not None:
                    check(place, outcome)
            except AssertionError as error:
                raise AssertionError(f"{attack}\n{place}\n{error}") from None
            for path in sorted(place.rglob("*"), reverse=True):
                path.rmdir() if path.is_dir() else path.unlink()
            place.rmdir()


@pytest.mark.parametrize("format", CORPORA)
def test_corpora(weitblick: Commands, tmp_path: Path, format: str) -> None:
    others = [text.encode() for texts in CORPORA.values() for text in texts]

    def make(attack: Attack) -> tuple[Files, list[str]]:
        texts = [text.encode() for text in CORPORA[format]]
        if attack.random() < 0.3:
            texts = texts[:1]
        hurt = attack.randrange(len(texts))
        texts[hurt] = mutate(texts[hurt], attack, others)
        ending = attack.choice(("", ".txt", ".en", ".gz" if attack.random() < 0.1 else ""))
        files = {f"{number}{ending}": text for number, text in enumerate(texts)}
        if ending == ".gz" and attack.random() < 0.7:
            files = {name: gzip.compress(text, mtime=0) for name, text in files.items()}
        named = [] if attack.random() < 0.1 else ["--from", format]
        inputs = [f"HERE/{name}" for name in files]
        if attack.random() < 0.2:
            return files, ["data", attack.choice(("stats", "check")), *inputs, *named]
        languages = ["--source-language", "en", "--target-language", "de"]
        return files, ["data", "convert", *inputs, "-o", "HERE/out.jsonl", *named, *languages]

    run(weitblick, tmp_path, attacks(f"corpora_{format}", 8, 0.02), make, _whole_jsonl)


def _whole_jsonl(place: Path, outcome: Outcome) -> None:
    """What was converted can be read back, and converted to lines it has a line for each sentence."""
    out = place / "out.jsonl"
    if outcome.code == 0 and out.exists():
        for line in out.read_bytes().splitlines():  # text has more line ends than JSONL
            assert all("\n" not in s["source"] and s["source"] is not None for s in json.loads(line)["sentences"])


@pytest.mark.parametrize("name", FILES)
def test_files_of_other_programs(weitblick: Commands, home: Path, tmp_path: Path, name: str) -> None:
    def make(attack: Attack) -> tuple[Files, list[str]]:
        content = _package(name, attack) if name in PACKAGES else mutate(FILES[name], attack)
        command = ["translate", f"HERE/{name}", "-o", f"HERE/out{Path(name).suffix}", "--beam", "1"]
        return {name: content[:60_000]}, [*command, "-m", str(home / "run" / "best")]

    run(weitblick, tmp_path, attacks(f"files_of_other_programs_{name}", 4, 0.02), make)


def _package(name: str, attack: Attack) -> bytes:
    """A damaged package, or a sound one of damaged parts."""
    if attack.random() < 0.4:
        return mutate(FILES[name], attack)
    parts = {part: text.encode() for part, text in PACKAGES[name].items()}
    hurt = attack.choice(list(parts))
    parts[hurt] = mutate(parts[hurt], attack)
    if attack.random() < 0.1:
        parts[attack.choice(("../x", "/etc/x", "word/document.xml/x", "a" * 300))] = b"x"
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as package:
        for part, content in parts.items():
            package.writestr(part, content)
    return data.getvalue()


def test_right_number_of_lines(weitblick: Commands, home: Path, tmp_path: Path) -> None:
    """A translation has a line for every line of its source, whatever stands in them."""

    def make(attack: Attack) -> tuple[Files, list[str]]:
        files = {"0.en": mutate(CORPORA["text"][0].encode(), attack)[:5000]}
        command = ["translate", "HERE/0.en", "--from", "text", "-o", "HERE/out.de", "--beam", "1"]
        return files, [*command, "-m", str(home / "run" / "best")]

    def check(place: Path, outcome: Outcome) -> None:
        if outcome.code == 0:
            source, target = ((place / name).read_bytes() for name in ("0.en", "out.de"))
            missing = source[-1:] not in (b"\n", b"")
            assert target.count(b"\n") == source.count(b"\n") + missing, "another number of lines"

    run(weitblick, tmp_path, attacks("right_number_of_lines", 15, 0.05), make, check)


@pytest.mark.parametrize("option", ["memory", "glossary", "keep"])
def test_approved_translations(weitblick: Commands, home: Path, tmp_path: Path, option: str) -> None:
    kinds = ["tmx", "jsonl", "tsv"] if option == "memory" else ["glossary"]

    def make(attack: Attack) -> tuple[Files, list[str]]:
        kind = attack.choice(kinds)
        valid = (CORPORA[kind][0] if option == "memory" else GLOSSARY).encode()
        files = {"0.en": b"One house.\n", f"approved.{kind}": mutate(valid, attack)}
        command = ["translate", "HERE/0.en", f"--{option}", f"HERE/approved.{kind}", "-o", "HERE/out.de"]
        return files, [*command, "--beam", "1", "-m", str(home / "run" / "best")]

    run(weitblick, tmp_path, attacks(f"approved_translations_{option}", 4, 0.02), make)


def test_suites(weitblick: Commands, home: Path, tmp_path: Path) -> None:
    valid = (home / "suite.jsonl").read_bytes()

    def make(attack: Attack) -> tuple[Files, list[str]]:
        suite = mutate(attack.choice((valid, SUITE.encode())), attack)
        more = attack.choice(([], ["--json"], ["--controls"], ["--no-context"]))
        return {"suite.jsonl": suite}, ["contrast", "HERE/suite.jsonl", "-m", str(home / "run" / "best"), *more]

    run(weitblick, tmp_path, attacks("suites", 10, 0.05), make)


def test_recipes(weitblick: Commands, home: Path, tmp_path: Path) -> None:
    valid = (home / "recipe.yaml").read_bytes()

    def make(attack: Attack) -> tuple[Files, list[str]]:
        files = {"recipe.yaml": mutate(valid, attack), "base.yaml": valid}
        if attack.random() < 0.2:
            files["recipe.yaml"] = b"base: " + attack.choice((b"recipe.yaml", b"base.yaml", b".", b"/dev/zero")) + b"\n"
        return files, ["recipe", "show", "HERE/recipe.yaml", "data.dir=corpus", "output=x"]

    run(weitblick, tmp_path, attacks("recipes", 40, 0.03), make)


def test_studies(weitblick: Commands, home: Path, tmp_path: Path) -> None:
    from weitblick.common.recipe_files import PACKAGE

    valid = (PACKAGE / "studies" / "tiny.yaml").read_bytes()

    def make(attack: Attack) -> tuple[Files, list[str]]:
        return {"study.yaml": mutate(valid, attack)}, ["reproduce", "HERE/study.yaml", "--dry-run", "-o", "HERE/out"]

    run(weitblick, tmp_path, attacks("studies", 10, 0.03), make)


def test_explanations(weitblick: Commands, home: Path, tmp_path: Path) -> None:
    saved = tmp_path / "saved.json"
    weitblick(tmp_path, "explain", home / "document.en", "-o", saved, "-m", home / "run" / "best").sound()
    valid = saved.read_bytes()

    def make(attack: Attack) -> tuple[Files, list[str]]:
        content = mutate(valid, attack) if attack.random() < 0.5 else _other_value(valid, attack)
        return {"saved.json": content}, [
            "explain",
            "HERE/saved.json",
            "-o",
            attack.choice(("HERE/o.html", "HERE/o.tex")),
        ]

    run(weitblick, tmp_path, attacks("explanations", 15, 0.05), make)


def _other_value(valid: bytes, attack: Attack) -> bytes:
    """One value of a JSON file, anywhere in it, becomes another."""
    values = json.loads(valid)
    at = values
    while True:
        keys = list(at) if isinstance(at, dict) else range(len(at))
        key = attack.choice(list(keys))
        if not isinstance(at[key], (dict, list)) or not at[key] or attack.random() < 0.1:
            break
        at = at[key]
    others = (None, True, -1, 0, 1e308, float("nan"), 10**30, "", "x", "\ud800", [], [[]], {}, [1, 2, 3], {"a": 1})
    at[key] = attack.choice(others)
    return json.dumps(values).encode("utf-8", "surrogatepass")


def test_judgements(weitblick: Commands, home: Path, tmp_path: Path) -> None:
    one, other = home / "corpus" / "test.de", tmp_path / "other.de"
    other.write_text(one.read_text(encoding="utf-8").replace(".", "!"), encoding="utf-8")
    form = ["judge", "sample", one, other, "--source", home / "corpus" / "test.en", "-o", tmp_path / "form.html"]
    assert weitblick(tmp_path, *form, "--documents", "1").sound().code == 0
    valid = (tmp_path / "form.key.json").read_bytes()
    key = json.loads(valid)
    choices = {item: {"adequacy": "left", "fluency": "tie"} for item in key["left"]}
    answers = {"format_version": 1, "form_id": key["form_id"], "rater": "a", "answers": choices}
    valid_answers = json.dumps(answers).encode()

    def make(attack: Attack) -> tuple[Files, list[str]]:
        change = mutate if attack.random() < 0.5 else _other_value
        files = {"key.json": valid, "answers.json": valid_answers}
        hurt = attack.choice(list(files))
        files[hurt] = change(files[hurt], attack)
        return files, ["judge", "read", "HERE/key.json", "HERE/answers.json"]

    run(weitblick, tmp_path, attacks("judgements", 10, 0.02), make)


@pytest.mark.parametrize("command", ["score", "compare"])
def test_translations(weitblick: Commands, tmp_path: Path, command: str) -> None:
    def make(attack: Attack) -> tuple[Files, list[str]]:
        valid = CORPORA["text"][1].encode()
        files = {"ref.de": valid, "a.de": mutate(valid, attack)[:3000], "b.de": valid}
        if command == "score":
            return files, ["score", "HERE/a.de", "--reference", "HERE/ref.de"]
        return files, ["compare", "HERE/ref.de", "HERE/a.de", "HERE/b.de", "--trials", "10"]

    run(weitblick, tmp_path, attacks(f"translations_{command}", 4, 0.02), make)
