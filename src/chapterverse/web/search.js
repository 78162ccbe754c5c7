/** The search dialog: titles as one types, passages a moment later, with the words marked that were searched for. */
import { count, editionLabel, element } from "./dom.js";
import { plain } from "./render.js";

const EXCERPT = 220; // characters
const PAUSE = 350; // milliseconds without a key, after which passages are searched
const SHORTEST = 3; // characters that are worth a search
const TITLES = 5;

export class Search {
  /**
   * @param {{dialog: HTMLDialogElement, form: Element, box: HTMLInputElement, sheet: Element, status: Element,
   *   close: Element,
   *   api: import("./api.js").Api, pages: () => {page_id: string, title: string}[], hrefOf: (id: string) => string}} parts
   */
  constructor({ dialog, form, box, sheet, status, close, api, pages, hrefOf }) {
    Object.assign(this, { dialog, box, sheet, status, api, pages, hrefOf });
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

  /** Pages whose title has what was typed. */
  titles(query) {
    if (!query) return null;
    const words = wordsOf(query);
    const found = this.pages().filter((page) => words.every((word) => matching([word]).test(page.title))).slice(0, TITLES);
    if (!found.length || !words.length) return null;
    const items = found.map((page) => element("li", {}, element("a", { class: "hit", href: this.hrefOf(page.page_id) }, element("strong", { dir: "auto" }, ...marked(page.title, words)))));
    return element("section", { class: "titles" }, element("h2", {}, "Pages"), element("ul", {}, ...items));
  }

  passages(query, results, hasTitles) {
    if (!results.length) return [element("p", { class: "nothing" }, `Nothing found for “${query}”.`)];
    const words = wordsOf(query);
    const texts = results.map((hit) => textOf(hit.chunk_text));
    const has = words.length && matching(words);
    const crumbs = results.map((hit) => [editionLabel(hit), hit.breadcrumb !== (hit.section_heading || hit.page_title) && hit.breadcrumb].filter(Boolean).join(" › "));
    const isSaid = has && results.some((hit, index) => has.test(texts[index]) || has.test(hit.breadcrumb));
    const items = results.map((hit, index) =>
      element(
        "li",
        {},
        element(
          "a",
          { class: "hit", href: `${this.hrefOf(hit.page_id)}?quote=${hit.char_start}-${hit.char_end}` },
          element("strong", { dir: "auto" }, ...marked(hit.section_heading || hit.page_title, words)),
          crumbs[index] && element("span", { class: "crumb", dir: "auto" }, crumbs[index]),
          element("span", { class: "excerpt", dir: "auto" }, ...marked(excerpt(texts[index], words), words)),
        ),
      ),
    );
    const told = isSaid || hasTitles ? null : element("p", { class: "nothing" }, `Nothing in the book has the words “${query}”. These passages come nearest in meaning:`);
    return [told, element("section", {}, element("h2", {}, count(results.length, "passage")), element("ul", {}, ...items))].filter(Boolean);
  }

  /** Up and down go through the results, and back to the box. Escape closes: a search box would only be emptied. */
  pressed(event) {
    if (event.key === "Escape") {
      event.preventDefault();
      this.close();
    }
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    const stops = [this.box, ...this.sheet.querySelectorAll("a")];
    const next = stops[stops.indexOf(document.activeElement) + step];
    event.preventDefault();
    next?.focus();
  }
}

function wordsOf(query) {
  return query.toLowerCase().match(/[\p{L}\p{N}_]{2,}/gu) ?? [];
}

/** Words that begin with one of these. */
function matching(words) {
  return new RegExp(`(?<![\\p{L}\\p{N}_])(?:${words.join("|")})[\\p{L}\\p{N}_]*`, "iu");
}

function marked(text, words) {
  if (!words.length) return [text];
  const nodes = [];
  let done = 0;
  for (const found of text.matchAll(new RegExp(matching(words), "giu"))) {
    nodes.push(text.slice(done, found.index), element("mark", {}, found[0]));
    done = found.index + found[0].length;
  }
  return [...nodes, text.slice(done)];
}

function textOf(stored) {
  return plain(stored).replace(/^#+ .*$/gm, "").replace(/`/g, "").replace(/\s+/g, " ").trim();
}

/** A stretch of the text around the first word that was searched for. */
function excerpt(text, words) {
  const first = words.length ? text.search(matching(words)) : 0;
  const start = first > EXCERPT / 2 ? text.indexOf(" ", first - EXCERPT / 3) + 1 : 0;
  const cut = text.slice(start, start + EXCERPT);
  const end = start + EXCERPT < text.length ? `${cut.replace(/\s\S*$/, "")} …` : cut;
  return start ? `… ${end}` : end;
}
