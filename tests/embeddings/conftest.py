"""One stub server per test module. Clients take 50 ms to create, so they are shared where possible."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.embeddings.stub import EmbeddingStub


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Module-scoped fixtures live in one event loop, so the async tests of a module run in that loop."""
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
