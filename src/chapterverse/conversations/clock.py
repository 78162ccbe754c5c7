"""Checks whether a database's clock can be trusted, before old data is deleted.

Ages are measured by the server's clock, which may jump: the date was set by hand, or a machine woke up with a wrong
one. A jump ahead looks as if no server had run for a long time. So a jump is believed only after another day by the
same clock. Until then it can be corrected, and nothing is deleted.
"""

import logging
from datetime import datetime, timedelta
from typing import Any, Final

log = logging.getLogger(__name__)

DOUBT: Final = timedelta(days=1)  # a larger step is a jump; it is believed after this time

_NOTE: Final = """
INSERT INTO housekeeping (trusted_at, doubted_at) VALUES ($1, $2)
ON CONFLICT (one) DO UPDATE SET trusted_at = $1, doubted_at = $2"""


async def trusts_its_clock(connection: Any) -> bool:
    """Whether the clock of the connection's server has not jumped since the last check."""
    now = await connection.fetchval("SELECT clock_timestamp()")
    row = await connection.fetchrow("SELECT trusted_at, doubted_at FROM housekeeping")
    trusted, doubted = judge(now, *row) if row else (now, None)
    await connection.execute(_NOTE, trusted, doubted)
    if doubted == now:
        message = "the database's clock jumped from %s to %s; nothing is deleted yet, in case it is wrong"
        log.warning(message, trusted.isoformat(timespec="minutes"), now.isoformat(timespec="minutes"))
    return doubted is None


def judge(now: datetime, trusted: datetime, doubted: datetime | None) -> tuple[datetime, datetime | None]:
    """Return when the clock was last trusted and, while it is in doubt, its time when the jump was first seen."""
    if now <= trusted + DOUBT or (doubted and now >= doubted + DOUBT):
        return now, None
    return trusted, (doubted if doubted and doubted <= now else now)
