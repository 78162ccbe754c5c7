"""The gate: how statements are proven, replaced or withheld, and how the text around a withheld statement is mended."""

import asyncio
import re
import time
from collections.abc import AsyncGenerator

import pytest

from chapterverse.errors import AgentUnavailable
from chapterverse.evidence import gate as gate_module
from chapterverse.evidence.citations import Proven
from chapterverse.evidence.gate import MAX_SHOWN, Gate, JudgeQueue
from chapterverse.evidence.judge import JudgeRequest, JudgeUsage, Verdict
from chapterverse.evidence.passages import Evidence
from chapterverse.evidence.statement import Statement
from tests.evidence.judges import FailingJudge, ScriptedJudge, gullible, plain, right
from tests.evidence.proving import drafts_of, evidence_of, prove

SERVER = (
    "The server listens on port 8080 by default. It can be changed with `--port`. The log lies in /var/log/app.log.\n\n"
    "Start it with:\n\n```bash\nappd --port 8080\nappd --status\n```\n\n"
    "| option | default |\n|---|---|\n| `--port` | 8080 |\n| `--workers` | 4 |\n"
)
QUESTION = "Which port does the server listen on, and how do I start it?"
TRUE = "Port 8080 is what the server uses unless told otherwise."


def evidence() -> Evidence:
    return evidence_of(SERVER, question=QUESTION)


async def test_verbatim_statement_needs_no_judge() -> None:
    shown = await prove("The server listens on port **8080** by default [1.1].", evidence(), None)
    assert shown.text == "The server listens on port **8080** by default [1]."
    assert [one.kind for one in shown.proven] == ["quoted"]
    assert shown.sources[0].quote == "The server listens on port 8080 by default."


@pytest.mark.parametrize(
    ("book", "lie"),
    [
        ("The pressure must be > 5 bar.", "The pressure must be < 5 bar [1.1]."),
        ("The cell holds -5 volts of charge.", "The cell holds 5 volts of charge [1.1]."),
        ("The guard is a == b here.", "The guard is a != b here [1.1]."),
        ("It always loses 5 % a day.", "It always loses 5 a day [1.1]."),
    ],
)
async def test_statement_with_a_changed_sign_is_not_verbatim(book: str, lie: str) -> None:
    shown = await prove(lie, evidence_of(book, question=book), None)
    assert shown.text.replace(" [1]", "") in (book, "")


WINCH = "The winch lifts 12 kg. It weighs 24 kg. The crane lifts 90 kg. This is its limit. Cranes cost more."


async def test_unit_that_refers_back_is_verbatim_only_after_the_unit_before_it() -> None:
    question = "What do the winch and the crane weigh and lift?"
    judge = right([])
    shown = await prove(
        "The crane lifts 90 kg [1.3]. It weighs 24 kg [1.2].", evidence_of(WINCH, question=question), judge
    )
    assert [claim for case in judge.cases for claim in case.claims] == ["It weighs 24 kg."]
    assert "90 kg [1]. It weighs" not in shown.text
    judge = right([])
    shown = await prove(
        "The winch lifts 12 kg [1.1]. It weighs 24 kg [1.2].", evidence_of(WINCH, question=question), judge
    )
    assert (shown.text, judge.cases) == ("The winch lifts 12 kg [1]. It weighs 24 kg [2].", [])


async def test_unit_that_refers_back_is_not_verbatim_after_code() -> None:
    book = f"{WINCH}\n\n```\ncrane --lift\n```"
    judge = right([])
    said = "The winch lifts 12 kg [1.1].\n\n```\ncrane --lift\n```\n\nIt weighs 24 kg [1.2]."
    await prove(said, evidence_of(book, question="What does the winch weigh?"), judge)
    assert [claim for case in judge.cases for claim in case.claims] == ["It weighs 24 kg."]


async def test_row_under_other_columns_is_not_verbatim() -> None:
    table = "| option | maximum |\n|---|---|\n| `--workers` | 4 [1.6] |\n"
    shown = await prove(table, evidence_of(SERVER, question="How many workers?"), None)
    assert "maximum" not in shown.text


async def test_paraphrase_is_shown_if_the_judge_supports_it() -> None:
    shown = await prove(f"{TRUE[:-1]} [1.1].", evidence(), right([TRUE]))
    assert shown.text == f"{TRUE[:-1]} [1]."
    assert [one.kind for one in shown.proven] == ["supported"]
    assert (shown.gate.counts.withheld, shown.gate.usage.calls) == (0, 1)


async def test_unsupported_statement_is_replaced_by_the_units_it_named() -> None:
    lie = "The server uses port 8080 only if `--workers` is 4"
    shown = await prove(f"{lie} [1.1].", evidence(), right([]))
    assert shown.text == "The server listens on port 8080 by default [1]."
    assert (shown.gate.counts.replaced, shown.gate.counts.withheld) == (1, 0)
    assert shown.proven[0].replaced


