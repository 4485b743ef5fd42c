"""A log is whatever somebody hands in: it is read, or the reader says what is wrong with it, soon and in little memory."""

from __future__ import annotations

import re
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.ask import receipt
from pipeline.ask.problems import Wrong

# words of the lines that are read, cut where numbers and names stand, and what may stand there
WORDS = sorted(
    {word for _program, _what, line in receipt.LINES for word in re.findall(r"[A-Za-z#|=.:'\"(,\[ _]{3,}", line)}
)
SAID = st.one_of(
    st.sampled_from(WORDS),
    st.sampled_from(
        [" GiB", " MiB", " B", " tokens", "CUDA0", "²", "٣", "'", ",", ",,", "\x00", "\u2028", "0", "1e9", "-1", ".5"]
    ),
    st.integers(0, 10**30).map(str),
    st.text(max_size=5),
)
SIZE = "GPU KV cache size: 922,496 tokens\n"
# what was found to break the reader, or might
FOUND = {
    "a number of commas alone": "GPU KV cache size: ,,,, tokens\n",
    "a number that no integer holds": f"GPU KV cache size: {'9' * 3900} tokens\nModel loading took {'9' * 3900} GiB\n",
    "digits of another script": "GPU KV cache size: ٣٤ tokens\nAvailable KV cache memory: ٣.٤ GiB\n",
    "no card at all": "CUDA0 model buffer size = 0 B\ntensor_parallel_size=0 max_seq_len=0 model='' KV\n",
}


def read(text: str) -> receipt.Receipt | None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "start.log")
        path.write_text(text, encoding="utf-8", errors="surrogatepass")
        try:
            return receipt.read(path)
        except Wrong:
            return None


def hold(found: receipt.Receipt | None) -> None:
    if found is not None:
        numbers = [*found.numbers.values(), *(n for cards in found.cards.values() for n in cards.values())]
        assert all(isinstance(number, int) and number >= 0 for number in numbers)
        assert found.program and (found.numbers or found.cards)


@pytest.mark.parametrize("name", FOUND)
def test_what_was_found_once_is_read_or_refused(name):
    hold(read(FOUND[name]))
    # and what can be read beside it is
    assert read(FOUND[name] + SIZE).numbers["cache_tokens"] > 0


@settings(max_examples=60)
@given(st.lists(st.lists(SAID, min_size=1, max_size=8).map("".join), min_size=1, max_size=6).map("\n".join))
def test_any_mix_of_known_words_is_read_or_refused(text):
    hold(read(text))


@pytest.mark.full
@settings(max_examples=20_000)
@given(st.lists(st.lists(SAID, min_size=1, max_size=12).map("".join), min_size=1, max_size=8).map("\n".join))
def test_many_mixes_of_known_words_are_read_or_refused(text):
    hold(read(text))


@pytest.mark.full
@pytest.mark.parametrize(
    "word", ["took ", "Load weight end.", "KV Cache is allocated.", "general.name   ", "build", "CUDA1"]
)
def test_a_log_that_repeats_a_word_is_read_in_seconds(word):
    """8 MiB of the beginnings of patterns; a pattern that looks back over its line again and again would take hours."""
    started = time.process_time()
    read((word * (receipt._MOST_LINE // len(word)) + "KV\n") * 2000)
    assert time.process_time() - started < 120
