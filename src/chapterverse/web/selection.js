/** "Ask about this": a button beside the text that the reader selects. Tells what was selected as it is stored. */
import { element } from "./dom.js";

export class SelectionButton {
  /**
   * @param {{place: Element, beside?: Element, textOf: (range: Range) => string|null, chosen: (text: string) => void}} parts
   *   `place`: where text may be selected; `beside`: after what the button comes; `textOf`: the stored text of a range
   */
  constructor({ place, beside = place, textOf, chosen }) {
    Object.assign(this, { place, textOf, chosen });
    this.button = element("button", { type: "button", class: "ask-about main-button", hidden: true, onclick: () => this.choose() }, "Ask about this");
    // Pressing the button must not take the selection away before the click is heard.
    this.button.addEventListener("pointerdown", (event) => event.preventDefault());
    beside.after(this.button);
    document.addEventListener("selectionchange", () => this.follow());
    for (const name of ["resize", "scroll"]) addEventListener(name, () => this.move(), { capture: true, passive: true });
  }

  get isOpen() {
    return !this.button.hidden;
  }

  close() {
    this.button.hidden = true;
  }

  follow() {
    const range = this.range();
    this.text = range && this.textOf(range);
    this.button.hidden = !this.text?.trim();
    this.move();
  }

  move() {
    const range = this.button.hidden ? null : this.range();
    if (!range) return;
    const box = range.getBoundingClientRect();
    const left = Math.min(Math.max(box.left + box.width / 2 - this.button.offsetWidth / 2, 8), innerWidth - this.button.offsetWidth - 8);
    this.button.style.left = `${left}px`;
    this.button.style.top = `${box.bottom + 8}px`;
  }

  range() {
    const selection = getSelection();
    if (!selection.rangeCount || selection.isCollapsed) return null;
    const range = selection.getRangeAt(0);
    return range.intersectsNode(this.place) ? range : null;
  }

  choose() {
    const { text } = this;
    getSelection().removeAllRanges();
    this.close();
    this.chosen(text);
  }
}
