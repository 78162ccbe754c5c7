/**
 * One question and what came of it: the passages being read, verified sentences with citation chips, sources, confidence,
 * refusal or error. Shows events as they come; never asks anything itself.
 */
import { attach, count, element, leading, scrolling } from "./dom.js";
import { ratingOf } from "./feedback.js";
import { mark, unitsOf } from "./offsets.js";
import { plain, renderExcerpt } from "./render.js";

// A marker stands apart from the words before it, unlike the index in `list[0]`.
const PIECE = /(?<=^|[\s\]])\[(\d+)\]|(`+)(?!`)(.+?)(?<!`)\2(?!`)/g;
const LEVELS = { high: "●●●", medium: "●●○", low: "●○○", insufficient: "○○○" };

export class Turn {
  /**
   * @param {{query: string, selection: string|null}} asked
   * @param {{hrefOf: (source: object) => string|null, retry: () => void, widen: () => void, rate?: (given: object) => Promise<object>,
   *   rated?: object|null}} actions
   *   `hrefOf`: where a source can be read; `retry`: ask again; `widen`: ask the whole book; `rate`: keep what the reader thinks of
   *   it; `rated`: what was kept before
   */
  constructor(asked, actions) {
    this.asked = asked;
    this.actions = actions;
    this.answer = element("div", { class: "answer", "aria-live": "polite", dir: "auto" });
    this.reading = null;
    this.chips = [];
    this.sources = [];
    this.element = element(
      "section",
      { class: "turn", "aria-label": `Question: ${asked.query}` },
      element("h3", { class: "question", tabindex: "-1", dir: "auto" }, asked.query),
    );
    if (asked.selection !== null) this.element.append(this.selected());
    this.waiting = element("p", { class: "waiting" }, asked.selection === null ? "Searching the book…" : "Reading the selection…");
    this.element.append(this.answer, this.waiting);
  }

  /** Shows one event of the stream. */
  show(event) {
    if (event.type === "retrieved") this.showPassages(event.passages);
    else if (event.type === "chunk") this.showText(event.content, event.highlights ?? []);
    else if (event.type === "sources") this.showSources(event.sources);
    else if (event.type === "done") this.finish(event);
    else if (event.type === "error") this.fail({ message: event.message, code: event.error_code, retryAfter: event.retry_after });
  }

  /** Verified text; `[n]` become chips, what answers is marked. */
  showText(content, highlights = []) {
    if (this.reading) this.reading.open = false;
    if (highlights.length) this.answer.append(this.excerpt(content, highlights));
    else this.answer.append(...spans(content, (number) => this.chip(number)));
  }

  /** An excerpt of the book, laid out as the page is. */
  excerpt(content, highlights) {
    const { nodes, runs } = renderExcerpt(content);
    const units = unitsOf(content);
    for (const { start, end } of highlights) mark(runs, units(start), units(end), "answering");
    for (const { node } of runs) {
      if (!node.parentElement.closest("code")) node.replaceWith(...spans(node.data, (number) => this.chip(number)));
    }
    return element("div", { class: "excerpt" }, ...nodes);
  }

  /** Says why there is no (more) answer, and offers another try when the server says it is worth it. */
  fail({ message, code, retryAfter }) {
    this.settle();
    const again = element("button", { type: "button", onclick: () => this.actions.retry() }, "Try again");
    const title = code === "rate_limited" ? "Too many questions at once" : "No answer this time";
    this.element.append(
      element(
        "div",
        { class: "failure" },
        element("p", { role: "alert" }, element("strong", {}, `⚠ ${title}. `), message),
        element("p", { class: "buttons" }, again),
      ),
    );
    if (retryAfter) countDown(again, Math.ceil(retryAfter));
  }

  /** The reader stopped it. */
  stop() {
    this.settle();
    this.note("■ Stopped. What is shown was verified.");
  }

  showPassages(passages) {
    if (!passages.length) return;
    const items = passages.map((passage) =>
      element("li", {}, element("a", leading(this.actions.hrefOf(passage)), placeName(passage))),
    );
    const summary = element("summary", {}, `Reading ${count(passages.length, "passage")}`);
    this.reading = element("details", { class: "reading", open: true }, summary, element("ul", {}, ...items));
    this.answer.before(this.reading);
    this.waiting.textContent = "Checking each sentence against its passage…";
  }

  showSources(sources) {
    this.sources = sources;
    for (const { node, number } of this.chips) {
      const source = sources[number - 1];
      if (!source) {
        node.replaceWith(`[${number}]`);
        continue;
      }
      if (this.asked.selection === null) attach(node, leading(this.actions.hrefOf(source)));
      else node.addEventListener("click", () => this.showEvidence(number));
      node.setAttribute("aria-label", `Source ${number}: ${placeName(source)}`);
      node.title = source.quote;
    }
    if (this.asked.selection !== null) this.markSelection(sources);
    if (!sources.length) return;
    this.element.append(
      element(
        "div",
        { class: "sources" },
        element("h4", {}, "Sources"),
        element("ol", {}, ...sources.map((source, index) => this.source(source, index + 1))),
      ),
    );
  }

