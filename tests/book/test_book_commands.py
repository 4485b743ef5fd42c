"""The commands that people paste: in which formats a line of site/commands.csv runs a model."""

import pytest

from pipeline.book.commands import formats_of

MADE = {"held": "", "formats": "gguf-q8_0 gguf-q4_k_m"}
HELD = {"held": "gguf", "formats": "gguf-q8_0 gguf-q4_k_m"}
SERVED = {"held": "bf16 mxfp4", "formats": "bf16 mxfp4"}
FILES, OWN = {"gguf": "org/a-GGUF"}, {"mxfp4": "org/a"}


@pytest.mark.parametrize(
    ("row", "held", "stored", "formats"),
    [
        (MADE, {}, "bf16", ["gguf-q8_0", "gguf-q4_k_m"]),
        (MADE, {}, None, ["gguf-q8_0", "gguf-q4_k_m"]),
        (MADE, {}, "mxfp4", ["gguf-mxfp4"]),
        (HELD, FILES, "mxfp4", ["gguf-mxfp4"]),
        (HELD, FILES, "bf16", ["gguf-q8_0", "gguf-q4_k_m"]),
        (HELD, OWN, "mxfp4", []),
        (SERVED, OWN, "mxfp4", ["mxfp4"]),
        (SERVED, FILES, "bf16", []),
    ],
)
def test_a_command_runs_what_a_repository_holds_and_what_is_published_in_few_bits_in_these(row, held, stored, formats):
    assert formats_of(row, held, stored) == formats
