/** The table of contents: modules, their pages, and the sections of the page that is open. */
import { element } from "./dom.js";

const MANY = 60; // pages from which on only the open page's module is unfolded

export class Contents {
  constructor(place, pages) {
    this.place = place;
    this.links = new Map();
    const modules = new Map();
    for (const page of pages) modules.set(page.module, [...(modules.get(page.module) ?? []), page]);
    this.folds = [...modules].map(([module, list]) => this.module(module, list, pages.length <= MANY));
    place.replaceChildren(element("h2", { class: "unseen" }, "Contents"), ...this.folds);
  }

  module(name, pages, open) {
    const items = pages.map((page) => {
      const link = element("a", { href: `#/${page.page_id}`, dir: "auto" }, page.title);
      this.links.set(page.page_id, link);
      return element("li", {}, link);
    });
    return element("details", { open }, element("summary", {}, name || "Pages"), element("ul", {}, ...items));
  }

  /** Marks the open page and lists its sections below it. */
  open(page) {
    this.place.querySelector("[aria-current]")?.removeAttribute("aria-current");
    this.place.querySelector(".sections")?.remove();
    const link = this.links.get(page.page_id);
    if (!link) return;
    link.setAttribute("aria-current", "page");
    link.closest("details").open = true;
    const sections = page.sections.filter((section) => section.anchor && section.level <= 2);
    if (sections.length) {
      const items = sections.map((section) =>
        element("li", {}, element("a", { href: `#/${page.page_id}?section=${encodeURIComponent(section.anchor)}`, dir: "auto" }, section.heading)),
      );
      link.after(element("ul", { class: "sections" }, ...items));
    }
    // Only the list is scrolled: the reader's place in the page is not the contents' to change.
    const above = link.offsetTop - this.place.scrollTop;
    if (above < 0 || above > this.place.clientHeight - 60) this.place.scrollTop = link.offsetTop - this.place.clientHeight / 3;
  }
}
