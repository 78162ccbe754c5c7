"""Each converter on a small file of its format, and on the real data if it is there."""

from pathlib import Path

import pytest
from bench.retrieval.sets import DATA
from bench.sets.__main__ import SETS, main
from bench.sets.clapnq import clapnq
from bench.sets.doc2dial import doc2dial
from bench.sets.mtrag import mtrag_cloud
from bench.sets.shape import Page, PublicSet, kept_apart, page_name, sample, write
from bench.sets.squad import squad

from chapterverse.evaluation.questions import Question, load_questions
from chapterverse.ingestion.composing import compose
from chapterverse.ingestion.document import Document
from chapterverse.ingestion.readers import read
from tests.bench.sets.miniature import write_clapnq, write_doc2dial, write_mtrag, write_squad

needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="no shared/data beside the repository")


def test_squad_uses_only_held_out_articles(tmp_path: Path) -> None:
    write_squad(tmp_path)
    converted = squad(tmp_path)
    answerable, swapped, unknown = converted.questions  # the other article was used for training
    assert answerable.answer == ("1802", "in 1802")
    assert answerable.selection is not None
    assert answerable.selection.startswith("The lighthouse of Arn")
    assert answerable.group == swapped.group == "Warsaw/0"
    assert [one.kind for one in (answerable, swapped, unknown)] == [
        "answerable",
        "unanswerable: entity swapped",
        "unanswerable: cause not given",
    ]
    assert not swapped.answerable
    assert [page.title for page in converted.pages] == ["Warsaw"]


def test_doc2dial_has_all_documents_but_only_held_out_turns(tmp_path: Path) -> None:
    write_doc2dial(tmp_path)
    converted = doc2dial(tmp_path)
    assert len(converted.pages) == 12
    assert 0 < len(converted.questions) < 12
    assert all(kept_apart("doc2dial", question.group) for question in converted.questions)
    question = converted.questions[0]
    assert question.history == (("hello", "What is it? Speak."),)
    assert question.sentence == ("You can pay at any office.",)
    assert question.page[0] in {page.path for page in converted.pages}
    assert converted.pages[0].title == "Fees / part 0"
    assert converted.pages[0].headings == {"How to pay"}


def test_clapnq_text_is_detokenised(tmp_path: Path) -> None:
    write_clapnq(tmp_path, 40)
    converted = clapnq(tmp_path)
    assert len(converted.pages) == 40
    answerable = next(one for one in converted.questions if one.answerable)
    assert answerable.sentence == ("Arn (an island) has one tower.",)
    assert answerable.sentence[0] in converted.pages[0].text
    unanswerable = next(one for one in converted.questions if not one.answerable)
    assert (unanswerable.answer, unanswerable.page, unanswerable.sentence) == ((), (), ())


def test_mtrag_keeps_answerable_and_unanswerable_turns_and_merges_equal_texts(tmp_path: Path) -> None:
    write_mtrag(tmp_path)
    converted = mtrag_cloud(tmp_path)
    mine = [one for one in converted.questions if not one.id.startswith("un-")]
    assert {one.kind for one in mine} == {"MTRAG, answerable", "MTRAG, unanswerable"}
    assert {one.id[-1] for one in converted.questions} == {"0", "1"}
    assert len(converted.questions) > len(mine) or not kept_apart("mtrag", "c1")
    question = mine[0]
    assert question.rewrite == "How large is Arn?"
    assert question.history == (("What is Arn?", "An island."),)
    assert question.page == ("p1.html",)  # p3 has the same text and comes later
    assert [page.name for page in converted.pages] == ["p1", "p2", "p4"]
    assert "Arn\n" not in converted.pages[0].text


def test_written_set_can_be_read_back(tmp_path: Path) -> None:
    text = "Press <Enter> & wait.\n\nAfterwards\nIt *ends* in `2 < 3`, #done."
    page = Page("a-b", "Keys & <tags>", text, frozenset({"Afterwards"}))
    question = Question(id="q", question="What to press?", page=(page.path,), sentence=("Press <Enter> & wait.",))
    write(PublicSet("s", "S", "", (page,), (question,)), tmp_path)
    assert load_questions(tmp_path / "questions.jsonl") == [question]
    path = tmp_path / "book" / "a-b.html"
    document = Document("a-b.html", "a-b.html", "book", "html", path.read_bytes(), "github")
    (found,) = (compose(document, draft) for draft in read(document))
    assert found.title == "Keys & <tags>"
    assert "Press <Enter> & wait." in found.text
    assert "It *ends* in `2 < 3`, #done." in found.text
    assert [section.heading for section in found.sections][-1] == "Afterwards"


def test_writing_again_removes_old_pages(tmp_path: Path) -> None:
    question = Question(id="q", question="What?")
    write(PublicSet("s", "S", "", (Page("old", "Old", "x"),), (question,)), tmp_path)
    write(PublicSet("s", "S", "", (Page("new", "New", "x"),), (question,)), tmp_path)
    assert [path.name for path in (tmp_path / "book").iterdir()] == ["new.html"]


def test_page_names_are_unique_and_short() -> None:
    names = [page_name(one) for one in ("a/b", "a-b", "a b", "x" * 90, "x" * 91)]
    assert len(set(names)) == len(names)
    assert all("/" not in name and len(name) < 80 for name in names)
    assert page_name("ibmcld_06160-11142-12906") == "ibmcld_06160-11142-12906"


def test_sample_is_deterministic_and_in_order() -> None:
    items = list(range(100))
    chosen = sample(items, 10, "x")
    assert chosen == sample(items, 10, "x") == sorted(chosen)
    assert chosen != sample(items, 10, "y")
    assert sample(items[:3], 10, "x") == [0, 1, 2]


def test_example_set_needs_no_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["example", str(tmp_path)])
    assert len(load_questions(tmp_path / "questions.jsonl")) == 60
    assert list((tmp_path / "book").rglob("*.md*"))
    assert "chapterverse eval" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="NAME is one of example, squad"):
        main(["nothing", str(tmp_path)])


@needs_data
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "pages", "questions", "unanswerable"),
    [
        ("squad", 89, 907, 434),
        ("doc2dial", 136, 338, 0),
        ("clapnq", 300, 74, 32),
        ("mtrag_clapnq", 2500, 71, 9),
        ("mtrag_cloud", 2500, 50, 4),
        ("strangers", 0, 160, 160),
        ("strangers_help", 136, 160, 160),
    ],
)
def test_real_sets_have_the_expected_sizes(name: str, pages: int, questions: int, unanswerable: int) -> None:
    converted = SETS[name](DATA)
    assert len(converted.pages) == pages
    assert len(converted.questions) == questions
    assert sum(not one.answerable for one in converted.questions) == unanswerable
    known = {page.path for page in converted.pages}
    assert all(page in known for one in converted.questions for page in one.page)
    assert len({one.id for one in converted.questions}) == questions
