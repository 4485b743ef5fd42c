"""What no honest value of the Hub exceeds, and which characters no text of a record may hold."""

from __future__ import annotations

import re

LARGEST_TOTAL = 10**15  # elements or bytes; a thousand times the largest model
# control characters, marks that turn the direction of text, halves of characters
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
