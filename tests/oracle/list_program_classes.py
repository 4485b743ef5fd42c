"""Lists from which version to which a program has a class: what each release's own list of classes names, read from its wheel without running it.

    pip download --no-deps --only-binary :all: -d FOLDER vllm==0.31.0 …    # each release that is to be read, of each program
    python tests/oracle/list_program_classes.py FOLDER

FOLDER holds a folder for each program (vllm, sglang, mlx_lm, transformers, torchtune), in it one for each release, in it the wheel's files. Writes
tables/facts/program_class.csv: a line for each program and range of versions with the names of its classes, as `architectures` (vLLM, SGLang) or
`model_type` (the others) of configs say them. A class that every release has from the first to the last is not listed. An end that is empty lies
outside what was read; a line without either end names what no release of the program loads. Lines of other programs (llama.cpp, Ollama), whose
builds are told by pull requests and issues, stay as they are. Trainers load what their newest Transformers loads:
BOUNDS is what their wheels allow (Requires-Dist).
"""

from __future__ import annotations

import ast
import csv
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]
FILE = ROOT / "tables" / "facts" / "program_class.csv"
COLUMNS = ["program_id", "min_version", "max_version", "class_names", "source"]
SOURCES = {
    "vllm": "vllm-registries",
    "sglang": "sglang-entry-classes",
    "mlx-lm": "mlx-lm-modules",
    "transformers": "transformers-config-mapping",
    "torchtune": "torchtune-models",
}
# torchtune's folders of models by the type that configs name
TORCHTUNE = {
    "code_llama2": "llama",
    "gemma": "gemma",
    "gemma2": "gemma2",
    "llama2": "llama",
    "llama3": "llama",
    "llama3_2_vision": "mllama",
    "mistral": "mistral",
    "phi3": "phi3",
    "qwen2": "qwen2",
}
# the newest Transformers that each release allows, below or at
BOUNDS = {
    "axolotl": ("axolotl-0.19.0", {"0.19": "5.16.1"}),
    "llama-factory": ("llama-factory-0.9.5", {"0.9.3": "4.52.4", "0.9.4": "4.57.1", "0.9.5": "5.6.0"}),
    "ms-swift": (
        "ms-swift-4.6.0",
        {"4.0": "5.3", "4.1": "5.5", "4.2": "5.8", "4.3": "5.10", "4.4": "5.12", "4.5": "5.16", "4.6": "5.19"},
    ),
    "unsloth": ("unsloth-2026.10.9", {"2026.10": "5.17.0"}),
}


def number(version: str) -> tuple[int, ...]:
    """0.10.1.post2 → (0, 10, 1, 2), to be compared; b10567 → (10567,)."""
    return tuple(int(part) for part in version.replace("post", "").removeprefix("b").split("."))


def assigned(path: Path) -> dict[str, ast.expr]:
    """What the top level of a file gives names to."""
    values = {}
    for line in ast.parse(path.read_text(encoding="utf-8-sig")).body:
        if isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name):
            values[line.targets[0].id] = line.value
        elif isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name) and line.value is not None:
            values[line.target.id] = line.value
    return values


def words(value: ast.expr) -> list[str]:
    return [item.value for item in ast.walk(value) if isinstance(item, ast.Constant) and isinstance(item.value, str)]


def of_vllm(release: Path) -> set[str]:
    """The keys of all registries but those of plugins and of what was left out."""
    names = set()
    for table, value in assigned(release / "vllm/model_executor/models/registry.py").items():
        if table.endswith("_MODELS") and not table.startswith(("_PREVIOUSLY", "_OOT")) and isinstance(value, ast.Dict):
            names.update(key.value for key in value.keys if isinstance(key, ast.Constant))
    return names


def of_sglang(release: Path) -> set[str]:
    """What each module of models calls its EntryClass."""
    names = set()
    for path in sorted((release / "sglang/srt/models").glob("*.py")):
        entry = assigned(path).get("EntryClass")
        if entry is not None:
            names.update(item.id for item in ast.walk(entry) if isinstance(item, ast.Name))
    return names


def of_mlx_lm(release: Path) -> set[str]:
    """A module for each model_type, and the types that it takes for another one's."""
    names = {path.stem for path in (release / "mlx_lm/models").glob("*.py")}
    remapped = assigned(release / "mlx_lm/utils.py")["MODEL_REMAPPING"]
    return names | {key.value for key in remapped.keys}


