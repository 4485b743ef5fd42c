"""What is installed: the package as setuptools lays it out, asked outside of the checkout, and the real wheel in an environment of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from pipeline import ROOT
from tests.few import TEXT

# the press's own rooms that a question about a config.json goes through
_PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def run(*command: object, folder: Path, path: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: os.environ[name] for name in ("HOME", "PATH", "LANG", "SYSTEMROOT") if name in os.environ}
    return subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, cwd=folder, timeout=600,
        env={**kept, "PYTHONPATH": path, "XDG_CACHE_HOME": str(folder / "cache"), **environment},
    )  # fmt: skip


def test_an_installation_leaves_nothing_where_a_release_is_published():
    """`make publish` refuses a build/ that holds anything else, and setuptools would put its own things there."""
    assert _PROJECT["tool"]["distutils"]["build"]["build-base"].split("/")[0] not in ("build", ".")


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """The files that a source distribution has, away from the checkout: a build leaves things beside them."""
    copy = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    for name in ("pipeline", "site", "tables"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__", "hub/model"))
    return copy


@pytest.fixture(scope="module")
def installed(source, tmp_path_factory):
    """The package as a wheel holds it, without the wheel: needs no registry."""
    lib = tmp_path_factory.mktemp("lib")
    text = "from setuptools import setup; setup()"
    done = run(
        sys.executable,
        "-W",
        "ignore",
        "-c",
        text,
        "-q",
        "build",
        "--build-base",
        lib / "b",
        "--build-lib",
        lib / "lib",
        folder=source,
    )
    assert done.returncode == 0, done.stderr
    return lib / "lib"


def test_the_package_answers_outside_of_the_checkout(installed, folder, tmp_path):
    done = run(
        sys.executable,
        "-m",
        "vram_almanac",
        "fits",
        TEXT,
        "--gpu",
        "rtx-4090",
        "--data",
        folder,
        "--json",
        folder=tmp_path,
        path=str(installed),
    )
    told = json.loads(done.stdout)
    assert done.returncode == 0 and told["verdict"] == "fits" and told["commands"], done.stderr


@pytest.mark.full  # (two processes that read all facts anew)
def test_the_package_reads_a_config_as_the_checkout_does(installed, config_path, tmp_path):
    asked = ("fits", config_path, "--gpu", "rtx-4090", "--format", "Q8_0", "--json")
    done = run(sys.executable, "-m", "vram_almanac", *asked, folder=tmp_path, path=str(installed))
    assert done.returncode == 0, done.stderr
    here = run(sys.executable, "-m", "pipeline", *asked, folder=tmp_path, path=str(ROOT))
    assert json.loads(done.stdout) == json.loads(here.stdout)


def test_every_room_that_it_brings_is_whole(installed):
    """The packages of pyproject.toml are folders of the press, each with all of its files; no folder of a room is left out."""
    house = installed / "vram_almanac" / "house"
    named = [name.removeprefix("vram_almanac.house.") for name in _PROJECT["tool"]["setuptools"]["packages"]]
    rooms = {name.split(".")[1] for name in named if name.startswith("pipeline.")}
    for room in rooms:
        for path in (ROOT / "pipeline" / room).rglob("*.py"):
            assert (house / path.relative_to(ROOT)).read_bytes() == path.read_bytes(), path
    brought = {path.relative_to(house).parts[1] for path in (house / "pipeline").rglob("*.py")} - {
        "__init__.py",
        "__main__.py",
    }
    assert brought == rooms and "hub" not in {path.name for path in (house / "tables").iterdir()}


def test_what_most_people_ask_loads_nothing_but_duckdb(folder, tmp_path):
    """The time of an answer is that of its imports: no table library, no client of the Hub, no HTTP for a file on this machine."""
    text = (
        "import sys; from pipeline.ask.command import main; "
        f"main(['fits', {TEXT!r}, '--gpu', 'rtx-4090', '--data', {str(folder)!r}]); "
        "print(*sorted({name.partition('.')[0] for name in sys.modules} & {'polars', 'pyarrow', 'huggingface_hub', 'httpx', 'tqdm', 'urllib3', 'jinja2'}), "
        "*({'urllib.request', 'ssl', 'pipeline.press'} & sys.modules.keys()), file=sys.stderr)"
    )
    done = run(sys.executable, "-c", text, folder=tmp_path, path=str(ROOT))
    assert done.returncode == 0 and done.stderr.strip() == ""


@pytest.mark.full
def test_without_the_readers_libraries_a_config_says_what_is_missing(installed, config_path, folder, tmp_path):
    (tmp_path / "polars.py").write_text("raise ImportError('no polars here')\n")
    path = os.pathsep.join([str(tmp_path), str(installed)])
    done = run(
        sys.executable, "-m", "vram_almanac", "fits", config_path, "--gpu", "rtx-4090", folder=tmp_path, path=path
    )
    assert done.returncode == 4 and "pip install '.[config]'" in " ".join(done.stderr.split())
    done = run(
        sys.executable,
        "-m",
        "vram_almanac",
        "fits",
        TEXT,
        "--gpu",
        "rtx-4090",
        "--data",
        folder,
        folder=tmp_path,
        path=path,
    )
    assert done.returncode == 0


@pytest.mark.full
def test_the_wheel_installs_into_an_environment_of_its_own(source, folder, config_path, tmp_path):
    """With pip as people have it; needs a package registry."""
    registry = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    python = tmp_path / "venv" / "bin" / "python"
    assert run(sys.executable, "-m", "venv", tmp_path / "venv", folder=tmp_path).returncode == 0
    done = run(python, "-m", "pip", "install", "--quiet", source, folder=tmp_path, **registry)
    assert done.returncode == 0, done.stderr
    listed = run(python, "-m", "pip", "list", "--format", "json", folder=tmp_path, **registry)
    assert {each["name"] for each in json.loads(listed.stdout)} <= {"duckdb", "pip", "setuptools", "vram-almanac"}
    command = tmp_path / "venv" / "bin" / "vram-almanac"
    done = run(command, "fits", TEXT, "--gpu", "rtx-4090", "--data", folder, folder=tmp_path)
    assert done.returncode == 0 and done.stdout.startswith("Yes: "), done.stderr
    assert run(command, "fits", config_path, "--gpu", "rtx-4090", folder=tmp_path).returncode == 4
    assert (
        run(python, "-m", "pip", "install", "--quiet", f"{source}[config]", folder=tmp_path, **registry).returncode == 0
    )
    assert run(command, "fits", config_path, "--gpu", "rtx-4090", folder=tmp_path).returncode == 0
