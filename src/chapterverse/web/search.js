/** The search dialog: titles while typing, passages a moment later, with the words searched for marked. */
import { count, editionLabel, element } from "./dom.js";
import { flat } from "./excerpts.js";

const EXCERPT = 220; // characters
const LINES = 3; // lines of code
const PAUSE = 350; // milliseconds after the last key press before passages are searched
const SHORTEST = 3; // characters that a search needs
const TITLES = 5;

export class Search {
  /**
   * @param {{dialog: HTMLDialogElement, form: Element, box: HTMLInputElement, sheet: Element, status: Element,
   *   close: Element,
   *   api: import("./api.js").Api, pages: () => {page_id: string, title: string, chapter: string, edition: string}[],
   *   hrefOf: (id: string) => string, ask: (query: string) => void}} parts
   */
  constructor({ dialog, form, box, sheet, status, close, api, pages, hrefOf, ask }) {
    Object.assign(this, { dialog, box, sheet, status, api, pages, hrefOf, ask });
    this.running = null;
    this.timer = 0;
    box.addEventListener("input", () => this.typed());
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const first = sheet.querySelector("a");
      if (this.found === box.value.trim() && first) first.click();
      else this.search();
    });
    close.addEventListener("click", () => this.close());
    dialog.addEventListener("keydown", (event) => this.pressed(event));
    dialog.addEventListener("click", (event) => {
      if (event.target === dialog || event.target.closest("a")) this.close();
    });
    dialog.addEventListener("close", () => this.running?.abort());
  }

  open() {
    if (!this.dialog.open) this.dialog.showModal();
    this.box.select();
    this.typed();
  }

  close() {
    clearTimeout(this.timer);
    this.dialog.close();
  }

  typed() {
    clearTimeout(this.timer);
    this.running?.abort();
    const query = this.box.value.trim();
    if (query === this.found) return;
    this.show(this.titles(query), query ? null : element("p", { class: "note" }, "Search by words or by meaning. Enter opens the first result."));
    if (query.length >= SHORTEST) this.timer = setTimeout(() => this.search(), PAUSE);
  }

  async search() {
    clearTimeout(this.timer);
    const query = this.box.value.trim();
    if (!query) return;
    this.running?.abort();
    const running = (this.running = new AbortController());
    const titles = this.titles(query);
    this.show(titles, element("p", { class: "note searching" }, "Searching…"));
    try {
      const { results } = await this.api.search(query, running.signal);
      this.show(titles, ...this.passages(query, results, titles !== null));
      this.found = query;
      this.status.textContent = results.length ? `${count(results.length, "passage")} found` : "Nothing found";
    } catch (failure) {
      if (failure.name === "AbortError") return;
      const wait = failure.retryAfter ? ` Try again in ${Math.ceil(failure.retryAfter)} s.` : "";
      this.show(titles, element("p", { class: "failure", role: "alert" }, element("strong", {}, "Not searched. "), failure.message + wait));
    }
  }

  show(...nodes) {
    this.found = null;
    this.sheet.replaceChildren(...nodes.filter(Boolean));
  }

  /** Pages whose title contains the query. */
  titles(query) {
    if (!query) return null;
    const words = wordsOf(query);
    const found = this.pages().filter((page) => words.every((word) => matching([word]).test(page.title))).slice(0, TITLES);
    if (!found.length) return null;
    const items = found.map((page) => element("li", {}, element("a", { class: "hit", href: this.hrefOf(page.page_id) }, element("strong", { dir: "auto" }, ...marked(page.title, words)), crumb([page.edition.replace("@", " "), page.chapter]))));
    return element("section", { class: "titles" }, element("h2", {}, "Pages"), element("ul", {}, ...items));
  }

  /** Returns the results as elements. Passages are listed under their page. */
  passages(query, results, hasTitles) {
    if (!results.length) return [element("p", { class: "nothing" }, `Nothing found for “${query}”.`), this.asking(query)];
    const words = wordsOf(query);
    const has = matching(words);
    const isSaid = results.some((hit) => has.test(hit.chunk_text) || has.test(hit.breadcrumb));
    const pages = new Map();
    for (const hit of results) pages.set(hit.page_id, [...(pages.get(hit.page_id) ?? []), hit]);
    const chapters = new Map(this.pages().map((page) => [page.page_id, page.chapter]));
    const groups = [...pages].map(([id, hits]) => {
      const name = element("p", { class: "of-page" }, element("span", { dir: "auto" }, hits[0].page_title), crumb([editionLabel(hits[0]), chapters.get(id)]));
      return element("li", {}, name, element("ul", {}, ...hits.map((hit) => this.hit(hit, query, words))));
    });
    const nothing = isSaid || hasTitles ? null : element("p", { class: "nothing" }, `Nothing in the book has the words “${query}”. These passages come nearest in meaning:`);
    const found = element("section", { class: "passages" }, element("h2", {}, count(results.length, "passage")), element("ul", {}, ...groups));
    return [nothing, nothing && this.asking(query), found].filter(Boolean);
  }

  hit(hit, query, words) {
    const above = hit.breadcrumb.startsWith(`${hit.page_title} › `) ? hit.breadcrumb.slice(hit.page_title.length + 3) : hit.section_heading;
    const href = `${this.hrefOf(hit.page_id)}?quote=${hit.char_start}-${hit.char_end}&find=${encodeURIComponent(query)}`;
    return element("li", {}, element("a", { class: "hit", href }, element("strong", { dir: "auto" }, ...marked(above || hit.page_title, words)), excerpt(hit.chunk_text, words)));
  }

  /** A button that asks the book instead, for a query whose words are not in the book. */
  asking(query) {
    const ask = () => {
      this.close();
      this.ask(query);
    };
    return element("p", { class: "buttons" }, element("button", { type: "button", class: "ask-instead", onclick: ask }, `Ask the book about “${query}”`));
  }

  /** Up and down move through the results and back to the input. Escape closes the dialog; by default it would only clear the input. */
  pressed(event) {
    if (event.isComposing) return;
    if (event.key === "Escape") {
      event.preventDefault();
      this.close();
    }
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    const stops = [this.box, ...this.sheet.querySelectorAll("a, button")];
    const next = stops[stops.indexOf(document.activeElement) + step];
    event.preventDefault();
    next?.focus();
  }
}

