"""What machines look for at the root of a site: robots.txt, a feed of what changed, and the tables as a Croissant data set."""

from __future__ import annotations

import json
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from pipeline.render import words
from pipeline.render.addresses import Addresses
from pipeline.render.data.book import Book
from pipeline.render.pages import news

FEED, CROISSANT = "feed.xml", "croissant.json"
LISTED = 200  # entries of the feed
TYPES = {"string": "sc:Text", "integer": "sc:Integer", "number": "sc:Float", "boolean": "sc:Boolean"}
CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "fileProperty": "cr:fileProperty",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}


def write(site: Path, book: Book, paths: dict[str, str], where: Addresses, manifest: dict) -> None:
    lines = ["User-agent: *", "Allow: /", *([f"Sitemap: {where.site}sitemap.xml"] if where.site else [])]
    (site / "robots.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    # for hosts that read it: programs on other sites may read what is theirs to read
    (site / "_headers").write_text("/api/*\n  Access-Control-Allow-Origin: *\n", encoding="utf-8")
    if where.site:
        text = feed(news.read(book.folder), paths, where.site, manifest)
        (site / FEED).write_text(text, encoding="utf-8")
    package = book.folder / "datapackage.json"
    if package.exists() and manifest.get("files"):
        told = croissant(json.loads(package.read_text(encoding="utf-8")), where, manifest, book.folder)
        (site / CROISSANT).write_text(json.dumps(told, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def feed(changes: dict, paths: dict[str, str], site: str, manifest: dict) -> str:
    """New models and flipped verdicts of this release, as Atom."""
    release, at = (
        manifest.get("data_version") or "unreleased",
        f"{manifest.get('snapshot_date') or '1970-01-01'}T00:00:00Z",
    )
    entries = []
    for model in changes.get("models", ()):
        if model["verdicts"]:
            told = "; ".join(f"{s} on {gpu}: {was} → {now}" for s, gpu, was, now in model["examples"])
            n = model["verdicts"]
            title = f"{model['model_id']}: {n:,} verdict{'' if n == 1 else 's'} changed"
            entries.append((model["model_id"], title, f"{told}. Why: {', '.join(model['why'])}."))
    entries += [(m, f"{m} is new", "It was not in the release before.") for m in changes.get("added", ())]
    rows = "".join(
        f"<entry><id>{escape(address)}#{escape(release)}</id><title>{escape(words.shown(title))}</title>"
        f"<updated>{at}</updated><link href={quoteattr(address)}/><summary>{escape(words.shown(told))}</summary></entry>\n"
        for model, title, told in entries[:LISTED]
        if model in paths and (address := f"{site}models/{paths[model]}/")
    )
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom">\n'
        f"<id>{escape(site)}{FEED}</id><title>VRAM Almanac: new models and changed verdicts</title><updated>{at}</updated>\n"
        f'<link rel="self" href={quoteattr(f"{site}{FEED}")}/><link href={quoteattr(f"{site}changes/")}/>'
        f"<author><name>VRAM Almanac</name></author>\n{rows}</feed>\n"
    )


def croissant(package: dict, where: Addresses, manifest: dict, folder: Path) -> dict:
    """The tables in Parquet, each a file and a set of records, as MLCommons' Croissant 1.0 has it."""
    files, records = [], []
    for resource in package["resources"]:
        held = manifest["files"].get(resource["path"])
        address = where.of_table(folder / resource["path"]) if held and resource["format"] == "parquet" else None
        if address is None:
            continue
        name = resource["name"]
        whole = address if address.startswith(("http://", "https://")) else f"{where.site}{address}"
        files.append(
            {
                "@type": "cr:FileObject",
                "@id": f"{name}.parquet",
                "name": f"{name}.parquet",
                "description": resource["description"],
                "contentUrl": whole,
                "contentSize": f"{held['size_bytes']} B",
                "encodingFormat": "application/x-parquet",
                "sha256": held["sha256"],
            }
        )
        records.append(
            {
                "@type": "cr:RecordSet",
                "@id": name,
                "name": name,
                "description": resource["description"],
                "field": [
                    {
                        "@type": "cr:Field",
                        "@id": f"{name}/{field['name']}",
                        "name": field["name"],
                        "description": field["description"],
                        "dataType": TYPES[field["type"]],
                        "source": {
                            "fileObject": {"@id": f"{name}.parquet"},
                            "extract": {"column": field["name"]},
                        },
                    }
                    for field in resource["schema"]["fields"]
                ],
            }
        )
    return {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": "VRAM-Almanac",
        "description": "GPU memory of open models by format, phase and scenario, capacities of cards, measurements and sources.",
        "license": package["licenses"][0]["path"],
        **({"url": where.site} if where.site else {}),
        "version": manifest["schema_version"],
        "datePublished": manifest["snapshot_date"],
        "citeAs": f"VRAM Almanac, data version {manifest['data_version']}",
        "distribution": files,
        "recordSet": records,
    }
