"""Routes for monitoring: `/livez`, `/readyz`, `/health` and `/metrics`."""

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel

from chapterverse.api.access.guard import has_key
from chapterverse.api.dependencies import HealthOf, ServicesOf, TelemetryOf
from chapterverse.api.errors import responses
from chapterverse.models import HealthResponse
from chapterverse.telemetry import METRICS_TYPE

router = APIRouter(tags=["operations"])


class Alive(BaseModel):
    """The process answers."""

    status: str = "ok"


@router.get("/livez", responses=responses(any_host=True))
async def livez() -> Alive:
    """Answer 200 as long as the process runs. No dependency is checked."""
    return Alive()


@router.get("/readyz", responses=responses(503, any_host=True))
async def readyz(services: ServicesOf) -> Alive:
    """Answer 200 once the book can be searched, else 503 with the reason."""
    await services.index.manifest()
    return Alive()


@router.get("/health", responses={503: {"model": HealthResponse, "description": "`unhealthy`"}, **responses(429)})
async def health(prober: HealthOf, request: Request, response: Response) -> HealthResponse:
    """Probe each dependency. 200 unless unhealthy, then 503.

    Addresses and file paths are shown only to callers with a key. A language model whose last call failed counts as
    down until a call succeeds. Route traffic by `/readyz`, which does not depend on it."""
    answer = await (prober.check() if has_key(request) else prober.check_publicly())
    if answer.status == "unhealthy":
        response.status_code = 503
    return answer


_METRICS = {"content": {METRICS_TYPE.partition(";")[0]: {"schema": {"type": "string"}}}, "description": "Prometheus"}


@router.get("/metrics", response_class=Response, responses={200: _METRICS, **responses()})
async def metrics(prober: HealthOf, telemetry: TelemetryOf) -> Response:
    """Metrics for Prometheus: requests, durations, outcomes, and the state of each dependency."""
    telemetry.see_health(await prober.check_publicly())
    return Response(telemetry.exposition(), media_type=METRICS_TYPE)
