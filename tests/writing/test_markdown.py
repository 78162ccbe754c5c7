"""A model's Markdown is parsed into statements, independent of how the stream is split."""

import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chapterverse.evidence.statement import Statement
from chapterverse.writing.markdown import MAX_STATEMENT_CHARS, MarkdownParser

ANSWER = """Here is what I found:

## Summary
ROS 2 is a set of libraries [1.2]. It uses DDS.[2][3] See e.g. the docs [1.1, 2.3]. Use `a.b. C[1]` now! [1-3] More
text.
[4.1]

**Linux:**

- **Item** one [1]
- Item two. Has two sentences [^2]. Third [2.4].
  1. Nested [1.2-1.4]
     ```bash
     apt install foo
       --bar
     ```
     [1.4]
  2) Another:
     - deep [1.1][2.2]

  Paragraph in item [9.9].

1. First thing【3】.

| a | b |
|---|---|
| c | 3.5 m [1.7] |
| d | z \\| w |

```python
x = 1  # [1]
y = "A. B"
```
Dr. Lee measured 9.81 m/s² at 3 p.m. in Fig. 2. The passages do not say more. Final sentence without stop"""


def parse(text: str, seed: int | None = None) -> list[Statement]:
    parser, rng, at = MarkdownParser(), random.Random(seed), 0
    found: list[Statement] = []
    while at < len(text):
        size = len(text) if seed is None else rng.choice((1, 2, 3, 7, 30))
        found += parser.feed(text[at : at + size])
        at += size
    return found + parser.finish()


def statements_of(text: str) -> list[tuple[str, str, str]]:
    return [(one.shape, one.text, " ".join(map(str, one.named))) for one in parse(text)]


def test_answer_is_parsed_into_statements() -> None:
    assert statements_of(ANSWER) == [
        ("paragraph", "Here is what I found:", ""),
        ("heading", "Summary", ""),
        ("paragraph", "ROS 2 is a set of libraries.", "1.2"),
        ("paragraph", "It uses DDS.", "2 3"),
        ("paragraph", "See e.g. the docs.", "1.1 2.3"),
        ("paragraph", "Use `a.b. C[1]` now!", "1 2 3"),
        ("paragraph", "More text.", "4.1"),
        ("heading", "**Linux:**", ""),
        ("item", "**Item** one", "1"),
        ("item", "Item two. Has two sentences.", "2"),
        ("item", "Third.", "2.4"),
        ("item", "Nested", "1.2 1.3 1.4"),
        ("code", "apt install foo\n  --bar", ""),
        ("item", "Another:", ""),
        ("item", "deep", "1.1 2.2"),
        ("paragraph", "Paragraph in item.", "9.9"),
        ("item", "First thing.", "3"),
        ("row", "a: c | b: 3.5 m", "1.7"),
        ("row", "a: d | b: z | w", ""),
        ("code", 'x = 1  # [1]\ny = "A. B"', ""),
        ("paragraph", "Dr. Lee measured 9.81 m/s² at 3 p.m. in Fig. 2.", ""),
        ("paragraph", "The passages do not say more.", ""),
        ("paragraph", "Final sentence without stop", ""),
    ]


def test_statements_keep_depth_marker_and_header() -> None:
    statements = {one.text: one for one in parse(ANSWER)}
    assert statements["Here is what I found:"].leads
    assert statements["Another:"].leads
    assert not statements["More text."].opens
    assert (statements["Nested"].depth, statements["Nested"].marker) == (1, "1.")
    assert (statements["deep"].depth, statements["deep"].marker) == (2, "-")
    assert statements["apt install foo\n  --bar"].depth == 2
    assert statements["apt install foo\n  --bar"].head == "bash"
    assert statements["Paragraph in item."].depth == 1
    row = statements["a: c | b: 3.5 m"]
    assert (row.row, row.head) == ("| c | 3.5 m |", "| a | b |\n|---|---|")


@pytest.mark.parametrize("seed", range(30))
def test_splitting_the_stream_does_not_change_the_statements(seed: int) -> None:
    assert parse(ANSWER, seed) == parse(ANSWER)


