/**
 * The ask box: a conversation, a field to ask in, and a selection that a question may be about. Builds itself into any place
 * (the reader's side panel, a widget's shadow root) and knows nothing of the page around it.
 */
import { longMemory, memory } from "./api.js";
import { count, element, icon, iconButton } from "./dom.js";
import { lengthOf } from "./offsets.js";
import { Turn } from "./turn.js";

export const SESSION = "chapterverse.session";
const PAST = "chapterverse.conversations";
const KEPT = 20; // turns that are shown again on the next page
const MOST_PAST = 20; // conversations
const MOST_SUGGESTED = 4;
const MOST_NEXT = 3; // suggested after an answer
const MOST_PAGES = 8; // that these are near to
const LONGEST_QUESTION = 2000; // characters, as the server has it
export const LONGEST_SELECTION = 10_000;

export class AskBox {
  /**
   * @param {{place: Element, api: import("./api.js").Api, hrefOf: (source: object) => string|null, title?: string,
   *   shortcut?: string, filters?: object|null, name?: string, suggestions?: string[], offers?: object|null, remembers?: boolean,
   *   shareOf?: (query: string) => string, closing?: () => void}} parts
   *   `hrefOf`: where a source can be read; `shortcut`: the key that leads here; `filters`: the part of the book that is asked;
   *   `name`: under which the conversation is kept in this tab; `suggestions`: questions to begin with; `offers`: of which edition
   *   the server suggests questions, null: of none; `remembers`: keeps past conversations in this browser; `shareOf`: an address at
   *   which a question is asked; `closing`: puts the box away
   */
  constructor({ place, api, hrefOf, title = "Ask the book", shortcut = null, filters = null, name = SESSION, suggestions = [], offers = {}, remembers = false, shareOf = null, closing = null }) {
    Object.assign(this, { api, hrefOf, title, filters, name, offers, remembers, shareOf });
    this.session = memory.get(name);
    this.kept = [];
    this.selection = null;
    this.running = null; // AbortController of the answer under way
    this.last = null; // the answer after which the reader may go on
    this.next = null; // the questions that are suggested after it
    this.build(place, shortcut, closing);
    this.suggest(suggestions);
    if (this.session) this.recall(JSON.parse(memory.get(`${name}.turns`) ?? "[]"));
    if (remembers) this.offer();
  }

  focus() {
    this.field.focus();
  }

