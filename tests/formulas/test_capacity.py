"""What a card gives to one process: its total, less what its context takes beyond the one that every footprint counts."""

from __future__ import annotations

import pytest

MIB = 1048576
CONTEXT = dict.fromkeys(("hopper", "blackwell", "blackwell-ultra", "rubin"), "cuda_context_hopper_mib")
CONTEXT |= {"blackwell-rtx": "cuda_context_new_mib"}


@pytest.fixture(scope="module")
def constants(book):
    return dict(book.execute("SELECT constant_id, value FROM constant").fetchall())


def beyond(card, constants):
    """What the context takes beyond the one in overhead_bytes."""
    return constants[CONTEXT[card["architecture"]]] * MIB - constants["process_context_bytes"]


@pytest.fixture(scope="module")
def cards(book):
    columns = (
        "gpu_id, vendor, architecture, memory_mib_cuda, memory_mib_reported, memory_mib_free, memory_gib_nominal, whole_bytes, "
        "capacity_bytes, capacity_basis"
    )
    names = columns.split(", ")
    return [dict(zip(names, row, strict=True)) for row in book.execute(f"SELECT {columns} FROM gpu").fetchall()]


def test_a_measured_card_of_a_new_generation_gives_its_total_less_what_its_context_takes_more(cards, constants):
    """PyTorch's context on Hopper and Blackwell is larger than the one in overhead_bytes."""
    measured = [card for card in cards if card["memory_mib_cuda"] and card["architecture"] in CONTEXT]
    assert {"h100-sxm", "b200", "rtx-5090"} <= {card["gpu_id"] for card in measured}
    for card in measured:
        assert beyond(card, constants) > 100 * MIB
        assert card["whole_bytes"] == card["memory_mib_cuda"] * MIB
        free = card["memory_mib_free"] or card["memory_mib_cuda"]  # what a system that shares the memory leaves
        assert card["capacity_bytes"] == free * MIB - beyond(card, constants), card["gpu_id"]


def test_a_measured_card_of_an_older_generation_gives_its_total(cards):
    measured = [
        c for c in cards if c["memory_mib_cuda"] and c["vendor"] == "nvidia" and c["architecture"] not in CONTEXT
    ]
    assert len(measured) > 5
    for card in measured:
        assert card["capacity_bytes"] == card["memory_mib_cuda"] * MIB, card["gpu_id"]


def test_what_cuda_keeps_of_a_reported_total_is_the_gap_of_the_book(cards, constants):
    reported = [c for c in cards if c["memory_mib_reported"] and not c["memory_mib_cuda"] and c["vendor"] == "nvidia"]
    assert len(reported) > 20
    for card in reported:
        total = card["memory_mib_reported"]
        gives = total - constants["cuda_gap_base_mib"] - constants["cuda_gap_ratio"] * total
        expected = gives * MIB - (beyond(card, constants) if card["architecture"] in CONTEXT else 0)
        assert card["capacity_bytes"] == pytest.approx(expected, abs=1), card["gpu_id"]
        assert card["capacity_basis"] == "measured"


SIZES = {
    "reported_ratio_apple_8_gib": (8,),
    "reported_ratio_apple_16_gib": (16, 18, 24),
    "reported_ratio_apple_32_gib": (32, 36, 48),
    "reported_ratio_apple_64_gib": (64, 96),
    "reported_ratio_apple_128_gib": (128, 192),
    "reported_ratio_apple_256_gib": (256, 512),
}


@pytest.mark.parametrize(("ratio", "size"), [(ratio, size) for ratio, sizes in SIZES.items() for size in sizes])
def test_every_size_of_mac_that_is_sold_gives_the_share_that_was_read_nearest_to_it(book, constants, ratio, size):
    """Metal's limit was read at 8, 16 to 24, 32 to 48, 64, 128 and 256 GiB (constant.csv names where); between them the share of the smaller holds."""
    card = f"{{'vendor': 'apple', 'memory_gib_nominal': {size}::DOUBLE, 'architecture': 'm4', 'segment': 'unified', 'memory_type': 'LPDDR5X'}}"
    ((share,),) = book.execute(
        f"SELECT reported_ratio({card}, k) FROM (SELECT constants AS k FROM constants)"
    ).fetchall()
    assert share == constants[ratio]


@pytest.mark.parametrize(
    ("memory_type", "has_ecc"), [("GDDR6", True), ("GDDR5", True), ("GDDR7", False), ("HBM3", False)]
)
def test_datacenter_cards_with_gddr_lose_a_sixteenth_to_their_error_correction(book, constants, memory_type, has_ecc):
    card = f"{{'vendor': 'nvidia', 'memory_gib_nominal': 48.0, 'architecture': 'ampere', 'segment': 'datacenter', 'memory_type': '{memory_type}'}}"
    ((share,),) = book.execute(
        f"SELECT reported_ratio({card}, k) FROM (SELECT constants AS k FROM constants)"
    ).fetchall()
    plain = constants["reported_ratio_default"]
    assert share == pytest.approx(plain * constants["reported_ratio_gddr_ecc"] if has_ecc else plain)


# What Metal was read to give, by size: no chip, whatever its name, may be told to give more.
READ_MIB = {
    8: 5461,
    16: 12124,
    18: 13639,
    24: 18186,
    32: 25559,
    36: 28754,
    48: 38338,
    64: 53084,
    128: 110100,
    256: 228065,
}


def test_every_mac_of_a_size_gives_the_same_and_never_more_than_was_read(cards):
    macs = [c for c in cards if c["vendor"] == "apple"]
    assert len(macs) > 50
    by_size = {}
    for mac in macs:
        by_size.setdefault(mac["memory_gib_nominal"], set()).add(mac["capacity_bytes"])
        read = READ_MIB.get(mac["memory_gib_nominal"])
        if read:
            assert (mac["capacity_bytes"], mac["capacity_basis"]) == (read * MIB, "measured"), mac["gpu_id"]
        else:
            assert mac["capacity_basis"] == "imputed", mac["gpu_id"]
    assert all(len(gives) == 1 for gives in by_size.values()), by_size
    shares = [round(gives.pop() / size / 2**30, 3) for size, gives in sorted(by_size.items())]
    assert shares == sorted(shares), "a larger Mac gives a larger share"


def test_windows_leaves_a_share_of_what_is_sold_and_a_desktop_nobody_knows(book, constants):
    asked = "SELECT {} FROM gpu, constants WHERE gpu_id IN ('rtx-3060-12gb', 'h100-sxm') ORDER BY segment"
    told = ", ".join(f"system_bytes(gpu, '{system}', constants)" for system in ("linux", "windows", "desktop"))
    consumer, server = book.execute(asked.format(f"capacity_bytes, {told}")).fetchall()
    assert consumer[1] == consumer[0] > consumer[2] == int(constants["wddm_share"] * 12 * 2**30)
    assert consumer[3] is None
    assert server == (server[0],) * 4
