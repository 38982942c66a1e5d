"""Every test of kernels runs with those for this processor and, where it can, with those for AVX2 alone."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from weitblick.common.errors import UserError
from weitblick.common.locks import waiting_lock
from weitblick.fast import build as building
from weitblick.fast import kernels as library
from weitblick.fast.kernels import Kernels


def built_for(processor: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library for a processor, built once for all processes of the suite."""
    own = tmp_path_factory.getbasetemp()
    shared = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "kernels"
    shared.mkdir(exist_ok=True)
    with pytest.MonkeyPatch.context() as patch, waiting_lock(shared / "lock"):
        patch.setenv("XDG_CACHE_HOME", str(shared))
        patch.setenv(building.VARIABLE, processor)
        patch.delenv("CC", raising=False)
        path = building.build()
        assert building.build() == path
        return path


@pytest.fixture(scope="session", params=list(building.PROCESSORS))
def compiled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Kernels:
    if not any(map(shutil.which, building.COMPILERS)) or sys.platform != "linux":
        pytest.skip("no C compiler")
    if request.param == "avx2" and not {"avx2", "fma", "bmi2"} <= set(Path("/proc/cpuinfo").read_text().split()):
        pytest.skip("this processor has no AVX2")
    try:
        return library.load(built_for(request.param, tmp_path_factory))
    except UserError as error:
        if request.param == "on":
            raise
        pytest.skip(f"this compiler does not know such processors: {error}")


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library that was built for this processor."""
    return built_for("on", tmp_path_factory)
