"""Builds the HTTP application from the settings.

`chapterverse serve` runs it, or `uvicorn --factory chapterverse.main:create_app --no-proxy-headers`: only
`TRUSTED_PROXIES` decides which proxies are trusted.
"""

import asyncio
import gc
import multiprocessing
import os
import signal
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from datetime import timedelta
from typing import Any

from fastapi import FastAPI
from fastapi.middleware.cors import CORSMiddleware

from chapterverse import __version__, answering
from chapterverse.api import book, errors, feedback, llms_txt, reader_page, sessions, suggestions, web, widget
from chapterverse.api.access.guard import BodyLimit, Guard
from chapterverse.api.access.hosts import AllowedHosts, ForwardedScheme
from chapterverse.api.access.rates import RateLimits
from chapterverse.api.access.slots import SlotQueue
from chapterverse.api.chat import routes as chat
from chapterverse.api.chat.streaming import HEARTBEAT_SECONDS
from chapterverse.api.edition_paths import EditionPaths
from chapterverse.api.health import routes as health
from chapterverse.api.health.shared import SharedHealth
from chapterverse.api.mcp.http import mcp_route, open_mcp
from chapterverse.api.middleware import HeadRequests, RefusedOrigins, RequestIds, RequestLog, SafeHeaders
from chapterverse.api.openai import completions, responses
from chapterverse.api.openapi import description, docs
from chapterverse.api.pages import Contents
from chapterverse.conversations.housekeeping import keeping_house
from chapterverse.evaluation.suggestion_store import Shelf, keeping_suggestions
from chapterverse.health import Health
from chapterverse.services import Services
from chapterverse.settings import Settings
from chapterverse.telemetry import SHARED_COUNTS, Telemetry, log_to_stderr
from chapterverse.tracing import open_tracing
from chapterverse.wiring import open_services

_DESCRIPTION = """Ask a book, and get answers whose every sentence was checked against the passage it cites.

All bodies are JSON in UTF-8; offsets are in characters. Every error has the body `ErrorResponse`.
With several books, the routes, except those for operators, also exist under `/editions/BOOK/` and
`/editions/BOOK@VERSION/`, for that book or version.
Every response has the header `X-Request-ID`."""
# Without `openapi_url` FastAPI serves no pages of its own, which load scripts from other hosts; ours are in `openapi/`.
_ABOUT: dict[str, Any] = {
    "title": "Chapterverse",
    "version": __version__,
    "description": _DESCRIPTION,
    "openapi_url": None,
}

# `/pages/{id}.md` must come before `/pages/{id}`, which matches the same address.
_ABOUT_THE_BOOK = (llms_txt, book, suggestions, reader_page)
_SUBJECTS = (chat, completions, responses, *_ABOUT_THE_BOOK, sessions, feedback, health, web, widget, docs)


@asynccontextmanager
async def open_with_housekeeping(settings: Settings) -> AsyncIterator[Services]:
    """The services of a server, with the housekeeping of its conversations."""
    retention = timedelta(days=settings.conversation_retention_days)
    async with open_services(settings, at_once=True) as services, keeping_house(services.conversations, retention):
        yield services


def create_app(
    settings: Settings | None = None,
    opening: Callable[[Settings], AbstractAsyncContextManager[Any]] = open_with_housekeeping,
    answering: chat.Answering = answering,
) -> FastAPI:
    """The application. Engines are opened when the server starts.

    A server calls it without settings: they are read from the environment, and logging is configured. Tests pass other
    engines and another `answering`.
    """
    serves = settings is None
    if settings is None:
        settings = Settings.load()
        log_to_stderr(settings)
        _end_with_supervisor()
    telemetry = Telemetry(os.environ.get(SHARED_COUNTS, "") if serves else "")
    tracing = open_tracing(_model_provider(settings)) if serves else None
    gate = SlotQueue(settings.max_concurrent_requests)
    rates = RateLimits(telemetry, settings.redis_url.get_secret_value() if settings.redis_url else None)
    telemetry.watch(telemetry.queue, lambda: gate.waiting)
    telemetry.watch(telemetry.running, lambda: gate.running)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with opening(settings) as services, open_mcp(app):
            app.state.services = services
            shared = SharedHealth(rates.redis.ask) if rates.redis else None
            app.state.health = Health((*services.dependencies, *rates.dependencies), shared=shared)
            async with AsyncExitStack() as background:
                if serves:
                    _settle_memory()
                    await background.enter_async_context(keeping_suggestions(services, gate.is_busy))
                    await background.enter_async_context(telemetry.telling_workers())
                yield
        if tracing is not None:
            await asyncio.to_thread(tracing.close)
        await rates.close()

    app = FastAPI(lifespan=lifespan, **_ABOUT)
    app.state.answering, app.state.gate, app.state.telemetry = answering, gate, telemetry
    app.state.heartbeat, app.state.contents = HEARTBEAT_SECONDS, Contents()
    app.state.tracing = tracing
    app.state.suggestions = Shelf(settings.chapterverse_home)
    for routes in _SUBJECTS:
        app.include_router(routes.router)
    app.router.routes.append(mcp_route(settings.cors_origins))
    errors.install(app)
    _wrap(app, settings, rates, telemetry)
    app.openapi = lambda: description.describe(app, with_keys=bool(settings.api_keys))  # type: ignore[method-assign]
    return app


def _wrap(app: FastAPI, settings: Settings, rates: RateLimits, telemetry: Telemetry) -> None:
    """Add the middleware. Each wraps those before it: the last one sees a request first."""
    app.add_middleware(HeadRequests)
    app.add_middleware(BodyLimit)
    app.add_middleware(Guard, settings=settings, rates=rates)
    if settings.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.cors_origins,
            allow_methods=["GET", "POST", "DELETE"],
            # Any header is safe: cookies are not used, and a site must know a key to send it. OpenAI's clients send
            # many.
            allow_headers=["*"],
            expose_headers=["Retry-After", "Warning", "X-Request-ID"],
        )
    app.add_middleware(RefusedOrigins, allowed=settings.cors_origins)
    app.add_middleware(AllowedHosts, settings=settings)
    app.add_middleware(ForwardedScheme, settings=settings)
    app.add_middleware(SafeHeaders)
    app.add_middleware(RequestLog, telemetry=telemetry)
    app.add_middleware(RequestIds)
    app.add_middleware(EditionPaths)


def _model_provider(settings: Settings) -> str:
    """The provider of the language model, as OpenTelemetry's conventions name it."""
    if settings.gemini_api_key:
        return "gcp.gemini"
    return "openai" if settings.openai_api_key else "chapterverse"


def _settle_memory() -> None:
    """Exclude imported objects from garbage collection, and collect less often: it took a sixth of the time of an
    answer and found nothing. `chapterverse serve` starts with the collector switched off."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


def _end_with_supervisor() -> None:
    """Stop a worker whose supervisor was killed: it would keep the port and never be replaced."""
    if (supervisor := multiprocessing.parent_process()) is not None:

        def watch() -> None:
            supervisor.join()
            os.kill(os.getpid(), signal.SIGTERM)

        threading.Thread(target=watch, name="supervisor", daemon=True).start()
