"""Real engines for the tests of answering (example book, Postgres, embeddings), opened once per run."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

from chapterverse.services import Services
from chapterverse.settings import Settings
from chapterverse.wiring import choose_judge, choose_writer, open_services
from tests.llm_stub import LlmStub, serving_llm


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def keyless(example_home: Path, postgres_url: str) -> AsyncIterator[Services]:
    """Services without a model key."""
    settings = Settings.load(chapterverse_home=example_home, database_url=postgres_url)
    async with open_services(settings) as services:
        yield services


@pytest.fixture
def llm() -> Iterator[LlmStub]:
    """A language model server for one test."""
    with serving_llm() as stub:
        yield stub


@pytest_asyncio.fixture(loop_scope="session")
async def asking_llm(keyless: Services, llm: LlmStub) -> AsyncIterator[Services]:
    """The services of `keyless`, but with the language model of `llm`."""
    settings = keyless.settings.model_copy(update=with_llm(llm))
    writer, _ = choose_writer(settings)
    judge = choose_judge(settings)
    assert judge is not None
    yield replace(keyless, writer=writer, judge=judge, settings=settings)
    await writer.close()
    await judge.close()


def with_llm(llm: LlmStub) -> dict[str, object]:
    """Validated settings for this language model server."""
    given = Settings.load(openai_api_key="key", openai_model="stub-model", openai_base_url=llm.url)
    return {name: getattr(given, name) for name in ("openai_api_key", "openai_model", "openai_base_url")}
