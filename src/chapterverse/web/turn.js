/**
 * One question and its answer: passages being read, verified sentences with citation chips, sources, confidence, refusal or
 * error. Shows events as they arrive and sends no requests.
 */
import { attach, copyFrom, count, editionLabel, element, iconButton, leading, scrolling } from "./dom.js";
import { flat, renderExcerpt } from "./excerpts.js";
import { ratingOf } from "./feedback.js";
import { languageOf } from "./highlight.js";
import { mark, unitsOf } from "./offsets.js";

// Our markers are between private characters, so that the book's own brackets are not taken for them.
const MARKER = /\ue000(\d+)\ue001/g;
const PIECE = /((?:\ue000\d+\ue001)+)([.,;:!?]*)|(`+)(?!`)([^\ue000]+?)(?<!`)\3(?!`)/g; // markers with final punctuation, and code
const SAID = new RegExp(`${PIECE.source}|\\*\\*(?=\\S)(.+?)(?<=\\S)\\*\\*`, "g"); // and strong words, which only a model marks
const FROM = /^From “.+”:$/; // the place of an excerpt, which its card shows, too
const GLUE = "\u202f"; // a narrow space without a line break
const MISSING = "The rest did not arrive.";
const LEVELS = {
  high: "The passages found fit the question closely.",
  medium: "The passages found fit the question in part.",
  low: "The passages found fit the question only loosely: read the sources.",
  insufficient: "No passage was found that fits the question.",
};

export class Turn {
  /**
   * @param {{query: string, selection: string|null, events?: object[]}} asked  with the stored events, if there are any
   * @param {{hrefOf: (source: object) => string|null, retry: () => void, widen: () => void, rate?: (given: object) => Promise<object>,
   *   rated?: object|null, shareOf?: (query: string) => string, colour?: () => Promise<void>}} actions
   *   `hrefOf`: the address of a source; `retry`: ask again; `widen`: ask the whole book; `rate`: store a rating;
   *   `rated`: the stored rating; `shareOf`: the address that asks the question; `colour`: loads the highlighter
   */
  constructor(asked, actions) {
    this.asked = asked;
    this.actions = actions;
    this.answer = element("div", { class: "answer", dir: "auto" });
    this.reading = null;
    this.parts = []; // of the answer: excerpts of the book, and text between them
    this.sources = [];
    this.element = element(
      "section",
      { class: "turn", "aria-label": `Question: ${asked.query}` },
      element("h3", { class: "question", tabindex: "-1", dir: "auto" }, asked.query),
    );
    if (asked.selection !== null) this.element.append(this.selected());
    this.step = element("span", {}, asked.selection === null ? "Searching the book" : "Reading the selection");
    this.waiting = element("div", { class: "waiting" }, element("p", {}, element("span", { class: "dots", "aria-hidden": "true" }, element("i"), element("i"), element("i")), this.step), element("div", { class: "lines", "aria-hidden": "true" }, element("i"), element("i"), element("i")));
    this.element.append(this.answer, this.waiting);
    this.ending = null; // why the answer ended early
  }

  /** Shows one event of the stream. */
  show(event) {
    if (event.type === "retrieved") this.showPassages(event.passages);
    else if (event.type === "chunk") this.showText(event);
    else if (event.type === "sources") this.showSources(event.sources);
    else if (event.type === "done") this.finish(event);
    else if (event.type === "stopped") this.stop();
    else if (event.type === "error") this.fail({ message: event.message, code: event.error_code, retryAfter: event.retry_after });
  }

  /** Shows verified text and records the sources that it cites for the first time. The parts of an excerpt that answer are marked. */
  showText(event) {
    const { highlights = [], sources = [] } = event;
    const text = replaceMarkers(event);
    this.sources.push(...sources);
    if (this.reading) this.reading.open = false;
    const isExcerpt = highlights.length > 0;
    const last = this.parts.at(-1);
    if (last && !isExcerpt && !last.highlights.length) {
      last.text += text;
      this.renderPart(last);
    } else {
      const part = { text, highlights, node: element("div", { class: isExcerpt ? "excerpt" : "said" }) };
      this.parts.push(part);
      this.renderPart(part);
      this.answer.append(part.node);
    }
  }

