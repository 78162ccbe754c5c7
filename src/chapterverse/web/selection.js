/** "Ask about this": a button next to the selected text. Reports the selection as it is stored. */
import { element } from "./dom.js";

const GAP = 8; // pixels
const COARSE = matchMedia("(pointer: coarse)");

export class SelectionButton {
  /**
   * @param {{place: Element, beside?: Element, textOf: (range: Range) => string|null, chosen: (text: string) => void,
   *   free?: () => {top: number, bottom: number}}} parts
   *   `place`: where text may be selected; `beside`: the element before the button; `textOf`: the stored text of a range; `free`: pixels
   *   at the edges of the window that are covered
   */
  constructor({ place, beside = place, textOf, chosen, free = () => ({ top: 0, bottom: 0 }) }) {
    Object.assign(this, { place, textOf, chosen, free });
    this.button = element("button", { type: "button", class: "ask-about main-button", hidden: true, onclick: () => this.choose() }, "Ask about this");
    // Pressing the button must not clear the selection before the click.
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
    const { offsetWidth: width, offsetHeight: height } = this.button;
    const { top, bottom } = this.free();
    const [left, above] = this.spot(range, width, height);
    this.button.style.left = `${clamp(left, GAP, innerWidth - width - GAP)}px`;
    this.button.style.top = `${clamp(above, top + GAP, innerHeight - bottom - height - GAP)}px`;
  }

  /** After the last line if there is room, else above the end of the first line. On touch screens below the selection, because the
   * system's own menu is above it. */
  spot(range, width, height) {
    const box = range.getBoundingClientRect();
    const last = [...range.getClientRects()].filter((line) => line.width > 1).at(-1) ?? box;
    const edge = Math.min(this.place.getBoundingClientRect().right, innerWidth);
    if (last.right + width + 2 * GAP <= edge) return [last.right + GAP, last.top + (last.height - height) / 2];
    const left = Math.min(box.right, edge) - width;
    return [left, COARSE.matches ? box.bottom + GAP : box.top - height - GAP / 2];
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

function clamp(value, least, most) {
  return Math.max(least, Math.min(value, most));
}
