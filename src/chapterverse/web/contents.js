/** Where the reader is: the table of contents to the left, and the outline of the open page with its current section. */
import { bookId, editionLabel, editionOf, element, sectionHash } from "./dom.js";

const MANY = 60; // pages from which on only the open page's module is unfolded, as on the server
const DEEPEST = 3; // level of headings in the outline

export class Contents {
  /**
   * @param {{place: Element, outline: Element, hrefOf: (id: string) => string}} parts
   * The list comes with the page, and says which pages there are; without it `fill` makes one.
   */
  constructor({ place, outline, hrefOf }) {
    Object.assign(this, { place, outline, hrefOf });
    this.headings = [];
    this.collect();
    let waiting = false;
    addEventListener("scroll", () => {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => {
        waiting = false;
        this.follow();
      });
    }, { passive: true });
  }

  collect() {
    const links = [...this.place.querySelectorAll("a[data-url]")];
    this.links = new Map(links.map((link) => [/[0-9a-f-]{36}$/.exec(link.href)?.[0], link]));
    const editionAround = (link) => link.closest("[data-edition]")?.dataset.edition ?? "";
    this.pages = [...this.links].map(([page_id, link]) => ({ page_id, title: link.textContent, url: link.dataset.url, edition: editionAround(link) }));
    this.areSeveral = new Set(this.pages.map((page) => page.edition)).size > 1; // editions
  }

  /** Makes the list of pages as the server gives it. */
  fill(pages) {
    const link = (page) => element("a", { href: this.hrefOf(page.page_id), dir: "auto", "data-url": page.url }, page.title);
    const fold = (list) =>
      element("details", { open: pages.length <= MANY }, element("summary", {}, list[0].category || "Pages"), element("ul", {}, ...list.map((page) => element("li", {}, link(page)))));
    const folds = (list) => grouped(list, (page) => page.module).map(([, module]) => fold(module));
    const editions = grouped(pages, editionOf);
    const named = ([edition, list]) => element("section", { "data-edition": edition }, element("h2", {}, editionLabel(list[0]) || "Book"), ...folds(list));
    this.place.replaceChildren(...(editions.length > 1 ? editions.map(named) : folds(pages)));
    this.collect();
  }

  /** Marks the open page and lists its sections; null: no page is open. */
  open(page) {
    this.place.querySelector("[aria-current]")?.removeAttribute("aria-current");
    this.place.querySelector(".sections")?.remove();
    this.outline.replaceChildren();
    this.headings = [];
    this.outline.hidden = true;
    const link = page && this.links.get(page.page_id);
    if (!link) return;
    link.setAttribute("aria-current", "page");
    link.closest("details").open = true;
    this.list(page, link);
    // Only the list is scrolled: the reader's place in the page is not the contents' to change.
    const above = link.offsetTop - this.place.scrollTop;
    if (above < 0 || above > this.place.clientHeight - 60) this.place.scrollTop = link.offsetTop - this.place.clientHeight / 3;
  }

  list(page, link) {
    const sections = page.sections.filter((section) => section.anchor && section.level <= DEEPEST);
    if (!sections.length) return;
    const items = (deepest) =>
      sections
        .filter((section) => section.level <= deepest)
        .map((section) => element("li", { class: `level-${section.level}` }, element("a", { href: this.hrefOf(page.page_id) + sectionHash(section.anchor), "data-section": bookId(section.anchor), dir: "auto" }, section.heading)));
    link.after(element("ul", { class: "sections" }, ...items(2)));
    this.outline.append(element("h2", {}, "On this page"), element("ul", {}, ...items(DEEPEST)));
    this.outline.hidden = false;
    this.headings = sections.map((section) => document.getElementById(bookId(section.anchor))).filter(Boolean);
    this.follow();
  }

  /** Marks the section that is being read: the last whose heading has passed the middle; at the end, the last. */
  follow() {
    if (!this.headings.length) return;
    const atEnd = innerHeight + scrollY >= document.documentElement.scrollHeight - 2;
    const passed = this.headings.filter((heading) => heading.getBoundingClientRect().top < innerHeight / 2);
    const current = (atEnd && scrollY > 0 ? this.headings : passed).at(-1);
    for (const list of [this.outline, this.place.querySelector(".sections")]) {
      for (const link of list?.querySelectorAll("a") ?? []) {
        if (link.dataset.section === current?.id) link.setAttribute("aria-current", "location");
        else link.removeAttribute("aria-current");
      }
    }
  }
}

function grouped(pages, by) {
  const groups = new Map();
  for (const page of pages) {
    if (groups.has(by(page))) groups.get(by(page)).push(page);
    else groups.set(by(page), [page]);
  }
  return [...groups];
}
