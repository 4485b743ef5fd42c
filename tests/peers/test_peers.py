"""The Hub that peers are led to, and what is read of their answers."""

from __future__ import annotations

import json
import shutil
import ssl
import struct
import urllib.error
import urllib.request

import pytest

from tests.fake_hub.models import row
from tests.fake_hub.server import FakeHub
from tests.peers import run
from tests.peers.hub import Weights, serving

MODEL = "org/model"
HEADER = {"a": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [0, 12]}}


@pytest.mark.skipif(shutil.which("openssl") is None, reason="certificates are made by openssl")
def test_peers_find_the_hub_at_its_own_address_and_nobody_else(tmp_path):
    weights = Weights(HEADER)
    files = {(MODEL, "model.safetensors"): weights, (MODEL, "config.json"): b"{}"}
    hub = FakeHub([row(MODEL, files=("config.json", "model.safetensors"))], files)
    with serving(hub, tmp_path) as leading:
        opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({"https": leading["HTTPS_PROXY"]}),
            urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=leading["SSL_CERT_FILE"])),
        )

        def get(path: str, **headers: str) -> bytes:
            request = urllib.request.Request(f"https://huggingface.co/{path}", headers=headers)
            with opener.open(request, timeout=10) as answer:
                return answer.read()

        assert get(f"{MODEL}/resolve/main/config.json") == get(f"{MODEL}/raw/main/config.json") == b"{}"
        told = json.dumps(HEADER, separators=(",", ":")).encode()
        # storage is another host, by TLS as well; what lies behind the header takes no room
        assert get(f"{MODEL}/resolve/main/model.safetensors", Range="bytes=0-7") == struct.pack("<Q", len(told))
        assert get(f"{MODEL}/resolve/main/model.safetensors", Range=f"bytes=8-{len(weights) - 1}") == told + bytes(12)
        tree = {one["path"]: one["size"] for one in json.loads(get(f"api/models/{MODEL}/tree/main?recursive=true"))}
        assert tree == {"config.json": 2, "model.safetensors": 8 + len(told) + 12}
        assert json.loads(get(f"api/models/{MODEL}/revision/main"))["id"] == MODEL
        with pytest.raises(urllib.error.URLError, match="403"):
            opener.open("https://example.org/", timeout=10)


def test_answers_are_read_as_bytes_or_not_at_all():
    assert run.read('warning {"a b": {"c": [{"d": 1.5}]}} more', "$.a b.c[0].d", "1024") == 1536
    assert run.read(
        "│float16│  296.75 MB  │ 1.11 GB  │ 4.44 GB", r"float16.*?[KMGT]B\D+([\d.]+ [KMGT]B)", "text"
    ) == round(1.11 * 2**30)
    for said, where, unit in (
        ("", "$.a", "1"),
        ('{"a": null}', "$.a", "1"),
        ("none", "Size: (.*)", "text"),
        ("{}", "", "1"),
    ):
        assert run.read(said, where, unit) is None


def test_every_peer_says_how_it_is_asked():
    for peer in run._rows(run.HERE / "peers.csv"):
        assert "==" in peer["package"] and "{model}" in peer["command"]
        assert (peer["weights"] or peer["cache"]) and peer["unit"]


def test_what_is_shown_is_made_of_the_answers():
    rows = [
        dict.fromkeys(run.COLUMNS, "") | {"peer": "one", "version": "1", "cpu_seconds": "0.50"} | told
        for told in (
            {"quantity": "weights", "error": "-0.01"},
            {"quantity": "weights", "error": ""},
            {"quantity": "cache", "error": "3"},
        )
    ]
    [line] = run.summary(rows)
    assert line["weights"] == "1 of 2" and line["weights_worst"] == "1.00 %"
    assert line["cache_median"] == "300 %" and line["models_a_second"] == "2.0"
    text = run.page(["# T", "<!-- made by x -->", "old", "<!-- end -->", "after"], [line], "Asked today.")
    assert "old" not in text and "| one | 1 |" in text and text.endswith("<!-- end -->\nafter\n")
