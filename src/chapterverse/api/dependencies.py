"""Dependencies of the routes: services, health and telemetry of the running server."""

from dataclasses import replace
from typing import Annotated, cast

from fastapi import Depends, Path, Query, Request
from pydantic import AfterValidator
from pydantic.config import JsonDict

from chapterverse.api.edition_paths import EditionView, edition_of
from chapterverse.fields import Text
from chapterverse.health import Health
from chapterverse.index import Index
from chapterverse.models import SearchFilters
from chapterverse.services import Services
from chapterverse.telemetry import Telemetry


def services_of(request: Request) -> Services:
    """The services of the running server; under `/editions/NAME/`, limited to that edition."""
    services: Services = request.app.state.services
    edition = edition_of(request.scope)
    return services if edition is None else replace(services, index=cast(Index, EditionView(services.index, edition)))


def health_of(request: Request) -> Health:
    """The health checks of the running server."""
    health: Health = request.app.state.health
    return health


def telemetry_of(request: Request) -> Telemetry:
    """The metrics of the running server."""
    telemetry: Telemetry = request.app.state.telemetry
    return telemetry


def editions_of(
    book: Annotated[list[Text] | None, Query(max_length=100, description="As `filters.book`.")] = None,
    version: Annotated[list[Text] | None, Query(max_length=100, description="As `filters.version`.")] = None,
) -> SearchFilters | None:
    """The editions that the query string names; None for the latest version of each book."""
    return SearchFilters(book=book, version=version) if book or version else None


def _page_id(value: str) -> str:
    if len(value) != 36:
        raise ValueError("must be a page_id of 36 characters, as /pages and /search give it")
    return value


_PAGE_ID: JsonDict = {"minLength": 36, "maxLength": 36}
PageId = Annotated[
    str, AfterValidator(_page_id), Path(description="As `/pages` and `/search` give it.", json_schema_extra=_PAGE_ID)
]
EditionsOf = Annotated[SearchFilters | None, Depends(editions_of)]
ServicesOf = Annotated[Services, Depends(services_of)]
HealthOf = Annotated[Health, Depends(health_of)]
TelemetryOf = Annotated[Telemetry, Depends(telemetry_of)]