async def test_statement_with_missing_exact_things_is_withheld_without_a_judge_call() -> None:
    judge = gullible()
    shown = await prove("The server listens on port 9090 [1.9]. Edit /etc/appd.conf [1.9].", evidence(), judge)
    assert shown.text == ""
    assert judge.cases == []
    assert shown.gate.counts.withheld == 2


async def test_without_a_judge_only_quotes_are_shown() -> None:
    code = "```bash\nappd --status\n```"
    text = f"{TRUE[:-1]} [1.1].\n\n{code}\n\nIt logs to /var/log/app.log, which is the best place [1.3]."
    shown = await prove(text, evidence(), None)
    assert "The server listens on port 8080 by default" in shown.text
    assert "appd --status" in shown.text
    assert "best place" not in shown.text
    assert {one.kind for one in shown.proven} == {"quoted"}


@pytest.mark.parametrize("line", ["rm -rf /", "appd --port 9090", "curl evil.example"])
async def test_code_with_an_unknown_line_is_withheld(line: str) -> None:
    shown = await prove(f"```bash\nappd --status\n{line}\n```", evidence(), gullible())
    assert shown.text == ""


async def test_inline_code_of_the_book_may_be_shown_as_a_block() -> None:
    shown = await prove("```\n--port\n```", evidence(), None)
    assert shown.text == "```\n--port\n```\n[1]"


async def test_code_may_have_other_indentation_and_fewer_lines() -> None:
    shown = await prove("```bash\n    appd   --status\n```", evidence(), None)
    assert "appd   --status" in shown.text


async def test_row_of_the_book_is_shown_with_its_header() -> None:
    table = "| option | default |\n|---|---|\n| `--workers` | 4 [1.6] |\n| `--speed` | 9 [1.9] |\n"
    shown = await prove(table, evidence(), gullible())
    assert shown.text == "| option | default |\n|---|---|\n| `--workers` | 4 [1] |"


@pytest.mark.parametrize("row", ["| `--workers` | 4 [1.6] |", "| `--workers` | 4 | [1.6] |"])
async def test_row_is_judged_with_all_the_columns_that_it_is_shown_under(row: str) -> None:
    judge, head = gullible(), "| option | least | safe for everyone |"
    shown = await prove(f"{head}\n|---|---|---|\n{row}\n", evidence(), judge)
    said = " ".join(claim for case in judge.cases for claim in case.claims)
    assert said and all(name in said or name not in shown.text for name in ("least", "safe for everyone"))


async def test_statement_with_unknown_units_is_judged_against_all_evidence() -> None:
    judge = right([TRUE])
    shown = await prove(f"{TRUE[:-1]} [7.9].", evidence(), judge)
    assert "[1.3]" in "\n".join(judge.cases[0].evidence), "the judge gets all evidence"
    assert shown.text.endswith("[1].")
    assert shown.sources[0].quote in SERVER


async def test_unknown_units_named_by_the_judge_are_ignored() -> None:
    judge = ScriptedJudge(lambda claim: True, units=("9.9", "1.99"))
    shown = await prove(f"{TRUE[:-1]} [1.1].", evidence(), judge)
    assert [unit.ref.unit for unit in shown.proven[0].units] == [1]


# ── absences, lead-ins and headings ──────────────────────────────────────────────────────────────────────────────────


async def test_absence_is_shown_without_a_citation() -> None:
    absence = "The passages do not say which versions are supported."
    shown = await prove(f"{TRUE[:-1]} [1.1]. {absence}", evidence(), right([TRUE, absence]))
    assert shown.text == f"{TRUE[:-1]} [1]. {absence}"
    assert [one.kind for one in shown.proven] == ["supported", "absence"]


async def test_absence_with_a_fact_must_be_proven() -> None:
    lie = "The passages do not name the port, which is 8080."
    shown = await prove(lie, evidence(), right([]))
    assert shown.text == ""


async def test_a_false_absence_is_withheld_and_never_replaced() -> None:
    shown = await prove("The passages do not say how the server is started [1.1].", evidence(), right([]))
    assert shown.text == ""
    assert shown.gate.counts.withheld == 1


async def test_lead_in_is_shown_only_with_what_it_introduces() -> None:
    lead = "To start it, run this:"
    shown = await prove(f"{lead}\n\n```\nappd --status\n```", evidence(), right([lead]))
    assert shown.text == f"{lead}\n\n```\nappd --status\n```\n[1]"
    assert [one.kind for one in shown.proven] == ["frame", "quoted"]
    alone = await prove(f"{lead}\n\n```\nrm -rf /\n```", evidence(), right([lead]))
    assert alone.text == ""


