"""Verdicts on questions that were or are refused, compared with the baseline."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from chapterverse.evaluation.book_check import Baseline, Verdict, _ending, compare_case, make_summary, outcome_of
from chapterverse.evaluation.cases import Case, Citation, MarkedStretch
from chapterverse.ingestion.options import SourceOptions
from chapterverse.ingestion.pipeline import Workshop, ingest
from chapterverse.ingestion.sources import open_source
from chapterverse.services import Services
from chapterverse.settings import Settings
from chapterverse.wiring import open_services
from tests.evaluation.cases import answered, citation, question, refused, unanswerable


@pytest.mark.parametrize(
    ("before", "now", "verdict"),
    [
        (refused(question()), answered(), "fixed"),
        (refused(question()), answered(citations=(citation("Tern has a tray."),)), "same"),
        (answered(), refused(question()), "broken"),
        (refused(), answered(unanswerable()), "broken"),
        (answered(unanswerable()), refused(), "fixed"),
    ],
)
def test_verdict_for_refused_questions(before: Case, now: Case, verdict: Verdict) -> None:
    assert _ending(now, outcome_of(before)) == verdict


@pytest.mark.parametrize(
    ("before", "now", "verdict"),
    [
        ("It works down to a temperature of -20 degrees.", "It works down to a temperature of 20 degrees.", "broken"),
        ("The crew filter is `crew >= 2`.", "The crew filter is `crew < 2`.", "broken"),
        ("The mast is up if `a == b` holds.", "The mast is up if `a != b` holds.", "broken"),
        ("The berth costs $10 for a night.", "The berth costs €10 for a night.", "broken"),
        ("Start the motor with `--no-cache`, then wait.", "Start the motor with no cache, then wait.", "broken"),
        ("The call is non-blocking and/or fast, see [x].", "The call is non blocking and or fast, see x.", "same"),
        ("Press Ctrl+C (or Esc) to stop the motor.", "Press Ctrl+C or Esc to stop the motor.", "same"),
        ("“Heron”, a boat, carries `mail`: it sails.", "Heron a boat carries\nmail; IT sails", "same"),
    ],
)
async def test_only_blanks_case_and_punctuation_of_evidence_may_differ(
    services: Services, before: str, now: str, verdict: Verdict
) -> None:
    for names in ({"sentence": None, "answer": None}, {"sentence": before, "answer": None}):
        asked = question(**names)
        mark = MarkedStretch(start=0, end=len(before), text=before)
        earlier = answered(asked, citations=(citation(before).model_copy(update={"marks": (mark,)}),))
        finding = await compare_case(answered(asked, citations=(citation(now),)), outcome_of(earlier), services)
        assert finding.verdict == verdict


HERON = """# Heron

Heron is a boat of the harbour.

## Crew

Two people watch it.

## Battery

The battery is below the deck. It lasts nine hours in calm water.

It is charged at the pier.
"""
EXCERPT, EVIDENCE = (
    "The battery is below the deck. It lasts nine hours in calm water.",
    "It lasts nine hours in calm water.",
)
ASKED = question(question="How long does the battery of Heron last?", page="heron.md", section="Battery")


@pytest.fixture
async def services(tmp_path: Path) -> AsyncIterator[Services]:
    (tmp_path / "book").mkdir()
    async with open_services(Settings.load(chapterverse_home=tmp_path / "home")) as services:
        yield services


async def _write(services: Services, text: str) -> None:
    home = services.settings.chapterverse_home
    folder = home.with_name("book")
    (folder / "heron.md").write_text(text, "utf-8")
    workshop = Workshop(services.index, services.embedder, home)
    await ingest([open_source(str(folder), SourceOptions())], workshop)


async def _answer(services: Services) -> Case:
    """An answer that quotes two sentences, of which the second answers."""
    (listed,) = await services.index.pages()
    page = await services.index.page(listed.page_id)
    assert page is not None
    start = page.text.index(EVIDENCE)
    cited = Citation(
        source_url=f"{page.url}#battery",
        page_title=page.title,
        section_heading="Battery",
        quote=EXCERPT,
        page_id=page.page_id,
        marks=(MarkedStretch(start=start, end=start + len(EVIDENCE), text=EVIDENCE),),
    )
    return answered(ASKED, citations=(cited,))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "verdict"),
    [
        ("It is charged at the pier.\n", "", "unsure"),  # beside the excerpt
        ("Two people watch it.", "Two people watch it from the pier, in turns.", "unsure"),  # moves the excerpt down
        ("The battery is below the deck. ", "", "broken"),  # the evidence stands, but nothing says what "it" is
        ("## Battery", "## The battery of Kestrel", "broken"),
        ("# Heron\n", "# Kestrel\n", "broken"),
        ("nine hours", "seven hours", "broken"),
        (EXCERPT, "", "broken"),
        ("## Battery\n\n" + EXCERPT, EXCERPT + "\n\n## Battery\n", "broken"),  # moved to another section
    ],
)
async def test_refusal_of_what_the_book_still_says_is_not_broken(
    services: Services, old: str, new: str, verdict: Verdict
) -> None:
    await _write(services, HERON)
    before = outcome_of(await _answer(services)).model_copy(update={"right": True})
    assert old in HERON
    await _write(services, HERON.replace(old, new))
    finding = await compare_case(refused(ASKED), before, services)
    assert finding.verdict == verdict
    older = before.model_copy(update={"evidence": [one.model_copy(update={"excerpt": ""}) for one in before.evidence]})
    assert (await compare_case(refused(ASKED), older, services)).verdict == "broken"  # it does not say what was shown
    wrong = before.model_copy(update={"right": False})
    assert (await compare_case(refused(ASKED), wrong, services)).verdict == "broken"  # the book never said it
    if verdict == "unsure":
        baseline = Baseline(made_at=datetime.now(UTC), model="m", embeddings="e", book="1 page", outcomes=(before,))
        summary = make_summary([finding], baseline, "1 page")
        assert "### Refused now, although the book still says it (1)" in summary
        assert "Was answered. Now refused. Its evidence is still in the book." in summary and EVIDENCE in summary
