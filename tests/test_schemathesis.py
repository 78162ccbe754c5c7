"""Schemathesis over the described API of a real server: whatever is sent, the answer is one that OpenAPI describes.

No 5xx, no undocumented status, no answer of another shape; what the description forbids is refused, and what it allows
is taken. Without keys, on a small book. Examples are drawn from a fixed seed, so a failure comes again.
"""

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis import Case

from chapterverse.main import create_app
from chapterverse.settings import Settings
from tests.served import Served

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]  # many requests: begun early

EXAMPLES = 15  # for each operation, beside those of the description

api = schemathesis.openapi.from_dict(create_app(Settings.load(api_keys=())).openapi())


def without_modules(body: Any) -> Any:
    """The body without modules: which ones there are is known to the book alone, and others are refused."""
    if not isinstance(body, dict):
        return body
    kept = {name: without_modules(value) for name, value in body.items() if name not in ("module", "module_filter")}
    return {name: value for name, value in kept.items() if not (name == "filters" and value == {})}


@api.exclude(path="/mcp").parametrize()
@settings(
    max_examples=EXAMPLES,
    derandomize=True,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_every_answer_is_one_that_is_described(case: "Case[Any]", small_server: Served) -> None:
    case.body = without_modules(case.body)
    answer = case.call(base_url=small_server.url)
    if answer.status_code != 413:  # before anything else a body must not be too large
        case.validate_response(answer)
