/**
 * The ask box: a conversation, a field to ask in, and a selection that a question may be about. Builds itself into any place
 * (the reader's side panel, a widget's shadow root) and knows nothing of the page around it.
 */
import { memory } from "./api.js";
import { element } from "./dom.js";
import { lengthOf } from "./offsets.js";
import { Turn } from "./turn.js";

const SESSION = "chapterverse.session";
const LONGEST_QUESTION = 2000; // characters, as the server has it
export const LONGEST_SELECTION = 10_000;

export class AskBox {
  /** @param {{place: Element, api: import("./api.js").Api, hrefOf: (source: object) => string|null}} parts */
  constructor({ place, api, hrefOf }) {
    this.api = api;
    this.hrefOf = hrefOf;
    this.session = memory.get(SESSION);
    this.selection = null;
    this.running = null; // AbortController of the answer under way
    this.build(place);
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
    this.field.placeholder = text === null ? "Ask the book" : "Ask about the selection";
    if (text === null) return;
    const tooLong = lengthOf(text) > LONGEST_SELECTION;
    const remove = () => {
      this.select(null);
      this.focus();
    };
    this.selected.append(
      element("p", { class: "selected-head" }, "About your selection", element("button", { type: "button", class: "plain", "aria-label": "Remove the selection", onclick: remove }, "✕")),
      element("blockquote", { class: "selection", tabindex: "0" }, text),
    );
    if (tooLong) {
      const most = LONGEST_SELECTION.toLocaleString("en");
      this.selected.append(element("p", { class: "caution", role: "alert" }, `⚠ Longer than ${most} characters: select less.`));
    }
  }

  async ask(query, selection = this.selection) {
    query = query.trim();
    if (!query || this.running) return;
    this.hint.hidden = true;
    const again = () => {
      turn.element.remove();
      this.ask(query, selection);
    };
    const widen = () => {
      this.select(null);
      this.ask(query, null);
    };
    const turn = new Turn({ query, selection }, { hrefOf: this.hrefOf, retry: again, widen });
    this.turns.append(turn.element);
    this.turns.scrollTop = turn.element.offsetTop;
    await this.follow(turn, query, selection);
  }

  async follow(turn, query, selection) {
    this.running = new AbortController();
    this.showState();
    const question = { query, session_id: this.session, mode: selection === null ? "general" : "selected_text" };
    if (selection !== null) question.selected_text = selection;
    try {
      for await (const event of this.api.ask(question, this.running.signal)) {
        turn.show(event);
        if (event.type === "retrieved") this.say(`Reading ${event.passages.length} passages.`);
        if (event.type === "done") this.finish(event, turn);
      }
    } catch (failure) {
      if (failure.name === "AbortError") turn.stop();
      else turn.fail(failure);
    } finally {
      this.running = null;
      this.showState();
    }
  }

  finish(event, turn) {
    this.keep(event.session_id);
    const told = event.status === "refused" ? "Refused" : `Answered. Confidence ${event.confidence_level}, ${turn.sources.length} sources`;
    this.say(`${told}.`);
  }

  keep(session) {
    this.session = session;
    memory.set(SESSION, session);
    this.showState();
  }

  begin() {
    this.running?.abort();
    this.keep(null);
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

  /** Shows what was said before the page was opened anew. Sources are not kept with it, so markers lead nowhere. */
  async recall() {
    try {
      const thread = await this.api.session(this.session);
      if (this.running || this.turns.querySelector(".turn")) return;
      for (const message of thread.messages) {
        const kind = message.role === "user" ? "question" : "answer";
        this.turns.append(element(kind === "question" ? "h3" : "div", { class: `recalled ${kind}` }, message.content));
      }
      this.hint.hidden = thread.messages.length > 0;
      this.turns.scrollTop = this.turns.scrollHeight;
    } catch (failure) {
      if (failure.status === 404) this.keep(null);
    }
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

  build(place) {
    this.turns = element("div", { class: "turns", tabindex: "-1" });
    this.hint = element(
      "div",
      { class: "hint" },
      element("p", {}, "Ask anything about this book. Every sentence of the answer is checked against the passage it cites; what the book does not say is not answered."),
      element("p", {}, "Select text in the page to ask about it alone. Press ", element("kbd", {}, "/"), " to come here."),
    );
    this.turns.append(this.hint);
    this.status = element("p", { class: "status unseen", role: "status" });
    this.selected = element("div", { class: "selected", hidden: true });
    this.field = element("textarea", { class: "field", rows: "2", maxlength: LONGEST_QUESTION, placeholder: "Ask the book", "aria-label": "Your question" });
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
      element("div", { class: "ask-head" }, element("h2", {}, "Ask the book"), element("p", { class: "buttons" }, fresh, this.eraser)),
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
