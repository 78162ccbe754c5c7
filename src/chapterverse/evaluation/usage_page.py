"""Writes the usage report as one HTML page that needs no other file.

All text from outside is escaped, and the page's Content-Security-Policy forbids every request.
"""

from html import escape
from typing import Final

from chapterverse.editions import NAMELESS, edition_label
from chapterverse.evaluation import plots
from chapterverse.evaluation.gaps import TROUBLE_LABELS, Gap, GapQuestion, Trouble
from chapterverse.evaluation.report_page import STYLE
from chapterverse.evaluation.usage import UsageReport

DRAWN_GAPS: Final = 12  # in the plot; the list below has all
LACKING: Final = (
    "What the book lacks",
    "Several questions about the same thing were refused, and no section comes nearest to all of them; or a reader "
    "rated an answer down.",
)
UNSURE: Final = (
    "What the book may lack",
    "Single questions, and several that come nearest to the same section. About half of them are answered by the book, "
    "and were refused by mistake: look at the nearest sections first.",
)

_STYLE: Final = """
.answered { fill: var(--good); background: var(--good); } .refused { fill: var(--blue); background: var(--blue); }
.rated-down { fill: var(--bad); background: var(--bad); } .low { fill: var(--dim); background: var(--dim); }
.legend { display: flex; flex-wrap: wrap; gap: .3rem 1.2rem; padding: 0; list-style: none; }
.legend i { display: inline-block; width: .8rem; height: .8rem; margin-right: .4rem; border-radius: 2px; }
.figures { display: flex; flex-wrap: wrap; gap: 1rem 2rem; padding: 0; list-style: none; }
.figures b { display: block; font-size: 1.6rem; }
pre { white-space: pre-wrap; background: var(--soft); padding: .8rem; }
article ul { padding-left: 1.2rem; }
"""


def make_usage_page(report: UsageReport) -> str:
    """Return the whole page."""
    parts = [_head(report), _figures(report), _plots(report)]
    for sure, (title, note) in ((True, LACKING), (False, UNSURE)):
        gaps = [(number, gap) for number, gap in enumerate(report.gaps, 1) if gap.sure == sure]
        if gaps:
            parts.append(f'<h2>{title} ({len(gaps)})</h2><p class="dim">{note}</p>')
            parts += [_gap(gap, number) for number, gap in gaps]
    if not report.gaps:
        parts.append("<p>No question was refused, answered with low confidence or rated down.</p>")
    return "\n".join([*parts, "</main></body></html>", ""])


def _head(report: UsageReport) -> str:
    named = f" · groups named by {report.named_by}" if report.named_by else ""
    about = f"{report.since:%Y-%m-%d} to {report.until:%Y-%m-%d} (UTC) · {report.book}{named}"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>What readers asked</title><style>{STYLE}{_STYLE}</style></head><body><main>"
        f'<h1>What readers asked</h1><p class="dim">{escape(about)}</p>'
    )


def figures_of(report: UsageReport) -> list[tuple[str, int]]:
    """Return the counts with their names."""
    return [
        ("questions", report.questions),
        ("conversations", report.sessions),
        ("answered", report.answered),
        ("refused", report.refused),
        ("low confidence", report.low_confidence),
        ("rated up", report.rated_up),
        ("rated down", report.rated_down),
    ]


def _figures(report: UsageReport) -> str:
    items = "".join(f"<li><b>{count:,}</b>{name}</li>" for name, count in figures_of(report))
    reasons = ", ".join(f"{reason.replace('_', ' ')} {count}" for reason, count in report.reasons.items())
    why = f'<p class="dim">Reasons given: {escape(reasons)}</p>' if reasons else ""
    return f'<ul class="figures">{items}</ul>{why}{_editions(report)}'


def _editions(report: UsageReport) -> str:
    if not report.editions:
        return ""
    rows = "".join(
        f"<tr><th>{escape(edition_label(edition.book, edition.version) or NAMELESS)}</th><td>{edition.questions:,}</td>"
        f"<td>{edition.answered:,}</td><td>{edition.refused:,}</td><td>{edition.rated_down:,}</td></tr>"
        for edition in report.editions
    )
    head = "".join(f"<th>{name}</th>" for name in ("book", "questions", "answered", "refused", "rated down"))
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _plots(report: UsageReport) -> str:
    if not report.questions:
        return ""
    days = [(f"{span.begins:%Y-%m-%d}", _parts(span.answered, span.refused, span.rated_down)) for span in report.spans]
    down = report.rated_down
    outcomes = [
        ("answered", [("answered", report.answered)]),
        ("refused", [("refused", report.refused)]),
        ("rated down", [("rated-down", down)]),
    ]
    kinds: tuple[Trouble, ...] = ("refused", "low", "rated_down")
    gaps = [
        (gap.name, [(kind.replace("_", "-"), gap.troubles.get(kind, 0)) for kind in kinds])
        for gap in report.gaps[:DRAWN_GAPS]
    ]
    drawn = [plots.stacked_days(days), plots.bars("Answered, refused, rated down", outcomes)]
    if gaps:
        drawn.append(plots.bars("Groups of gaps", gaps))
    names = (("answered", "answered"), ("refused", "refused"), ("rated-down", "rated down"), ("low", "low confidence"))
    legend = "".join(f'<li><i class="{kind}"></i>{name}</li>' for kind, name in names)
    note = '<p class="dim">Over time, an answer that was rated down counts as rated down alone.</p>'
    return f'<div class="plots">{"".join(drawn)}</div><ul class="legend">{legend}</ul>{note}'


def _parts(answered: int, refused: int, rated_down: int) -> list[tuple[str, int]]:
    return [("answered", answered), ("refused", refused), ("rated-down", rated_down)]


def _gap(gap: Gap, number: int) -> str:
    sections = "".join(
        f'<li>{escape(section.place)} <span class="dim">{escape(section.source_url)}</span></li>'
        for section in gap.nearest
    )
    lacking = ", ".join(gap.missing_words)
    return (
        f"<article><h3>{number}. {escape(gap.name)}</h3>"
        f'<p class="dim">asked {gap.asked}×, {escape(gap.counts)}</p>'
        f"<ul>{''.join(map(_question, gap.questions))}</ul>"
        f'<div class="label">nearest sections</div><ul>{sections or "<li>none</li>"}</ul>'
        + (f'<div class="label">words that the book does not have</div><p>{escape(lacking)}</p>' if lacking else "")
        + f"<details><summary>draft of an issue</summary><pre>{escape(gap.issue)}</pre></details></article>"
    )


def _question(question: GapQuestion) -> str:
    facts = [
        TROUBLE_LABELS[question.trouble],
        *(reason.replace("_", " ") for reason in dict.fromkeys(question.reasons)),
    ]
    times = f" · {question.times}×" if question.times > 1 else ""
    comments = "".join(f"<blockquote>{escape(comment)}</blockquote>" for comment in question.comments)
    return (
        f'<li>{escape(question.question)} <span class="dim">({escape(", ".join(facts))}{times})</span>{comments}</li>'
    )
