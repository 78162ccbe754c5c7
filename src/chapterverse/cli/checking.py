"""The commands `check` (a change of the book), `verify` (a saved answer) and `judge-check` (the judging model)."""

import json
from contextlib import aclosing
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from chapterverse.cli.command import WORSE, command
from chapterverse.errors import ConfigurationError, ValidationFailed

if TYPE_CHECKING:
    from chapterverse.evaluation.book_check import Baseline, CheckFinding
    from chapterverse.evaluation.questions import Question
    from chapterverse.services import Services

NOT_FIT = 22  # exit code if the model is not fit to judge


@click.command(
    short_help="Show which known questions a change of the book breaks.",
    epilog=f"Exit code: 0, {WORSE} if a question is broken or contradictory, 1 if one could not be asked.",
)
@click.argument("questions", metavar="QUESTIONS", type=click.Path(path_type=Path))
@click.option(
    "--baseline",
    type=click.Path(path_type=Path),
    help="The earlier answers. Default: QUESTIONS with the ending .baseline.json.",
)
@click.option("--save", is_flag=True, help="Save the current answers as the baseline.")
@click.option("--summary", type=click.Path(path_type=Path), help="Write the findings to this file as Markdown.")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
@click.option("--concurrency", type=click.IntRange(1, 64), default=1, show_default=True, help="Questions at once.")
@command
async def check(
    questions: Path, baseline: Path | None, save: bool, summary: Path | None, as_json: bool, concurrency: int
) -> int:
    """Show which known QUESTIONS a change of the book breaks, fixes or makes contradictory.

    QUESTIONS is a set as for `chapterverse eval`. A question is broken if it was answered from a passage and is now
    refused or answered from another passage or other words, unless the set (`sentence`, `answer`) confirms the new
    answer. It is contradictory if another section now says something else. A question that is now refused, although
    its evidence is unchanged in the book, is listed but does not fail the run.

    \b
      chapterverse ingest docs/ && chapterverse check questions.jsonl --save    before the change
      chapterverse ingest docs/ && chapterverse check questions.jsonl           after it
      chapterverse check questions.jsonl --summary summary.md                   for a pull request
    """
    from chapterverse.evaluation.book_check import load_baseline, make_summary
    from chapterverse.evaluation.files import save_model, save_text
    from chapterverse.evaluation.questions import load_questions
    from chapterverse.settings import Settings
    from chapterverse.terminal import show_note
    from chapterverse.terminal.evaluation import show_findings
    from chapterverse.wiring import open_services

    asked = load_questions(questions)
    path = baseline or questions.with_suffix(".baseline.json")
    earlier = load_baseline(path)
    if earlier is None and not save:
        named = f" --baseline {baseline}" if baseline else ""
        raise ValidationFailed(
            f"There is no baseline at {path}. Make one before the change with: "
            f"chapterverse check {questions}{named} --save"
        )
    async with open_services(Settings.load()) as services:
        findings = await _findings(asked, earlier, services, concurrency)
        current = await _baseline(findings, services)
    if as_json:
        click.echo(f"[{','.join(finding.model_dump_json() for finding in findings)}]")
    elif earlier is not None:
        show_findings(findings, earlier, current)
    if save:
        save_model(current, path)
        show_note(f"baseline: {path} ({len(findings)} questions)")
    if earlier is not None and summary is not None:
        save_text(make_summary(findings, earlier, current.book), summary, "--summary")
    worse = not save and any(finding.verdict in ("broken", "contradictory") for finding in findings)
    return WORSE if worse else int(any(finding.verdict == "failed" for finding in findings))


