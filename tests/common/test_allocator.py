"""Memory that is free goes back to the system when it is told to."""

from __future__ import annotations

import subprocess
import sys

import pytest

FRAGMENTED = """
import torch
from weitblick.common.process import release_free_memory, tune_allocator

def resident():
    with open("/proc/self/status") as status:
        return int(status.read().partition("RssAnon:")[2].split()[0]) // 1024

tune_allocator()
pairs = [(torch.ones(1 << 18), torch.ones(64)) for _ in range(200)]  # 200 MB, and a little between
kept = [little for _, little in pairs]
del pairs
before = resident()
release_free_memory()
print(before - resident())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="of glibc")
def test_free_memory_between_what_is_kept_goes_back() -> None:
    done = subprocess.run([sys.executable, "-c", FRAGMENTED], capture_output=True, text=True, check=True)
    assert int(done.stdout) > 100
