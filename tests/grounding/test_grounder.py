from collections.abc import Sequence

from chapterverse.grounding import MAX_CHARS, MAX_SHOWN, Grounder, Passage, Rules, Shown, Verdict, Withheld

ROBOTS = Passage(
    1,
    "ROS 2 is a set of libraries for building robots. It was released in 2017. Nodes talk over topics.\n\n"
    "A service is a call with one answer.",
    "ROS 2",
)
BOATS = Passage(
    2,
    "Heron is a boat with two motors.\n\n```bash\nheron start\nheron stop\n```\n\n"
    "| part | mass |\n|---|---|\n| hull | 24 kg |\n| keel | 9 kg |\n\nSailing is not possible.",
    "Heron",
)


def ground(text: str, *passages: Passage) -> tuple[Grounder, str, list[Withheld]]:
    grounder = Grounder(passages or (ROBOTS, BOATS))
    results = [*grounder.feed(text), *grounder.finish()]
    answer = "".join(result.text for result in results if isinstance(result, Shown))
    return grounder, answer, [result for result in results if isinstance(result, Withheld)]


def test_a_verified_sentence_carries_its_marker_before_the_full_stop() -> None:
    grounder, answer, _ = ground("ROS 2 is a set of libraries for building robots. [1] ")
    assert answer == "ROS 2 is a set of libraries for building robots [1]. "
    (citation,) = grounder.citations
    assert ROBOTS.text[citation.start : citation.end] == "ROS 2 is a set of libraries for building robots."


def test_markers_are_numbered_by_first_appearance() -> None:
    _, answer, _ = ground("Heron is a boat with two motors [2]. Nodes talk over topics [1]. Heron is a boat [2].")
    assert answer.startswith("Heron is a boat with two motors [1]. Nodes talk over topics [2]. ")


def test_a_number_never_issued_is_dropped_and_the_passage_found() -> None:
    grounder, answer, _ = ground("Nodes talk over topics [17].")
    assert answer == "Nodes talk over topics [1]. "
    assert grounder.citations[0].passage_number == 1


def test_a_failed_sentence_is_replaced_by_the_books_own() -> None:
    grounder, answer, withheld = ground("ROS 2 is a set of libraries for building ships [1].")
    assert answer == "ROS 2 is a set of libraries for building robots [1]. "
    assert (grounder.shown, grounder.replaced, grounder.withheld) == (1, 1, 0)
    assert withheld == []


def test_the_same_sentence_of_the_book_is_never_put_in_twice() -> None:
    text = "ROS 2 is a set of libraries for building ships. ROS 2 is a set of libraries for building planes."
    grounder, answer, withheld = ground(text)
    assert answer == "ROS 2 is a set of libraries for building robots [1]. "
    assert [one.reason for one in withheld] == ["unsupported"]
    assert grounder.withheld == 1


def test_what_cannot_be_replaced_is_withheld_with_its_reason() -> None:
    grounder, answer, withheld = ground("Elephants enjoy music [1].")
    assert answer == ""
    assert withheld[0].reason == "unsupported" and "elephants" in withheld[0].why
    assert grounder.withheld == 1


def test_a_pronoun_passes_only_behind_the_sentence_that_it_points_to() -> None:
    _, answer, _ = ground("ROS 2 is a set of libraries for building robots [1]. It was released in 2017 [1].")
    assert answer == "ROS 2 is a set of libraries for building robots [1]. It was released in 2017 [1]. "
    _, answer, _ = ground("Heron is a boat with two motors [2]. It was released in 2017 [1].")
    assert "It was released" not in answer.removesuffix(
        "ROS 2 is a set of libraries for building robots. It was released in 2017 [2]. "
    )


def test_headings_labels_and_announcements_are_dropped_without_being_counted() -> None:
    text = "## Answer\n\nHere is what the book says:\n\n**Summary:** Nodes talk over topics [1].\n\n**Sources:**\n"
    grounder, answer, withheld = ground(text)
    assert answer == "Nodes talk over topics [1]. "
    assert {one.reason for one in withheld} == {"no claim"}
    assert grounder.withheld == 0


def test_blocks_and_bullets_keep_their_shape() -> None:
    items = ("Heron is a boat with two motors.", "Lies abound here.", "A service is a call with one answer.")
    text = "Nodes talk over topics.\n\n" + "".join(f"- {item}\n" for item in items)
    _, answer, _ = ground(text)
    assert answer == (
        "Nodes talk over topics [1]. \n- Heron is a boat with two motors [2]. \n- A service is a call with one answer "
        "[1]. "
    )


def test_code_is_shown_as_the_book_has_it_or_not_at_all() -> None:
    _, answer, _ = ground("```bash\n  heron start\n```\n")
    assert answer == "```bash\nheron start\n```\n[1]\n"
    _, answer, withheld = ground("```bash\nheron sink\n```\n")
    assert answer == "" and withheld[0].reason == "unsupported"


def test_a_table_passes_row_by_row_under_its_own_head() -> None:
    _, answer, withheld = ground("| part | mass |\n|---|---|\n| hull | 24 kg |\n| keel | 24 kg |\n")
    assert answer == "| part | mass |\n|---|---|\n| hull | 24 kg [1] |\n"
    assert [one.text for one in withheld] == ["| keel | 24 kg |"]
    _, answer, _ = ground("| part | price |\n|---|---|\n| hull | 24 kg |\n")
    assert answer == ""


def test_more_passages_may_be_issued_on_the_way() -> None:
    grounder = Grounder([ROBOTS])
    assert not any(isinstance(one, Shown) for one in grounder.feed("Heron is a boat with two motors [2]. And "))
    grounder.add_passages([BOATS, Passage(1, "Nonsense is true.")])
    results = [
        *grounder.feed("then.\n\nHeron is a boat with two motors now [2].\n\nNonsense is true.\n"),
        *grounder.finish(),
    ]
    assert [one.text for one in results if isinstance(one, Shown)] == ["Heron is a boat with two motors now [1]. "]


def test_another_judge_may_add_doubt() -> None:
    class Doubting:
        def judge(self, claim: str, passages: Sequence[Passage]) -> Verdict:
            verdict = Rules().judge(claim, passages)
            return Verdict(why="doubted") if "topics" in claim else verdict

    grounder = Grounder([ROBOTS], Doubting())
    results = [
        *grounder.feed("Nodes talk over topics [1]. A service is a call with one answer [1]."),
        *grounder.finish(),
    ]
    texts = [one.text for one in results if isinstance(one, Shown) and not one.replaced]
    assert texts == ["A service is a call with one answer [1]. "]


def test_an_answer_has_at_most_sixty_sentences() -> None:
    book = Passage(1, " ".join(f"Part {number} weighs {number} kg." for number in range(100, 300)))
    grounder, answer, _ = ground(book.text, book)
    assert answer.count("weighs") == grounder.shown == MAX_SHOWN
    assert grounder.truncated


def test_an_endless_text_is_cut_off() -> None:
    grounder = Grounder([ROBOTS])
    for _ in range(MAX_CHARS // 1000 + 2):
        grounder.feed("```\n" + "x" * 996)
    assert grounder.truncated and grounder.feed("Nodes talk over topics. ") == [] == grounder.finish()
