"""Whether the Hub answers at all, in a time that nobody minds waiting before a publish."""

from __future__ import annotations

import socket
import threading
from urllib.parse import urlsplit

from huggingface_hub import constants

from pipeline.hub.client import proxy_for

PATIENCE_SECONDS = 2.0


def why_unreachable(endpoint: str, seconds: float = PATIENCE_SECONDS) -> str | None:
    """None where a connection can be made, else why not. Takes no longer than `seconds`, the look-up of the name included."""
    if constants.is_offline_mode():
        return "HF_HUB_OFFLINE is set"
    address = urlsplit(proxy_for(endpoint) or endpoint)
    host, port = address.hostname or "", address.port or (443 if address.scheme == "https" else 80)
    found: list[str | None] = []

    def connect() -> None:
        try:
            socket.create_connection((host, port), timeout=seconds).close()
            found.append(None)
        except OSError as error:
            found.append(f"{host}: {error.strerror or error}")

    # a look-up of a name has no time limit of its own, so it may be left behind
    thread = threading.Thread(target=connect, daemon=True)
    thread.start()
    thread.join(seconds)
    return found[0] if found else f"{host}: no answer in {seconds:.0f} s"
