"""Whether a database's clock can be trusted: before anything is deleted for its age.

Ages are measured by the server's clock alone, which may jump: a date set by hand, a machine that wakes up with a wrong
one. To the data a jump ahead looks like a long time in which no server ran. So a jump is believed only when the clock
is seen again a day later by its own count; until then it can be corrected, and nothing is lost.
"""

import logging
from datetime import datetime, timedelta
from typing import Any, Final

log = logging.getLogger(__name__)

DOUBT: Final = timedelta(days=1)  # further ahead than this is a jump, and believed after so long

_NOTE: Final = """
INSERT INTO housekeeping (trusted_at, doubted_at) VALUES ($1, $2)
ON CONFLICT (one) DO UPDATE SET trusted_at = $1, doubted_at = $2"""


async def trusts_its_clock(connection: Any) -> bool:
    """Whether the clock of an asyncpg connection's server goes on from where it was when this was last asked."""
    now = await connection.fetchval("SELECT clock_timestamp()")
    row = await connection.fetchrow("SELECT trusted_at, doubted_at FROM housekeeping")
    trusted, doubted = judge(now, *row) if row else (now, None)
    await connection.execute(_NOTE, trusted, doubted)
    if doubted == now:
        told = (
            "by the database's clock nobody tidied up from %s to %s; in case it was set wrong, nothing is deleted yet"
        )
        log.warning(told, trusted.isoformat(timespec="minutes"), now.isoformat(timespec="minutes"))
    return doubted is None


def judge(now: datetime, trusted: datetime, doubted: datetime | None) -> tuple[datetime, datetime | None]:
    """When the clock was last trusted, now at best; and, while it is in doubt, where it was first seen to be wrong."""
    if now <= trusted + DOUBT or (doubted and now >= doubted + DOUBT):
        return now, None
    return trusted, (doubted if doubted and doubted <= now else now)
