"""Schemathesis over the described API of a real server: whatever is sent, the answer is one that OpenAPI describes.

No 5xx, no undocumented status, no answer of another shape; what the description forbids is refused, and what it allows
is taken. Without keys, on a small book. Examples are drawn from a fixed seed, so a failure comes again. The fixture
makes the examples when the test runs: made when it is collected, every process of the run would make them.
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
    pytest.mark.timeout(600),  # many requests: begun early
    # The server, a thread of this process, draws random numbers while Hypothesis draws an example.
    pytest.mark.filterwarnings("ignore:Do not use the `random` module inside strategies"),
]

EXAMPLES = 15  # for each operation, beside those of the description

NAMES = {"module", "module_filter", "book", "version"}
ACCEPTANCE: list[Any] = [checks.positive_data_acceptance, checks.negative_data_rejection]

api = schemathesis.pytest.from_fixture("described").exclude(path="/mcp")


@pytest.fixture(scope="module")
def described() -> Any:
    app = create_app(Settings.load(api_keys=()))
    return schemathesis.openapi.from_dict(app.openapi(), config=schemathesis.Config(seed=1))


def without_names(body: Any) -> Any:
    """The body without modules and books: which ones there are is known to the server alone, and others are refused."""
    if not isinstance(body, dict):
        return body
    kept = {name: without_names(value) for name, value in body.items() if name not in NAMES}
    return {name: value for name, value in kept.items() if not (name == "filters" and value == {})}


@pytest.fixture(autouse=True)
def named_as_before(request: pytest.FixtureRequest) -> None:
    """Schemathesis 4.32 reads a name that pytest 9.2 does not have any more."""
    request.node._nodeid = request.node.nodeid


@settings(
    max_examples=EXAMPLES,
    derandomize=True,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@api.parametrize()
def test_every_answer_is_one_that_is_described(case: "Case[Any]", small_server: Served) -> None:
    case.body = without_names(case.body)
    answer = case.call(base_url=small_server.url)
    if answer.status_code == 413:  # before anything else a body must not be too large
        return
    case.validate_response(answer, excluded_checks=ACCEPTANCE if NAMES & set(case.query or ()) else [])