@pytest.mark.parametrize("lead", ["You must never do this to a heron:", "- Never do this to a heron:\n  "])
async def test_list_without_its_withheld_lead_in_is_quoted_from_the_book(lead: str) -> None:
    book = "A heron must not lift 3 kg. A heron must not fly in rain. It is grey."
    judge = ScriptedJudge(lambda claim: "ever do" not in claim)
    text = f"{lead}\n  - Lift 3 kg [1.1].\n  - Fly in rain [1.2].\n\nA heron has a grey colour [1.3]."
    shown = await prove(text, evidence_of(book, question="What must a heron not do?"), judge)
    lines = ["- A heron must not lift 3 kg.", "- A heron must not fly in rain.", "", "A heron has a grey colour."]
    assert shown.text.replace(" [1]", "").replace(" [2]", "").replace(" [3]", "").split("\n") == lines


async def test_repeated_lead_in_is_shown_with_its_list() -> None:
    lead, items = "Look at these parts of it:", ("Port 8080 it is.", "Log in /var/log/app.log.")
    text = "\n\n".join(f"{lead}\n\n- {item}" for item in items)
    shown = await prove(text, evidence(), right([lead, *items]))
    assert shown.text.count(lead) == 2


async def test_fact_whose_list_is_withheld_ends_with_a_full_stop() -> None:
    lead = "The server uses port 8080:"
    shown = await prove(f"{lead[:-1]} [1.1]:\n\n```\nrm -rf /\n```", evidence(), right([lead]))
    assert shown.text == "The server uses port 8080 [1]."
    assert shown.gate.counts.shown == 1  # so that no refusal follows it


async def test_heading_without_text_is_left_out() -> None:
    text = f"## Start\n\nNonsense about the server [1.1].\n\n## Port\n\n{TRUE[:-1]} [1.1]."
    shown = await prove(text, evidence(), right(["Start", "Port", TRUE]))
    assert shown.text == f"## Port\n\n{TRUE[:-1]} [1]." or "## Start\n\nThe server listens" in shown.text


# ── text around withheld statements ──────────────────────────────────────────────────────────────────────────────────


LIE = "The server is the best on the market."


@pytest.mark.parametrize(
    ("after", "shown_as"),
    [
        ("However, the port is 8080.", "The port is 8080."),
        ("Also, `--port` changes it.", "`--port` changes it."),
        ("For example, the port is 8080.", "The port is 8080."),
        ("It is 8080.", "The server listens on port 8080 by default."),
        ("This is the port.", "The server listens on port 8080 by default."),
        ("Otherwise, the port is 8080.", "The server listens on port 8080 by default."),
        ("They are made of cheese.", ""),
        ("The port is 8080.", "The port is 8080."),
        ("Nor does the server change the port.", ""),
        ("Nor, by default, is it the port 8080.", "The server listens on port 8080 by default."),
        ("Besides the log, the port is 8080.", "The server listens on port 8080 by default."),
        ("Instead of the log, the port is 8080.", "Instead of the log, the port is 8080."),
        ("So does the port.", "The server listens on port 8080 by default."),
        ("This page lists the port.", "This page lists the port."),
        ("Both the log and the port are there.", "Both the log and the port are there."),
        ("Both are there.", ""),
    ],
)
async def test_reference_to_a_withheld_statement_is_removed_or_replaced(after: str, shown_as: str) -> None:
    shown = await prove(f"{LIE} {after}", evidence(), right([after]))
    assert shown.text.replace(" [1]", "") == shown_as


async def test_list_is_renumbered_without_withheld_items() -> None:
    steps = ["Start the server.", "Buy a new server.", "Look at the log."]
    text = "\n".join(f"{number}. {step}" for number, step in enumerate(steps, start=1))
    shown = await prove(text, evidence(), right([steps[0], steps[2]]))
    assert shown.text.replace(" [1]", "").replace(" [2]", "") == "1. Start the server.\n2. Look at the log."


async def test_code_between_items_does_not_restart_the_numbers() -> None:
    text = "1. Start the server:\n```\nappd --status\n```\n2. Look at the log."
    shown = await prove(text, evidence(), right(["Start the server:", "Look at the log."]))
    assert shown.text.startswith("1. Start the server:")
    assert "\n\n2. Look at the log" in shown.text


async def test_item_is_kept_without_its_withheld_first_sentence() -> None:
    text = f"- {LIE[:-1]} [1.1]. The port is 8080 [1.1].\n- Look at the log [1.3]."
    shown = await prove(text, evidence(), right(["The port is 8080.", "Look at the log."]))
    assert shown.text.startswith("- The ") and "\n- Look at the log" in shown.text


async def test_nested_item_moves_up_if_its_parent_is_withheld() -> None:
    text = f"- {LIE}\n  - The port is 8080.\n"
    shown = await prove(text, evidence(), right(["The port is 8080."]))
    assert shown.text == "- The port is 8080 [1]."


