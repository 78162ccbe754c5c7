"""Each measure on cases with obvious values."""

import math

import pytest

from chapterverse.evaluation.cases import Case
from chapterverse.evaluation.measures import MEASURES, contains, holds_evidence, right, same_page, token_f1
from tests.evaluation.cases import SENTENCE, answered, citation, failed, passage, question, refused, unanswerable

OF = {measure.key: measure.of for measure in MEASURES}


@pytest.mark.parametrize(
    ("page", "url", "title", "same"),
    [
        ("intro/tern.md", "book/intro/tern.md#mass", "T", True),
        ("intro/tern.md", "https://book.example/intro/tern", "T", True),
        ("intro/tern.md", "https://book.example/intro/tern/", "T", True),
        ("intro/tern.md", "https://book.example/intro/tern/index.html?x=1", "T", True),
        ("https://book.example/intro/tern", "https://book.example/intro/tern#a", "T", True),
        ("tern.md", "book/intro/tern.md", "T", True),
        ("ern.md", "book/intro/tern.md", "T", False),
        ("ros2/tern.md", "book/intro/tern.md", "T", False),
        ("What Is Tern?", "book/x.md", "What is Tern", True),
        ("index.md", "book/x.md", "T", False),
        ("index.md", "docs/index.md#x", "T", True),
        ("index.md", "https://book.example/", "T", True),
        ("intro/index.md", "https://book.example/intro/", "T", True),
        ("https://book.example/", "https://book.example/#install", "T", True),
        ("https://book.example/index.html", "https://book.example", "T", True),
        ("https://book.example/", "https://book.example/intro/tern/", "T", False),
        ("index.md", "https://book.example/intro/", "T", False),
        ("index.md", "https://book.example/intro/index.html", "T", False),
        ("index.md", "docs/guide/index.md", "T", False),
    ],
)
def test_same_page_accepts_paths_urls_and_titles(page: str, url: str, title: str, same: bool) -> None:
    assert same_page(page, url, title) is same


@pytest.mark.parametrize(
    ("quote", "holds"),
    [
        (SENTENCE, True),
        (f"Before. {SENTENCE} After.", True),
        (SENTENCE.upper().replace(" ", "\n"), True),
        ("a mass of 6 kg and two driven wheels", True),  # most of the sentence
        ("a mass of 6 kg", False),  # too little to be the evidence
        ("Tern has a mass of 7 kg and two driven wheels.", False),
        ("", False),
    ],
)
def test_quote_contains_the_sentence_or_most_of_it(quote: str, holds: bool) -> None:
    assert holds_evidence(SENTENCE, quote) is holds


@pytest.mark.parametrize(
    ("quote", "holds"),
    [
        ("You must pay the fee at once.", True),  # a whole sentence of the evidence
        ("If you are late, you must pay the fee at once.", True),  # inside a longer sentence
        ("Bring the form and a photograph to any office", True),  # most of the other sentence
        ("and a photograph to any office in town. Offices are closed on Sunday.", True),  # its end, and more
        ("at once.", False),
        ("Offices are closed on Sunday.", False),
    ],
)
def test_quote_overlaps_evidence_of_several_sentences(quote: str, holds: bool) -> None:
    stretch = "you must pay the fee at once. Bring the form and a photograph to any office in town. See below."
    assert holds_evidence(stretch, quote) is holds


def test_any_of_several_expected_values_is_right() -> None:
    several = question(sentence=["Nobody says this sentence here.", SENTENCE])
    assert right(answered(several)) is True
    short = question(sentence=None, page=None, section=None, answer=["seven kilograms", "6 kg"])
    assert right(answered(short)) is True
    assert OF["f1"](answered(short, answer="6 kg [1].")) == 1.0  # the best value counts
    pages = question(page=["ros2/nodes.md", "intro/tern.md"], section=None)
    case = answered(pages, passages=(passage("vla/x.md"), passage(), passage("ros2/nodes.md", "Nodes", "nodes")))
    best = 1 + 1 / math.log2(3)
    assert OF["ndcg"](case) == pytest.approx((1 / math.log2(3) + 1 / math.log2(4)) / best)


def test_quoted_words_count_once() -> None:
    assert OF["quoted"](answered(citations=(citation("One two."), citation("One two."), citation("Three.")))) == 3
    assert OF["quoted"](refused()) is None


def test_contains_compares_whole_words() -> None:
    assert contains("It weighs 6 kg.", "6 KG")
    assert not contains("It weighs 16 kg.", "6 kg")
    assert not contains("anything", "?!")


