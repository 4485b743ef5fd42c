"""Which models the site is of, and its tables as SQL asks them."""

from contextlib import contextmanager

import duckdb

# one that generates and reads far, mixture of experts with windows, an encoder of 512 tokens, two pipelines, one of video, and what
# hears and speaks: in pieces of 30 seconds, at once, and by weights alone
MODELS = (
    "Qwen/Qwen3-8B",
    "openai/gpt-oss-20b",
    "sentence-transformers/all-MiniLM-L6-v2",
    "Photoroom/prxpixel-t2i",
    "stabilityai/stable-diffusion-xl-base-1.0",
    "Wan-AI/Wan2.2-T2V-A14B-Diffusers",
    "openai/whisper-tiny",
    "facebook/wav2vec2-base-960h",
    "hexgrad/Kokoro-82M",
)
KNOWN = MODELS[:3]
CARD = "rtx-3090"  # which is not among the common ones


@contextmanager
def released(folder):
    with duckdb.connect(str(folder / "tables" / "almanac.duckdb"), read_only=True) as connection:
        yield connection
