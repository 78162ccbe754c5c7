"""An event that OpenAI's API does not have is sent as nothing more than a sign that the answer goes on."""

from typing import cast

import pytest

from chapterverse.api.chat.routes import Form
from chapterverse.api.openai.completions import Footnoted
from chapterverse.api.openai.responses import ResponseForm
from chapterverse.api.openai.schemas import CompletionRequest
from chapterverse.models import Event, Frozen


class Progress(Frozen):
    type: str = "progress"


def completion() -> Form:
    return Footnoted(CompletionRequest.model_validate({"messages": [{"role": "user", "content": "x"}]}), "")


def response() -> Form:
    return ResponseForm("book", "")


@pytest.mark.parametrize("form", [completion(), response()], ids=["completions", "responses"])
def test_an_unknown_event_adds_no_text(form: Form) -> None:
    written = form.write(cast(Event, Progress()))
    assert written.startswith((b"data:", b"event:"))
    assert b"progress" not in written.replace(b"in_progress", b"")
