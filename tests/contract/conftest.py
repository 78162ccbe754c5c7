"""Fixtures with the engines that a contract suite runs against."""

import itertools
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from chapterverse.index import Index
from tests.contract.qdrant_server import qdrant_server
from tests.index.places import patient_index, scratch_directory

OpenIndex = Callable[[], Index]  # opens another index object on the same data, as another process would

_numbers = itertools.count()


@pytest.fixture(scope="session")
def qdrant_url() -> Iterator[str]:
    with qdrant_server() as url:
        yield url


@pytest.fixture(params=["edge", "server"])
async def open_index(request: pytest.FixtureRequest) -> AsyncIterator[OpenIndex]:
    """Opens indexes on the same empty data; closes all of them afterwards."""
    opened: list[Index] = []
    with scratch_directory() as directory:
        create = _edge(directory) if request.param == "edge" else _server(request.getfixturevalue("qdrant_url"))

        def open_() -> Index:
            opened.append(create())
            return opened[-1]

        yield open_
        for index in opened:
            await index.close()


@pytest.fixture
def index(open_index: OpenIndex) -> Index:
    return open_index()


def _edge(directory: Path) -> Callable[[], Index]:
    return lambda: patient_index(directory / "index")


def _server(url: str) -> Callable[[], Index]:
    from chapterverse.index.server import QdrantIndex

    collection = f"contract_{next(_numbers)}"
    return lambda: QdrantIndex(url=url, collection=collection)
