"""Routes for a conversation: read it, delete it. The id is the only permission needed; ids are random and unlisted."""

from typing import Annotated

from fastapi import APIRouter, Path, Response

from chapterverse.api.dependencies import ServicesOf
from chapterverse.api.errors import responses
from chapterverse.errors import NotFound
from chapterverse.fields import SessionId
from chapterverse.models import ConversationThread

router = APIRouter(tags=["conversations"])

Id = Annotated[SessionId, Path(description="As an answer gave it.", examples=["0b9f4d3e-6a53-4d0c-9d53-2f1a7f1f3a10"])]


@router.get("/sessions/{session_id}", responses=responses(400, 401, 404, 503))
async def read_session(session_id: Id, services: ServicesOf) -> ConversationThread:
    """Read a conversation: its last 50 messages, its topic, whether it is archived."""
    thread: ConversationThread | None = await services.conversations.thread(session_id)
    if thread is None:
        raise _unknown(session_id)
    return thread


@router.delete("/sessions/{session_id}", status_code=204, responses=responses(400, 401, 404, 503))
async def delete_session(session_id: Id, services: ServicesOf) -> Response:
    """Delete a conversation with all its messages permanently."""
    if not await services.conversations.delete(session_id):
        raise _unknown(session_id)
    return Response(status_code=204)


def _unknown(session_id: str) -> NotFound:
    return NotFound(f"There is no session {session_id}. Ask without one to begin a new session.")
