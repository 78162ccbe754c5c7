from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chapterverse.grounding.words import tokens


def same(one: str, other: str) -> bool:
    left, right = tokens(one), tokens(other)
    left, right = [token for token in left if token.claims], [token for token in right if token.claims]
    return len(left) == len(right) and all(set(a.keys) & set(b.keys) for a, b in zip(left, right, strict=True))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("measures", "measured"),
        ("planning", "planned"),
        ("libraries", "library"),
        ("1,024 counts", "1024 counts"),
        ("four hours", "4 hours"),
        ("the first call", "the 1st call"),
        ("90 %", "90 per cent"),
        ("200 ms", "200 milliseconds"),
        ("0.5s", "0.5 seconds"),
        ("does not run", "doesn't run"),
        ("cannot run", "can't run"),
        ("must run", "has to run"),
        ("localisation", "localization"),
        ("colour", "color"),
        ("`spin()`", "`spin`"),
        ("best-effort", "best effort"),
        ("Tern’s lidar", "Tern's lidar"),
        ("cafe\u0301", "café"),
        ("runs in order to stop", "runs to stop"),
    ],
)
def test_two_ways_to_write_one_thing(one: str, other: str) -> None:
    assert same(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("plan", "plane"),
        ("publisher", "publish"),
        ("mutable", "immutable"),
        ("1.5 m", "15 m"),
        ("-0.5", "0.5"),
        ("v2.1", "v2.2"),
        ("m/s", "km/s"),
        ("first", "one"),
        ("depth_m", "depth_ft"),
        ("`callAsync`", "`callasync`"),
        ("/var/log/heron", "/var/log/boat"),
        ("--verbose", "--quiet"),
        ("https://a.example/x", "https://b.example/x"),
        ("always", "never"),
        ("may", "must"),
        ("more", "less"),
        ("before", "after"),
        ("noted", "not"),
        ("v + x", "v − x"),
        ("IT", "it"),
    ],
)
def test_two_things(one: str, other: str) -> None:
    assert not same(one, other)


@given(st.text(max_size=200))
def test_tokens_stand_in_order_and_with_their_gaps(text: str) -> None:
    found = tokens(text)
    assert all(0 <= token.start < token.end <= len(text) for token in found)
    assert all(one.start <= other.start for one, other in pairwise(found))
    assert not any(char.isalnum() for token in found for char in token.gap)
