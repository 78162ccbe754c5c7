"""Draws small plots as SVG. The page's CSS classes give the colours. All text is escaped."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

WIDTH: Final = 360
HEIGHT: Final = 260
_LEFT: Final = 52
_RIGHT: Final = 20
_TOP: Final = 12
_BOTTOM: Final = 46
_LABEL: Final = 52  # characters of a label that fit
_BARS: Final = 20  # of a histogram


@dataclass(frozen=True, slots=True)
class Axes:
    """The titles of a plot, and the maximum of each axis; both start at 0."""

    title: str
    note: str  # how to read it
    across: str
    up: str
    most_across: float = 1.0
    most_up: float = 1.0
    percent: tuple[bool, bool] = (True, True)

    def x(self, value: float) -> float:
        """The distance of a value from the left."""
        return round(_LEFT + (WIDTH - _LEFT - _RIGHT) * value / self.most_across, 2)

    def y(self, value: float) -> float:
        """The distance of a value from the top."""
        return round(HEIGHT - _BOTTOM - (HEIGHT - _TOP - _BOTTOM) * value / self.most_up, 2)


def reliability(bins: Sequence[tuple[float, float, float, float, int]]) -> str:
    """Plot (confidence, share right, low, high, answers) of each bin, and the line where the first two are equal."""
    axes = Axes(
        "Is the confidence kept?",
        "On the line: the share of right answers equals the confidence. Above it: more are right.",
        "confidence",
        "share of answers that were right",
    )
    shapes = [f'<line class="guide" x1="{axes.x(0)}" y1="{axes.y(0)}" x2="{axes.x(1)}" y2="{axes.y(1)}"/>']
    for confidence, right, low, high, answers in bins:
        x = axes.x(confidence)
        tooltip = f"{answers} answers, confidence {confidence:.2f}, right {right:.0%} (95 %: {low:.0%} to {high:.0%})"
        shapes.append(f'<line class="whisker" x1="{x}" y1="{axes.y(low)}" x2="{x}" y2="{axes.y(high)}"/>')
        shapes.append(
            f'<circle class="mark" cx="{x}" cy="{axes.y(right)}" r="{_radius(answers)}">{_title(tooltip)}</circle>'
        )
    return _figure(axes, shapes)


def trade_off(points: Sequence[tuple[float, float, float]]) -> str:
    """Plot points of (least confidence, false refusals, false answers). The first point is the current state."""
    axes = Axes(
        "What if it refused more?",
        "The large dot: the current state. Each small one: a higher bar for answers.",
        "false refusals",
        "false answers",
    )
    line = " ".join(f"{axes.x(refusals)},{axes.y(answers)}" for _, refusals, answers in points)
    shapes = [f'<polyline class="curve" points="{line}"/>']
    for least, refusals, answers in points:
        tooltip = f"below {least:.2f} refused: {refusals:.0%} false refusals, {answers:.0%} false answers"
        shapes.append(
            f'<circle class="dot" cx="{axes.x(refusals)}" cy="{axes.y(answers)}" r="3">{_title(tooltip)}</circle>'
        )
    _, refusals, answers = points[0]
    tooltip = f"current state: {refusals:.0%} false refusals, {answers:.0%} false answers"
    shapes.append(
        f'<circle class="mark" cx="{axes.x(refusals)}" cy="{axes.y(answers)}" r="6">{_title(tooltip)}</circle>'
    )
    return _figure(axes, shapes)


def histogram(times: Sequence[float]) -> str:
    """Plot the distribution of answer times, in milliseconds."""
    most = _round_up(max(times))
    counts = [0] * _BARS
    for time in times:
        counts[min(_BARS - 1, int(time / most * _BARS))] += 1
    axes = Axes(
        "Time of an answer",
        "One question at a time gives the times that a reader has.",
        "milliseconds",
        "answers",
        most,
        _round_up(max(counts)),
        (False, False),
    )
    shapes = []
    for number, count in enumerate(counts):
        left, right = axes.x(number * most / _BARS), axes.x((number + 1) * most / _BARS)
        tooltip = f"{count} answers, {number * most / _BARS:.0f} to {(number + 1) * most / _BARS:.0f} ms"
        size = f'width="{right - left - 1:.2f}" height="{axes.y(0) - axes.y(count):.2f}"'
        shapes.append(f'<rect class="bar" x="{left}" y="{axes.y(count)}" {size}>{_title(tooltip)}</rect>')
    return _figure(axes, shapes)


def stacked_days(rows: Sequence[tuple[str, Sequence[tuple[str, int]]]]) -> str:
    """Plot (label, [(class, count), …]) of each span of time as stacked bars."""
    most = _round_up(max(1, *(sum(count for _, count in parts) for _, parts in rows)))
    axes = Axes("Questions over time", "", "", "questions", max(1, len(rows)), most, (False, False))
    shapes = []
    for number, (label, parts) in enumerate(rows):
        left, right = axes.x(number), axes.x(number + 1)
        below = 0
        for kind, count in parts:
            tooltip = f"{label}: {count} {kind.replace('-', ' ')}"
            height = axes.y(below) - axes.y(below + count)
            size = f'width="{max(0.5, (right - left) * 0.85):.2f}" height="{height:.2f}"'
            below += count
            if count:
                shapes.append(f'<rect class="{kind}" x="{left}" y="{axes.y(below)}" {size}>{_title(tooltip)}</rect>')
    ticks = []
    for quarter in (0.0, 0.25, 0.5, 0.75, 1.0):
        y = axes.y(quarter * most)
        ticks.append(f'<line class="grid" x1="{_LEFT}" y1="{y}" x2="{WIDTH - _RIGHT}" y2="{y}"/>')
        ticks.append(
            f'<text x="{_LEFT - 6}" y="{y + 4}" text-anchor="end">{_number(quarter * most, percent=False)}</text>'
        )
    ends = ((_LEFT, "start", rows[0][0]), (WIDTH - _RIGHT, "end", rows[-1][0])) if rows else ()
    ticks += [
        f'<text x="{x}" y="{HEIGHT - _BOTTOM + 16}" text-anchor="{anchor}">{escape(label)}</text>'
        for x, anchor, label in ends
    ]
    return _drawn(axes.title, HEIGHT, [*ticks, *shapes])


def bars(title: str, rows: Sequence[tuple[str, Sequence[tuple[str, int]]]]) -> str:
    """Plot (label, [(class, count), …]) of each row as a bar below its label, with the sum."""
    most = max(1, *(sum(count for _, count in parts) for _, parts in rows)) if rows else 1
    room = WIDTH - 2 * _RIGHT - 24
    shapes = []
    for number, (label, parts) in enumerate(rows):
        top, left = number * 36.0 + 4, float(_RIGHT)
        cut = label if len(label) <= _LABEL else label[: _LABEL - 1] + "…"
        shapes.append(f'<text x="{_RIGHT}" y="{top + 11}">{escape(cut)}{_title(label)}</text>')
        for kind, count in parts:
            width = room * count / most
            tooltip = f"{label}: {count} {kind.replace('-', ' ')}"
            if count:
                size = f'width="{width:.2f}" height="12"'
                shapes.append(f'<rect class="{kind}" x="{left:.2f}" y="{top + 16}" {size}>{_title(tooltip)}</rect>')
            left += width
        shapes.append(f'<text x="{left + 5:.2f}" y="{top + 26}">{sum(count for _, count in parts)}</text>')
    return _drawn(title, len(rows) * 36 + 8, shapes)


def _drawn(title: str, height: int, shapes: Sequence[str]) -> str:
    return (
        f"<figure><figcaption>{escape(title)}</figcaption>"
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(title)}">{"".join(shapes)}</svg></figure>'
    )


def _figure(axes: Axes, shapes: Sequence[str]) -> str:
    ticks = []
    for quarter in (0.0, 0.25, 0.5, 0.75, 1.0):
        x, y = axes.x(quarter * axes.most_across), axes.y(quarter * axes.most_up)
        ticks.append(f'<line class="grid" x1="{x}" y1="{axes.y(0)}" x2="{x}" y2="{_TOP}"/>')
        ticks.append(f'<line class="grid" x1="{_LEFT}" y1="{y}" x2="{WIDTH - _RIGHT}" y2="{y}"/>')
        across = _number(quarter * axes.most_across, percent=axes.percent[0])
        up = _number(quarter * axes.most_up, percent=axes.percent[1])
        ticks.append(f'<text x="{x}" y="{HEIGHT - _BOTTOM + 16}" text-anchor="middle">{across}</text>')
        ticks.append(f'<text x="{_LEFT - 6}" y="{y + 4}" text-anchor="end">{up}</text>')
    middle = (_TOP + HEIGHT - _BOTTOM) / 2
    names = (
        f'<text x="{(_LEFT + WIDTH - _RIGHT) / 2}" y="{HEIGHT - 8}" text-anchor="middle">{escape(axes.across)}</text>'
        f'<text x="12" y="{middle}" text-anchor="middle" transform="rotate(-90 12 {middle})">{escape(axes.up)}</text>'
    )
    drawn = "".join([*ticks, *shapes, names])
    return (
        f"<figure><figcaption>{escape(axes.title)}</figcaption>"
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(axes.title)}">{drawn}</svg>'
        f'<p class="dim">{escape(axes.note)}</p></figure>'
    )


def _title(text: str) -> str:
    return f"<title>{escape(text)}</title>"


def _radius(answers: int) -> float:
    return round(min(12.0, 3 + math.sqrt(answers)), 1)


def _number(value: float, *, percent: bool) -> str:
    return f"{value:.0%}" if percent else f"{value:,.0f}" if value >= 4 or value == int(value) else f"{value:.1f}"


def _round_up(value: float) -> float:
    """Return the next round number, at least 4, that gives round numbers when it is divided by four."""
    power = 10.0 ** math.floor(math.log10(max(value, 4.0)))
    return next(
        step * power for step in (1.2, 1.6, 2.0, 2.4, 3.2, 4.0, 6.0, 8.0, 12.0) if step * power >= max(value, 4.0)
    )
