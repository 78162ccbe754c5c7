"""One stub server for each test module; a client costs 50 ms to make, so those are shared as well where they can be."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.embeddings.stub import EmbeddingStub


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What a module shares lives in one event loop, so its async tests run in that loop."""
    for item in items:
        if item.path.parent == Path(__file__).parent and pytest_asyncio.is_async_test(item):
            item.add_marker(pytest.mark.asyncio(loop_scope="module"), append=False)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server() -> AsyncIterator[EmbeddingStub]:
    async with EmbeddingStub() as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def stub(server: EmbeddingStub) -> EmbeddingStub:
    await server.wait_for_silence()
    server.reset()
    return server
