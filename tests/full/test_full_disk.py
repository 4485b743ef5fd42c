"""A real publish on a disk that runs full, at whatever moment, or may only be read, leaves what is published whole, says so in a sentence, and
the next one with room is as one that nothing was before."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

from pipeline import ROOT
from tests.press.small_disk import NOT_ALLOWED


@pytest.mark.full
@pytest.mark.skipif(shutil.which("unshare") is None, reason="no unshare: nobody else's view of disks is left alone")
def test_a_real_publish_on_disks_that_are_too_small_loses_nothing(tmp_path):
    command = ["unshare", "-rm", sys.executable, "-m", "tests.full.full_disk", str(tmp_path)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=3600, check=False)
    if run.returncode == NOT_ALLOWED or run.stderr.startswith("unshare"):
        pytest.skip("this system lets nobody mount")
    assert run.stdout.splitlines() == ["held"], run.stderr
