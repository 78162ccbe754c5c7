/**
 * The ask box: a conversation, an input, and an optional selection that questions are about. It can be built into any element
 * (the reader's side panel, a widget's shadow root) and does not depend on the page around it.
 */
import { memory } from "./api.js";
import { count, element, icon, iconButton, scrolling } from "./dom.js";
import { flat } from "./excerpts.js";
import { lengthOf } from "./offsets.js";
import { Past } from "./past.js";
import { lastOf, suggestedQuestions } from "./suggestions.js";
import { replaceMarkers, Turn } from "./turn.js";

export const SESSION = "chapterverse.session";
const KEPT = 20; // turns that are shown again after a reload
const HEARD = 5000; // milliseconds that the last sentence stays in the live region
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const ENDS = new Set(["done", "error", "stopped"]); // last events of an answer
const LONGEST_QUESTION = 2000; // characters; the server's maximum
export const LONGEST_SELECTION = 10_000;

export class AskBox {
  /**
   * @param {{place: Element, api: import("./api.js").Api, hrefOf: (source: object) => string|null, title?: string,
   *   shortcut?: string, filters?: object|null, name?: string, suggestions?: string[], offers?: object|null, remembers?: boolean,
   *   shareOf?: (query: string) => string, colour?: () => Promise<void>, here?: () => string|null, closing?: () => void}} parts
   *   `hrefOf`: the address of a source; `shortcut`: the key that focuses the box; `filters`: the part of the book to ask;
   *   `name`: storage key of the conversation in this tab; `suggestions`: questions to begin with; `offers`: the edition that the
   *   server suggests questions for, or null; `remembers`: whether past conversations are stored in this browser; `shareOf`: the
   *   address that asks a question; `colour`: loads the highlighter of code; `here`: the address of the open page of the book;
   *   `closing`: closes the box
   */
  constructor({ place, api, hrefOf, title = "Ask the book", shortcut = null, filters = null, name = SESSION, suggestions = [], offers = {}, remembers = false, shareOf = null, colour = null, here = () => null, closing = null }) {
    Object.assign(this, { api, hrefOf, title, filters, name, offers, shareOf, colour, here });
    this.session = memory.get(name);
    this.kept = []; // the turns of this conversation: questions and their events
    this.past = remembers ? new Past({ suffix: name.slice(SESSION.length), reopen: (id, turns) => this.reopen(id, turns), erase: (id) => this.erase(id) }) : null;
    this.selection = null;
    this.running = null; // AbortController of the running answer
    this.last = null; // the answer that a follow-up refers to
    this.next = null; // the questions suggested after it
    this.suggestedFor = null; // the page that was open when questions to begin with were suggested
    this.build(place, shortcut, closing);
    this.suggest(suggestions);
    this.recall(memory.json(`${name}.turns`));
    if (remembers) this.offer();
  }

  focus() {
    this.field.focus();
  }

  /** Limits the next questions to this text; null: questions are about the book again. */
  select(text) {
    this.selection = text;
    this.selected.replaceChildren();
    this.selected.hidden = text === null;
    this.field.placeholder = text === null ? this.title : "Ask about the selection";
    if (text === null) return;
    const tooLong = lengthOf(text) > LONGEST_SELECTION;
    const remove = () => {
      this.select(null);
      this.focus();
    };
    this.selected.append(
      element("p", { class: "selected-head" }, "About your selection", iconButton("close", "Remove the selection", remove)),
      element("blockquote", { class: "selection", dir: "auto" }, flat(text)),
    );
    if (tooLong) {
      const most = LONGEST_SELECTION.toLocaleString("en");
      this.selected.append(element("p", { class: "caution", role: "alert" }, `Longer than ${most} characters: select less.`));
    }
  }

  async ask(query, selection = this.selection) {
    query = query.trim();
    if (!query || this.running) return;
    this.showPast(false);
    this.last = null;
    this.next?.remove();
    this.session ??= newSession();
    const turn = this.turn({ query, selection, events: [] });
    this.turns.append(turn.element);
    this.turns.scrollTop = turn.element.offsetTop;
    await this.follow(turn);
  }

  turn(asked) {
    this.hint.hidden = true;
    const { query, selection, rated = null } = asked;
    const retry = () => {
      if (this.running) return;
      turn.element.remove();
      this.kept = this.kept.filter((one) => one !== asked);
      this.ask(query, selection);
    };
    const widen = () => {
      if (this.running) return;
      this.select(null);
      this.ask(query, null);
    };
    const turn = new Turn(asked, { hrefOf: this.hrefOf, shareOf: this.shareOf, colour: this.colour, retry, widen, rate: (given) => this.rate(asked, given), rated });
    return turn;
  }

  /** Stores the rating of an answer, also for the next page in this tab. */
  async rate(asked, given) {
    const stored = await this.api.rate(given);
    asked.rated = given;
    this.save();
    this.remember();
    return stored;
  }

