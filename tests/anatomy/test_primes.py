"""Sizes of n-gram tables are primes in a row: those that follow a number, by a sieve of the stretch that holds them."""

from __future__ import annotations

import pytest

from pipeline.anatomy.families import streams


@pytest.mark.parametrize("start", [0, 1, 2, 3, 4, 24, 25, 26, 120, 121, 900, 7919, 65_536])
@pytest.mark.parametrize("count", [1, 2, 30, 400])
def test_primes_follow_in_a_row(start, count):
    found, number = [], start
    while len(found) < count:
        if number > 1 and all(number % divisor for divisor in range(2, int(number**0.5) + 1)):
            found.append(number)
        number += 1
    assert streams.primes_from(start, count) == found
