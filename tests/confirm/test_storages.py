"""What each way to hold a matrix adds to a published total, and how many bytes it takes: worked out by hand of one matrix whose rows of 320 no
group of 128 divides."""

import pytest

from pipeline.confirm.storages import STORAGES

OUT, INTO = 96, 320
WEIGHTS = OUT * INTO
HALF = WEIGHTS // 2  # elements of two 4-bit numbers, and bytes of them
WORDS = WEIGHTS // 8 - WEIGHTS  # eight 4-bit integers are one element
BY_16, BY_32, BY_64, BY_128 = OUT * 20, OUT * 10, OUT * 5, OUT * 3  # the last group of a row is a whole one
KNOWN = {storage.name: storage for storage in STORAGES}


@pytest.mark.parametrize(
    ("name", "extra", "size"),
    [
        ("one scale per block of 128 × 128", 3, None),
        ("one scale per output row, 8 bits", OUT, None),
        ("one scale per output row, 8 bits, in all layers but the first and the last", OUT, None),
        ("one scale per matrix", 1, None),
        ("a weight and an input scale per matrix", 2, None),
        ("a weight and an input scale per matrix, gate and up of an expert as one", 2, None),
        ("a bias of zeros beside each packed matrix", OUT, None),
        ("4-bit floats counted in pairs", -HALF, HALF + BY_16 + 8),
        ("4-bit floats counted in pairs, a scale per 16", BY_16 - HALF, HALF + BY_16 + 8),
        ("4-bit floats counted in pairs, a scale per 16 and one per matrix", BY_16 - HALF + 1, HALF + BY_16 + 8),
        ("4-bit floats counted in pairs, a scale per 16 and two per matrix", BY_16 - HALF + 2, HALF + BY_16 + 8),
        ("4-bit floats counted in pairs, two scales per matrix", 2 - HALF, HALF + BY_16 + 8),
        ("4-bit floats, a scale per 16", BY_16, HALF + BY_16 + 8),
        ("4-bit floats, a scale per 16 and two per matrix", BY_16 + 2, HALF + BY_16 + 8),
        ("4-bit floats and a scale per 32", BY_32, HALF + BY_32),
        ("4-bit floats counted in pairs, a scale per 32", BY_32 - HALF, HALF + BY_32),
        ("4-bit integers, a scale per 128", BY_128, HALF + 2 * BY_128),
        ("4-bit integers, a scale per 128 and the shape of each matrix", BY_128 + 2, HALF + 2 * BY_128 + 16),
        ("4-bit integers, a scale and a zero point per 128", 2 * BY_128, HALF + 2 * BY_128 + BY_128 // 2),
        ("4-bit integers counted as 32-bit words, a scale per 64", WORDS + BY_64, HALF + 2 * BY_64),
        (
            "4-bit integers counted as 32-bit words, a scale and a zero point per 32 and the shape of each matrix",
            WORDS + BY_32 + BY_32 // 8 + 2,
            HALF + 2 * BY_32 + BY_32 // 2 + 16,
        ),
        # 480 scales in blocks of 256, tables of 16 and 256 numbers, a text of 150 to 190 bytes that counts double
        (
            "4-bit NormalFloat with its scales, tables and a text per matrix",
            2 * 480 + 2 + 272 + 300,
            HALF + 480 + 4 * 2 + 4 * 272 + 170,
        ),
    ],
)
def test_what_a_matrix_adds_to_a_total_and_weighs(name, extra, size):
    storage = KNOWN[name]
    assert storage.extra(OUT, INTO) == extra
    assert (storage.matrix_bytes and storage.matrix_bytes(OUT, INTO)) == size


def test_a_text_beside_a_matrix_is_up_to_40_bytes_longer():
    assert {storage.name[:17]: storage.spread for storage in STORAGES if storage.spread} == {"4-bit NormalFloat": 80}


def test_what_leaves_layers_in_16_bits_leaves_two():
    assert {storage.spared_layers for storage in STORAGES} == {0, 2}


def test_scales_of_scales_of_4_bit_normalfloat_are_one_for_256():
    """513 scales, the last block of which is begun: in 64s, not in 65s."""
    storage = KNOWN["4-bit NormalFloat with its scales, tables and a text per matrix"]
    assert storage.extra(27, 1216) == 2 * 513 + 3 + 272 + 300
    assert storage.matrix_bytes(27, 1216) == 27 * 1216 // 2 + 513 + 4 * 3 + 4 * 272 + 170