@given(st.text(alphabet="aB .:\n-*#|`[1]23()_>~\\", max_size=120), st.integers(0, 5))
def test_splitting_any_text_does_not_change_the_statements(text: str, seed: int) -> None:
    assert parse(text, seed) == parse(text)


@pytest.mark.parametrize("seed", range(5))
def test_splitting_a_row_without_leading_bar_does_not_change_the_statements(seed: int) -> None:
    text = "|\n111111111111|\n"
    assert parse(text, seed) == parse(text)


def test_fence_that_never_closes_is_code() -> None:
    assert statements_of("Run:\n\n```sh\nls\ncd /") == [("paragraph", "Run:", ""), ("code", "ls\ncd /", "")]


def test_code_between_fences_on_one_line_does_not_hide_what_follows() -> None:
    assert statements_of("```pip install heron```\n\nThe port is 80.") == [
        ("paragraph", "```pip install heron```", ""),
        ("paragraph", "The port is 80.", ""),
    ]


def test_quote_mark_of_a_further_line_is_not_a_sign() -> None:
    assert statements_of("> The port is\n> 80 by default.") == [("paragraph", "The port is 80 by default.", "")]
    assert statements_of("- > 5 bar is the limit.") == [("item", "> 5 bar is the limit.", "")]


def test_sentence_is_returned_before_its_paragraph_ends() -> None:
    parser = MarkdownParser()
    assert [one.text for one in parser.feed("The port is 8080 [1.2]. It can be ch")] == ["The port is 8080."]


@pytest.mark.parametrize(
    ("source", "text", "named"),
    [
        ("The a.b[0] is `x[1]` and a_b[2].", "The a.b[0] is `x[1]` and a_b[2].", ""),
        ("See [the page](http://x/1) [1.2].", "See [the page](http://x/1).", "1.2"),
        ("It is so [Passage 1, unit 2.3].", "It is so.", "1 2.3"),
        ("It is so [1.2; 3.1 and 4].", "It is so.", "1.2 3.1 4"),
        ("It is so [1.9-1.2].", "It is so.", "1.9 1.2"),
        ("It is so [1, 2", "It is so [1, 2", ""),
        ("It costs 3.5 (1.2).", "It costs 3.5 (1.2).", ""),
    ],
)
def test_unit_numbers_are_recognised(source: str, text: str, named: str) -> None:
    assert statements_of(source) == [("paragraph", text, named)]


def test_unit_numbers_without_text_give_no_statement() -> None:
    assert statements_of("[1] [2][3]\n\n[4, 5] 【6】 [7-9]\n\n- [1]\n\n***\n\n##\n") == []


def test_endless_sentence_is_split() -> None:
    assert max(len(one.text) for one in parse("word " * 10_000)) <= MAX_STATEMENT_CHARS


def test_table_without_a_header() -> None:
    assert statements_of("| a | b |\ntext") == [("row", "a | b", ""), ("paragraph", "text", "")]
    assert [shape for shape, _, _ in statements_of("| a |\n|---|\n\n| b |\n|---|\n| c |")] == ["row"]


def test_rows_without_a_rule_keep_their_own_numbers_and_their_place_in_a_list() -> None:
    parser = MarkdownParser()
    text = "- These are the ports:\n  | 80 [1.1] |\n  | 81 |\n"
    _, *rows = parser.feed(text) + parser.finish()
    assert [(row.text, [str(ref) for ref in row.named], row.depth, row.head) for row in rows] == [
        ("80", ["1.1"], 1, ""),
        ("81", [], 1, ""),
    ]


@pytest.mark.parametrize(
    ("said", "text", "named"),
    [
        ("The port is 8080 [1.1], [1.2].", "The port is 8080.", "1.1 1.2"),
        ("The port is 8080 [1.1] and [1.2].", "The port is 8080.", "1.1 1.2"),
        ("The port is 8080 ([1.2]).", "The port is 8080.", "1.2"),
        ("The port is 8080 (see [1.2]).", "The port is 8080.", "1.2"),
        ("The port is 8080 *[1.2]*.", "The port is 8080.", "1.2"),
        ("It is in the range [0, 1] [1.2].", "It is in the range [0, 1].", "1.2"),
    ],
)
def test_removed_numbers_leave_no_marks_behind(said: str, text: str, named: str) -> None:
    assert statements_of(said) == [("paragraph", text, named)]


