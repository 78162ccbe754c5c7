"""Benchmark of the gate: `python -m bench.answers [--unread FILE] [--readings FILE]`.

Replays recorded answers of a strong model through the real gate, with judges that answer from the labels. The bars are
those of issue 11. Whether an answer that lost a statement is still complete is decided by a blind reader
(`readings.py`). Texts without a valid reading are written to a file with rows {id, question, passages, shown}. They
count as incomplete until `--readings` names a file with rows {id, complete}.
"""

import argparse
import asyncio
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any, Final

from bench.answers.holes import holes
from bench.answers.inventions import inventions
from bench.answers.judges import NAMES, PLANTED, LabelJudge
from bench.answers.readings import accept, unread, valid
from bench.answers.recorded import Recording, digest, load
from bench.answers.replay import Replayed, replay
from bench.answers.statements import PROMPTS
from bench.results import ROOT, save
from bench.scoreboard.asking import code_digest
from chapterverse.answering.refusals import is_refusal
from chapterverse.evidence.exact import Known, missing_in
from chapterverse.evidence.gate import speaks_of_absence
from chapterverse.evidence.statement import Statement

# Name of a figure, comparison, and bar.
BARS: Final = (
    ("true statements shown as written", ">=", 0.90),
    ("false statements shown", "<=", 0),
    ("code blocks kept", ">=", 0.98),
    ("absence statements kept", ">=", 1.0),
    ("complete answers still complete", ">=", 0.95),
    ("faults in lists, openers and announcements", "<=", 0),
)


async def right_judge(recordings: list[Recording]) -> dict[str, Any]:
    """Compute figures with a judge that makes no errors: for true, false and half-false answers."""
    shown: Counter[str] = Counter()
    of: Counter[str] = Counter()
    tokens: list[int] = []
    faults: list[str] = []
    slips: list[str] = []
    whole = complete = 0
    read = valid()
    for one in recordings:
        true = await replay(one.drafts(), one.evidence(), LabelJudge(one, "right"))
        tokens.append(true.usage.tokens)
        lost = _tally(one, true, shown, of)
        whole += not lost
        complete += not lost or read.get((one.item, one.prompt, digest(true.text)), False)
        mixed = [await replay(one.lies(2, first), one.evidence(), LabelJudge(one, "right")) for first in (0, 1)]
        false = await replay(one.lies(), one.evidence(), LabelJudge(one, "right"))
        slips += [text for seen in (*mixed, false) for text in _false_shown(one, seen)]
        faults += [f"{one.item} {one.prompt}: {fault}" for seen in (true, *mixed, false) for fault in holes(seen)]
    return {
        "answers": len(recordings),
        "true statements shown as written": _share(shown["all"], of["all"]),
        "of": of["all"],
        "absence statements kept": _share(shown["absence"], of["absence"]),
        "code blocks kept": _share(shown["code"], of["code"]),
        "answers shown whole": _share(whole, len(recordings)),
        "complete answers still complete": _share(complete, len(recordings)),
        "false statements shown": len(slips),
        "false statements": sum(bool(labelled.false) for one in recordings for labelled in one.statements),
        "faults in lists, openers and announcements": len(faults),
        "judge tokens an answer": round(sum(tokens) / len(tokens)),
        "slips": slips[:20],
        "faults": faults[:20],
    }


def _tally(one: Recording, seen: Replayed, shown: Counter[str], of: Counter[str]) -> list[str]:
    """Count the true statements that were shown, and collect those that were not."""
    lost = []
    for labelled in one.statements:
        if not labelled.supported or is_refusal(labelled.statement.text):
            continue
        kind = labelled.kind if labelled.kind in ("absence", "code") else "other"
        kept = seen.shows(labelled.statement)
        for name in ("all", kind):
            of[name] += 1
            shown[name] += kept
        if not kept:
            lost.append(labelled.statement.text)
    return lost


def _false_shown(one: Recording, seen: Replayed, *, quotes: bool = True) -> list[str]:
    """Return the false statements that were shown. Without a judge, the book's own words are shown as quotations, and a
    false answer may consist of them. They are counted only if `quotes` is set."""
    false = {labelled.false for labelled in one.statements if labelled.false}
    shown = [proven for proven in seen.proven if quotes or proven.kind != "quoted"]
    return [proven.statement.text for proven in shown if proven.statement.text in false and not proven.replaced]


async def other_judges(recordings: list[Recording]) -> dict[str, dict[str, Any]]:
    """Compute figures with every other judge, and without one."""
    found: dict[str, dict[str, Any]] = {}
    for name in (*NAMES[1:], "none"):
        counts: Counter[str] = Counter()
        for one in recordings:
            for drafts in (one.drafts(), one.lies()):
                judge = None if name == "none" else LabelJudge(one, name)
                evidence = one.evidence()
                if name == "obeys":
                    evidence.issue_text(PLANTED)
                seen = await replay(drafts, evidence, judge, 0.05 if name == "late" else 30.0)
                false = _false_shown(one, seen, quotes=False)
                known = Known(seen.evidence)
                counts["false shown"] += len(false)
                counts["false passed by the judge"] += len(set(judge.wrong)) if judge else 0
                counts["not the book's words"] += sum(proven.kind != "quoted" for proven in seen.proven)
                counts["shown that fail an exact check"] += sum(
                    bool(missing_in(said, known, names=not speaks_of_absence(said.text)))
                    for said in (proven.statement for proven in seen.proven if proven.kind != "quoted")
                )
                counts["replaced"] += seen.counts.replaced
                if drafts == one.drafts():
                    code = [labelled for labelled in one.statements if labelled.kind == "code"]
                    counts["code blocks"] += len(code)
                    counts["code blocks kept"] += sum(seen.shows(labelled.statement) for labelled in code)
                    counts["faults"] += sum(1 for _ in holes(seen))
        found[name] = dict(counts)
    return found