  /** Makes the next questions be about this text alone; null: about the book again. */
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
      element("blockquote", { class: "selection", tabindex: "0", dir: "auto" }, text),
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
    const turn = this.turn(query, selection);
    this.turns.append(turn.element);
    this.turns.scrollTop = turn.element.offsetTop;
    await this.follow(turn, query, selection);
  }

  turn(query, selection, rated = null) {
    this.hint.hidden = true;
    const retry = () => {
      turn.element.remove();
      this.ask(query, selection);
    };
    const widen = () => {
      this.select(null);
      this.ask(query, null);
    };
    const turn = new Turn({ query, selection }, { hrefOf: this.hrefOf, shareOf: this.shareOf, retry, widen, rate: (given) => this.rate(given), rated });
    return turn;
  }

  /** Keeps what the reader thinks of an answer, also for the next page of this tab. */
  async rate(given) {
    const kept = await this.api.rate(given);
    const isMeant = ({ events }) => events.some((event) => event.turn_id === given.turn_id);
    this.keep(this.session, this.kept.map((one) => (isMeant(one) ? { ...one, rated: given } : one)));
    return kept;
  }

  async follow(turn, query, selection) {
    const running = (this.running = new AbortController());
    this.showState();
    const question = { query, session_id: this.session, mode: selection === null ? "general" : "selected_text" };
    if (selection !== null) question.selected_text = selection;
    else if (this.filters) question.filters = this.filters;
    const events = [];
    try {
      for await (const event of this.api.ask(question, running.signal)) {
        if (running.signal.aborted) break;
        events.push(event);
        turn.show(event);
        if (event.type === "retrieved") this.say(`Reading ${event.passages.length} passages.`);
        if (event.type === "done") this.finish(event, turn, { query, selection, events });
      }
    } catch (failure) {
      if (failure.name === "AbortError") this.stopped(turn, { query, selection, events });
      else turn.fail(failure);
    } finally {
      if (this.running === running) this.running = null;
      this.showState();
    }
    if (this.last?.turn === turn) await this.offer();
  }

  finish(event, turn, asked) {
    this.keep(event.session_id, [...this.kept, asked]);
    this.last = lastOf(turn, asked);
    const told = event.status === "refused" ? "Refused" : `Answered. Confidence ${event.confidence_level}, ${turn.sources.length} sources`;
    this.say(`${told}.`);
  }

  /** What had come is kept, with its citations. */
  stopped(turn, { query, selection, events }) {
    turn.stop();
    if (!turn.element.isConnected) return; // another conversation has begun
    this.keep(this.session, [...this.kept, { query, selection, events: [...events, { type: "stopped" }] }]);
  }

  keep(session, turns) {
    this.session = session;
    this.kept = turns.slice(-KEPT).map(slim);
    memory.set(this.name, session);
    memory.set(`${this.name}.turns`, turns.length ? JSON.stringify(this.kept) : null);
    if (this.remembers && session && turns.length) this.remember();
    this.showState();
  }

  /** Past conversations of this browser, the latest first. */
  get past() {
    return JSON.parse(longMemory.get(PAST) ?? "[]");
  }

  remember(past = this.past) {
    const others = past.filter(({ id }) => id !== this.session);
    const now = this.kept.length ? [{ id: this.session, title: this.kept[0].query, at: Date.now(), turns: this.kept }] : [];
    const all = [...now, ...others].slice(0, MOST_PAST);
    if (!longMemory.set(PAST, JSON.stringify(all)) && others.length) this.remember(others.slice(0, -1)); // full: the oldest goes
  }

  begin() {
    this.running?.abort();
    this.showPast(false);
    this.keep(null, []);
    this.last = null;
    this.select(null);
    this.turns.replaceChildren(this.hint);
    this.hint.hidden = false;
    this.say("A new conversation.");
    this.focus();
    this.offer();
  }

  async erase() {
    if (!this.session || !confirm("Delete this conversation, for good?")) return;
    try {
      await this.api.deleteSession(this.session);
    } catch (failure) {
      if (failure.status !== 404) {
        this.say(`Not deleted. ${failure.message}`, true);
        return;
      }
    }
    if (this.remembers) longMemory.set(PAST, JSON.stringify(this.past.filter(({ id }) => id !== this.session)));
    this.begin();
    this.say("The conversation is deleted.", true);
  }

  /** Shows again, with its sources, what was said before. */
  recall(turns) {
    this.kept = turns;
    for (const { query, selection, events, rated } of turns) {
      const turn = this.turn(query, selection, rated);
      events.forEach((event) => turn.show(event));
      this.turns.append(turn.element);
      this.last = lastOf(turn, { selection, events });
    }
    this.showLast();
    this.showState();
  }

  /** The list of past conversations instead of the one that is open. */
  showPast(open = this.list.hidden) {
    this.list.hidden = !open;
    this.turns.hidden = open;
    this.history.setAttribute("aria-expanded", String(open));
    if (!open) return;
    const items = this.past.map(({ id, title, at, turns }) =>
      element("li", {}, element("button", { type: "button", "aria-current": id === this.session ? "true" : null, onclick: () => this.reopen(id, turns) }, element("strong", { dir: "auto" }, title), element("span", {}, `${new Date(at).toLocaleDateString()} · ${count(turns.length, "question")}`))),
    );
    this.list.replaceChildren(element("h3", { tabindex: "-1" }, "Past conversations"), element("p", { class: "remark" }, "Kept in this browser."), element("ul", {}, ...items));
    this.list.querySelector("h3").focus();
  }

  reopen(id, turns) {
    this.begin();
    this.keep(id, turns);
    this.recall(turns);
    this.offer();
  }

  showLast() {
    const last = this.turns.querySelector(".turn:last-child");
    if (last) this.turns.scrollTop = last.offsetTop;
  }

  /** Tells those who listen; `shown`: also those who look. */
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
    this.history.hidden = !this.remembers || !this.past.length;
  }

  /** Suggests what the server does: questions to begin with or, after an answer, those near it that were not asked yet. */
  async offer() {
    const { last } = this;
    if (!this.offers || (last ? this.next?.isConnected : this.suggested.childElementCount)) return;
    const asked = new Set(this.kept.map(({ query }) => bareQuestion(query)));
    const most = last ? MOST_NEXT : MOST_SUGGESTED;
    const found = await this.api.suggestions({ limit: most + asked.size, ...this.offers, page: last?.pages ?? [] });
    if (last !== this.last || this.running) return; // the reader has gone on meanwhile
    const fresh = found.filter((query) => !asked.has(bareQuestion(query))).slice(0, most);
    if (!last) this.suggest(fresh);
    else if (fresh.length) {
      this.next?.remove();
      this.next = element("div", { class: "next" }, element("h4", {}, "Ask next"), this.fill(element("ul", { class: "suggestions" }), fresh));
      last.turn.element.append(this.next);
    }
  }

  suggest(questions) {
    this.suggested.hidden = !questions.length;
    this.fill(this.suggested, questions);
  }

  /** Suggestions are about the book, whatever is selected. */
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
    this.list = element("div", { class: "past", hidden: true });
    this.status = element("p", { class: "status unseen", role: "status" });
    this.selected = element("div", { class: "selected", hidden: true });
    this.field = element("textarea", { class: "field", rows: "1", dir: "auto", maxlength: LONGEST_QUESTION, placeholder: this.title, "aria-label": "Your question" });
    this.sender = element("button", { type: "submit", class: "main-button send" });
    this.history = tool("history", "Past", "Past conversations", () => this.showPast());
    this.history.setAttribute("aria-expanded", "false");
    this.fresh = tool("plus", "New", "New conversation", () => this.begin());
    this.eraser = tool("trash", "Delete", "Delete conversation", () => this.erase());
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
      this.turns,
      this.list,
      this.status,
      form,
    );
    this.showState();
  }

  /** The field is as high as what is written in it; the styles set how high it may be. */
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

/** A button with a sign and a short word; its whole name is heard. */
function tool(sign, word, label, onclick) {
  return element("button", { type: "button", class: "tool", "aria-label": label, title: label, onclick }, icon(sign), word);
}

/** An answer of the book, and the pages that it is about or, where it was refused, that come nearest. */
function lastOf(turn, { selection, events }) {
  const done = events.find(({ type }) => type === "done");
  if (!done || selection !== null) return null;
  const sources = events.find(({ type }) => type === "sources")?.sources ?? [];
  const urls = [...sources, ...(done.nearest ?? [])].map(({ source_url: url }) => url.split("#")[0]);
  return { turn, pages: [...new Set(urls)].slice(0, MOST_PAGES) };
}

function bareQuestion(query) {
  return query.toLowerCase().replace(/[\s?!.…]+$/, "");
}

/** A turn without what only the first showing needs. */
function slim(turn) {
  const short = ({ chunk_text: _, ...source }) => source;
  return { ...turn, events: turn.events.map((event) => (event.sources ? { ...event, sources: event.sources.map(short) } : event)) };
}
