/**
 * Renders a page's stored text as nodes (`api/page_html.py` makes the same as HTML, for the first paint). Blocks give the kind
 * of each range; marks give formatting and links. Text is only inserted as text nodes. Each block has the direction of its own
 * script. Every text node is recorded as a run (see offsets.js), so that a citation can be located exactly.
 */
import { bookId, copyFrom, element, icon } from "./dom.js";
import { tokensOf } from "./highlight.js";
import { unitsOf } from "./offsets.js";

export const ITEM = /^( *)(?:[-*+•] |(\d+)\. )/;
const RULE = /^\|(?: *:?-+:? *\|)+$/;
export const LABEL = /^(?:Note|Info|Tip|Hint|Important|Warning|Caution|Danger|Attention|Error|See also|Example|Success|Question)\b[^:.]{0,40}: /;
const CODE = /(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)/gs;
const TAGS = { emphasis: "em", strong: "strong", code: "code", sub: "sub", sup: "sup", footnote: "small" };
const TONES = {
  note: "note", info: "note", abstract: "note", seealso: "note", example: "note", quote: "note",
  tip: "tip", hint: "tip", success: "tip", question: "tip", important: "warning", warning: "warning", caution: "warning",
  attention: "warning", deprecated: "warning", danger: "danger", error: "danger", failure: "danger", bug: "danger",
};

/**
 * @param {{text: string, sections: object[], blocks: object[], marks: object[]}} page  as `GET /pages/{page_id}` gives it
 * @param {(target: string) => object|null} leading  attributes of a link to a target; null if it cannot be linked
 * @param {string} [root]  prefix for the addresses of images
 * @param {((source: string) => Promise<string>)|null} [fetchImage]  returns the address of an image that the browser cannot load itself
 * @returns {{nodes: Node[], runs: {node: Text, start: number, end: number}[]}}
 */
export function render(page, leading, root = "", fetchImage = null) {
  return new Rendering(page, leading, root, fetchImage).finish();
}

class Rendering {
  constructor({ text, sections, blocks, marks }, leading, root, fetchImage) {
    const units = unitsOf(text);
    const placed = (one) => ({ ...one, start: units(one.start), end: units(one.end) });
    Object.assign(this, { text, leading, root, fetchImage, runs: [], inTable: false, figureAbove: null, caption: null, nextMark: 0, notes: new Set() });
    this.around = []; // the elements that the next block may be inside of, outermost first
    this.begun = []; // those that the current block opens
    this.headings = new Map(sections.map((section) => [units(section.start), section]));
    this.blocks = blocks.map(placed);
    this.marks = marks.map(placed);
  }

  finish() {
    const nodes = [];
    for (const block of this.blocks) {
      const inside = Math.min(block.inside ?? 0, this.around.length);
      const made = this.block(block, inside);
      this.figureAbove = block.kind === "image" ? made : null; // the figure whose caption the next block may be
      if (inside && made) this.around[inside - 1].append(made);
      else if (made) nodes.push(made);
      this.around.length = inside; // what the block opens comes after what it is inside of
      this.around.push(...this.begun);
      this.begun = [];
    }
    return { nodes, runs: this.runs };
  }

  block(block, inside) {
    switch (block.kind) {
      case "heading": return this.heading(block);
      case "code": return this.code(block);
      case "table": return this.table(block);
      case "list": return this.list(this.linesOf(block.start, block.end), inside);
      case "quote": return this.quote(block);
      case "admonition": return this.admonition(block);
      case "field": return this.field(block);
      case "image": return this.figure({ target: block.info, source: block.source, title: /^\[Image: (.*)\]$/s.exec(this.text.slice(block.start, block.end))?.[1] ?? "" });
      default: return block.info === "caption" ? this.captioned(block) : this.paragraph(block.start, block.end);
    }
  }

