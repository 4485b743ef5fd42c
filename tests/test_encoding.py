"""Files are UTF-8 wherever the press runs: nothing that it reads or writes as text depends on the locale of the machine."""

from __future__ import annotations

import ast
import subprocess
import sys

import pytest

from pipeline.press.publish import ROOT
from tests.cases import in_case

TEXT = {"read_text", "write_text", "open", "NamedTemporaryFile", "TemporaryFile", "fdopen"}
PROCESSES = {"run", "Popen", "check_output"}


def unspecified(source: str) -> list[int]:
    """Lines that read or write text without saying in which encoding."""
    lines = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        given = {k.arg: k.value for k in node.keywords}
        literals = [a.value for a in [*node.args, given.get("mode")] if isinstance(a, ast.Constant)]
        is_binary = any(isinstance(v, str) and set(v) <= set("rwaxbt+") and "b" in v for v in literals)
        owner = getattr(getattr(node.func, "value", None), "id", "")
        if name in TEXT and not is_binary and "encoding" not in given and owner not in ("os", "Image", "webbrowser"):
            # read_text and write_text take it by place as well
            if (name == "read_text" and node.args) or (name == "write_text" and len(node.args) > 1):
                continue
            lines.append(node.lineno)
        if name in PROCESSES and owner == "subprocess" and {"text", "universal_newlines"} & given.keys():
            lines += [node.lineno] if "encoding" not in given else []
    return lines


@pytest.mark.parametrize(
    "source",
    [
        "path.read_text()",
        "path.write_text(x)",
        "open(x)",
        "path.open('w')",
        "subprocess.run(c, text=True)",
        "tempfile.NamedTemporaryFile('w')",
    ],
)
def test_what_depends_on_the_locale_is_found(source):
    assert unspecified(source) == [1]


@pytest.mark.parametrize(
    "source",
    ["path.read_text(encoding='utf-8')", "path.open('rb')", "open(x, 'wb')", "path.read_bytes()", "subprocess.run(c)"],
)
def test_what_does_not_depend_on_it_is_let_be(source):
    assert unspecified(source) == []


def test_no_text_is_read_or_written_in_the_encoding_of_the_machine():
    for path in sorted((ROOT / "pipeline").rglob("*.py")):
        with in_case(path.name):
            assert unspecified(path.read_text(encoding="utf-8")) == []


def test_another_locale_changes_nothing_that_is_said(tmp_path):
    """A terminal that has no minus sign and no dash, and a config whose text it cannot show either."""
    config = tmp_path / "config.json"
    config.write_text('{"model_type": "Wörter – 言葉"}', encoding="utf-8")
    told = subprocess.run(
        [sys.executable, "-X", "utf8=0", "-m", "pipeline", "anatomy", str(config)],
        cwd=ROOT,
        env={"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "iso8859-1"},
        capture_output=True,
        check=False,
    )
    assert told.returncode == 1
    assert (
        told.stderr.decode("iso8859-1")
        == r"error: unknown: architecture 'Wörter \u2013 \u8a00\u8449' is not described yet" + "\n"
    )
