"""Schemathesis against a real server: every response conforms to the OpenAPI description.

There are no 5xx and no undocumented statuses or bodies; invalid requests are rejected, and valid ones accepted. The
server has a small book and no keys. The seed is fixed, so that failures can be repeated. The examples are made in a
fixture, because otherwise every process of the run would make them during collection.
"""

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis import Case
from schemathesis.specs.openapi import checks

from chapterverse.main import create_app
from chapterverse.settings import Settings
from tests.served import Served

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),  # many requests; long timeouts start early
    # The server runs in a thread of this process and uses random numbers while Hypothesis makes an example.
    pytest.mark.filterwarnings("ignore:Do not use the `random` module inside strategies"),
]

EXAMPLES = 15  # for each operation, in addition to those in the description

NAMES = {"module", "module_filter", "book", "version"}
ACCEPTANCE: list[Any] = [checks.positive_data_acceptance, checks.negative_data_rejection]

api = schemathesis.pytest.from_fixture("described").exclude(path="/mcp")


@pytest.fixture(scope="module")
def described() -> Any:
    app = create_app(Settings.load(api_keys=()))
    return schemathesis.openapi.from_dict(app.openapi(), config=schemathesis.Config(seed=1))


def without_names(body: Any) -> Any:
    """The body without modules and books, because the description does not list the valid ones."""
    if not isinstance(body, dict):
        return body
    kept = {name: without_names(value) for name, value in body.items() if name not in NAMES}
    return {name: value for name, value in kept.items() if not (name == "filters" and value == {})}


@pytest.fixture(autouse=True)
def with_node_id(request: pytest.FixtureRequest) -> None:
    """Schemathesis 4.32 reads an attribute that pytest 9.2 no longer has."""
    request.node._nodeid = request.node.nodeid


@settings(
    max_examples=EXAMPLES,
    derandomize=True,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@api.parametrize()
def test_response_conforms_to_openapi(case: "Case[Any]", small_server: Served) -> None:
    case.body = without_names(case.body)
    answer = case.call(base_url=small_server.url)
    if answer.status_code == 413:  # the size of the body is checked first
        return
    case.validate_response(answer, excluded_checks=ACCEPTANCE if NAMES & set(case.query or ()) else [])