  /** Renders a part of the answer like a page of the book. The unchanged blocks at its beginning keep their nodes. */
  renderPart(part) {
    const { nodes, runs } = renderExcerpt(part.text);
    const units = unitsOf(part.text);
    for (const { start, end } of part.highlights) mark(runs, units(start), units(end), "answering");
    const pieces = part.highlights.length ? PIECE : SAID;
    for (const { node } of runs) {
      if (!node.parentElement.closest("code")) node.replaceWith(...spans(node.data, pieces, (number) => this.chip(number)));
    }
    for (const node of nodes) dress(node);
    const old = [...part.node.childNodes];
    const same = nodes.findIndex((node, index) => !old[index]?.isEqualNode(node));
    const kept = same < 0 ? nodes.length : same;
    old.slice(kept).forEach((node) => node.remove());
    part.node.append(...nodes.slice(kept));
    this.colour(part);
  }

  /** If a part has code, loads the highlighter once and renders the part again with colours. */
  async colour(part) {
    const hasCode = [...part.node.querySelectorAll(".code")].some((node) => languageOf(node.dataset.language));
    if (part.isColoured || !hasCode || !this.actions.colour) return;
    part.isColoured = true;
    await this.actions.colour();
    this.renderPart(part);
  }

  /** Shows why there is no answer or no more of it, and offers to retry if the server says that may help. */
  fail({ message, code, retryAfter }) {
    this.settle();
    this.showSources(this.sources);
    const title = code === "rate_limited" ? "Too many questions at once" : this.parts.length ? MISSING.slice(0, -1) : "No answer this time";
    this.end("failure", element("p", { role: "alert" }, element("strong", {}, `${title}. `), message), retryAfter);
  }

  /** Shows that the reader stopped the answer. */
  stop() {
    this.settle();
    this.end("stopping", element("p", { class: "remark" }, this.parts.length ? `Stopped. What is shown was verified. ${MISSING}` : "Stopped before the first sentence."));
    this.showSources(this.sources);
    if (this.parts.length) this.element.append(element("div", { class: "foot" }, this.tools()));
  }

  end(kind, message, retryAfter = null) {
    const again = element("button", { type: "button", onclick: () => this.actions.retry() }, "Try again");
    this.ending = element("div", { class: kind }, message, element("p", { class: "buttons" }, again));
    this.element.append(this.ending);
    if (retryAfter) countDown(again, Math.ceil(retryAfter));
  }

  showPassages(passages) {
    if (!passages.length) return;
    const items = passages.map((passage) =>
      element("li", {}, element("a", leading(this.actions.hrefOf(passage)), placeName(passage))),
    );
    const summary = element("summary", {}, `Reading ${count(passages.length, "passage")}`);
    this.reading = element("details", { class: "reading", open: true }, summary, element("ul", {}, ...items));
    this.answer.before(this.reading);
    this.step.textContent = "Checking each sentence against its passage";
  }

