"""How well quoted sentences fit a question, from passages and from a selection."""

from chapterverse.models import SourceCitation
from chapterverse.sureness import fit_of_sources
from tests.test_advising import chunk

MASS = chunk(1, "Tern", "Tern is a small robot.\n\n| property | value |\n| --- | --- |\n| mass | 6 kg |")
NAV = chunk(2, "Nav2", "Nav2 brings a robot from where it is to where it should be.")


def source(quote: str) -> SourceCitation:
    return SourceCitation(
        source_url="http://book",
        page_title="Book",
        section_heading="",
        chunk_text=quote,
        relevance_score=0.5,
        chunk_index=0,
        breadcrumb="Book",
        module="",
        rank=1,
        quote=quote,
        quote_start=0,
        quote_end=len(quote),
    )


def test_evidence_that_has_the_words_of_the_question_fits_better() -> None:
    texts = {1: MASS, 2: NAV}
    question = "Where does Nav2 bring a robot?"
    near = fit_of_sources(question, [source(NAV.chunk_text)], texts)
    far = fit_of_sources(question, [source("Tern is a small robot.")], texts)
    assert 0.0 < far < near


def test_a_row_is_known_again_by_its_words() -> None:
    assert fit_of_sources("How heavy is Tern?", [source("| mass | 6 kg |")], {1: MASS}) > 0.3


def test_the_best_quote_counts_and_none_is_nothing() -> None:
    selection = "Warsaw is old. Its university opened in 1816."
    question = "When did the university of Warsaw open?"
    one = fit_of_sources(question, [source("Its university opened in 1816.")], selection)
    both = fit_of_sources(question, [source("Warsaw is old."), source("Its university opened in 1816.")], selection)
    assert both == one > 0.0
    assert fit_of_sources(question, [], selection) == 0.0
