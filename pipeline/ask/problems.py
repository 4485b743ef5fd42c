"""Why there is no answer, each with its exit status.

0  it fits            1  it does not, or only without its margin      2  the question is wrong: a name, a number, an option
3  it is not known    4  there is no almanac to ask: no file, a damaged one, no answer from its address
70 a mistake of the command itself             130 Ctrl-C
"""

from __future__ import annotations

FITS, DOES_NOT, WRONG, UNKNOWN, NO_DATA = range(5)
MISTAKE = 70  # as sysexits.h has it: none that a script takes for an answer


class Problem(Exception):
    """A sentence for people; `status` is what the command ends with."""

    status = WRONG


class Wrong(Problem):
    """The question cannot be asked so."""


class NoModel(Wrong):
    """A card and what it is for were said, and no model: what fits it is another question."""


class NoCard(Wrong):
    """No card was named, and this machine has none. `is_of_any`: what is asked can be told of whatever card."""

    is_of_any = False


class Unknown(Problem):
    """Nobody knows: the almanac has no figure, and says why."""

    status = UNKNOWN


class NoData(Problem):
    """There is no almanac to ask."""

    status = NO_DATA