  showSources(sources) {
    this.element.querySelector(".sources")?.remove();
    this.sources = sources;
    this.parts.forEach((part) => this.renderPart(part));
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

  /** A source as a card: its place and, on demand, its quote, which the answer may have shown already. */
  source(source, number) {
    const selected = this.asked.selection !== null;
    const name = selected ? "Your selection" : source.page_title;
    const place = selected
      ? element("button", { type: "button", class: "plain", onclick: () => this.showEvidence(number) }, name)
      : element("a", leading(this.actions.hrefOf(source)), name);
    const crumb = selected ? "" : crumbOf(source);
    const quote = element("blockquote", { class: "quote", dir: "auto", hidden: true }, ...renderExcerpt(source.quote).nodes);
    const open = unfolding(quote, { class: "quoting", "aria-label": `Quote of source ${number}` }, "Quote");
    return element(
      "li",
      { class: "card" },
      element("span", { class: "number", "aria-hidden": "true" }, String(number)),
      element("div", { class: "place" }, place, crumb && element("span", { class: "crumb", dir: "auto" }, crumb)),
      open,
      quote,
    );
  }

  /** The evidence in the reader's own selection. */
  markSelection(sources) {
    const units = unitsOf(this.asked.selection);
    const runs = this.showSelection();
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
    this.element.classList.add(event.status);
    if (event.status === "refused") this.refuse(event);
    if (event.disclaimer) this.note(event.disclaimer, "caution");
    if (event.status === "truncated") this.note(`Cut short by a limit. What is shown was verified. ${MISSING}`, "caution");
    const { sentences_withheld: withheld, stored } = event.metadata;
    if (withheld) this.note(`${count(withheld, "sentence")} withheld: no passage bears ${withheld === 1 ? "it" : "them"} out.`);
    if (!stored) this.note("This turn could not be kept; a follow-up will not know of it.", "caution");
    const foot = element("div", { class: "foot" });
    this.element.append(foot);
    if (event.status !== "refused") foot.append(this.confidence(event));
    const tools = this.tools();
    foot.append(tools);
    const { rate, rated } = this.actions;
    if (!event.turn_id || !rate) return;
    const { thumbs, more } = ratingOf((given) => rate({ turn_id: event.turn_id, ...given }), rated);
    tools.append(thumbs);
    this.element.append(more);
  }

  /** A label with the confidence; pressing it explains what it means. */
  confidence({ confidence_level: level, confidence }) {
    const explanation = element("p", { class: "explanation", hidden: true }, `${LEVELS[level]} Confidence is ${confidence.toFixed(2)} on a scale from 0 to 1. Every sentence was checked against the passage that it cites.`);
    this.element.append(explanation);
    return unfolding(explanation, { class: `confidence ${level}`, title: "What does this mean?" }, `Confidence: ${level}`);
  }

  /** Copy and share. */
  tools() {
    const copy = iconButton("copy", "Copy the answer", () => copyFrom(copy, this.markdown()));
    const tools = element("span", { class: "tools" }, copy);
    const address = this.asked.selection === null && this.actions.shareOf?.(this.asked.query);
    if (!address) return tools;
    const share = iconButton("link", "Share the question", async () => {
      if (!navigator.share || !matchMedia("(pointer: coarse)").matches) copyFrom(share, address, "Link copied");
      else await navigator.share({ title: this.asked.query, url: address }).catch(() => {}); // the reader cancelled
    });
    tools.append(share);
    return tools;
  }

  /** The answer as text for other documents, with the address of each source. */
  markdown() {
    const text = this.parts.map((part) => part.text.replace(MARKER, "[$1]")).join("").trim();
    const sources = this.sources.map((source, index) => {
      const href = this.asked.selection === null && this.actions.hrefOf(source);
      return `[${index + 1}] ${placeName(source)}${href ? `: ${new URL(href, document.baseURI).href}` : ""}`;
    });
    return [text, ...(sources.length ? ["", ...sources] : [])].join("\n");
  }

  /** A near section with its page. */
  nearCard(section) {
    const { page_title: page, section_heading: heading } = section;
    const crumb = [editionLabel(section), heading && heading !== page && page].filter(Boolean).join(" › ");
    const link = element("a", leading(this.actions.hrefOf(section)), heading || page);
    const quote = section.quote && element("blockquote", { class: "quote", dir: "auto" }, ...renderExcerpt(section.quote).nodes);
    return element("div", { class: "place" }, link, crumb && element("span", { class: "crumb", dir: "auto" }, crumb), quote);
  }

  /** Shows a refusal. The nearest sections come first, because they help most. */
  refuse({ advice, nearest = [] }) {
    const selected = this.asked.selection !== null;
    this.reading?.remove();
    this.answer.before(element("p", { class: "refusal" }, selected ? "Not in the selection" : "Not in the book"));
    if (nearest.length) {
      const cards = nearest.map((section) => element("li", { class: "card" }, this.nearCard(section)));
      this.answer.before(element("div", { class: "nearest" }, element("p", {}, "These sections come nearest:"), element("ul", {}, ...cards)));
    }
    if (!selected) {
      if (advice) this.note(advice.split("\n")[0]); // the sections are shown as links above
      return;
    }
    const widen = element("button", { type: "button", class: "main-button", onclick: () => this.actions.widen() }, "Search the whole book");
    this.element.append(element("p", { class: "buttons widen" }, widen));
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

  /** A citation: a link to its source once the source is known. */
  chip(number) {
    const source = this.sources[number - 1];
    const selected = this.asked.selection !== null;
    const node = element(selected ? "button" : "a", { class: "chip", type: selected && "button" }, String(number));
    if (!source) return node;
    attach(node, { "aria-label": `Source ${number}: ${placeName(source)}`, title: flat(source.quote).slice(0, 300) });
    if (selected) node.addEventListener("click", () => this.showEvidence(number));
    else attach(node, leading(this.actions.hrefOf(source)));
    return node;
  }

  selected() {
    this.shown = element("blockquote", { class: "selection", tabindex: "0", dir: "auto" });
    this.showSelection();
    return element("details", { class: "selected" }, element("summary", {}, "About your selection"), this.shown);
  }

  showSelection() {
    const { nodes, runs } = renderExcerpt(this.asked.selection);
    this.shown.replaceChildren(...nodes);
    return runs;
  }
}

/** A button that shows something and hides it again. */
function unfolding(shown, attributes, name) {
  const button = element("button", { type: "button", "aria-expanded": "false", ...attributes }, name);
  button.addEventListener("click", () => {
    shown.hidden = !shown.hidden;
    button.setAttribute("aria-expanded", String(!shown.hidden));
    if (!shown.hidden) shown.scrollIntoView({ block: "nearest", behavior: scrolling() });
  });
  return button;
}

/**
 * The text of a chunk with its markers between private characters, which keeps all offsets; or with `form` instead of them.
 * The markers are the last brackets with the numbers that the chunk cites, in this order.
 */
export function replaceMarkers({ content, cites = [] }, form = "\ue000$1\ue001") {
  let text = content.replace(/[\ue000\ue001]/g, "\ufffd");
  let place = text.length;
  for (const number of [...cites].reverse()) {
    const found = `[${number}]`;
    place = place && text.lastIndexOf(found, place - 1);
    if (!text.startsWith(found, place)) break;
    text = text.slice(0, place) + form.replace("$1", number) + text.slice(place + found.length);
  }
  return text;
}

/** A text with the pieces of a pattern as nodes: `code`, **strong** words, markers. Final punctuation is put before markers. */
function spans(text, pieces, chip) {
  const nodes = [];
  let done = 0;
  for (const found of text.matchAll(pieces)) {
    const [whole, markers, stops, , code, strong] = found;
    const before = text.slice(done, found.index);
    done = found.index + whole.length;
    if (code) nodes.push(before, element("code", {}, code));
    else if (strong) nodes.push(before, element("strong", {}, ...spans(strong, pieces, chip)));
    else nodes.push(before.trimEnd(), stops, GLUE, ...[...markers.matchAll(MARKER)].map(([, number]) => chip(Number(number))));
  }
  return [...nodes, text.slice(done)].filter(Boolean);
}

/** Marks blocks that are not text of the answer: the place of an excerpt, and citations alone, as below a table. */
function dress(node) {
  if (node.localName !== "p") return;
  if (FROM.test(node.textContent)) node.className = "from";
  else if (node.querySelector(".chip") && !node.textContent.replace(/[\d\s]/g, "")) node.className = "cited";
}

function placeName(place) {
  return [...new Set([editionLabel(place), place.page_title, place.section_heading])].filter(Boolean).join(" › ");
}

/** The edition and the headings above a source, without the page's title, which is shown already. */
function crumbOf(source) {
  const { breadcrumb, page_title: page, section_heading: section } = source;
  const rest = breadcrumb.startsWith(`${page} › `) ? breadcrumb.slice(page.length + 3) : "";
  return [editionLabel(source), rest || (section !== page ? section : "")].filter(Boolean).join(" › ");
}

/** Disables a button for some seconds and shows how many are left. */
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