def of_transformers(release: Path) -> set[str]:
    """The types of CONFIG_MAPPING_NAMES, and those that the file adds to it."""
    folder, names = release / "transformers/models/auto", set()
    for path in (folder / "configuration_auto.py", folder / "auto_mappings.py"):
        if not path.exists():
            continue
        for line in ast.walk(ast.parse(path.read_text(encoding="utf-8-sig"))):
            is_named = isinstance(line, ast.Assign | ast.AnnAssign) and "CONFIG_MAPPING_NAMES" in ast.unparse(
                line.targets[0] if isinstance(line, ast.Assign) else line.target
            )
            is_added = isinstance(line, ast.Call) and ast.unparse(line.func) == "CONFIG_MAPPING_NAMES.update"
            if (is_named or is_added) and (value := getattr(line, "value", line)) is not None:
                for item in ast.walk(value):
                    if isinstance(item, ast.Tuple) and len(words(item)) == 2:
                        names.add(words(item)[0])
                    elif isinstance(item, ast.Dict):
                        names.update(key.value for key in item.keys if isinstance(key, ast.Constant))
    return names


def of_torchtune(release: Path) -> set[str]:
    """A folder for each kind of model, those of a later version of one (llama3_1, phi4, qwen2_5) aside."""
    folders = {path.name for path in (release / "torchtune/models").iterdir() if path.is_dir()}
    return {TORCHTUNE[name] for name in folders & set(TORCHTUNE)}


def described() -> set[str]:
    """Types that readers know."""
    with (ROOT / "tables/library/model_class.csv").open(encoding="utf-8", newline="") as file:
        return {row["model_type"] for row in csv.DictReader(file)}


READERS = {
    "vllm": of_vllm,
    "sglang": of_sglang,
    "mlx-lm": of_mlx_lm,
    "transformers": of_transformers,
    "torchtune": of_torchtune,
}


def ranges(read: dict[str, set[str]]) -> dict[tuple[str, str], list[str]]:
    """Names by the first and the last release that has them; an end beyond what was read is empty."""
    versions = sorted(read, key=number)
    found = defaultdict(list)
    for name in sorted(set().union(*read.values())):
        has = [name in read[version] for version in versions]
        starts = [i for i, one in enumerate(has) if one and (i == 0 or not has[i - 1])]
        for start in starts:
            end = next((i for i in range(start, len(has)) if not has[i]), None)
            span = (versions[start].removesuffix(".0") if start else "", versions[end - 1] if end else "")
            if span != ("", ""):
                found[span].append(name)
    return found


def bounded(read: dict[str, set[str]], bounds: dict[str, str]) -> dict[tuple[str, str], list[str]]:
    """Names by the first release of a trainer whose newest Transformers has them, of those that its oldest has not."""
    # 5.19 stands for all of its releases
    known = {
        version: set().union(*(read[one] for one in read if number(one)[: len(number(most))] <= number(most)))
        for version, most in bounds.items()
    }
    found = defaultdict(list)
    for name in sorted(set().union(*read.values())):
        first = next((version for version in bounds if name in known[version]), "")
        if first != next(iter(bounds)):
            found[first, ""].append(name)
    return found


def main() -> None:
    folder, lines = Path(sys.argv[1]), []
    for program, reader in READERS.items():
        releases = {path.name: reader(path) for path in (folder / program.replace("-", "_")).iterdir()}
        found = {(program, SOURCES[program]): ranges(releases)}
        if program == "torchtune":  # it loads nothing else
            found[program, SOURCES[program]]["", ""] = sorted(described() - set().union(*releases.values()))
        if program == "transformers":
            found |= {(trainer, source): bounded(releases, most) for trainer, (source, most) in BOUNDS.items()}
        for (name, source), spans in found.items():
            lines += [[name, *span, " ".join(names), source] for span, names in spans.items()]
    with FILE.open(encoding="utf-8", newline="") as file:
        lines += [line for line in csv.reader(file) if line[0] not in {*READERS, *BOUNDS, COLUMNS[0]}]
    lines.sort(key=lambda line: (line[0], *(number(version) if version else (-1,) for version in line[1:3])))
    with FILE.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([COLUMNS, *lines])


if __name__ == "__main__":
    main()