def exact_checks(recordings: list[Recording]) -> dict[str, Any]:
    """Compute figures of the exact checks alone: inventions that were caught, and true statements that failed."""
    caught: Counter[str] = Counter()
    tried: Counter[str] = Counter()
    failed: list[str] = []
    passed: list[str] = []
    true = 0
    for one in recordings:
        known = Known(one.evidence())
        issued = "\n".join([one.question, *(f"{each['where']}\n{each['text']}" for each in one.passages())])
        for labelled in one.statements:
            text = labelled.statement.text
            if labelled.statement.shape == "code" or not labelled.supported or is_refusal(text):
                continue
            true += 1
            if absent := missing_in(labelled.statement, known, names=not speaks_of_absence(text)):
                failed.append(f"{one.item} {one.prompt}: {absent} ← {text}")
                continue
            for kind, invented in inventions(text, issued):
                tried[kind] += 1
                caught[kind] += bool(missing_in(Statement(invented), known))
                if not missing_in(Statement(invented), known):
                    passed.append(f"{one.item} {one.prompt} {kind}: {invented}")
    return {
        "inventions caught": {kind: _share(caught[kind], tried[kind]) for kind in sorted(tried)},
        "inventions": dict(tried),
        "inventions caught, all": _share(caught.total(), tried.total()),
        "true statements failed": _share(len(failed), true),
        "failed": failed[:60],
        "passed": passed[:60],
    }


def _share(part: int, whole: int) -> float:
    return round(part / whole, 4) if whole else 1.0


def _verdicts(result: dict[str, Any]) -> list[str]:
    missed = []
    for prompt in PROMPTS:
        for name, how, bar in BARS:
            value = result["right judge"][prompt][name]
            if not (value >= bar if how == ">=" else value <= bar):
                missed.append(f"{prompt}: {name} {value}, bar {how} {bar}")
    exact = result["exact checks"]
    if exact["inventions caught, all"] < 0.99:
        missed.append(f"inventions caught {exact['inventions caught, all']}, bar >= 0.99")
    if exact["true statements failed"] > 0.02:
        missed.append(f"true statements failed {exact['true statements failed']}, bar <= 0.02")
    none = result["other judges"]["none"]
    if none["false shown"] or none["not the book's words"]:
        missed.append("without a judge something else than the book's words was shown")
    if none["code blocks kept"] < 0.95 * none["code blocks"]:
        missed.append("without a judge code was lost")
    for name, counts in result["other judges"].items():
        if counts["shown that fail an exact check"]:
            missed.append(f"{name}: something was shown that fails an exact check")
        if counts["false shown"] > counts["false passed by the judge"]:
            missed.append(f"{name}: more false statements were shown than the judge passed")
    return missed


async def measure() -> dict[str, Any]:
    """Compute all figures."""
    recordings = load()
    by_prompt = {prompt: [one for one in recordings if one.prompt == prompt] for prompt in PROMPTS}
    result: dict[str, Any] = {"code": code_digest()}
    result["right judge"] = {prompt: await right_judge(found) for prompt, found in by_prompt.items()}
    result["other judges"] = await other_judges(recordings)
    result["exact checks"] = exact_checks(recordings)
    result["missed"] = _verdicts(result)
    return result


async def shown_texts(recordings: list[Recording]) -> list[dict[str, Any]]:
    """Return the text that a reader sees of each answer with a judge that makes no errors, and the true statements that
    are missing from it."""
    rows = []
    for one in recordings:
        seen = await replay(one.drafts(), one.evidence(), LabelJudge(one, "right"))
        lost = _tally(one, seen, Counter(), Counter())
        row = {"item": one.item, "prompt": one.prompt, "question": one.question, "digest": digest(seen.text)}
        rows.append(row | {"shown": seen.text, "lost": lost})
    return rows


def main() -> int:
    """Measure, print and save."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--unread", type=Path, default=ROOT / ".cache" / "answers-unread.jsonl", help="for a reader")
    parser.add_argument("--readings", type=Path, help="what a blind reader said: JSON lines {id, complete}")
    parser.add_argument("--no-save", action="store_true")
    arguments = parser.parse_args()
    recordings = load()
    shown = asyncio.run(shown_texts(recordings))
    if arguments.readings:
        print(f"{accept(arguments.readings, shown)} readings taken over", file=sys.stderr)
    left = unread(shown, recordings)
    arguments.unread.parent.mkdir(parents=True, exist_ok=True)
    arguments.unread.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in left), "utf-8")
    print(
        f"{len(left) // 2} shown texts have no valid reading; with as many others: {arguments.unread}", file=sys.stderr
    )
    result = asyncio.run(measure())
    result["without a valid reading"] = len(left) // 2
    print(json.dumps(result, indent=1, ensure_ascii=False))
    if not arguments.no_save:
        print(f"saved: {save('answers', result).name}", file=sys.stderr)
    print("all bars are met" if not result["missed"] else "MISSED", file=sys.stderr)
    return 1 if result["missed"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