  heading({ start, end }) {
    const section = this.headings.get(start);
    const level = section?.level ?? 4; // in an excerpt it is below the question, which is an h3
    const made = element(`h${level}`, { id: section?.anchor ? bookId(section.anchor) : null, tabindex: "-1", dir: "auto" });
    return this.inline(made, start + /^#+ /.exec(this.text.slice(start, end))[0].length, end);
  }

  code({ start, end, info, caption }) {
    const lines = this.linesOf(start, end);
    const within = lines.slice(1, /^\s*[`~]{3}/.test(lines.at(-1).text) ? -1 : undefined); // an excerpt may end inside code
    const [first, last] = within.length ? [within[0].start, within.at(-1).end] : [start, start];
    const source = this.text.slice(first, last);
    const code = element("code");
    let place = first;
    for (const [text, kind] of tokensOf(source, info)) {
      this.run(kind ? code.appendChild(element("span", { class: `token ${kind}` })) : code, place, place + text.length);
      place += text.length;
    }
    const label = info ? `Code, ${info}` : "Code";
    const copy = element("button", { type: "button", class: "copy", "aria-label": "Copy the code", title: "Copy the code", onclick: () => copyFrom(copy, source) }, icon("copy"));
    return element(
      "div",
      { class: "code", "data-language": info || null },
      element("div", { class: "code-head" }, caption && element("span", { class: "caption", dir: "auto" }, caption), info && element("span", { class: "language" }, info), copy),
      element("pre", { dir: "ltr", tabindex: "0", role: "group", "aria-label": caption ? `${label}: ${caption}` : label }, code),
    );
  }

  table({ start, end }) {
    const rows = this.linesOf(start, end).filter((line) => line.text.startsWith("|"));
    const ruled = RULE.test(rows[1]?.text ?? "");
    const row = (line, tag) => element("tr", {}, ...this.cells(line, tag));
    this.inTable = true;
    const named = ruled && rows[0].text.replace(/[|\s]/g, "");
    const head = named ? element("thead", {}, row(rows[0], "th")) : null;
    const body = element("tbody", {}, ...rows.slice(ruled ? 2 : 0).map((line) => row(line, "td")));
    this.inTable = false;
    const table = element("table", { dir: "auto" }, this.caption, head, body);
    this.caption = null;
    return element("div", { class: "table", tabindex: "0", role: "group", "aria-label": "Table" }, table);
  }

  cells(line, tag) {
    const bars = [...line.text.matchAll(/(?<!\\)\|/g)].map((bar) => line.start + bar.index);
    return bars.slice(0, -1).map((bar, index) => {
      const cell = element(tag, tag === "th" ? { scope: "col" } : {});
      const raw = this.text.slice(bar + 1, bars[index + 1]);
      const start = bar + 1 + (raw.length - raw.trimStart().length);
      return this.inline(cell, start, start + raw.trim().length, bar + 1); // an image may be in the space before the words
    });
  }

  quote({ start, end }) {
    const quote = element("blockquote", { dir: "auto" });
    let paragraph = null;
    for (const line of this.linesOf(start, end)) {
      const lead = /^> ?/.exec(line.text)?.[0].length ?? 0;
      if (line.text.length === lead) {
        paragraph = null;
        continue;
      }
      if (paragraph) paragraph.append(element("br"));
      else quote.append((paragraph = element("p")));
      this.inline(paragraph, line.start + lead, line.end);
    }
    this.begun = [quote];
    return quote;
  }

  /** Returns a new list, or null if the items were added to the list before. */
  list(lines, inside = -1) {
    const open = []; // the lists around this line, outermost first
    let top = null;
    const before = this.around[inside]?.localName === "li" ? this.around[inside].parentNode : null;
    if (before && goesOn(before, ITEM.exec(lines[0]?.text ?? "")?.[2])) open.push({ list: before, indent: 0, item: before.lastChild });
    for (const line of lines.filter((one) => one.text.trim())) {
      const found = ITEM.exec(line.text);
      const lead = found?.[0].length ?? line.text.length - line.text.trimStart().length;
      if (!found && open.length) {
        this.inline(open.at(-1).item.appendChild(element("p")), line.start + lead, line.end);
        continue;
      }
      const indent = found?.[1].length ?? 0;
      const number = found?.[2];
      while (open.length > 1 && open.at(-1).indent > indent) open.pop();
      if (!open.length || open.at(-1).indent < indent) {
        const list = element(number ? "ol" : "ul", { start: number && number !== "1" ? number : null, dir: "auto" });
        if (open.length) open.at(-1).item.append(list);
        else top = list;
        open.push({ list, indent, item: null });
      }
      const innermost = open.at(-1);
      innermost.item = innermost.list.appendChild(element("li", { value: innermost.list.localName === "ol" ? number : null }));
      this.inline(innermost.item, line.start + lead, line.end);
    }
    this.begun = open.map((one) => one.item);
    return top;
  }

  admonition({ start, end, info, caption }) {
    const made = element("div", { class: `aside tone-${TONES[info.split(" ")[0]] ?? "note"}`, role: "note", dir: "auto" });
    const labelled = this.text.startsWith(caption, start);
    const after = labelled ? /^:?(?:\s|$)/.exec(this.text.slice(start + caption.length, end)) : null;
    if (after) this.inline(made.appendChild(element("p", { class: "label" })), start, start + caption.length);
    this.flow(made, after ? start + caption.length + after[0].length : start, end);
    this.begun = [made];
    return made;
  }

  field({ start, end }) {
    const [name, ...rest] = this.linesOf(start, end);
    const term = element("dt", { dir: "auto" });
    this.inline(term, name.start, name.end);
    const described = element("dd", { dir: "auto" });
    if (rest.length) this.flow(described, rest[0].start, end);
    this.begun = [described];
    return element("dl", { class: "definition" }, term, described);
  }

  /** Adds the paragraphs and lists inside a block to `parent`. */
  flow(parent, start, end) {
    let lines = [];
    const close = () => {
      if (lines.length) parent.append(ITEM.test(lines[0].text) ? this.list(lines) : this.paragraph(lines[0].start, lines.at(-1).end));
      lines = [];
    };
    for (const line of this.linesOf(start, end)) {
      const inList = lines.length && ITEM.test(lines[0].text) && (ITEM.test(line.text) || line.text.startsWith(" "));
      if (!line.text.trim() || !inList) close();
      if (line.text.trim()) lines.push(line);
    }
    close();
    return parent;
  }

  /** Adds the caption of the image above, or keeps it for the table below. Returns null. */
  captioned({ start, end }) {
    const caption = this.inline(element(this.figureAbove ? "figcaption" : "caption", { dir: "auto" }), start, end);
    if (this.figureAbove) this.figureAbove.append(caption);
    else this.caption = caption;
    return null;
  }

  paragraph(start, end) {
    return this.inline(element("p", { dir: "auto" }), start, end);
  }

  linesOf(start, end) {
    const lines = [];
    while (start <= end) {
      const found = this.text.indexOf("\n", start);
      const stop = found < 0 || found > end ? end : found;
      lines.push({ start, end: stop, text: this.text.slice(start, stop) });
      start = stop + 1;
    }
    return lines;
  }

  /** Adds a range of text with its marks and inline code, which is marked by backticks in the text. Blocks and marks must come in order. */
  inline(parent, start, end, from = start) {
    while (this.nextMark < this.marks.length && this.marks[this.nextMark].start < from) this.nextMark += 1;
    const spans = [];
    for (let index = this.nextMark; index < this.marks.length && this.marks[index].start <= end; index += 1) {
      const mark = this.marks[index];
      const ticks = mark.kind !== "math" ? undefined : this.text.startsWith("$$", mark.start) ? 2 : 1;
      if (mark.end <= end) spans.push({ ...mark, start: Math.max(mark.start, start), end: Math.max(mark.end, start), ticks });
    }
    const text = this.text.slice(start, end);
    for (const found of text.matchAll(CODE)) {
      const begin = start + found.index;
      spans.push({ kind: "code", start: begin, end: begin + found[0].length, ticks: found[1].length });
    }
    spans.sort((one, other) => one.start - other.start || other.end - one.end);
    this.nest(parent, start, end, spans);
    return parent;
  }

  nest(parent, start, end, spans) {
    let done = start;
    for (let index = 0; index < spans.length; ) {
      const span = spans[index];
      let next = index + 1;
      while (next < spans.length && spans[next].start < span.end) next += 1;
      if (span.start >= done && span.end <= end) {
        this.run(parent, done, span.start);
        const inner = spans.slice(index + 1, next).filter((one) => one.end <= span.end);
        this.span(parent, span, inner);
        done = span.end;
      }
      index = next;
    }
    this.run(parent, done, end);
  }

  span(parent, span, inner) {
    if (span.kind === "image") parent.append(this.picture(span));
    else if (span.kind === "footnote" && !this.saysNote(span)) parent.append(this.note(span.target));
    else {
      const quiet = span.ticks ?? 0; // characters at each end that are not shown
      const made = parent.appendChild(this.element(span));
      const verbatim = span.ticks !== undefined; // code and formulas contain no other code or formulas
      const power = span.kind === "sup" && this.text.startsWith("^", span.start); // shown raised instead
      this.nest(made, span.start + (power ? 1 : quiet), span.end - quiet, verbatim ? inner.filter((one) => one.ticks === undefined) : inner);
    }
  }

  element(span) {
    if (span.kind === "math") return element("span", { class: "math", dir: "ltr" });
    const attributes = span.kind === "link" ? this.leading(span.target) : null;
    return attributes ? element("a", attributes) : element(TAGS[span.kind] ?? "span");
  }

  /** Whether a footnote's text stands where it is cited, not only its label. */
  saysNote({ start, end, target }) {
    return !["", `[${target}]`].includes(this.text.slice(start, end));
  }

  note(label) {
    const first = !this.notes.has(label);
    this.notes.add(label);
    return element("sup", { class: "footnote", "aria-label": first ? `Footnote ${label}` : null }, label);
  }

  /** An inline image; if it is not stored here, its alternative text. */
  picture({ source, title }) {
    if (!source) return element("span", { class: "picture", dir: "auto" }, title || "image");
    const image = element("img", this.fetchImage ? { alt: title } : { src: this.root + source, alt: title, loading: "lazy" });
    const giveUp = () => image.replaceWith(this.picture({ title }));
    image.addEventListener("error", giveUp, { once: true });
    this.fetchImage?.(source).then((address) => {
      image.addEventListener("load", () => URL.revokeObjectURL(address), { once: true });
      image.src = address;
    }, giveUp);
    return image;
  }

  figure(image) {
    const attributes = image.source ? null : this.leading(image.target);
    const shown = this.picture(image);
    return element("figure", {}, attributes ? element("a", attributes, shown) : shown);
  }

  /** A text node and its offsets. In a table, the backslash before a bar is not shown. */
  run(parent, start, end) {
    if (start >= end) return;
    const bar = this.inTable ? this.text.slice(start, end).indexOf("\\|") : -1;
    if (bar >= 0) {
      this.run(parent, start, start + bar);
      this.run(parent, start + bar + 1, end);
      return;
    }
    const node = document.createTextNode(this.text.slice(start, end));
    parent.append(node);
    this.runs.push({ node, start, end });
  }
}

/** Whether an item continues the list before it: its number is higher, or both have no numbers. */
function goesOn(list, number) {
  if (list.localName === "ul") return number === undefined;
  return number !== undefined && Number(number) > list.lastChild.value;
}