  source(source, number) {
    const name = placeName(source);
    const place =
      this.asked.selection === null
        ? element("a", leading(this.actions.hrefOf(source)), name)
        : element("button", { type: "button", class: "plain", onclick: () => this.showEvidence(number) }, "Your selection");
    return element("li", {}, place, element("q", { class: "quote", dir: "auto" }, ...spans(plain(source.quote), (marker) => `[${marker}]`)));
  }

  /** The evidence inside the reader's own selection. */
  markSelection(sources) {
    const units = unitsOf(this.asked.selection);
    const runs = [{ node: this.shown.firstChild, start: 0, end: this.asked.selection.length }];
    this.marks = sources.map((source) => mark(runs, units(source.char_start), units(source.char_end))[0]);
    if (!this.marks[0]) return;
    this.shown.closest("details").open = true;
    this.shown.scrollTop = this.marks[0].offsetTop - this.shown.offsetTop;
  }

  showEvidence(number) {
    const found = this.marks?.[number - 1] ?? this.shown.querySelector("mark");
    if (!found) return;
    this.shown.closest("details").open = true;
    found.scrollIntoView({ block: "nearest", behavior: scrolling() });
    found.focus({ preventScroll: true });
  }

  finish(event) {
    this.settle();
    this.status = event.status;
    this.element.classList.add(event.status);
    if (event.status === "refused") this.refuse(event);
    else this.note(`${LEVELS[event.confidence_level]} Confidence: ${event.confidence_level}`, "confidence");
    if (event.disclaimer) this.note(`⚠ ${event.disclaimer}`, "caution");
    if (event.status === "truncated") this.note("✂ Cut short by a limit. What is shown was verified.", "caution");
    const { sentences_withheld: withheld, stored } = event.metadata;
    if (withheld) this.note(`${count(withheld, "sentence")} withheld: no passage bears ${withheld === 1 ? "it" : "them"} out.`);
    if (!stored) this.note("⚠ This turn could not be kept; a follow-up will not know of it.", "caution");
    const { rate, rated } = this.actions;
    if (event.turn_id && rate) this.element.append(ratingOf((given) => rate({ turn_id: event.turn_id, ...given }), rated));
  }

  refuse({ advice }) {
    const selected = this.asked.selection !== null;
    this.answer.before(element("p", { class: "refusal" }, selected ? "∅ Not in the selection" : "∅ Not in the book"));
    if (advice) this.note(advice.split("\n")[0]); // the sections are links above, where they were announced
    if (!selected) return;
    const widen = element("button", { type: "button", class: "main-button", onclick: () => this.actions.widen() }, "Search the whole book");
    this.element.append(element("p", { class: "buttons" }, widen));
  }

  note(text, kind = "remark") {
    const made = element("p", { class: kind }, text);
    const sources = this.element.querySelector(".sources");
    if (sources) sources.before(made);
    else this.element.append(made);
  }

  settle() {
    this.waiting.remove();
    if (this.reading) {
      this.reading.open = false;
      this.reading.querySelector("summary").textContent = `Read ${count(this.reading.querySelectorAll("li").length, "passage")}`;
    }
  }

  chip(number) {
    const tag = this.asked.selection === null ? "a" : "button";
    const node = element(tag, { class: "chip", type: tag === "button" ? "button" : null }, String(number));
    this.chips.push({ node, number });
    return node;
  }

  selected() {
    this.shown = element("blockquote", { class: "selection", tabindex: "0", dir: "auto" }, this.asked.selection);
    return element("details", { class: "selected" }, element("summary", {}, "About your selection"), this.shown);
  }
}

/** A text with its `code` and its markers as nodes. */
function spans(text, marker) {
  const nodes = [];
  let done = 0;
  for (const found of text.matchAll(PIECE)) {
    nodes.push(text.slice(done, found.index), found[1] ? marker(Number(found[1])) : element("code", {}, found[3]));
    done = found.index + found[0].length;
  }
  return [...nodes, text.slice(done)];
}

function placeName(place) {
  const { page_title: page, section_heading: section } = place;
  return section && section !== page ? `${page} › ${section}` : page;
}

/** Keeps a button back for some seconds and tells them. */
function countDown(button, seconds) {
  const until = performance.now() + seconds * 1000;
  button.disabled = true;
  const tick = () => {
    const left = Math.ceil((until - performance.now()) / 1000);
    button.disabled = left > 0;
    button.textContent = left > 0 ? `Try again in ${left} s` : "Try again";
    if (left > 0) setTimeout(tick, 250);
  };
  tick();
}