# ── failing judges ───────────────────────────────────────────────────────────────────────────────────────────────────


async def test_failing_judge_is_called_twice_then_units_are_quoted() -> None:
    judge = FailingJudge()
    shown = await prove(f"{TRUE[:-1]} [1.1].", evidence(), judge)
    assert shown.text == "The server listens on port 8080 by default [1]."
    assert judge.calls == 2
    not_retryable = FailingJudge(retryable=False)
    await prove(f"{TRUE[:-1]} [1.1].", evidence(), not_retryable)
    assert not_retryable.calls == 1


async def test_slow_judge_does_not_delay_the_answer_past_the_deadline() -> None:
    started = time.perf_counter()
    shown = await prove(f"{TRUE[:-1]} [1.1].", evidence(), ScriptedJudge(lambda claim: True, seconds=60), seconds=0.3)
    assert time.perf_counter() - started < 20
    assert shown.text == "The server listens on port 8080 by default [1]."


async def test_statements_are_judged_in_batches() -> None:
    claims = [f"The port is 8080, says remark {word}." for word in ("a", "b", "c", "d", "e", "f", "g")]
    judge = ScriptedJudge(lambda claim: True, seconds=0.05)
    shown = await prove(" ".join(claims), evidence(), judge)
    assert len(shown.proven) == len(claims)
    assert 1 < len(judge.cases) < len(claims)
    assert [plain(claim) for case in judge.cases for claim in case.claims] == [plain(claim) for claim in claims]


async def test_statement_is_shown_before_the_writer_has_finished() -> None:
    loop = asyncio.get_running_loop()
    done = False

    async def writing() -> AsyncGenerator[Statement | Proven, None]:
        nonlocal done
        async for draft in drafts_of(f"{TRUE[:-1]} [1.1]. " + "More words come later. " * 40, pause=0.02):
            yield draft
        done = True

    gate = Gate(evidence(), right([TRUE]), deadline=loop.time() + 60)
    proving = gate.prove(writing())
    assert isinstance(await anext(proving), Proven)
    assert not done
    await proving.aclose()
    assert not [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]


async def test_error_of_the_writer_is_raised_after_proven_statements() -> None:
    async def breaking() -> AsyncGenerator[Statement | Proven, None]:
        yield Statement("The server listens on port 8080 by default.")
        raise AgentUnavailable("gone")

    gate = Gate(evidence(), None, deadline=asyncio.get_running_loop().time() + 5)
    shown = []
    with pytest.raises(AgentUnavailable):
        async for one in gate.prove(breaking()):
            shown.append(one)  # noqa: PERF401 - keeps what came before the error
    assert len(shown) == 1


