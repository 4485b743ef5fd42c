"""What runs elsewhere: who may do what in it, that it calls what there is, and that its scripts do what they say, against a stand-in for
GitHub's command line that is as strict as the real one (tests/fake_gh)."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from pipeline.__main__ import _parser
from pipeline.release import assets, build
from tests.release.conftest import make

ROOT = Path(__file__).resolve().parent.parent
FILES = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PUBLISH = yaml.safe_load((ROOT / ".github" / "workflows" / "publish.yml").read_text(encoding="utf-8"))
JOBS = PUBLISH["jobs"]
TAG = "data-2026-01-02-aaaaaaaaaaaa"


def runs(job):
    return [step["run"] for step in JOBS[job]["steps"] if "run" in step]


def uses(job):
    return [step["uses"].partition("@")[0] for step in JOBS[job]["steps"] if "uses" in step]


def step(job, name):
    (found,) = [s for s in JOBS[job]["steps"] if s.get("name") == name]
    return found


def test_the_job_that_reads_what_strangers_publish_can_write_nowhere():
    assert PUBLISH["permissions"] == {}
    assert set(JOBS["build"]["permissions"].values()) == {"read"}
    for job in JOBS.values():
        for checkout in (s for s in job["steps"] if s.get("uses", "").startswith("actions/checkout@")):
            assert checkout["with"]["persist-credentials"] is False


def test_a_secret_is_known_to_the_one_job_that_needs_it():
    secrets = {job: set(re.findall(r"secrets\.(\w+)", str(told))) for job, told in JOBS.items()}
    assert {job: names for job, names in secrets.items() if names} == {"build": {"HF_TOKEN"}, "hub": {"HF_WRITE_TOKEN"}}


def test_a_job_may_write_only_what_it_is_for_and_those_that_may_run_nothing_of_ours():
    writes = {job: {n for n, level in told["permissions"].items() if level == "write"} for job, told in JOBS.items()}
    assert writes == {
        "build": set(), "hub": set(), "tables": {"contents"}, "latest": {"contents"}, "deploy": {"pages", "id-token"},
        "tell": {"issues", "actions"},
    }  # fmt: skip
    for job in (job for job, names in writes.items() if names):
        assert "actions/checkout" not in uses(job)
        assert not any(word in text for text in runs(job) for word in ("make ", "python", "pip", "curl"))
    assert runs("deploy") == []


def test_no_text_of_others_is_put_into_a_script():
    """What is not ours (inputs, outputs, titles) comes in by the environment, where it is no code."""
    for job in JOBS:
        assert not any("${{" in text for text in runs(job))


def test_a_site_is_compared_checked_and_measured_before_it_is_uploaded():
    names = [s.get("name") or s.get("run", s.get("uses", "")) for s in JOBS["build"]["steps"]]
    order = [
        next(i for i, name in enumerate(names) if name.startswith(part))
        for part in ("make crawl", "The last release", "Build", "Check", "make assets", "actions/upload-artifact", "actions/upload-pages-artifact")
    ]  # fmt: skip
    assert order == sorted(order)
    checked = step("build", "Check")["run"]
    assert [checked.index(word) for word in ("make check", "make gates", "GitHub Pages", "GitHub Releases")] == sorted(
        checked.index(word) for word in ("make check", "make gates", "GitHub Pages", "GitHub Releases")
    )


def test_tables_are_released_before_the_pages_that_lead_to_them_and_marked_after():
    assert JOBS["tables"]["needs"] == "build" and set(JOBS["deploy"]["needs"]) == {"build", "tables"}
    assert JOBS["latest"]["needs"] == "deploy" and set(JOBS["hub"]["needs"]) == {"build", "deploy"}


def test_two_runs_never_mix():
    assert PUBLISH["concurrency"] == {"group": "publish", "cancel-in-progress": False}
    address = step("build", "Build")["env"]["TABLES_URL"].rpartition("/")[2]
    assert address == assets.tag_of("{data_version}")


def test_a_crawl_is_kept_whatever_becomes_of_the_build():
    (save,) = [s for s in JOBS["build"]["steps"] if s.get("uses", "").startswith("actions/cache/save@")]
    (restore,) = [s for s in JOBS["build"]["steps"] if s.get("uses", "").startswith("actions/cache/restore@")]
    assert save["if"] == "always()" and save["with"]["path"] == restore["with"]["path"]
    assert (
        "tables/release" not in save["with"]["path"]
    )  # the last release is what is published, not what was built last


def test_every_failure_is_told():
    assert JOBS["tell"]["if"] == "always()" and set(JOBS["tell"]["needs"]) == set(JOBS) - {"tell"}
    told = step("tell", "Tell")["env"]["RESULTS"]
    assert all(f"{job}=${{{{ needs.{job}.result }}}}" in told for job in JOBS if job != "tell")


def test_what_a_job_makes_is_there_to_be_made():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    asked = {name for job in JOBS for text in runs(job) for name in re.findall(r"\bmake ([a-z-]+)", text)}
    assert {"last-release", "publish", "gates", "assets"} <= asked <= targets


def test_every_target_calls_a_command_that_there_is():
    lines = re.findall(r"-m pipeline ([a-z-]+)", (ROOT / "Makefile").read_text(encoding="utf-8"))
    commands = next(action for action in _parser()._actions if action.dest == "command").choices
    assert lines and set(lines) <= set(commands)


def test_actions_are_named_by_their_commit():
    for file in FILES:
        used = re.findall(r"uses: (.*)", file.read_text(encoding="utf-8"))
        assert used and all(re.fullmatch(r"[\w-]+/[\w-]+(/\w+)?@[0-9a-f]{40} # v\d+\.\d+\.\d+", name) for name in used)


# the scripts themselves


class Runner:
    """A machine that runs steps, with GitHub's state in a file."""

    def __init__(self, folder: Path):
        self.folder, self.file = folder, folder / "gh.json"
        self.state = {"releases": [], "issues": [], "labels": [], "faults": [], "log": []}

    @property
    def state(self):
        return json.loads(self.file.read_text())

    @state.setter
    def state(self, value):
        self.file.write_text(json.dumps(value))

    def change(self, **values):
        self.state = self.state | values

    def run(self, job, name, **environment):
        """A step as the runner runs it: bash, which ends at the first failure."""
        told = step(job, name)
        assert told["shell"] == "bash"
        wanted = set(told.get("env", {}))
        given = {"GH_TOKEN": "t", "GH_REPO": "o/r"} | environment
        assert wanted <= given.keys(), f"the step is given {wanted}"
        return subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", told["run"]],
            cwd=self.folder, capture_output=True, text=True, timeout=120, start_new_session=True,
            env={
                "PATH": f"{ROOT / 'tests' / 'fake_gh'}:{self.folder}:{os.environ['PATH']}", "FAKE_GH": str(self.file), "HOME": str(self.folder),
                "GITHUB_STEP_SUMMARY": str(self.folder / "summary.md"), "GITHUB_OUTPUT": str(self.folder / "output"), **given,
            },
        )  # fmt: skip


