"""How routes get at the services: opened when the server starts, closed when it stops."""

from typing import Annotated

from fastapi import Depends, Request

from chapterverse.health import Health
from chapterverse.services import Services
from chapterverse.telemetry import Telemetry


def services_of(request: Request) -> Services:
    """The services of the running server."""
    services: Services = request.app.state.services
    return services


def health_of(request: Request) -> Health:
    """The prober of the running server."""
    health: Health = request.app.state.health
    return health


def telemetry_of(request: Request) -> Telemetry:
    """The metrics of the running server."""
    telemetry: Telemetry = request.app.state.telemetry
    return telemetry


ServicesOf = Annotated[Services, Depends(services_of)]
HealthOf = Annotated[Health, Depends(health_of)]
TelemetryOf = Annotated[Telemetry, Depends(telemetry_of)]
