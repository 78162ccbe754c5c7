/** "Ask about this": a button beside the text that the reader selects. Tells what was selected as it is stored. */
import { element } from "./dom.js";

export class SelectionButton {
  /**
   * @param {{place: Element, textOf: (range: Range) => string|null, chosen: (text: string) => void}} parts
   *   `place`: where text may be selected; `textOf`: the stored text of a range
   */
  constructor({ place, textOf, chosen }) {
    Object.assign(this, { place, textOf, chosen });
    this.button = element("button", { type: "button", class: "ask-about main-button", hidden: true, onclick: () => this.choose() }, "Ask about this");
    // Pressing the button must not take the selection away before the click is heard.
    this.button.addEventListener("pointerdown", (event) => event.preventDefault());
    place.after(this.button);
    document.addEventListener("selectionchange", () => this.follow());
    addEventListener("resize", () => this.follow());
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
    if (this.button.hidden) return;
    const box = range.getBoundingClientRect();
    const left = Math.min(Math.max(box.left + box.width / 2 - this.button.offsetWidth / 2, 8), innerWidth - this.button.offsetWidth - 8);
    this.button.style.left = `${left + scrollX}px`;
    this.button.style.top = `${box.bottom + scrollY + 8}px`;
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