@pytest.fixture
def runner(tmp_path):
    return Runner(tmp_path)


@pytest.fixture
def laid(runner, tmp_path):
    """What the job `build` hands on."""
    assert assets.lay_out(build.whole(make(tmp_path / "build")), tmp_path / "release") == TAG
    return runner


def names(folder):
    return {f.name: f.stat().st_size for f in (folder / "release" / "assets").iterdir()}


def held(runner, tag=TAG):
    (found,) = [r for r in runner.state["releases"] if r["tagName"] == tag]
    return {a["name"]: a["size"] for a in found["assets"] if a["state"] == "uploaded"}, found


def release(runner):
    return runner.run("tables", "Release the tables")


def test_tables_are_released_whole_and_not_before(laid):
    done = release(laid)
    assert done.returncode == 0, done.stderr
    sizes, found = held(laid)
    assert (
        sizes == names(laid.folder)
        and not found["isDraft"]
        and not found["latest"]
        and "first release" in found["body"]
    )
    drafts = [words for words in laid.state["log"] if words[:2] == ["release", "create"]]
    assert "--draft" in drafts[0] and len(drafts) == 1
    assert laid.run("latest", "Mark the release").returncode == 0 and held(laid)[1]["latest"]


def test_a_release_that_is_public_is_not_touched_again(laid):
    release(laid)
    laid.change(log=[])
    assert release(laid).returncode == 0
    assert {tuple(words[:2]) for words in laid.state["log"]} == {("release", "view")}


@pytest.mark.full
@pytest.mark.parametrize("how", ["fail", "half", "kill"])
@pytest.mark.parametrize("skip", [0, 3])
def test_a_target_that_takes_half_shows_nothing_and_the_next_run_goes_on(laid, how, skip):
    laid.change(faults=[{"at": "release upload", "skip": skip, "how": how}])
    assert release(laid).returncode != 0
    assert held(laid)[1]["isDraft"]
    done = release(laid)
    assert done.returncode == 0, done.stderr
    sizes, found = held(laid)
    assert sizes == names(laid.folder) and not found["isDraft"] and len(laid.state["releases"]) == 1


@pytest.mark.some(1)
@pytest.mark.parametrize("at", ["release create", "release edit"])
def test_a_target_that_refuses_shows_nothing_and_the_next_run_goes_on(laid, at):
    laid.change(faults=[{"at": at, "how": "refuse"}])
    assert release(laid).returncode != 0
    assert not any(not r["isDraft"] for r in laid.state["releases"])
    assert release(laid).returncode == 0 and not held(laid)[1]["isDraft"]


@pytest.mark.full
def test_a_host_that_does_not_answer_is_not_taken_for_an_empty_release(laid):
    release(laid)
    laid.change(faults=[{"at": "release view", "skip": 1, "how": "refuse"}], log=[])
    assert release(laid).returncode != 0
    assert not any(words[:2] == ["release", "upload"] for words in laid.state["log"])


