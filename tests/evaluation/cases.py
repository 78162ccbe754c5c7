"""Hand-written evaluation cases."""

from datetime import UTC, datetime
from typing import Any

from chapterverse.evaluation.cases import Case, Citation, FoundPassage
from chapterverse.evaluation.questions import Question
from chapterverse.evaluation.report import Run

SENTENCE = "Tern has a mass of 6 kg and two driven wheels."


def question(**fields: Any) -> Question:
    given = {"id": "q1", "question": "How heavy is Tern?", "page": "intro/tern.md", "section": "Tern"}
    return Question.model_validate(given | {"sentence": SENTENCE, "answer": "6 kg"} | fields)


def unanswerable(**fields: Any) -> Question:
    return Question.model_validate({"id": "u1", "question": "Who built Tern?", "answerable": False} | fields)


def passage(page: str = "intro/tern.md", section: str = "Tern", anchor: str = "tern") -> FoundPassage:
    return FoundPassage(
        source_url=f"https://book.example/{page}#{anchor}",
        page_title="The robot",
        section_heading=section,
        text=SENTENCE,
        similarity=0.7,
    )


def citation(quote: str = SENTENCE, page: str = "intro/tern.md", section: str = "Tern") -> Citation:
    return Citation(
        source_url=f"https://book.example/{page}", page_title="The robot", section_heading=section, quote=quote
    )


def answered(asked: Question | None = None, **fields: Any) -> Case:
    given: dict[str, Any] = {
        "question": asked or question(),
        "searched": (asked or question()).question,
        "passages": (passage(),),
        "status": "answered",
        "answer": "Tern has a mass of 6 kg [1].",
        "citations": (citation(),),
        "confidence": 0.9,
        "level": "high",
        "latency_ms": 50.0,
        "tokens": 1000,
        "calls": 1,
    }
    return Case(**(given | fields))


def refused(asked: Question | None = None, **fields: Any) -> Case:
    return Case(question=asked or unanswerable(), status="refused", answer="I don't have information.", **fields)


def failed(asked: Question | None = None) -> Case:
    return Case(question=asked or question(), status="failed", error="agent_unavailable: the model is away")


def run(**fields: Any) -> Run:
    given = {"made_at": datetime(2026, 11, 15, 12, tzinfo=UTC), "commit": "abc1234", "version": "0.1.0"}
    names = {"questions": "set.jsonl", "digest": "d", "asked": 2, "model": "m", "embeddings": "e", "index": "i"}
    return Run.model_validate(given | names | {"book": "1 page", "concurrency": 1} | fields)
