"""The route for feedback on an answer: up or down, with a reason. The turn's id is the only permission needed."""

from fastapi import APIRouter

from chapterverse.api.dependencies import ServicesOf
from chapterverse.api.errors import responses
from chapterverse.errors import NotFound
from chapterverse.models import FeedbackKept, FeedbackRequest
from chapterverse.services import Services

router = APIRouter(tags=["conversations"])


@router.post("/feedback", responses=responses(400, 401, 404, 413, 429, 503))
async def give_feedback(body: FeedbackRequest, services: ServicesOf) -> FeedbackKept:
    """Rate an answer up or down, with a reason. The rating is stored with the turn and deleted with it."""
    return await keep_feedback(body, services)


async def keep_feedback(body: FeedbackRequest, services: Services) -> FeedbackKept:
    """Store feedback, from HTTP, MCP or Python."""
    kept: FeedbackKept | None = await services.conversations.rate(body)
    if kept is None:
        of_session = f" in session {body.session_id}" if body.session_id else ""
        raise NotFound(f"There is no turn {body.turn_id}{of_session}. Send the turn_id of an answer that was kept.")
    return kept
