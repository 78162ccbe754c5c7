"""A sample of the documents that `make fuzz` reads."""

import pytest

from tests.fuzz.documents import MOST_BYTES, run


@pytest.mark.slow
async def test_hostile_documents_are_read_or_refused() -> None:
    figures = await run(cases=350, seed=7)
    assert sum(figures.outcomes.values()) == 350
    assert figures.outcomes["failed"] > 20
    assert figures.outcomes["read"] > 50
    assert figures.largest[0] < MOST_BYTES
