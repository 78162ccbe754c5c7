"""Recordings of a language model, and counts of its sentences. A stub replaces the model."""

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest
from bench.eval_llm import Outcome, figures
from bench.llm.recording import Recorder, serving_records

from chapterverse.evaluation.cases import Case, Citation, FoundPassage
from chapterverse.evaluation.questions import Question
from tests.llm_stub import Replies, serving_llm

REQUEST: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "How?"}], "stream": True}


def post(url: str, request: dict[str, Any]) -> httpx2.Response:
    return httpx2.post(f"{url}/chat/completions", json=request, timeout=30)


@pytest.mark.slow
def test_unknown_request_is_refused_recorded_and_then_replayed(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, "model")
    with serving_records(recorder) as url, serving_llm() as llm:
        llm.usual = Replies("The winch lifts 12 kg.")
        assert httpx2.get(f"{url}/models").status_code == 200
        assert post(url, REQUEST).status_code == 400
        assert len(recorder.missing) == 1
        (record,) = recorder.fill(llm.url.removesuffix("/v1"))
        assert (record.text, len(recorder.missing), len(llm.requests)) == ("The winch lifts 12 kg.", 0, 1)
        assert llm.requests[0]["max_tokens"] > 0
        again = post(url, REQUEST)
        assert again.status_code == 200 and again.headers["content-type"] == "text/event-stream"
        assert again.text == record.body
        assert post(url, {**REQUEST, "messages": []}).status_code == 400
    assert [one.text for one in recorder.served] == ["The winch lifts 12 kg."]
    kept = Recorder(tmp_path, "model")
    assert kept.answer(REQUEST) == record, "the recording is kept on disk"
    assert Recorder(tmp_path, "another model").answer(REQUEST) is None


def test_answer_without_streaming_is_recorded(tmp_path: Path) -> None:
    body = json.dumps({"choices": [{"message": {"role": "assistant", "content": "Yes."}}]})
    (tmp_path / "x").write_text(body)
    with serving_llm() as llm:
        recorder = Recorder(tmp_path, "model")
        llm.usual = Replies("Yes.")
        whole = {key: value for key, value in REQUEST.items() if key != "stream"}
        assert recorder.answer(whole) is None
        (record,) = recorder.fill(llm.url.removesuffix("/v1"))
    assert record.text == "Yes."


def outcome(answer: str, written: tuple[str, ...], quote: str, passage: str = "") -> Outcome:
    cited = Citation(source_url="a", page_title="Winch", section_heading="Winch", quote=quote)
    found = FoundPassage(source_url="a", page_title="Winch", section_heading="Winch", text=passage, similarity=0.5)
    question = Question(id="q", question="How much?")
    case = Case(question=question, status="answered", answer=answer, citations=[cited], passages=[found], withheld=1)
    return Outcome(case, written, seconds=30.0, first=2.0)


def test_sentences_are_counted_as_written_shown_replaced_and_unsupported() -> None:
    good = outcome("The winch lifts 12 kg [1].", ("The winch lifts 12 kg.", "It is blue."), "The winch lifts 12 kg.")
    swapped = outcome("The winch lifts 12 kg [1].", ("It lifts a lot.",), "The winch lifts 12 kg.")
    bad = outcome("The winch lifts 90 kg [1].", ("The winch lifts 90 kg.",), "The winch lifts 12 kg.")
    rows = {row["key"]: row for row in figures([good, swapped, bad])}
    assert [rows[key]["value"] for key in ("written", "shown", "replaced", "withheld")] == [4, 3, 1, 3]
    assert rows["unsupported"]["value"] == pytest.approx(1 / 3)
    assert rows["unsupported"]["reached"] is False
    assert rows["in_time"]["value"] == 0.0
    assert {row["key"]: row for row in figures([good])}["unsupported"]["reached"] is True


def test_table_headers_list_numbers_and_lead_ins_need_no_support() -> None:
    table = "| part | mass |\n|---|---|\n| anchor | 4 kg [1] |\n"
    head, row = "| part | mass |", "| anchor | 4 kg |"
    assert outcome(table, (), row, f"{head}\n|---|---|\n{row}").unsupported == []
    assert outcome(table, (), row, "| part | price |").unsupported != []
    listed = "1. The anchor weighs 4 kg [1].\n2. The passage states that the anchor weighs 4 kg [1]."
    assert outcome(listed, (), "The anchor weighs 4 kg.").unsupported == []