/** The words of a query, or the query itself if it has none, like `C++`. */
function wordsOf(query) {
  const whole = query.trim().toLowerCase();
  return whole.match(/[\p{L}\p{N}_][\p{L}\p{M}\p{N}_]+/gu) ?? (whole ? [whole] : []);
}

/** A pattern for words that begin with one of these. In scripts without blanks a word may stand anywhere, and so may signs. */
function matching(words) {
  const unspaced = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]|^[^\p{L}\p{N}_]/u;
  const patterns = words.map((word) => {
    const literal = word.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
    return unspaced.test(word) ? literal : `(?<![\\p{L}\\p{M}\\p{N}_])${literal}[\\p{L}\\p{M}\\p{N}_]*`;
  });
  return new RegExp(patterns.join("|"), "iu");
}

function marked(text, words) {
  const nodes = [];
  let done = 0;
  for (const found of text.matchAll(new RegExp(matching(words), "giu"))) {
    nodes.push(text.slice(done, found.index), element("mark", {}, found[0]));
    done = found.index + found[0].length;
  }
  return [...nodes, text.slice(done)];
}

/** The ranges of words searched for in a text, as `[start, end]`. */
export function wordsIn(text, query) {
  const words = wordsOf(query);
  return words.length ? [...text.matchAll(new RegExp(matching(words), "giu"))].map((found) => [found.index, found.index + found[0].length]) : [];
}

function crumb(names) {
  const text = names.filter(Boolean).join(" › ");
  return text && element("span", { class: "crumb", dir: "auto" }, text);
}

/** The part of a passage around the first word searched for: of its prose, or lines of code if only code contains the word. */
function excerpt(stored, words) {
  const found = matching(words);
  const code = [...stored.matchAll(/^(`{3,})[^`\n]*\n([^]*?)\n?^\1$/gm)].map(([, , lines]) => lines);
  const prose = flat(stored.replace(/^(`{3,})[^`\n]*\n[^]*?^\1$/gm, "").replace(/^#+ .*$/gm, ""));
  const block = !prose || (!found.test(prose) && code.some((lines) => found.test(lines))) ? code.find((lines) => found.test(lines)) ?? code[0] : null;
  if (!block) return element("span", { class: "excerpt", dir: "auto" }, ...marked(around(prose, found), words));
  const lines = block.split("\n").filter((line) => line.trim());
  const first = Math.max(0, lines.findIndex((line) => found.test(line)) - 1);
  const shown = lines.slice(first, first + LINES);
  const indent = Math.min(...shown.map((line) => line.search(/\S/)));
  return element("code", { class: "excerpt" }, ...marked(shown.map((line) => line.slice(indent)).join("\n"), words));
}

/** The text around a word, cut at blanks if there are any near. */
function around(text, word) {
  const first = text.search(word);
  const early = Math.max(0, first - EXCERPT / 3);
  const before = /^\S*\s/u.exec(text.slice(early, first))?.[0] ?? "";
  const start = first > EXCERPT / 2 ? Math.floor(early) + before.length : 0;
  const cut = text.slice(start, start + EXCERPT);
  const end = start + EXCERPT < text.length ? `${cut.replace(/\s\S{0,30}$/, "")} …` : cut;
  return start ? `… ${end}` : end;
}
