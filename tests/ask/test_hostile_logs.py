"""A log is whatever somebody hands in: it is read, or the reader says what is wrong with it, soon and in little memory."""

from __future__ import annotations

import re
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.ask import receipt_lines as receipt
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


@settings(max_examples=20)
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


def test_a_log_is_read_up_to_eight_mebibytes_and_one_byte_more_is_refused(tmp_path):
    path = tmp_path / "start.log"
    path.write_text(SIZE + "x" * (2**23 - len(SIZE)))
    assert receipt.read(path).numbers == {"cache_tokens": 922_496}
    path.write_text(SIZE + "x" * (2**23 + 1 - len(SIZE)))
    with pytest.raises(Wrong, match="larger than 8 MiB"):
        receipt.read(path)


def test_a_line_is_read_up_to_four_thousand_characters():
    line = SIZE.strip()
    assert read(" " * (4_000 - len(line)) + line).numbers == {"cache_tokens": 922_496}
    assert read(" " * (4_001 - len(line)) + line) is None


def test_a_number_has_eighteen_digits_at_most():
    assert read(f"GPU KV cache size: {'9' * 18} tokens\n").numbers == {"cache_tokens": 10**18 - 1}
    assert read(f"GPU KV cache size: {'9' * 19} tokens\n") is None


def test_as_many_cards_as_a_machine_has_are_kept():
    found = read("".join(f"load_tensors: CUDA{i} model buffer size = {i + 1}.00 MiB\n" for i in range(70)))
    assert found.cards == {"weights": {f"CUDA{i}": (i + 1) * 2**20 for i in range(64)}}


def test_the_last_loads_of_a_long_journal_are_kept():
    """Of as many models the one that says most of its cards; a load that came too long before is forgotten."""

    def journal(before: int, behind: int) -> str:
        loads = [1] * before + [9] + [1] * behind
        start = (
            "llama_model_loader: loaded meta data with 33 key-value pairs and 399 tensors from /a (version GGUF V3)\n"
        )
        return "".join(f"{start}load_tensors: CUDA0 model buffer size = {size}.00 MiB\n" for size in loads)

    for before in (0, 3):
        assert read(journal(before, 16)).cards == {"weights": {"CUDA0": 9 * 2**20}}
        assert read(journal(before, 17)).cards == {"weights": {"CUDA0": 2**20}}