def test_numbers_after_a_closing_fence_do_not_keep_it_open() -> None:
    found = statements_of("```bash\npip install heron\n``` [1.6]\n\nThe port is 8080 [1.4].")
    assert found == [("code", "pip install heron", ""), ("paragraph", "The port is 8080.", "1.4")]


def test_block_quotes_may_hold_lists_code_and_tables() -> None:
    code = "> ```bash\n> pip install heron\n> ```"
    table = "> | a | b |\n> |---|---|\n> | c | 8080 |"
    assert statements_of(f"> - One [1.1]\n> - Two [1.2]\n\n{code}\n\n{table}\n") == [
        ("item", "One", "1.1"),
        ("item", "Two", "1.2"),
        ("code", "pip install heron", ""),
        ("row", "a: c | b: 8080", ""),
    ]
    assert statements_of("```\n> not a quote\n```") == [("code", "> not a quote", "")]


def test_long_item_without_numbers_is_parsed_in_time() -> None:
    parser, text, before = MarkdownParser(), "- " + "Yes. No. " * 150, time.process_time()
    for at in range(0, len(text), 4):
        parser.feed(text[at : at + 4])
    assert time.process_time() - before < 2  # it took 12 seconds


def test_code_in_a_block_quote_ends_with_the_quote() -> None:
    text = "> ```py\n> >>> x = 1\n> y = 2\n\nThe text goes on.\n\n- So does the list."
    assert statements_of(text) == [
        ("code", ">>> x = 1\ny = 2", ""),
        ("paragraph", "The text goes on.", ""),
        ("item", "So does the list.", ""),
    ]
    assert statements_of("> ```\n> x = 1\n```\n\nThe text goes on.") == [
        ("code", "x = 1", ""),
        ("paragraph", "The text goes on.", ""),
    ]


def test_block_quote_in_an_item_stays_in_it() -> None:
    parser = MarkdownParser()
    found = (
        parser.feed("1. One step.\n\n   > A note on it.\n\n   > ```\n   > run\n   > ```\n\n2. Two steps.\n")
        + parser.finish()
    )
    assert [(one.text, one.depth) for one in found] == [
        ("One step.", 0),
        ("A note on it.", 1),
        ("run", 1),
        ("Two steps.", 0),
    ]


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("**8080** [1.1]", "**8080**"),
        ("**Port 8080 [1.1]**", "**Port 8080**"),
        ("**Answer: port 8080** [1.1]\n\n### Log\n\n", "**Answer: port 8080**"),
    ],
)
def test_bold_line_that_names_units_is_a_statement(said: str, text: str) -> None:
    assert statements_of(said)[0] == ("paragraph", text, "1.1")


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("According to [1.1], the server uses 8080.", "the server uses 8080."),
        ("As [1.1] explains, `--port` changes it.", "`--port` changes it."),
        ("As stated in [1.1], the port is 8080.", "the port is 8080."),
        ("In [1.1], the port is 8080.", "the port is 8080."),
        ("The port is 8080, as [1.1] says.", "The port is 8080."),
        ("The port, as stated in [1.1], is 8080.", "The port is 8080."),
        ("The port is 8080 according to [1.1].", "The port is 8080."),
        ("The port is 8080 (as stated in [1.1]).", "The port is 8080."),
        ("The port is 8080 (see also [1.1]).", "The port is 8080."),
        ("The port is 8080 (see also [1.1] and [1.1]).", "The port is 8080."),
        ("Pick a value in [1, 4] for the level [1.1].", "Pick a value in [1, 4] for the level."),
        ("If you are logged in [1.1], press Enter.", "If you are logged in, press Enter."),
        ("The port is 8080 (the port to log in [1.1]).", "The port is 8080 (the port to log in)."),
        ("Log in [1.1], then press Enter.", "Log in, then press Enter."),
    ],
)
def test_unit_numbers_inside_a_sentence_do_not_damage_it(said: str, text: str) -> None:
    assert statements_of(said) == [("paragraph", text, "1.1")]