  /** Shows an answer as it arrives, until `done` or `error`, or until the reader stops it. */
  async follow(turn) {
    const { query, selection } = turn.asked;
    const conversation = this.kept;
    const running = (this.running = new AbortController());
    this.showState();
    const question = { query, session_id: this.session, mode: selection === null ? "general" : "selected_text" };
    if (selection !== null) question.selected_text = selection;
    else if (this.filters) question.filters = this.filters;
    let end = null;
    try {
      for await (const event of this.api.ask(question, running.signal)) {
        if (running.signal.aborted) break;
        this.take(event, turn, conversation);
      }
      if (running.signal.aborted) end = { type: "stopped" };
    } catch (failure) {
      end = failure.name === "AbortError" ? { type: "stopped" } : { type: "error", error_code: failure.code, message: failure.message, retry_after: failure.retryAfter };
    }
    if (end) this.take(end, turn, conversation);
    if (this.running === running) this.running = null;
    this.showState();
    if (this.last?.turn === turn) await this.offer();
  }

  /** Handles one event of an answer: shows it, announces it to screen readers, and stores it for a reload. */
  take(event, turn, conversation) {
    const { events } = turn.asked;
    if (conversation !== this.kept) return; // another conversation was started
    if (!events.length) this.kept.push(turn.asked);
    events.push(event);
    turn.show(event);
    if (event.type === "retrieved") this.say(`Reading ${count(event.passages.length, "passage")}.`);
    if (event.type === "chunk") this.heard.textContent = flat(replaceMarkers(event, "").replace(event.highlights?.length ? "" : /\*\*/g, ""));
    if (ENDS.has(event.type)) this.finish(event, turn);
    this.save();
  }

  finish(event, turn) {
    clearTimeout(this.silence);
    this.silence = setTimeout(() => (this.heard.textContent = ""), HEARD);
    this.remember();
    if (event.type !== "done") {
      if (event.type === "stopped") this.say("Stopped.");
      turn.ending.scrollIntoView({ block: "nearest", behavior: scrolling() });
      return;
    }
    this.session = event.session_id;
    this.last = lastOf(turn);
    this.say(event.status === "refused" ? "Refused." : `Answered. Confidence ${event.confidence_level}, ${count(turn.sources.length, "source")}.`);
  }

  /** Stores the conversation in this tab. */
  save() {
    const some = this.kept.length > 0;
    memory.set(this.name, some ? this.session : null);
    memory.set(`${this.name}.turns`, some ? JSON.stringify(this.kept.slice(-KEPT).map(slim)) : null);
    this.showState();
  }

  remember() {
    this.past?.remember(this.session, this.kept.slice(-KEPT).map(slim));
  }

  begin() {
    if (this.running) this.remember(); // with what has arrived so far
    this.running?.abort();
    this.running = null;
    this.showPast(false);
    this.kept = [];
    this.session = null;
    this.save();
    this.last = null;
    this.select(null);
    this.turns.replaceChildren(this.hint);
    this.hint.hidden = false;
    this.heard.textContent = "";
    this.say("A new conversation.");
    this.focus();
    this.offer();
  }

  /** Deletes a conversation, here and on the server. */
  async erase(id) {
    if (!id || !confirm("Delete this conversation for good?")) return;
    try {
      await this.api.deleteSession(id);
    } catch (failure) {
      if (failure.status !== 404) {
        this.say(`Not deleted. ${failure.message}`, true);
        return;
      }
    }
    const more = this.past?.forget(id);
    if (id === this.session) {
      this.kept = []; // so that it is not stored again
      this.begin();
    } else this.showPast(more);
    this.showState();
    this.say("The conversation is deleted.", true);
  }

  /** Shows an earlier conversation with its sources. The stored data may be from another release, or damaged. */
  recall(turns) {
    for (const asked of Array.isArray(turns) ? turns : []) {
      let turn;
      try {
        turn = this.turn(asked);
        asked.events.forEach((event) => turn.show({ ...event, retry_after: null })); // that time is over
        if (!asked.events.some(({ type }) => ENDS.has(type))) turn.fail({ message: "The page was left before the end of the answer.", code: "left" });
      } catch {
        continue; // it cannot be shown and is dropped
      }
      this.kept.push(asked);
      this.turns.append(turn.element);
      this.last = lastOf(turn);
    }
    this.hint.hidden = this.kept.length > 0;
    if (!this.kept.length) this.session = null;
    else if (!UUID.test(this.session)) this.session = newSession();
    this.showLast();
    this.showState();
  }

  /** Shows the list of past conversations instead of the open one. */
  showPast(open = this.past.place.hidden) {
    if (!this.past) return;
    this.past.place.hidden = !open;
    this.turns.hidden = open;
    this.history.setAttribute("aria-expanded", String(open));
    if (open) this.past.show(this.session);
  }

  reopen(id, turns) {
    this.begin();
    this.session = id;
    this.recall(turns);
    this.save();
    this.offer();
  }

  showLast() {
    const last = this.turns.querySelector(".turn:last-child");
    if (last) this.turns.scrollTop = last.offsetTop;
  }

  /** Announces a text to screen readers; `shown`: also shows it. */
  say(text, shown = false) {
    this.status.textContent = text;
    this.status.classList.toggle("unseen", !shown);
  }

