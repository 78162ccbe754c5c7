/** The search box in the bar and the sheet of what it found. */
import { count, element } from "./dom.js";
import { plain } from "./render.js";

const EXCERPT = 260; // characters

export class Search {
  constructor({ form, box, sheet, api }) {
    Object.assign(this, { box, sheet, api });
    this.running = null;
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (box.value.trim()) this.search(box.value.trim());
    });
    sheet.addEventListener("click", (event) => {
      if (event.target.closest("a")) this.close();
    });
  }

  get isOpen() {
    return !this.sheet.hidden;
  }

  close() {
    this.running?.abort();
    this.sheet.hidden = true;
  }

  async search(query) {
    this.running?.abort();
    const running = (this.running = new AbortController());
    this.show(element("p", { class: "note" }, "Searching…"));
    try {
      const found = await this.api.search(query, running.signal);
      this.show(...this.found(found));
      this.sheet.querySelector("h2").focus();
    } catch (failure) {
      if (failure.name === "AbortError") return;
      const wait = failure.retryAfter ? ` Try again in ${Math.ceil(failure.retryAfter)} s.` : "";
      this.show(element("p", { class: "failure", role: "alert" }, element("strong", {}, "⚠ Not searched. "), failure.message + wait));
    }
  }

  show(...nodes) {
    const close = () => {
      this.close();
      this.box.focus();
    };
    this.sheet.replaceChildren(element("button", { type: "button", class: "plain close", "aria-label": "Close the results", onclick: close }, "✕"), ...nodes);
    this.sheet.hidden = false;
  }

  found({ query, results }) {
    const head = element("h2", { tabindex: "-1" }, results.length ? `${count(results.length, "passage")} for “${query}”` : `Nothing found for “${query}”`);
    const items = results.map((hit) =>
      element(
        "li",
        {},
        element("a", { href: `#/${hit.page_id}?quote=${hit.char_start}-${hit.char_end}` }, hit.breadcrumb),
        element("p", { dir: "auto" }, excerpt(hit.chunk_text)),
      ),
    );
    return [head, element("ol", {}, ...items)];
  }
}

function excerpt(text) {
  const words = plain(text).replace(/^#+ .*$/m, "").replace(/`/g, "").replace(/\s+/g, " ").trim();
  return words.length > EXCERPT ? `${words.slice(0, EXCERPT).replace(/\s\S*$/, "")} …` : words;
}
