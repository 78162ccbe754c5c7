/**
 * The ask box: a conversation, a field to ask in, and a selection that a question may be about. Builds itself into any place
 * (the reader's side panel, a widget's shadow root) and knows nothing of the page around it.
 */
import { memory } from "./api.js";
import { element } from "./dom.js";
import { lengthOf } from "./offsets.js";
import { Turn } from "./turn.js";

const SESSION = "chapterverse.session";
const KEPT = 20; // turns that are shown again on the next page
const LONGEST_QUESTION = 2000; // characters, as the server has it
export const LONGEST_SELECTION = 10_000;

export class AskBox {
  /**
   * @param {{place: Element, api: import("./api.js").Api, hrefOf: (source: object) => string|null, title?: string,
   *   shortcut?: string, filters?: object|null, name?: string, suggestions?: string[]}} parts
   *   `hrefOf`: where a source can be read; `shortcut`: the key that leads here; `filters`: the part of the book that is asked;
   *   `name`: under which the conversation is kept in this tab; `suggestions`: questions to begin with
   */
  constructor({ place, api, hrefOf, title = "Ask the book", shortcut = null, filters = null, name = SESSION, suggestions = [] }) {
    Object.assign(this, { api, hrefOf, title, filters, name, suggestions });
    this.session = memory.get(name);
    this.kept = [];
    this.selection = null;
    this.running = null; // AbortController of the answer under way
    this.build(place, shortcut);
    if (this.session) this.recall();
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
      element("p", { class: "selected-head" }, "About your selection", element("button", { type: "button", class: "plain", "aria-label": "Remove the selection", onclick: remove }, "✕")),
      element("blockquote", { class: "selection", tabindex: "0", dir: "auto" }, text),
    );
    if (tooLong) {
      const most = LONGEST_SELECTION.toLocaleString("en");
      this.selected.append(element("p", { class: "caution", role: "alert" }, `⚠ Longer than ${most} characters: select less.`));
    }
  }

  async ask(query, selection = this.selection) {
    query = query.trim();
    if (!query || this.running) return;
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
    const turn = new Turn({ query, selection }, { hrefOf: this.hrefOf, retry, widen, rate: (given) => this.rate(given), rated });
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
    this.running = new AbortController();
    this.showState();
    const question = { query, session_id: this.session, mode: selection === null ? "general" : "selected_text" };
    if (selection !== null) question.selected_text = selection;
    else if (this.filters) question.filters = this.filters;
    const events = [];
    try {
      for await (const event of this.api.ask(question, this.running.signal)) {
        events.push(event);
        turn.show(event);
        if (event.type === "retrieved") this.say(`Reading ${event.passages.length} passages.`);
        if (event.type === "done") this.finish(event, turn, { query, selection, events });
      }
    } catch (failure) {
      if (failure.name === "AbortError") turn.stop();
      else turn.fail(failure);
    } finally {
      this.running = null;
      this.showState();
    }
  }

  finish(event, turn, asked) {
    this.keep(event.session_id, [...this.kept, asked]);
    const told = event.status === "refused" ? "Refused" : `Answered. Confidence ${event.confidence_level}, ${turn.sources.length} sources`;
    this.say(`${told}.`);
  }

  keep(session, turns) {
    this.session = session;
    this.kept = turns.slice(-KEPT);
    memory.set(this.name, session);
    memory.set(`${this.name}.turns`, turns.length ? JSON.stringify(this.kept) : null);
    this.showState();
  }

  begin() {
    this.running?.abort();
    this.keep(null, []);
    this.select(null);
    this.turns.replaceChildren(this.hint);
    this.hint.hidden = false;
    this.say("A new conversation.");
    this.focus();
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
    this.begin();
    this.say("The conversation is deleted.", true);
  }

  /** Shows again, with its sources, what was said before this page was opened. */
  recall() {
    this.kept = JSON.parse(memory.get(`${this.name}.turns`) ?? "[]");
    for (const { query, selection, events, rated } of this.kept) {
      const turn = this.turn(query, selection, rated);
      events.forEach((event) => turn.show(event));
      this.turns.append(turn.element);
    }
    this.showLast();
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
    this.sender.textContent = busy ? "Stop" : "Ask";
    this.eraser.disabled = this.session === null;
  }

  build(place, shortcut) {
    this.turns = element("div", { class: "turns", tabindex: "-1" });
    this.hint = element(
      "div",
      { class: "hint" },
      element("p", {}, "Ask anything about this book. Every sentence of the answer is checked against the passage it cites; what the book does not say is not answered."),
      element("p", {}, "Select text in the page to ask about it alone.", ...(shortcut ? [" Press ", element("kbd", {}, shortcut), " to come here."] : [])),
      element("ul", { class: "suggestions", "aria-label": "Questions to begin with", hidden: !this.suggestions.length }, ...this.suggestions.map((query) => element("li", {}, element("button", { type: "button", onclick: () => this.ask(query) }, query)))),
    );
    this.turns.append(this.hint);
    this.status = element("p", { class: "status unseen", role: "status" });
    this.selected = element("div", { class: "selected", hidden: true });
    this.field = element("textarea", { class: "field", rows: "2", dir: "auto", maxlength: LONGEST_QUESTION, placeholder: this.title, "aria-label": "Your question" });
    this.sender = element("button", { type: "submit", class: "main-button" }, "Ask");
    const fresh = element("button", { type: "button", class: "plain", onclick: () => this.begin() }, "New conversation");
    this.eraser = element("button", { type: "button", class: "plain", onclick: () => this.erase() }, "Delete conversation");
    const form = element("form", { class: "asking" }, this.selected, element("div", { class: "line" }, this.field, this.sender));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.submit();
    });
    this.field.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      if (!this.running) this.submit();
    });
    place.append(
      element("div", { class: "ask-head" }, element("h2", {}, this.title), element("p", { class: "buttons" }, fresh, this.eraser)),
      this.turns,
      this.status,
      form,
    );
    this.showState();
  }

  submit() {
    if (this.running) {
      this.running.abort();
      return;
    }
    const query = this.field.value;
    if (!query.trim()) return;
    this.field.value = "";
    this.ask(query);
  }
}
