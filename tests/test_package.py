"""The package as a stranger installs it: whole, typed, quick to import, and without what was not asked for."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import weitblick
from weitblick.common.errors import UserError
from weitblick.common.imports import optional_package
from weitblick.common.recipe_files import load_recipe
from weitblick.evaluation.study import load_study

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """Built from a copy: nothing of an earlier build can slip in, and nothing is left in the checkout."""
    folder = tmp_path_factory.mktemp("package")
    for name in ("src", "recipes", "studies"):
        ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
        shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=ignored)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--quiet", "-w", "dist", "."]
    subprocess.run([*command, "--disable-pip-version-check"], cwd=folder, check=True, capture_output=True)
    (path,) = (folder / "dist").glob("*.whl")
    assert path.name.startswith(f"weitblick-{weitblick.__version__}-")
    return zipfile.ZipFile(path)


def test_the_wheel_holds_all_of_the_package(wheel: zipfile.ZipFile) -> None:
    names = set(wheel.namelist())
    source = ROOT / "src"
    tracked = subprocess.run(["git", "ls-files", "src"], cwd=ROOT, capture_output=True, text=True, check=False)
    expected = {str(Path(name).relative_to("src")) for name in tracked.stdout.splitlines()}
    expected = {name for name in expected if (source / name).is_file()}
    assert expected - names == set()
    for name in ("py.typed", "shipped/model.safetensors", "shipped/LICENSE", "evaluation/meteor_data/LICENSE"):
        assert f"weitblick/{name}" in names
    for folder in ("recipes", "studies"):
        ours = {f"weitblick/{path.relative_to(ROOT)}" for path in (ROOT / folder).rglob("*.yaml")}
        assert ours
        assert ours - names == set()


def test_translating_asks_for_no_extra(wheel: zipfile.ZipFile) -> None:
    (metadata,) = (name for name in wheel.namelist() if name.endswith("METADATA"))
    text = wheel.read(metadata).decode()
    needed = [line for line in text.splitlines() if line.startswith("Requires-Dist:") and "extra ==" not in line]
    assert any("torch" in line for line in needed)
    assert not any(name in line for line in needed for name in ("matplotlib", "tensorboard", "fastapi"))
    for name in ("plots", "tensorboard", "server"):
        assert f"Provides-Extra: {name}" in text


TRANSLATE = """
import os
import sys
before = dict(os.environ)
import weitblick
assert dict(os.environ) == before, "import weitblick changes the environment"
assert "torch" not in sys.modules, "import weitblick is not quick"
for name in ("matplotlib", "tensorboard", "fastapi"):
    sys.modules[name] = None  # as if it were not installed
document = weitblick.Translator.load().translate(["The report is ready.", "It is long."], beam=1)
assert len(document.targets) == 2 and all(document.targets)
memory = {name for name in sys.modules if name.startswith("weitblick.memory.")}
assert memory <= {"weitblick.memory.pointer"}, "nothing is approved, and nothing looks for it"
"""


def test_the_shipped_model_translates_without_extras() -> None:
    subprocess.run([sys.executable, "-c", TRANSLATE], check=True)


COLD_START = """
import sys
from weitblick.cli.main import main
from weitblick.common.imports import TABLES
sys.argv = ["weitblick", "translate", "-q", "--beam", "1", *sys.argv[1:]]
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
late = {"torch._dynamo", "torch._decomp", "scipy", "matplotlib", "sacrebleu", "pyarrow", "fastapi", TABLES}
assert not late & sys.modules.keys(), f"imported too early: {late & sys.modules.keys()}"
import torch
import torch._meta_registrations
assert torch._meta_registrations.activate_meta, "who asks for it by name gets PyTorch's own"
assert (torch.empty(3, device="meta") @ torch.empty(3, 2, device="meta")).shape == (2,)
"""


def test_translating_loads_little(tmp_path: Path) -> None:
    """A cold start is mostly imports: what `weitblick translate` does not use is not loaded."""
    (tmp_path / "a.txt").write_text("The report is ready.\n", encoding="utf-8")
    command = [sys.executable, "-c", COLD_START, str(tmp_path / "a.txt"), "-o", str(tmp_path / "b.txt")]
    subprocess.run(command, check=True)
    assert (tmp_path / "b.txt").read_text(encoding="utf-8").strip()


def test_the_public_names_are_there() -> None:
    for name in weitblick.__all__:
        assert getattr(weitblick, name) is not None
    assert set(dir(weitblick)) == set(weitblick.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = weitblick.nothing  # type: ignore[attr-defined]


def test_recipes_and_studies_are_found_from_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert load_recipe("recipes/tiny/h-attention.yaml") == load_recipe("tiny/h-attention.yaml")
    row = "paper/rows/transformer.yaml"
    assert load_recipe(row, ["base=recipes/paper/news.yaml"]) != load_recipe(row)
    assert load_study("studies/tiny.yaml")[1]
    with pytest.raises(UserError, match=r"tiny/nothing\.yaml: no such file"):
        load_recipe("tiny/nothing.yaml")


def test_a_missing_extra_is_named_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with (
        pytest.raises(UserError, match=r"matplotlib is not installed; pip install 'weitblick\[plots\]'"),
        optional_package("plots"),
    ):
        import matplotlib  # noqa: F401
