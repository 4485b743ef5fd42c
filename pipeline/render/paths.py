"""Where a model's page lies: its id made safe, and unique where file systems do not tell upper from lower case.

Of two ids that differ in case only, the older one keeps the plain path (by when it was created, then by id), so that a path
that people have linked stays when a namesake turns up. The other gets `~~` and a few digits of its own id: no plain path holds
two tildes in a row.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

from pipeline.render import words

LISTED = 3  # models that make a page of their organisation


def assign(models: Iterable[Mapping]) -> dict[str, str]:
    """A path for every model id. Rows need `model_id` and `created_at`."""
    taken: dict[str, str] = {}
    folders: dict[str, str] = {}
    paths = {}
    for model in sorted(models, key=lambda m: (m["created_at"] or "9999", m["model_id"])):
        identifier = model["model_id"]
        folder, leaf = words.slug(identifier).split("/")
        # one folder per organisation, however its name is spelled
        folder = folders.setdefault(folder.lower(), folder)
        if taken.setdefault(f"{folder}/{leaf}".lower(), identifier) != identifier:
            leaf += f"~~{hashlib.sha256(identifier.encode()).hexdigest()[:6]}"
        paths[identifier] = f"{folder}/{leaf}"
    return paths