def test_what_is_no_tag_is_released_nowhere(laid):
    (laid.folder / "release" / "tag").write_text("main; rm -rf /\n")
    assert release(laid).returncode == 1 and laid.state["releases"] == []


def tell(runner, failed="", why=""):
    results = "build=success tables=success deploy=success latest=success hub=skipped"
    if failed:
        results = results.replace(f"{failed}=success", f"{failed}=failure").replace("latest=success", "latest=skipped")
    return runner.run("tell", "Tell", RESULTS=results, RUN_URL="https://x.example/1", WHY=why)


def test_a_failure_opens_an_issue_the_next_one_is_told_there_and_a_success_closes_it(runner):
    why = "error: the release is refused\n  rows: $(touch hacked) `x` fell from 3 to 2"
    assert tell(runner, "build", why).returncode == 0
    (issue,) = runner.state["issues"]
    assert (
        issue["state"] == "open"
        and "build=failure" in issue["said"][0]
        and "    error: the release is refused" in issue["said"][0]
    )
    assert "$(touch hacked) `x` fell from 3 to 2" in issue["said"][0] and not (runner.folder / "hacked").exists()
    assert "What failed: build=failure" in (runner.folder / "summary.md").read_text()
    tell(runner, "deploy")
    (issue,) = runner.state["issues"]
    assert len(issue["said"]) == 2 and "deploy=failure" in issue["said"][1]
    assert tell(runner).returncode == 0
    assert runner.state["issues"][0]["state"] == "closed"
    tell(runner)
    assert len(runner.state["issues"]) == 1


def test_where_issues_are_turned_off_the_failure_stands_in_the_summary(runner):
    runner.change(issues_off=True)
    done = tell(runner, "tables")
    assert done.returncode == 0 and "::warning::no issue could be opened" in done.stdout
    assert "tables=failure" in (runner.folder / "summary.md").read_text()


def test_the_schedule_is_turned_on_again(runner):
    assert runner.run("tell", "Stay on").returncode == 0


def fake_make(runner, *lines):
    (runner.folder / "make").write_text("\n".join(["#!/bin/bash", 'echo "make $*" >> calls', *lines]))
    (runner.folder / "make").chmod(0o755)


def test_what_a_gate_says_reaches_whoever_is_told(runner):
    fake_make(
        runner,
        'echo "Using a snapshot"',
        'echo "error: the release is refused" >&2',
        'echo "  rows: fell" >&2',
        "exit 1",
    )
    environment = {"ALMANAC_CRAWL": "0", "ALMANAC_ACCEPT": "", "SITE_URL": "https://o.example/r", "TABLES_URL": "x"}
    assert runner.run("build", "Build", **environment).returncode == 1
    runner.run("build", "Why it failed")
    told = (runner.folder / "output").read_text()
    assert re.fullmatch(r"why<<(end-\d+)\nerror: the release is refused\n  rows: fell\n\n\1\n", told)
    # a job that failed without a sentence has none
    (runner.folder / "why.log").write_text("fine\n")
    assert runner.run("build", "Why it failed").returncode == 0


@pytest.mark.parametrize("failing", ["check", "gates", "hosting"])
def test_the_first_check_that_fails_ends_the_build(runner, failing):
    fake_make(runner, f'if [ "$1" = {failing} ]; then echo "error: no" >&2; exit 1; fi')
    assert runner.run("build", "Check").returncode == 1
    assert (runner.folder / "calls").read_text().splitlines()[-1].startswith(f"make {failing}")


@pytest.mark.full
def test_the_stand_in_is_as_strict_as_the_real_one(runner):
    def gh(*words, **more):
        environment = {
            "PATH": os.environ["PATH"],
            "FAKE_GH": str(runner.file),
            "GH_TOKEN": "t",
            "GH_REPO": "o/r",
        } | more
        return subprocess.run(
            [ROOT / "tests" / "fake_gh" / "gh", *words], capture_output=True, text=True, env=environment
        )

    for words, said in (
        (("release", "create", "v1", "--notes-fil", "x"), "unknown flag"),
        (("release", "view", "v1", "--json", "asset"), "release not found"),
        (("release", "edit", "v1"), "use `gh release edit"),
        (("release", "edit", "v1", "--latest=maybe"), "invalid argument"),
        (("release", "upload", "v1", "--force"), "unknown flag"),
        (("issue", "create", "--title", "x", "--body", "y", "--label", "none"), "not found"),
        (("release", "publish", "v1"), "unknown command"),
    ):
        done = gh(*words)
        assert done.returncode == 1 and said in done.stderr, words
    assert gh("release", "create", "v1", "--draft", "--notes", "x").returncode == 0
    assert "Unknown JSON field" in gh("release", "view", "v1", "--json", "asset").stderr
    assert "drafts cannot be latest" in gh("release", "edit", "v1", "--latest").stderr
    assert gh("release", "view", "v1", GH_TOKEN="").returncode == 4
