from chapterverse.grounding.statements import Statement, statements

PAGE = """## Sensors

A sensor turns a quantity into a number. It never rests. Is that all?

| sensor | measures | weakness |
|---|---|---|
| encoder | wheel rotation | blind to slip |

Never do the following:

- run on land
- paint the hull

```python
spin(node)
```
"""


def texts(found: tuple[Statement, ...]) -> list[str]:
    return [PAGE[one.start : one.end] for one in found]


def test_a_passage_states_its_sentences_rows_and_lines_of_code() -> None:
    found = texts(statements(PAGE))
    assert found[:2] == ["A sensor turns a quantity into a number.", "It never rests."]
    assert "| encoder | wheel rotation | blind to slip |" in found
    assert found[-1] == "spin(node)"


def test_headings_and_questions_state_nothing() -> None:
    found = texts(statements(PAGE))
    assert not any("Sensors" in text or "Is that all?" in text for text in found)


def test_items_under_a_denial_state_nothing() -> None:
    assert not any("run on land" in text for text in texts(statements(PAGE)))


def test_a_sentence_that_points_back_says_so() -> None:
    first, second = statements(PAGE)[:2]
    assert (first.points_back, second.points_back) == (False, True)
    assert first.first and not second.first
    assert "sensor" in first.lead
    assert "sensor" in first.known, "the heading above it"


def test_clauses_end_at_punctuation_and_before_a_verb() -> None:
    (one,) = statements("If it rains, the boat (a small one) stops and drops the anchor, because mud is soft.")
    cut = [" ".join(one.tokens[place].lower for place in clause.places) for clause in one.clauses]
    assert cut == ["if it rains", "the boat stops", "a small one", "and drops the anchor", "because mud is soft"]
    assert [clause.opening for clause in one.clauses] == ["condition", "subject", "subject", "verb", "aside"]
