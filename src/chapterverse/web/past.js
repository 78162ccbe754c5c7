/** Past conversations in this browser: storage, and a list to open or delete one. */
import { longMemory } from "./api.js";
import { count, element, iconButton } from "./dom.js";

const NAME = "chapterverse.conversations";
const MOST = 20; // conversations

export class Past {
  /**
   * @param {{suffix: string, reopen: (id: string, turns: object[]) => void, erase: (id: string) => void}} parts
   *   `suffix`: the end of the storage key, so that each edition of a book has its own conversations
   */
  constructor({ suffix, reopen, erase }) {
    Object.assign(this, { name: NAME + suffix, reopen, erase });
    this.place = element("div", { class: "past", hidden: true });
  }

  /** All conversations, newest first. The stored data may be from another release, or damaged. */
  get all() {
    const stored = longMemory.json(this.name);
    return Array.isArray(stored) ? stored.filter((one) => typeof one?.id === "string" && Array.isArray(one.turns)) : [];
  }

  /** Stores a conversation. If there is no space, the oldest is removed. */
  remember(id, turns, all = this.all) {
    if (!turns.length) return;
    const others = all.filter((one) => one.id !== id);
    const now = { id, title: turns[0].query, at: Date.now(), turns };
    if (!longMemory.set(this.name, JSON.stringify([now, ...others].slice(0, MOST))) && others.length) this.remember(id, turns, others.slice(0, -1));
  }

  /** @returns {boolean}  whether other conversations are left */
  forget(id) {
    const left = this.all.filter((one) => one.id !== id);
    longMemory.set(this.name, left.length ? JSON.stringify(left) : null);
    return left.length > 0;
  }

  /** Shows the list. `current`: the open conversation. */
  show(current) {
    const item = ({ id, title, at, turns }) => {
      const when = new Date(at).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
      const open = element("button", { type: "button", class: "reopen", "aria-current": id === current ? "true" : null, onclick: () => this.reopen(id, turns) }, element("strong", { dir: "auto" }, title), element("span", {}, `${when} · ${count(turns.length, "question")}`));
      return element("li", {}, open, iconButton("trash", `Delete: ${title}`, () => this.erase(id)));
    };
    this.place.replaceChildren(element("h3", { tabindex: "-1" }, "Past conversations"), element("p", { class: "remark" }, "Kept in this browser."), element("ul", {}, ...this.all.map(item)));
    this.place.querySelector("h3").focus();
  }
}
