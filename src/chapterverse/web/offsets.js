/**
 * Offsets in a text. The server counts characters (Unicode code points), the browser counts UTF-16 units. This module converts
 * between them, and between offsets in the stored text and positions in the page.
 *
 * A run is a text node and the units of the stored text it shows: `text.slice(run.start, run.end) === run.node.data`.
 */
import { element } from "./dom.js";

/** A function from character offsets of a text to its UTF-16 offsets. */
export function unitsOf(text) {
  if (!/[\uD800-\uDFFF]/.test(text)) return (point) => Math.min(point, text.length);
  const starts = [];
  let unit = 0;
  for (const character of text) {
    starts.push(unit);
    unit += character.length;
  }
  starts.push(unit);
  return (point) => starts[Math.min(point, starts.length - 1)];
}

/** How many characters a text has, as the server counts them. */
export function lengthOf(text) {
  let length = 0;
  for (const _ of text) length += 1;
  return length;
}

/** Wraps the range `start`–`end` in mark elements and updates the runs. */
export function mark(runs, start, end, kind = "evidence") {
  const marks = [];
  for (let index = 0; index < runs.length; index += 1) {
    const run = runs[index];
    const from = Math.max(start, run.start);
    const to = Math.min(end, run.end);
    if (from >= to || !run.node.data.slice(from - run.start, to - run.start).trim()) continue;
    const pieces = [[run.start, from], [from, to], [to, run.end]].filter(([first, last]) => first < last);
    const made = pieces.map(([first, last]) => ({
      node: document.createTextNode(run.node.data.slice(first - run.start, last - run.start)),
      start: first,
      end: last,
    }));
    run.node.replaceWith(
      ...made.map((piece) => {
        if (piece.start !== from) return piece.node;
        const marked = element("mark", { class: kind, tabindex: "-1" }, piece.node);
        marks.push(marked);
        return marked;
      }),
    );
    runs.splice(index, 1, ...made);
    index += made.length - 1;
  }
  return marks;
}

/** A source as part of a reader page address: the quoted range, and the parts of it that answer. */
export function quoteOf({ quote_start: start, quote_end: end, highlights = [] }) {
  const answering = highlights.map((one) => `${one.start}-${one.end}`).join(",");
  return `quote=${start}-${end}${answering ? `&answering=${answering}` : ""}`;
}

/** The range of the stored text that a selection in the page covers: `[start, end]`, or null if it covers none. */
export function placeOf(range, runs) {
  let start = null;
  let end = null;
  for (const run of runs) {
    if (!range.intersectsNode(run.node)) continue;
    const from = run.start + (run.node === range.startContainer ? range.startOffset : 0);
    const to = run.node === range.endContainer ? run.start + range.endOffset : run.end;
    if (from >= to) continue;
    start ??= from;
    end = to;
  }
  return start === null ? null : [start, end];
}
