"""What the stand-in for the Hub takes as the head of a README.md."""

from __future__ import annotations

import re

import yaml

from tests.fake_hub.repositories import Refusal

COLORS = ("red", "yellow", "green", "blue", "indigo", "purple", "pink", "gray")


def check_card(text: str, kind: str) -> None:
    """As /api/validate-yaml and the commit do. Raises Refusal."""
    match = re.match(r"---\r?\n(.*?)\r?\n---(\r?\n|$)", text, re.S)
    try:
        head = yaml.safe_load(match[1]) if match else {}
    except yaml.YAMLError as error:
        raise Refusal(400, "Invalid metadata in README.md", errors=[f"bad yaml: {error}"]) from None
    wrong = []
    if kind == "dataset":
        for number, config in enumerate(
            head.get("configs", []) if isinstance(head.get("configs", []), list) else ["none"]
        ):
            if not isinstance(config, dict) or not re.fullmatch(r"[\w.-]+", str(config.get("config_name", ""))):
                wrong.append(f'"configs[{number}].config_name" is required')
            elif not isinstance(config.get("data_files"), str | list):
                wrong.append(f'"configs[{number}].data_files" is required')
        if not isinstance(head.get("configs", []), list):
            wrong.append('"configs" must be an array')
    if kind == "space":
        if head.get("sdk") not in ("gradio", "docker", "static"):
            wrong.append('"sdk" must be one of [gradio, docker, static]')
        wrong += [
            f'"{name}" must be one of [{", ".join(COLORS)}]'
            for name in ("colorFrom", "colorTo")
            if head.get(name, "red") not in COLORS
        ]
        if len(head.get("short_description", "")) > 60:
            wrong.append('"short_description" length must be less than or equal to 60 characters long')
    if wrong:
        raise Refusal(400, "Invalid metadata in README.md", errors=wrong)