  showState() {
    const busy = this.running !== null;
    this.turns.setAttribute("aria-busy", String(busy));
    this.sender.replaceChildren(icon(busy ? "stop" : "send"), element("span", { class: "unseen" }, busy ? "Stop" : "Ask"));
    this.sender.title = busy ? "Stop" : "Ask";
    this.eraser.hidden = this.session === null;
    this.fresh.hidden = this.session === null && !this.turns.querySelector(".turn");
    if (!busy) this.history.hidden = !this.past?.all.length;
  }

  /** Shows suggested questions that were not asked yet: at the beginning those near the open page, after an answer those near its pages. */
  async offer() {
    const { last } = this;
    const here = last ? null : this.here();
    const isDone = last ? this.next?.isConnected || !last.pages.length : this.suggested.childElementCount && here === this.suggestedFor;
    if (!this.offers || isDone) return;
    const pages = last?.pages ?? (here ? [here] : []);
    const fresh = await suggestedQuestions(this.api, this.offers, { pages, isNext: Boolean(last), asked: this.kept.map(({ query }) => query) });
    if (last !== this.last || this.running || (!last && here !== this.here())) return; // the reader has moved on meanwhile
    if (!fresh.length) return; // also if the server did not answer
    if (!last) {
      this.suggestedFor = here;
      this.suggest(fresh);
    } else {
      this.next?.remove();
      this.next = element("div", { class: "next" }, element("h4", {}, "Ask next"), this.fill(element("ul", { class: "suggestions" }), fresh));
      last.turn.element.append(this.next);
    }
  }

  suggest(questions) {
    this.suggested.hidden = !questions.length;
    this.fill(this.suggested, questions);
  }

  /** Fills a list with suggestions. They are asked of the book, even if text is selected. */
  fill(list, questions) {
    list.replaceChildren(...questions.map((query) => element("li", {}, element("button", { type: "button", onclick: () => this.ask(query, null) }, query))));
    return list;
  }

  build(place, shortcut, closing) {
    this.suggested = element("ul", { class: "suggestions", "aria-label": "Questions to begin with", hidden: true });
    this.hint = element(
      "div",
      { class: "hint" },
      element("p", {}, "Ask anything about this book. Every sentence of the answer is checked against the passage it cites; what the book does not say is not answered."),
      element("p", {}, "Select text in the page to ask about it alone.", shortcut && element("span", { class: "with-keys" }, " Press ", element("kbd", {}, shortcut), " to come here.")),
      this.suggested,
    );
    this.turns = element("div", { class: "turns", tabindex: "-1" }, this.hint);
    this.status = element("p", { class: "status unseen", role: "status" });
    this.heard = element("p", { class: "heard unseen", "aria-live": "polite" }); // the latest sentence, for screen readers
    this.selected = element("div", { class: "selected", hidden: true });
    this.field = element("textarea", { class: "field", rows: "1", dir: "auto", maxlength: LONGEST_QUESTION, placeholder: this.title, "aria-label": "Your question" });
    this.sender = element("button", { type: "submit", class: "main-button send" });
    this.history = tool("history", "Past", "Past conversations", () => this.showPast());
    this.history.setAttribute("aria-expanded", "false");
    this.fresh = tool("plus", "New", "New conversation", () => this.begin());
    this.eraser = tool("trash", "Delete", "Delete conversation", () => this.erase(this.session));
    const form = element("form", { class: "asking" }, this.selected, element("div", { class: "composer" }, this.field, this.sender));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.submit();
    });
    this.field.addEventListener("input", () => this.grow());
    this.field.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      if (!this.running) this.submit();
    });
    const close = closing && iconButton("close", "Close the ask panel", closing, "close");
    place.append(
      element("div", { class: "ask-head" }, element("h2", {}, this.title), element("div", { class: "ask-tools" }, this.history, this.fresh, this.eraser, close)),
      ...[this.turns, this.past?.place, this.status, this.heard, form].filter(Boolean),
    );
    this.showState();
  }

  /** Makes the input as high as its text; the styles set the maximum. */
  grow() {
    this.field.style.height = "";
    if (this.field.value) this.field.style.height = `${this.field.scrollHeight}px`;
  }

  submit() {
    if (this.running) {
      this.running.abort();
      return;
    }
    const query = this.field.value;
    if (!query.trim()) return;
    this.field.value = "";
    this.grow();
    this.ask(query);
  }
}

/** A button with an icon and a short label; screen readers get its full name. */
function tool(sign, word, label, onclick) {
  return element("button", { type: "button", class: "tool", "aria-label": label, title: label, onclick }, icon(sign), word);
}

/** A UUID of version 4. `crypto.randomUUID` needs a secure connection, which a server in a local network may not have. */
function newSession() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const digits = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

/** A copy of a turn without the text of passages, which is needed only when the turn is first shown. */
function slim(turn) {
  const short = ({ chunk_text: _, ...source }) => source;
  return { ...turn, events: turn.events.map((event) => (event.sources ? { ...event, sources: event.sources.map(short) } : event)) };
}
