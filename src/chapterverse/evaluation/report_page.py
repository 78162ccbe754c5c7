"""Writes a report as one HTML page that needs no other file.

All text from outside is escaped, and the page's Content-Security-Policy forbids every request.
"""

from collections.abc import Sequence
from html import escape
from typing import Final

from chapterverse.evaluation import plots
from chapterverse.evaluation.cases import Case, Citation, FoundPassage
from chapterverse.evaluation.measures import in_place, is_evidence
from chapterverse.evaluation.report import Bin, Estimate, Report, Sort, failing, trade_off

SHOWN_CASES: Final = 200  # of those that went wrong; the JSON has all
SHOWN_TEXT: Final = 700  # characters of a passage

STYLE: Final = """
:root { color-scheme: light dark; --ink: #1d2329; --dim: #5b6570; --line: #d9dee3; --paper: #fff; --soft: #f4f6f8;
  --blue: #2563a8; --good: #1d7a46; --bad: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ec; --dim: #a2acb6; --line: #3a424b; --paper: #15191d;
  --soft: #1f252b; --blue: #7db4ee; --good: #6fce97; --bad: #ff8a80; } }
body { margin: 0 auto; max-width: 72rem; padding: 1.5rem; font: 16px/1.5 system-ui, sans-serif; color: var(--ink);
  background: var(--paper); }
h1 { font-size: 1.6rem; margin: 0; } h2 { font-size: 1.2rem; margin: 2.2rem 0 .6rem; }
h3 { font-size: 1rem; margin: 0; }
p { max-width: 48rem; } .dim, figcaption, th { color: var(--dim); }
.good { color: var(--good); } .bad { color: var(--bad); }
.scroll { overflow-x: auto; } table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .3rem .7rem .3rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
th { font-weight: 500; font-size: .85rem; } td.number, th.number { text-align: right; white-space: nowrap; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(19rem, 1fr)); gap: 1rem; }
figure { margin: 0; padding: .8rem; background: var(--soft); border-radius: .5rem; } figcaption { font-size: .95rem; }
figure p { font-size: .85rem; margin: 0; }
svg { width: 100%; height: auto; } svg text { font-size: 11px; fill: var(--dim); } .grid { stroke: var(--line); }
.guide { stroke: var(--dim); stroke-dasharray: 4 4; } .whisker { stroke: var(--blue); stroke-width: 2; opacity: .5; }
.curve { fill: none; stroke: var(--blue); stroke-width: 2; }
.mark, .bar, .dot { fill: var(--blue); }
article { border: 1px solid var(--line); border-radius: .5rem; padding: 1rem; margin: 1rem 0; overflow-wrap: anywhere; }
.sides { display: grid; grid-template-columns: repeat(auto-fit, minmax(18rem, 1fr)); gap: 1.2rem; margin-top: .8rem; }
blockquote { margin: .4rem 0; padding: .3rem .8rem; border-left: 3px solid var(--line); white-space: pre-wrap; }
blockquote.right { border-color: var(--good); }
.label { font-size: .8rem; color: var(--dim); text-transform: uppercase; }
details { margin-top: .6rem; } summary { cursor: pointer; }
"""

_WHAT: Final = {
    "failed": "The question failed",
    "false answer": "Answered, though the book does not say",
    "false refusal": "Refused, though the book says",
    "other evidence": "Answered, but not with the evidence that was written down",
}


def make_page(report: Report) -> str:
    """Return the whole page."""
    wrong = failing(report.cases)
    parts = [_head(report), _summary(report, wrong), _plots(report), _table(report.estimates)]
    parts += [_levels(report.levels), _kinds(report.kinds)]
    parts.append(f"<h2>What went wrong ({len(wrong)})</h2>")
    if not wrong:
        parts.append("<p>Nothing. Harder questions would tell more.</p>")
    parts.extend(_case(case) for case in wrong[:SHOWN_CASES])
    if len(wrong) > SHOWN_CASES:
        parts.append(f"<p>… and {len(wrong) - SHOWN_CASES} more; the JSON file has all.</p>")
    return "\n".join([*parts, "</main></body></html>", ""])


def formatted(value: float, kind: str) -> str:
    """Format a value of a measure."""
    match kind:
        case "share":
            return f"{value:.1%}"
        case "mean":
            return f"{value:.3f}"
        case "ms":
            return f"{value:,.0f} ms"
        case "money":
            return f"{value:,.2f}"
    return f"{value:,.0f}" if value >= 100 else f"{value:,.1f}"


def _head(report: Report) -> str:
    run = report.run
    facts = [
        run.questions, run.book, run.model, run.embeddings, f"Chapterverse {run.version}",
        run.commit and f"commit {run.commit}", f"{run.made_at:%Y-%m-%d %H:%M} UTC",
    ]  # fmt: skip
    interrupted = '<p class="bad">This run was interrupted; the figures are of the questions that were asked.</p>'
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>How well the book answers</title><style>{STYLE}</style></head><body><main>"
        f'<h1>How well the book answers</h1><p class="dim">{escape(" · ".join(filter(None, facts)))}</p>'
        + (interrupted if run.interrupted else "")
    )


def _summary(report: Report, wrong: Sequence[Case]) -> str:
    """Return a summary of the run in words."""
    kept = {estimate.key: estimate for estimate in report.estimates}
    lines = [f"{len(report.cases)} questions were asked; {len(wrong)} went wrong."]
    if given := kept.get("recall"):
        lines.append(
            f"Of {given.questions} that the book answers, {given.value:.0%} were answered with the evidence "
            f"that was written down (95 %: {given.low:.0%} to {given.high:.0%})."
        )
    if refused := kept.get("false_answer"):
        lines.append(
            f"Of {refused.questions} that it does not answer, {1 - refused.value:.0%} were refused "
            f"(95 %: {1 - refused.high:.0%} to {1 - refused.low:.0%})."
        )
    lines.append(
        "An interval says where the figure would likely lie with other questions of the same kind: "
        "the fewer questions, the wider."
    )
    return f"<p>{escape(' '.join(lines))}</p>"


