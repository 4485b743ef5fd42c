"""What runs elsewhere and cannot be tried here: who may do what in it, and that it calls what there is."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
FILES = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PUBLISH = yaml.safe_load((ROOT / ".github" / "workflows" / "publish.yml").read_text(encoding="utf-8"))
JOBS = PUBLISH["jobs"]


def runs(job):
    return [step["run"] for step in JOBS[job]["steps"] if "run" in step]


def test_the_job_that_reads_what_strangers_publish_can_write_nowhere():
    assert PUBLISH["permissions"] == {}
    assert set(JOBS["build"]["permissions"].values()) == {"read"}
    (checkout,) = [s for s in JOBS["build"]["steps"] if s.get("uses", "").startswith("actions/checkout@")]
    assert checkout["with"]["persist-credentials"] is False
    holders = [job for job in JOBS if "secrets." in str(JOBS[job])]
    assert holders == ["build"]


def test_only_the_job_that_deploys_may_and_it_runs_nothing_of_ours():
    for job, told in JOBS.items():
        may_deploy = {"pages", "id-token"} <= {name for name, level in told["permissions"].items() if level == "write"}
        assert may_deploy == (job == "deploy")
    assert runs("deploy") == [] and all("checkout" not in s["uses"] for s in JOBS["deploy"]["steps"])


def test_a_site_is_checked_and_measured_before_it_is_uploaded_and_deployed_last():
    names = [step.get("run", step.get("uses", "")) for step in JOBS["build"]["steps"]]
    order = [
        next(i for i, name in enumerate(names) if name.startswith(part))
        for part in (
            "make publish",
            "make check",
            "make hosting",
            "actions/upload-pages-artifact",
        )
    ]
    assert order == sorted(order)
    assert set(JOBS["deploy"]["needs"]) == {"build", "tables"} and JOBS["tables"]["needs"] == "build"


def test_the_links_of_the_site_lead_where_the_large_tables_are_put():
    (publish,) = [s for s in JOBS["build"]["steps"] if s.get("run") == "make publish"]
    assert publish["env"]["TABLES_URL"].endswith("/releases/download/tables")
    (upload,) = runs("tables")
    assert "gh release create tables " in upload and "gh release upload tables " in upload


def test_what_a_job_makes_is_there_to_be_made():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    asked = {name for job in JOBS for text in runs(job) for name in re.findall(r"^make ([a-z-]+)", text, re.M)}
    assert asked and asked <= targets


def test_actions_are_named_by_their_commit():
    for file in FILES:
        used = re.findall(r"uses: (.*)", file.read_text(encoding="utf-8"))
        assert used and all(re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", name) for name in used)
