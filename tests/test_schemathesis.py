"""Schemathesis over the described API of a real server: whatever is sent, the answer is one that OpenAPI describes.

No 5xx, no undocumented status, no answer of another shape; what the description forbids is refused, and what it allows
is taken. Without keys, on the example book. Examples are drawn from a fixed seed, so a failure comes again.
"""

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis import Case

from chapterverse.config import Settings
from chapterverse.main import create_app
from tests.served import Served

pytestmark = pytest.mark.slow

EXAMPLES = 15  # for each operation, beside those of the description

api = schemathesis.openapi.from_dict(create_app(Settings.load(api_keys=())).openapi())


@schemathesis.hook
def map_body(context: Any, body: Any) -> Any:
    """Without modules: which ones there are is known to the book alone, and others are refused."""
    if isinstance(body, dict):
        body.pop("module_filter", None)
        for filters in (
            body.get("filters"),
            (body.get("chapterverse") or {}).get("filters") if isinstance(body.get("chapterverse"), dict) else None,
        ):
            if isinstance(filters, dict):
                filters.pop("module", None)
    return body


@api.exclude(path="/mcp").parametrize()
@settings(
    max_examples=EXAMPLES,
    derandomize=True,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_every_answer_is_one_that_is_described(case: "Case[Any]", example_server: Served) -> None:
    case.call_and_validate(base_url=example_server.url)