async def test_invalid_verdicts_of_the_judge_prove_nothing(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(ScriptedJudge):
        async def verdicts(self, case: JudgeRequest, usage: JudgeUsage) -> AsyncGenerator[Verdict, None]:
            yield Verdict(99, True)

    shown = await prove(f"{TRUE[:-1]} [1.1].", evidence(), Broken(lambda claim: True))
    assert shown.text == "The server listens on port 8080 by default [1]."


@pytest.mark.parametrize(
    "first", ["The server listens on port 8080 by default [1.1].", "Edit /etc/nowhere.conf [1.1]."]
)
async def test_judge_gets_the_text_before_a_claim_also_if_it_was_withheld(first: str) -> None:
    judge = gullible()
    await prove(f"{first} It can be changed at any time [1.2]. Port 8080 is what it was [1.1].", evidence(), judge)
    messages = [case.message() for case in judge.cases]
    before = first.replace(" [1.1]", "")
    assert f"Text before claim 1: {before}\n" in messages[0]
    assert sum("Text before claim" in message for message in messages) == len(messages)


async def test_each_claim_of_a_batch_has_the_text_before_it() -> None:
    judge, quoted = gullible(), "The server listens on port 8080 by default."
    queue = JudgeQueue(judge, evidence(), asyncio.get_running_loop().time() + 10, JudgeUsage())
    claims = [Statement("The port is 8080 here."), Statement("It can be changed."), Statement("It is 8080.")]
    before = ["", quoted, claims[1].text]
    await asyncio.gather(*(queue.ask(claim, text) for claim, text in zip(claims, before, strict=True)))
    (case,) = judge.cases
    assert case.before == ["", quoted, ""]
    assert f"Text before claim 2: {quoted}\nEvidence" in case.message()


# ── limits ───────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_long_answer_is_truncated() -> None:
    text = " ".join(f"The port is 8080, says remark {word}." for word in map(_letters, range(2000)))
    shown = await prove(text, evidence(), gullible())
    assert shown.gate.truncated
    assert len(shown.proven) == MAX_SHOWN


async def test_repeated_statements_truncate_the_answer() -> None:
    shown = await prove("The server listens on port 8080 by default [1.1]. " * 50, evidence(), None)
    assert shown.text == "The server listens on port 8080 by default [1]."
    assert shown.gate.truncated


async def test_same_command_may_be_shown_in_two_steps() -> None:
    command = "```\nappd --port 8080\nappd --status\n```"
    leads = ["First, run this:", "After a change, run it again:"]
    shown = await prove(f"{leads[0]}\n\n{command}\n\n{leads[1]}\n\n{command}", evidence(), right(leads))
    assert shown.text.replace("\n[1]", "") == f"{leads[0]}\n\n{command}\n\n{leads[1]}\n\n{command}"


async def test_endless_sentence_is_withheld() -> None:
    shown = await prove("the server listens and " * 4000, evidence(), gullible())
    assert shown.text == ""


def test_gate_limit_is_below_the_parser_limit() -> None:
    from chapterverse.writing import markdown

    assert gate_module.MAX_STATEMENT_CHARS < markdown.MAX_STATEMENT_CHARS


def _letters(number: int) -> str:
    return "".join(chr(ord("a") + int(digit)) for digit in str(number))


def test_a_quoted_row_keeps_a_sign_in_its_first_cell() -> None:
    units = evidence_of("| | Meaning |\n|---|---|\n| - | subtracts the right number |").all_units()
    assert gate_module._as_sentence(units[0]) == "- | Meaning: subtracts the right number"


HERON = (
    "Heron runs on Linux and on Windows. On Linux the default port is 8080. On Windows the default port is 9090. "
    "The pump has a valve. Heron logs to a file.\n\n```\nheron --port 8080\n```\n\n```\nheron.exe --port 9090\n```\n"
)


async def heron(text: str, false: str = "") -> str:
    judge = ScriptedJudge(lambda claim: not false or false not in claim)
    return (await prove(text, evidence_of(HERON, question="What is the default port of Heron?"), judge)).text


async def test_code_of_a_withheld_step_is_not_shown_in_the_step_before() -> None:
    steps = (
        "1. **On {}:**\n   ```\n   heron --port 8080\n   ```\n2. **On {}:**\n   ```\n   heron.exe --port 9090\n   ```\n"
    )
    steps = steps.format("Linux", "Windows 2022")
    shown = await heron(steps)
    assert "\n   heron --port 8080" in shown
    assert "\nheron.exe --port 9090" in shown


async def test_code_of_a_withheld_lead_in_is_separated_from_the_lead_in_before() -> None:
    said = "On Linux:\n\n```\nheron --port 8080\n```\n\nOn Windows 2022:\n\n```\nheron.exe --port 9090\n```\n"
    assert "[1]\n\n…\n\n```\nheron.exe" in await heron(said)


async def test_items_of_a_withheld_item_are_not_shown_in_the_item_before() -> None:
    shown = await heron(
        "- **Linux**\n  - The default port is 8080 [1.2].\n- **Vista**\n  - The default port is 9090 [1.3]."
    )
    assert shown == "- **Linux** [1]\n   - The default port is 8080 [2].\n- The default port is 9090 [3]."


async def test_text_under_a_withheld_heading_is_separated_from_the_heading_before() -> None:
    said = "### Linux\n\nThe port is 8080 there [1.2].\n\n### Windows 11\n\nThe port is 9090 there [1.3]."
    assert await heron(said) == "### Linux\n\nThe port is 8080 there [1].\n\n…\n\nThe port is 9090 there [2]."
    nothing = "### Linux\n\nThe port is 8080 there [1.2].\n\n### Windows 11\n\nIt is port 7070 [1.4]."
    assert "…" not in await heron(nothing)


async def test_rows_under_a_withheld_lead_in_are_all_quoted_or_withheld() -> None:
    shown = await heron(
        "If the server runs with TLS, heron has these values:\n\n| Name | Value |\n|---|---|\n"
        "| default port | 8080 [1.2] |\n| pump | has a valve [1.4] |\n| logs | to a file [1.5] |\n",
        false="TLS",
    )
    assert "|" not in shown
    assert "On Linux the default port is 8080" in shown


async def test_bullets_between_two_steps_do_not_restart_the_numbers() -> None:
    steps = "1. Heron logs to a file [1.5].\n- The pump has a valve [1.4].\n2. The default port is 8080 [1.2]."
    assert [line[:2] for line in (await heron(steps)).split("\n")] == ["1.", "- ", "2."]


async def test_lead_in_of_a_withheld_step_is_not_shown_above_the_next_step() -> None:
    lead = "Choose one of these options of the server:"
    text = f"1. Open the Zeta console.\n\n   {lead}\n   - Gamma rays.\n   - Delta rays.\n2. {TRUE[:-1]} [1.1]."
    shown = await prove(text, evidence(), right([lead, TRUE]))
    assert lead not in shown.text and TRUE[:-1] in shown.text


async def test_text_under_headings_is_shown_if_the_lead_in_before_them_is_withheld() -> None:
    text = f"There are 7 ways to run it:\n\n### On Linux\n\n{TRUE[:-1]} [1.1].\n\n### Logging\n\nIt logs well [1.1]."
    shown = await prove(text, evidence(), right(["On Linux", TRUE, "Logging", "It logs well."]))
    assert "7 ways" not in shown.text
    assert TRUE[:-1] in shown.text and "It logs well" in shown.text and shown.gate.counts.replaced == 0


async def test_short_bold_answer_lines_and_code_in_a_list_mark_do_not_hide_text() -> None:
    assert await heron("**8080** [1.2]\n\n### Log\n\nHeron logs to a file [1.5].") == (
        "**8080** [1]\n\n### Log\n\nHeron logs to a file [2]."
    )
    assert await heron("**Port**: 8080 [1.2]  \nHeron logs to a file [1.5].") == (
        "**Port**: 8080 [1]\n\nHeron logs to a file [2]."
    )
    shown = await heron("1. ```bash\n   heron --x\n   ```\n2. The default port is 8080 [1.2].\n\nIt is so [1.4].")
    assert "The default port is 8080" in shown and "It is so" in shown


@pytest.mark.parametrize(
    "text",
    [
        "| Option | Default Value |\n|---|---|\n| `--workers` | 4 [1.6] |",
        "- **Log Location**: the log lies in /var/log/app.log [1.3].",
        "### Log Location\n\nThe log lies in /var/log/app.log [1.3].",
        "✅ Configure it with `--port` [1.2].",
        "- [ ] Restart it with `--port` [1.2].",
    ],
)
async def test_capitalised_words_of_labels_are_left_to_the_judge(text: str) -> None:
    shown = await prove(text, evidence(), gullible())
    assert "".join(re.sub(r" \[\d\]", "", shown.text).split()) == "".join(re.sub(r" \[1.\d\]", "", text).split())


PAGE = (
    "Download the archive from the downloads page. Unpack it. Get the archive from the downloads page. Run the setup."
)


async def test_same_step_that_names_other_units_is_no_repetition() -> None:
    step = "1. Download the archive from the downloads page"
    text = f"### Linux\n\n{step} [1.1].\n2. Unpack it [1.2].\n\n### Windows\n\n{step} [1.3].\n2. Run the setup [1.4]."
    shown = await prove(text, evidence_of(PAGE, question="How do I install it on Linux and on Windows?"), gullible())
    assert shown.text.count(step) == 2
    shown = await prove(text.replace("[1.3]", "[1.1]"), evidence_of(PAGE, question="How on Linux?"), gullible())
    assert shown.text.count(step) == 1


PORTS = "PostgreSQL listens on port 5432. MySQL listens on port 3306. Both write a log. The log is in /var/log."


async def before_claims(text: str) -> dict[str, str]:
    """The text before each claim, as the judge sees it."""
    judge = gullible()
    await prove(text, evidence_of(PORTS, question="Which port does PostgreSQL listen on?"), judge)
    return {claim: before for case in judge.cases for claim, before in zip(case.claims, case.before, strict=True)}


IN_SECTIONS = (
    "## Databases\n\n### PostgreSQL\n\nIt has a log [1.3].\n\nThe log is there [1.4].\n\n"
    "Port 3306 is used [1.2].\n\n### MySQL\n\nPort 3306 is its port [1.2].\n\n## Logs\n\nA log is written [1.3]."
)
IN_ITEMS = (
    "Databases:\n- PostgreSQL\n  - It has a log [1.3].\n  - The log is there [1.4].\n"
    "  - Port 3306 is used [1.2].\n- MySQL\n  - Port 3306 is its port [1.2].\n\nA log is written [1.3]."
)


@pytest.mark.parametrize(("text", "databases"), [(IN_SECTIONS, "Databases"), (IN_ITEMS, "Databases:")])
async def test_judge_sees_the_headings_and_items_around_each_claim(text: str, databases: str) -> None:
    before = await before_claims(text)
    assert before["Port 3306 is used."].startswith(f"{databases} › PostgreSQL")
    assert before["Port 3306 is its port."].startswith(f"{databases} › MySQL")
    assert "SQL" not in before["A log is written."] and "Databases" not in before["A log is written."]


async def test_judge_sees_the_lead_in_of_bullets_that_are_not_indented() -> None:
    before = await before_claims(
        "1. Look at these logs:\n- The log is there [1.4].\n- It has a log [1.3].\n2. Stop it [1.4]."
    )
    assert before["It has a log."].startswith("Look at these logs:")
    assert "these" not in before["Stop it."]


async def test_text_around_a_claim_is_limited() -> None:
    deep = "".join(f"{'  ' * depth}- {_letters(depth)} {'log ' * 300}\n" for depth in range(30))
    before = await before_claims(f"{deep}{'  ' * 30}- Port 3306 is used [1.2].")
    size = (gate_module.MAX_AROUND + 1) * (gate_module.CONTEXT_CHARS + 3)
    assert len(before["Port 3306 is used."]) <= size


NEVER = "The server never does this:"


@pytest.mark.parametrize(
    "text",
    [
        f"{NEVER}\n- It deletes logs [1.1].\n- It writes logs daily [1.2].",
        f"- {NEVER}\n  - It deletes logs [1.1].\n  - It writes logs daily [1.2].",
        f"{NEVER}\n- **In the night:**\n  - It deletes logs [1.1].\n- It writes logs daily [1.2].",
    ],
)
async def test_item_is_not_replaced_under_a_lead_in_of_the_model(text: str) -> None:
    book = "The server deletes no logs. The server writes logs to /var/log."
    judge = ScriptedJudge(lambda claim: "daily" not in claim)
    shown = await prove(text, evidence_of(book, question="What does the server do with logs?"), judge)
    assert NEVER in shown.text and "It deletes logs" in shown.text and "writes logs to" not in shown.text
    assert (shown.gate.counts.withheld, shown.gate.counts.replaced) == (1, 0)


async def test_item_is_replaced_under_the_lead_in_of_the_book() -> None:
    book = f"{NEVER}\n\n- delete the logs\n- write logs to the disk"
    text = f"{NEVER}\n- It deletes logs [1.2].\n- It writes logs daily [1.3]."
    judge = ScriptedJudge(lambda claim: "daily" not in claim)
    shown = await prove(text, evidence_of(book, question="What does the server never do with logs?"), judge)
    assert "write logs to the disk" in shown.text and shown.gate.counts.replaced == 1


async def test_second_sentence_of_an_item_is_replaced() -> None:
    book = evidence_of("The pump is red. The pump weighs 5 kg.", question="How is the pump?")
    judge = ScriptedJudge(lambda claim: "lab" not in claim)
    shown = await prove("- The pump has a red colour [1.1]. It weighs 5 kg in the lab [1.2].", book, judge)
    assert shown.text == "- The pump has a red colour [1]. The pump weighs 5 kg [2]."


async def test_numbered_lead_in_stays_above_its_bullets_without_an_indent() -> None:
    book = "The server never deletes logs. The server writes logs to /var/log. The server never sends logs."
    lead, items = "The server never does this:", ("It deletes logs.", "It sends logs.")
    text = f"1. {lead}\n- {items[0][:-1]} [1.1].\n- {items[1][:-1]} [1.3].\n2. {TRUE[:-1]} [1.1]."
    judge = right([lead, *items, TRUE])
    shown = await prove(text, evidence_of(book, question="What does the server never do with logs?"), judge)
    assert shown.text.startswith(f"1. {lead}\n- It deletes logs [1].\n- It sends logs [2].")


# ── a line and the code below it ─────────────────────────────────────────────────────────────────────────────────────


TANK = (
    "The server stops when it gets SIGTERM. Stop the server with:\n\n```\ntank stop\n```\n\n"
    "Wipe all data with:\n\n```\ntank wipe --all\ntank clean\n```\n\nTo restart it, press R."
)
STOP, WIPE = "```\ntank stop\n```", "```\ntank wipe --all\ntank clean\n```"
HALT = "Halt the server with:"


def joint(line: str, *code: str) -> str:
    """A claim as the judge reads it."""
    return "\n".join([line, *code])


async def tank(
    text: str, *truths: str, question: str = "How do I stop the server?"
) -> tuple[str, list[str], ScriptedJudge]:
    """What is shown without the markers, the claims, and the judge, who supports exactly these claims."""
    judge = ScriptedJudge(lambda claim: claim in truths)
    shown = await prove(text, evidence_of(TANK, question=question), judge)
    claims = [claim for case in judge.cases for claim in case.claims]
    return re.sub(r"\s+\[\d\]", "", shown.text), claims, judge


@pytest.mark.parametrize(
    "line",
    ["{}", "1. {}", "Halt it like so. {}", "### {}", "**{}**"],
)
async def test_line_above_code_is_judged_with_the_code(line: str) -> None:
    _, claims, judge = await tank(f"{line.format(HALT)}\n\n{WIPE}\n\nIt gets SIGTERM then [1.1].")
    assert [claim for claim in claims if "Halt the" in claim] == [
        joint(HALT if "**" not in line else f"**{HALT}**", WIPE)
    ]
    assert not [claim for claim in claims if claim.startswith("```")]
    assert any("tank wipe" in text for case in judge.cases for text in case.evidence)


@pytest.mark.parametrize("line", [HALT, "Halt the server with this command.", f"1. {HALT}", f"### {HALT}"])
async def test_line_above_code_for_something_else_is_withheld_with_the_code(line: str) -> None:
    last = "SIGTERM stops the server, too."
    bare = line.removeprefix("1. ").removeprefix("### ")
    # The judge supports each of them alone.
    shown, claims, _ = await tank(f"{line}\n\n{WIPE}\n\n{last[:-1]} [1.1].", bare, last)
    assert shown == last
    assert joint(bare, WIPE) in claims


async def test_line_above_its_code_is_shown_if_the_judge_supports_both() -> None:
    shown, claims, _ = await tank(f"{HALT}\n\n{STOP}", joint(HALT, STOP))
    assert (shown, claims) == (f"{HALT}\n\n{STOP}", [joint(HALT, STOP)])


async def test_all_code_blocks_below_a_line_are_judged_with_it() -> None:
    shown, claims, _ = await tank(f"{HALT}\n\n{STOP}\n\n{WIPE}", joint(HALT, STOP))
    assert claims == [joint(HALT, STOP, WIPE)]
    assert "wipe" not in shown


async def test_words_of_the_book_above_their_code_need_no_judge() -> None:
    text = f"Stop the server with:\n\n{STOP}"
    shown, claims, _ = await tank(text)
    assert (shown, claims) == (text, [])
    without = await prove(text, evidence_of(TANK, question="How do I stop the server?"), None)
    assert without.text == f"Stop the server with [1]:\n\n{STOP}\n[1]"


@pytest.mark.parametrize(
    "text",
    [
        f"Stop the server with:\n\n{WIPE}",
        f"Stop the server with:\n\n{STOP}\n\n{WIPE}",
        "Wipe all data with:\n\n```\ntank clean\n```",
        f"To stop the server:\n1. Wipe all data with:\n   {WIPE}",
        f"### Stop the server\n\nWipe all data with:\n\n{WIPE}",
    ],
)
async def test_words_of_the_book_elsewhere_above_code_are_judged_with_it(text: str) -> None:
    _, claims, _ = await tank(text, question="How do I stop the server and wipe its data?")
    assert any("```" in claim for claim in claims)


async def test_rejected_line_is_replaced_by_the_line_of_the_book_above_its_code() -> None:
    last = "SIGTERM stops the server, too."
    shown, *_ = await tank(f"Stop the server as root with:\n\n{STOP}\n\n{last[:-1]} [1.1].", last)
    assert shown == f"Stop the server with:\n\n{STOP}\n\n{last}"


async def test_rejected_line_is_replaced_by_the_units_it_named_without_its_code() -> None:
    shown, *_ = await tank(f"Halt the server with [1.1]:\n\n{WIPE}")
    assert shown == "The server stops when it gets SIGTERM."
    shown, *_ = await tank(f"Halt the server with [1.4]:\n\n{WIPE}")
    assert shown == ""


async def test_without_a_verdict_the_code_is_quoted_without_its_line() -> None:
    book = evidence_of(TANK, question="How do I stop the server?")
    shown = await prove(f"{HALT}\n\n{STOP}", book, FailingJudge())
    assert shown.text == f"{STOP}\n[1]"


async def test_line_above_withheld_code_is_no_fact() -> None:
    bad = "```\ntank halt --now\n```"
    for line in ("Halt the server with", "Halt the server with the following command"):
        end = ":" if line.endswith("with") else "."
        judge = ScriptedJudge(lambda claim: True, units=("1.2",))
        shown = await prove(f"{line} [1.2]{end}\n\n{bad}", evidence_of(TANK, question="How do I stop it?"), judge)
        assert shown.text == ""


async def test_text_before_a_claim_has_the_code_before_it() -> None:
    _, _, judge = await tank(f"{HALT}\n\n{STOP}\n\nor\n\n{WIPE}")
    (before,) = [text for case in judge.cases for text, claim in zip(case.before, case.claims, strict=True) if text]
    assert before == joint(HALT, STOP)


async def test_sentence_is_judged_before_the_paragraph_after_it_is_written() -> None:
    """Only code that begins directly below makes a sentence wait."""
    judge = gullible()

    async def writing() -> AsyncGenerator[Statement | Proven, None]:
        async for draft in drafts_of(f"{TRUE[:-1]} [1.1].\n\nHere begins more that is never ", pause=0.001):
            yield draft
            await asyncio.sleep(0.05)
            assert judge.cases
            return

    gate = Gate(evidence(), judge, deadline=asyncio.get_running_loop().time() + 5)
    assert [one async for one in gate.prove(writing())]


async def test_line_of_the_book_is_quoted_only_above_its_own_code() -> None:
    question = "How do I stop the server?"
    for code, lines in ((STOP, f"Stop the server with:\n\n{STOP}"), (WIPE, WIPE)):
        shown = await prove(f"{HALT[:-1]} [1.2]:\n\n{code}", evidence_of(TANK, question=question), None)
        assert re.sub(r"\s*\[\d\]", "", shown.text) == lines