async def _findings(
    questions: "list[Question]", baseline: "Baseline | None", services: "Services", concurrency: int
) -> "list[CheckFinding]":
    from chapterverse.evaluation.book_check import compare_case
    from chapterverse.evaluation.questions import earlier_ids
    from chapterverse.evaluation.runner import ask_all
    from chapterverse.terminal.evaluation import EvaluationProgress

    await services.index.manifest()  # a missing book is an error of the run, not of each question
    earlier = {outcome.id: outcome for outcome in (baseline.outcomes if baseline else ())}
    partners = earlier_ids(questions, earlier.values())
    findings = {}
    with EvaluationProgress(len(questions)) as show:
        async with aclosing(ask_all(questions, services, concurrency)) as asked:
            async for case in asked:
                before = earlier.get(partners.get(case.question.id, ""))
                findings[case.question.id] = await compare_case(case, before, services)
                show(case)
    return [findings[question.id] for question in questions]


async def _baseline(findings: "list[CheckFinding]", services: "Services") -> "Baseline":
    from chapterverse.evaluation.book_check import Baseline

    manifest = await services.index.manifest()
    return Baseline(
        made_at=datetime.now(UTC),
        model=services.writer.engine,
        embeddings=manifest.fingerprint.model,
        book=f"{manifest.pages} page{'s' * (manifest.pages != 1)}, {manifest.chunks} passages",
        # The earlier outcome is kept if the question could not be asked, or is refused although the book still says it.
        outcomes=tuple(
            (finding.verdict in ("failed", "unsure") and finding.before) or finding.now for finding in findings
        ),
    )


@click.command(epilog=f"Exit code: 0 if every quote is still in the book; {WORSE} if one has changed or is gone.")
@click.argument("proof", metavar="ANSWER.JSON", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print the checks as JSON.")
@command
async def verify(proof: Path, as_json: bool) -> int:
    """Show whether the quotes of an answer are still in the book. `ask --proof ANSWER.JSON` saves an answer.

    A quote stands (unchanged, in the same place), has moved, has changed (the new text is shown), or is gone. No
    language model is used.

    \b
      chapterverse ask "What is a node?" --proof answer.json
      chapterverse verify answer.json
    """
    from chapterverse.evaluation.proofs import load_proof, verify_proof
    from chapterverse.settings import Settings
    from chapterverse.terminal.evaluation import show_checks
    from chapterverse.wiring import open_engines

    saved = load_proof(proof)
    async with open_engines(Settings.load()) as engines:
        await engines.index.manifest()  # a missing book is an error
        checks = await verify_proof(saved, engines.embedder, engines.index)
    if as_json:
        click.echo(f"[{','.join(check.model_dump_json() for check in checks)}]")
    else:
        show_checks(saved, checks)
    return WORSE if any(check.state in ("changed", "gone") for check in checks) else 0


@click.command(
    "judge-check",
    short_help="Measure whether the configured model is fit to judge.",
    epilog=f"Exit code: 0 fit or usable with care, {NOT_FIT} not fit, otherwise the code of an error.",
)
@click.option("--limit", type=click.IntRange(min=1), help="Ask only about this many claims, from the first.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@command
async def judge_check(limit: int | None, as_json: bool) -> int:
    """Measure whether the configured model is fit to judge statements.

    The model of JUDGE_MODEL, or else the writing model, is asked about 240 true and subtly false claims on the example
    book. This costs tokens: about 60 short calls.

    \b
      chapterverse judge-check
      JUDGE_MODEL=other-model chapterverse judge-check --json
    """
    from chapterverse.evaluation.judge_check import check_judge, load_claims
    from chapterverse.settings import Settings
    from chapterverse.terminal import show_note
    from chapterverse.terminal.evaluation import show_judge_report
    from chapterverse.wiring import choose_judge

    judge = choose_judge(Settings.load())
    if judge is None:
        raise ConfigurationError(
            "JUDGE: there is no judge. Set GEMINI_API_KEY or OPENAI_API_KEY, or JUDGE_MODEL with JUDGE_BASE_URL and "
            "JUDGE_API_KEY, and do not set JUDGE=off."
        )
    claims = load_claims()[:limit]
    try:
        show_note(f"asking {judge.name} about {len(claims)} claims …")
        report = await check_judge(judge, claims)
    finally:
        await judge.close()
    if as_json:
        click.echo(json.dumps(report.to_dict(), indent=2))
    else:
        show_judge_report(report)
    return NOT_FIT if report.verdict == "not fit" else 0