def _plots(report: Report) -> str:
    drawn = []
    if report.reliability:
        rows = [(bin_.confidence, bin_.right, bin_.low, bin_.high, bin_.answers) for bin_ in report.reliability]
        drawn.append(plots.reliability(rows))
    if points := trade_off(report.cases):
        drawn.append(plots.trade_off(points))
    if times := [case.latency_ms for case in report.cases if case.status != "failed"]:
        drawn.append(plots.histogram(times))
    return f'<div class="plots">{"".join(drawn)}</div>'


def _table(estimates: Sequence[Estimate]) -> str:
    groups = [""] + [estimate.group for estimate in estimates]
    rows = [
        f"<tr><td>{escape(one.group) if one.group != above else ''}</td><td>{escape(one.label)}</td>"
        f'<td class="number">{formatted(one.value, one.kind)}</td>'
        f'<td class="number dim">{formatted(one.low, one.kind)} to {formatted(one.high, one.kind)}</td>'
        f'<td class="number dim">{one.questions}</td></tr>'
        for above, one in zip(groups, estimates, strict=False)
    ]
    return (
        '<h2>Measures</h2><div class="scroll"><table><thead><tr><th></th><th></th><th class="number">value</th>'
        '<th class="number">95 % interval</th><th class="number">questions</th></tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _levels(levels: Sequence[Bin]) -> str:
    return _shares("Confidence levels", ("level", "answers"), [(level.label, level.answers, level) for level in levels])


def _kinds(kinds: Sequence[Sort]) -> str:
    return _shares("Kinds of questions", ("kind", "questions"), [(kind.label, kind.questions, kind) for kind in kinds])


def _shares(title: str, heads: tuple[str, str], shares: Sequence[tuple[str, int, Bin | Sort]]) -> str:
    rows = [
        f'<tr><td>{escape(label)}</td><td class="number">{count}</td>'
        f'<td class="number">{one.right:.1%}</td><td class="number dim">{one.low:.1%} to {one.high:.1%}</td></tr>'
        for label, count, one in shares
    ]
    if not rows:
        return ""
    return (
        f'<h2>{title}</h2><div class="scroll"><table><thead><tr><th>{heads[0]}</th><th class="number">{heads[1]}</th>'
        '<th class="number">right</th><th class="number">95 % interval</th></tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _case(case: Case) -> str:
    question = case.question
    history = "".join(f"<blockquote>{escape(asked)}\n{escape(text)}</blockquote>" for asked, text in question.history)
    searched = f'<p class="dim">searched as: {escape(case.searched)}</p>' if case.searched != question.question else ""
    return (
        f"<article><h3>{escape(question.question)}</h3>"
        f'<p class="bad">{escape(question.id)} · {_WHAT[_kind(case)]}</p>{history}{searched}'
        f'<div class="sides"><section>{_wanted(case)}</section><section>{_said(case)}</section></div>'
        f"{_read(case)}</article>"
    )


def _kind(case: Case) -> str:
    if case.status == "failed":
        return "failed"
    if not case.question.answerable:
        return "false answer"
    return "other evidence" if case.answered else "false refusal"


def _wanted(case: Case) -> str:
    question = case.question
    parts = ['<div class="label">wanted</div>']
    if not question.answerable:
        parts.append(f"<p>A refusal.</p><p>{escape(question.why)}</p>")
    if question.answer:
        parts.append(f"<p>{escape(' / '.join(question.answer))}</p>")
    parts.extend(f'<blockquote class="right">{escape(sentence)}</blockquote>' for sentence in question.sentence)
    if place := " › ".join(filter(None, (", ".join(question.page), question.section))):
        parts.append(f'<p class="dim">{escape(place)}</p>')
    if question.selection:
        parts.append(
            f"<details><summary>selection</summary><blockquote>{escape(question.selection)}</blockquote></details>"
        )
    return "".join(parts)


def _said(case: Case) -> str:
    parts = ['<div class="label">said</div>', f"<p>{escape(case.answer or case.error)}</p>"]
    for number, citation in enumerate(case.citations, 1):
        mark = ' class="right"' if case.question.answerable and is_evidence(case.question, citation) else ""
        parts.append(f"<blockquote{mark}>[{number}] {escape(citation.quote)}</blockquote>{_place(citation)}")
    if case.answered:
        parts.append(f'<p class="dim">confidence {case.level} ({case.confidence:.2f})</p>')
    return "".join(parts)


def _read(case: Case) -> str:
    if not case.passages:
        return ""
    parts = []
    for number, passage in enumerate(case.passages, 1):
        mark = ' class="right"' if case.question.answerable and in_place(case.question, passage) else ""
        text = passage.text if len(passage.text) <= SHOWN_TEXT else passage.text[:SHOWN_TEXT] + " …"
        parts.append(
            f"<blockquote{mark}>{escape(text)}</blockquote>{_place(passage, f'{number}. ', passage.similarity)}"
        )
    shown = "" if case.citations else " open"  # if nothing was cited, the passages are shown open
    return f"<details{shown}><summary>{len(parts)} passages were read</summary>{''.join(parts)}</details>"


def _place(item: FoundPassage | Citation, before: str = "", similarity: float | None = None) -> str:
    place = " › ".join(dict.fromkeys(filter(None, (item.page_title, item.section_heading))))
    near = f" · similarity {similarity:.2f}" if similarity is not None else ""
    return f'<p class="dim">{escape(f"{before}{place} · {item.source_url}{near}")}</p>'
