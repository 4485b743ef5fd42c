"""Whatever a config holds, a build ends, in bounded memory, and says of each model what it is or why it is not used."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from pipeline.press.publish import ROOT


def read_mutants(count: int, seed: int) -> str:
    """What a process of its own, whose memory is limited, has to say of so many mutated configs."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.press.mutations", str(count), str(seed)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + (done.stderr[-3000:] if done.returncode else "")


@pytest.mark.full
def test_mutated_configs_and_each_number_alone_end_no_build():
    assert read_mutants(1000, 0) == ""


@pytest.mark.full
def test_150000_mutated_configs_end_no_build():
    with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
        assert "".join(pool.map(lambda seed: read_mutants(15_000, seed), range(1, 11))) == ""
