"""Every test of kernels runs with those for this processor and, where it can, with those for AVX2 alone."""

import shutil
import sys
from pathlib import Path

import pytest

from weitblick.common.errors import UserError
from weitblick.fast import build as building
from weitblick.fast import kernels as library
from weitblick.fast.kernels import Kernels


@pytest.fixture(scope="session", params=list(building.PROCESSORS))
def compiled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Kernels:
    if not any(map(shutil.which, building.COMPILERS)) or sys.platform != "linux":
        pytest.skip("no C compiler")
    if request.param == "avx2" and not {"avx2", "fma", "bmi2"} <= set(Path("/proc/cpuinfo").read_text().split()):
        pytest.skip("this processor has no AVX2")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        patch.setenv(building.VARIABLE, request.param)
        try:
            path = building.build()
        except UserError as error:
            if request.param == "on":
                raise
            pytest.skip(f"this compiler does not know such processors: {error}")
        assert building.build() == path
    return library.load(path)
