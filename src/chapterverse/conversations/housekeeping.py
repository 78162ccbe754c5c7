"""Archives idle threads and purges old turns while a server runs.

The first run is at the start, which also starts an embedded database before the first question. It runs in the
background: a failure is logged once, and the work is tried again later. A lock in the database ensures that only one
of several workers does it.
"""

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import Any, Final

from chapterverse.conversations.store import Conversations
from chapterverse.errors import ConversationsUnavailable

log = logging.getLogger(__name__)

EVERY_SECONDS: Final = 600.0  # plus or minus half of it at random, so that workers do not run at the same time
IDLE: Final = timedelta(hours=1)  # after which a thread is archived (SPEC 6)


@asynccontextmanager
async def keeping_house(
    conversations: Conversations, retention: timedelta, every: float = EVERY_SECONDS
) -> AsyncIterator[None]:
    """Archive and purge in the background, repeatedly."""
    async with in_background(_tidy_repeatedly(conversations, retention, every)):
        yield


@asynccontextmanager
async def in_background(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run the work in the background; it is cancelled at the end."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _tidy_repeatedly(conversations: Conversations, retention: timedelta, every: float) -> None:
    failing = False
    while True:
        try:
            archived = await conversations.archive_idle(IDLE)
            purged = await conversations.purge(retention)
        except ConversationsUnavailable as failure:
            if not failing:
                log.warning("conversations are not archived and purged: %s Trying again later.", failure.message)
            failing = True
        else:
            if archived or purged or failing:
                log.info("conversations: %d archived, %d old turns deleted", archived, purged)
            failing = False
        await asyncio.sleep(every * random.uniform(0.5, 1.5))  # noqa: S311 - spreads work, no secret