def test_token_f1_by_hand() -> None:
    # "mass of 6 kg" against "6 kg": 2 shared of 4 and of 2; the article does not count
    assert token_f1("The mass of 6 kg", "6 kg") == pytest.approx(2 * (2 / 4) * (2 / 2) / (2 / 4 + 2 / 2))
    assert token_f1("6 kg", "6 kg.") == 1.0
    assert token_f1("nothing", "6 kg") == token_f1("", "") == 0.0


@pytest.mark.parametrize(
    ("case", "verdict"),
    [
        (answered(), True),
        (answered(status="truncated"), True),
        (answered(citations=(citation("Something else."),)), False),
        (answered(citations=(citation("Something else."), citation())), True),
        (refused(question()), False),
        (refused(), True),
        (answered(unanswerable()), False),
        (failed(), None),
        (answered(question(sentence=None), citations=(citation("Other words."),)), True),  # the section is right
        (answered(question(sentence=None), citations=(citation(section="Elsewhere"),)), False),
        (answered(question(sentence=None, section=None), citations=(citation(section="Elsewhere"),)), True),
        (answered(question(sentence=None, section=None, page=None)), True),  # the answer is in the quote
        (answered(question(sentence=None, section=None, page=None, answer=None)), None),  # nothing is known
    ],
)
def test_right_uses_the_most_exact_known_evidence(case: Case, verdict: bool | None) -> None:
    assert right(case) is verdict


def test_retrieval_counts_each_section_once() -> None:
    other, more = passage(section="Wheels", anchor="wheels"), passage("ros2/nodes.md", "Nodes", "nodes")
    case = answered(passages=(other, other, more, passage()))
    assert OF["page_hit"](case) == 1.0
    assert OF["hit_1"](case) == 0.0
    assert OF["hit"](case) == 1.0
    assert OF["ndcg"](case) == pytest.approx(1 / math.log2(4))  # third section
    gone = answered(passages=(more,) * 5 + (passage(),))
    assert (OF["page_hit"](gone), OF["hit_1"](gone)) == (0.0, 0.0)


def test_retrieval_is_not_measured_without_a_place_or_on_a_selection() -> None:
    for case in (
        answered(question(page=None, section=None)),
        answered(question(selection="Tern has a mass of 6 kg.")),
        refused(),
        failed(),
    ):
        assert {OF[key](case) for key in ("page_hit", "hit_1", "hit", "ndcg")} == {None}


def test_citation_precision_place_and_recall() -> None:
    case = answered(citations=(citation(), citation("Other.", section="Tern"), citation("X.", page="ros2/nodes.md")))
    assert OF["precision"](case) == pytest.approx(1 / 3)
    assert OF["place"](case) == pytest.approx(2 / 3)
    assert OF["recall"](case) == OF["recall_given"](case) == 1.0
    unsaid = refused(question())
    assert OF["precision"](unsaid) is None
    assert OF["recall"](unsaid) == 0.0
    assert OF["recall_given"](unsaid) is None


def test_false_answers_and_false_refusals() -> None:
    assert OF["false_answer"](answered(unanswerable())) == 1.0
    assert OF["false_answer"](refused()) == 0.0
    assert OF["false_answer"](answered()) is None
    assert OF["false_refusal"](refused(question())) == 1.0
    assert OF["false_refusal"](answered()) == 0.0
    assert OF["false_refusal"](refused()) is None
    assert OF["false_refusal"](failed()) is OF["false_answer"](failed(unanswerable())) is None


def test_answer_f1_and_containment() -> None:
    assert OF["f1"](answered(answer="6 kg [1].")) == 1.0  # the marker does not count
    assert OF["contained"](answered(answer="Heavy [1].")) == 1.0  # it is in the quote
    assert OF["contained"](answered(answer="Heavy.", citations=(citation("Two wheels."),))) == 0.0
    assert OF["f1"](refused(question())) is None


def test_followups_have_their_own_measure() -> None:
    assert OF["followup"](answered()) is None
    assert OF["followup"](answered(question(history=[["What is Tern?", "A robot."]]))) == 1.0


def test_failed_question_counts_only_as_failed() -> None:
    assert {key: of(failed()) for key, of in OF.items() if of(failed()) is not None} == {"failed": 1.0}


def test_latency_tokens_calls_and_withheld_sentences() -> None:
    case = answered(withheld=2)
    assert [OF[key](case) for key in ("latency", "tokens", "calls", "withheld", "failed")] == [50.0, 1000, 1, 2, 0.0]
