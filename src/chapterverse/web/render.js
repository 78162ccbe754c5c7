/**
 * A page's stored text as nodes. The text is clean Markdown: headings, paragraphs with `code`, lists, quotes, fenced code,
 * pipe tables. Each block runs in the direction of its own script. Every text node is noted as a run (see offsets.js), so that a citation can be found to the character.
 */
import { element } from "./dom.js";
import { unitsOf } from "./offsets.js";

const FENCE = /^(`{3,})([^`]*)$/;
const ITEM = /^( *)(?:- |(\d+)\. )/;
const RULE = /^\|(?: *:?-+:? *\|)+$/;
const QUOTE = /^>/;
export const LABEL = /^(?:Note|Info|Tip|Hint|Important|Warning|Caution|Danger|Attention|Error|See also|Example|Success|Question)\b[^:.]{0,40}: /;
const CODE = /(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)/gs;

/**
 * @param {{text: string, sections: {start: number, level: number, anchor: string}[]}} page
 * @returns {{nodes: Node[], runs: {node: Text, start: number, end: number}[]}}
 */
export function render(page) {
  return new Rendering(page).finish();
}

/** A stretch of stored text for reading in passing: table rows without their bars, code without its fences. */
export function plain(text) {
  return text
    .replace(/^(?:`{3,}.*|\|[ :|-]+\|)$\n?/gm, "")
    .replace(/^\| *(.*?) *\|$/gm, (_, row) => row.replace(/ +\| +/g, " · "));
}

class Rendering {
  constructor({ text, sections }) {
    this.text = text;
    this.runs = [];
    const units = unitsOf(text);
    this.headings = new Map(sections.map((section) => [units(section.start), section]));
    this.lines = [];
    for (let start = 0; start <= text.length; ) {
      const found = text.indexOf("\n", start);
      const end = found < 0 ? text.length : found;
      this.lines.push({ start, end, text: text.slice(start, end) });
      start = end + 1;
    }
    this.at = 0;
    this.inTable = false;
  }

  finish() {
    const nodes = [];
    while (this.at < this.lines.length) {
      if (this.lines[this.at].text.trim()) nodes.push(this.block());
      else this.at += 1;
    }
    return { nodes, runs: this.runs };
  }

  block() {
    const line = this.lines[this.at];
    const section = this.headings.get(line.start);
    if (section) return this.heading(line, section);
    if (FENCE.test(line.text)) return this.code();
    if (line.text.startsWith("|") && RULE.test(this.lines[this.at + 1]?.text ?? "")) return this.table();
    if (QUOTE.test(line.text)) return this.quote();
    if (ITEM.test(line.text)) return this.list();
    return this.paragraph();
  }

  heading(line, section) {
    this.at += 1;
    const made = element(`h${section.level}`, { id: section.anchor || null, tabindex: "-1", dir: "auto" });
    return this.inline(made, line.start + section.level + 1, line.end);
  }

  code() {
    const [, fence, language] = FENCE.exec(this.lines[this.at].text);
    const first = this.at + 1;
    let last = first;
    while (last < this.lines.length && this.lines[last].text !== fence) last += 1;
    this.at = last + 1;
    const code = element("code");
    if (last > first) this.run(code, this.lines[first].start, this.lines[last - 1].end);
    const label = language.trim() ? `Code, ${language.trim()}` : "Code";
    return element("pre", { dir: "ltr", tabindex: "0", role: "group", "aria-label": label, "data-language": language.trim() || null }, code);
  }

  table() {
    const rows = this.take((line) => line.text.startsWith("|"));
    const row = (line, tag) => element("tr", {}, ...this.cells(line, tag));
    this.inTable = true;
    const head = element("thead", {}, row(rows[0], "th"));
    const body = element("tbody", {}, ...rows.slice(2).map((line) => row(line, "td")));
    this.inTable = false;
    const table = element("table", { dir: "auto" }, head, body);
    return element("div", { class: "table", tabindex: "0", role: "group", "aria-label": "Table" }, table);
  }

  cells(line, tag) {
    const bars = [...line.text.matchAll(/(?<!\\)\|/g)].map((bar) => line.start + bar.index);
    return bars.slice(0, -1).map((bar, index) => {
      const cell = element(tag, tag === "th" ? { scope: "col" } : {});
      const raw = this.text.slice(bar + 1, bars[index + 1]);
      const start = bar + 1 + (raw.length - raw.trimStart().length);
      return raw.trim() ? this.inline(cell, start, start + raw.trim().length) : cell;
    });
  }

  quote() {
    const quote = element("blockquote", { dir: "auto" });
    let paragraph = null;
    for (const line of this.take((line) => QUOTE.test(line.text))) {
      const lead = /^> ?/.exec(line.text)[0].length;
      if (line.text.length === lead) {
        paragraph = null;
        continue;
      }
      if (paragraph) paragraph.append(element("br"));
      else quote.append((paragraph = element("p")));
      this.inline(paragraph, line.start + lead, line.end);
    }
    return quote;
  }

  list() {
    const open = []; // the lists around this line, outermost first
    let top = null;
    for (const line of this.take((line) => line.text.trim())) {
      const found = ITEM.exec(line.text);
      if (!found) {
        const lead = line.text.length - line.text.trimStart().length;
        this.inline(open.at(-1).item.appendChild(element("p")), line.start + lead, line.end);
        continue;
      }
      const [lead, { length: indent }, number] = found;
      while (open.length > 1 && open.at(-1).indent > indent) open.pop();
      if (!open.length || open.at(-1).indent < indent) {
        const list = element(number ? "ol" : "ul", { start: number && number !== "1" ? number : null, dir: "auto" });
        if (open.length) open.at(-1).item.append(list);
        else top = list;
        open.push({ list, indent, item: null });
      }
      const innermost = open.at(-1);
      innermost.item = innermost.list.appendChild(element("li"));
      this.inline(innermost.item, line.start + lead.length, line.end);
    }
    return top;
  }

  paragraph() {
    const lines = this.take((line, index) => line.text.trim() && (index === this.at || !this.headings.has(line.start)));
    const label = LABEL.exec(lines[0].text)?.[0].length ?? 0;
    const made = element("p", { class: label ? "aside" : null, dir: "auto" });
    const { start } = lines[0];
    if (label) this.run(made.appendChild(element("strong")), start, start + label);
    return this.inline(made, start + label, lines.at(-1).end);
  }

  /** The lines from here on as long as they belong together. */
  take(belongs) {
    const first = this.at;
    let last = first;
    while (last < this.lines.length && belongs(this.lines[last], last)) last += 1;
    this.at = last;
    return this.lines.slice(first, last);
  }

  /** Text with `code` in it. */
  inline(parent, start, end) {
    const text = this.text.slice(start, end);
    let done = 0;
    for (const found of text.matchAll(CODE)) {
      const ticks = found[1].length;
      this.run(parent, start + done, start + found.index);
      const code = parent.appendChild(element("code"));
      done = found.index + found[0].length;
      this.run(code, start + found.index + ticks, start + done - ticks);
    }
    this.run(parent, start + done, end);
    return parent;
  }

  /** A text node and its place. In a table a bar of the text is written with a backslash, which is not shown. */
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