def test_several_units_may_introduce_a_sentence() -> None:
    said = "According to [1.1] and [1.2], the port is 8080."
    assert statements_of(said) == [("paragraph", "the port is 8080.", "1.1 1.2")]
    assert statements_of(f"- The host is db. {said}") == [("item", "The host is db. the port is 8080.", "1.1 1.2")]


@pytest.mark.parametrize("mark", ["```bash", "~~~", "```bash      "])
def test_fence_after_a_list_mark_is_a_code_block_of_the_item(mark: str) -> None:
    text = f"1. {mark}\n   appd --port 8080\n   {mark[:3]}\n2. Next step [1.1].\n\nMore [1.3]."
    found = parse(text)
    assert [(one.shape, one.text, one.depth) for one in found] == [
        ("code", "appd --port 8080", 1),
        ("item", "Next step.", 0),
        ("paragraph", "More.", 0),
    ]
    assert all(parse(text, seed) == found for seed in range(5))
    assert statements_of("1. `appd` runs [1.1].\n- ```appd``` runs [1.1].") == [
        ("item", "`appd` runs.", "1.1"),
        ("item", "```appd``` runs.", "1.1"),
    ]


def test_hard_break_ends_a_paragraph() -> None:
    text = "**Port**: 8080 [1.6]  \n**Workers**: 4 [1.7]  \n**Log**: x [1.3]"
    assert statements_of(text) == [
        ("paragraph", "**Port**: 8080", "1.6"),
        ("paragraph", "**Workers**: 4", "1.7"),
        ("paragraph", "**Log**: x", "1.3"),
    ]
    assert all(parse(text, seed) == parse(text) for seed in range(10))
    assert statements_of("**Port**  \nIt is 8080 [1.6].") == [
        ("heading", "**Port**", ""),
        ("paragraph", "It is 8080.", "1.6"),
    ]


def test_hard_break_before_numbers_or_in_an_item_does_not_separate_them_from_their_text() -> None:
    assert statements_of("The port is 8080.  \n[1.6]") == [("paragraph", "The port is 8080.", "1.6")]
    assert statements_of("1. **Install**  \n   Run `x` [1.6].") == [("item", "**Install** Run `x`.", "1.6")]


@pytest.mark.parametrize("seed", range(5))
def test_splitting_a_long_line_before_a_hard_break_does_not_change_the_statements(seed: int) -> None:
    text = "x" * (MAX_STATEMENT_CHARS - 1) + "  \nThe port is 8080 [1.1].\n"
    assert parse(text, seed) == parse(text)


@pytest.mark.parametrize(
    ("text", "above"),
    [
        ("Run it. Then this:\n\n```\na\n```\n", ["Then this:"]),
        ("Run this:\n```\na\n```\n", ["Run this:"]),
        ("Run this\n\n\n~~~\na\n~~~\n\n```\nb\n```\n", ["Run this", "a"]),
        ("### Run\n\n```\na\n```", ["Run"]),
        ("1. Run [1.2]\n   ```\n   a\n   ```\n2. Stop\n", ["Run"]),
        ("Run:\n\n1. ```\n   a\n   ```\n", ["Run:"]),
        ("> Run:\n>\n> ```\n> a\n> ```\nText\n", ["Run:"]),
        ("Run:\n\nNow.\n\n```\na\n```\n", ["Now."]),
        ("Run:\n\n---\n\n```\na\n```\n", []),
        ("| a |\n|---|\n| b |\n\n```\na\n```\n", []),
    ],
)
def test_statement_directly_above_code_says_so(text: str, above: list[str]) -> None:
    for size in (1, 7, len(text)):
        parser = MarkdownParser()
        found = [one for at in range(0, len(text), size) for one in parser.feed(text[at : at + size])]
        assert [one.text for one in [*found, *parser.finish()] if one.above_code] == above


def test_last_sentence_of_a_paragraph_is_released_when_the_next_block_begins() -> None:
    parser = MarkdownParser()
    assert parser.feed("It runs.\n\n") == []
    assert [one.text for one in parser.feed("Then it stops ")] == ["It runs."]
