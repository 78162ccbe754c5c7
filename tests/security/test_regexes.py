"""No regular expression of the package takes quadratic time."""

import re
import time

import pytest

from tests.security.regexes import LONG, Found, every_pattern, slowest

BUDGET = 1.0  # seconds of CPU time for 64 KiB; a quadratic pattern takes ten or more
SHORT_BUDGET = 0.006  # for 4 KiB; slower patterns are tried with 64 KiB


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_every_pattern_is_fast_on_hostile_strings() -> None:
    patterns = every_pattern()
    assert len(patterns) > 150
    slow = {found.where: bad for found in patterns if (bad := slowest(found, BUDGET, SHORT_BUDGET))}
    assert not slow


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pattern", "method"),
    [
        (r"\s*\[\d+\]", "sub"),
        (r"\s*^(?:\[\^\d+\]: |Searched for “).*", "sub"),
        (r"(.+?)\s*(?<!\\)<([^<>]+)>", "fullmatch"),
        (r"(a+)+$", "match"),
        (r"(?:kbd|btn):\[([^\]]*)\]", "sub"),
    ],
)
def test_slowest_finds_known_slow_patterns(pattern: str, method: str) -> None:
    """Patterns of version 1 or from textbooks. A fifth of the budget is enough to detect them."""
    assert slowest(Found("here", re.compile(pattern, re.M | re.S), frozenset((method,))), BUDGET / 5, SHORT_BUDGET)


def test_message_with_many_blanks_is_read_fast() -> None:
    """One assistant message of 65 kB blocked the event loop of version 1 for 22 seconds."""
    from chapterverse.api.openai.completions import _without_notes

    began = time.process_time()
    assert _without_notes("x" + " " * LONG + "y") == "x" + " " * LONG + "y"
    assert time.process_time() - began < BUDGET
    assert _without_notes("An answer [^1].\n\n[^1]: Page: “quote”") == "An answer [1]."
