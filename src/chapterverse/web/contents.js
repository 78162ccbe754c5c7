/**
 * The table of contents on the left, the outline of the open page with its current section, and the title page if the server
 * could not send it (`api/reader_page.py` makes the same).
 */
import { bookId, editionLabel, editionOf, element, sectionHash } from "./dom.js";

const MANY = 60; // pages from which on only the open page's module is unfolded, as on the server
const DEEPEST = 3; // level of headings in the outline
const TOP = 100; // pixels below the top of the window: where a heading is that an address names
const LISTED = 8; // pages of a chapter that the title page names, as on the server
const NAMED = 3; // books that the name of a server with several lists
const ABOUT = 240; // characters of the description

export class Contents {
  /**
   * @param {{place: Element, outline: Element, hrefOf: (id: string) => string}} parts
   * The list is part of the page; if it is missing or shortened, `fill` creates it.
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
    const chapterOf = (link) => link.closest("details")?.querySelector("summary").textContent ?? "";
    this.pages = [...this.links].map(([page_id, link]) => ({ page_id, title: link.textContent, url: link.dataset.url, edition: editionAround(link), chapter: chapterOf(link) }));
    this.areSeveral = new Set(this.pages.map((page) => page.edition)).size > 1; // editions
  }

  /** Creates the list of pages from the server's response. `titles`: titles of the books by name. */
  fill(pages, titles = new Map()) {
    const link = (page) => element("a", { href: this.hrefOf(page.page_id), dir: "auto", "data-url": page.url }, page.title);
    const fold = (list) =>
      element("details", { open: pages.length <= MANY }, element("summary", {}, list[0].category || "Pages"), element("ul", {}, ...list.map((page) => element("li", {}, link(page)))));
    const folds = (list) => grouped(list, (page) => `${page.module}\n${page.category}`).map(([, module]) => fold(module));
    const editions = grouped(pages, editionOf);
    const named = ([edition, list]) => element("section", { "data-edition": edition }, element("h2", {}, labelOf(list[0], titles) || "Book"), ...folds(list));
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
    // Only the list is scrolled, not the page.
    const item = link.parentElement; // with the sections
    const { scrollTop, clientHeight } = this.place;
    const isInView = link.offsetTop >= scrollTop && item.offsetTop + item.offsetHeight <= scrollTop + clientHeight;
    if (!isInView) this.place.scrollTop = link.offsetTop - Math.max(0, Math.min(clientHeight / 3, clientHeight - item.offsetHeight));
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

  /** Marks the section that is being read: the last whose heading is above the middle of the window. At the end of the page it is the last one. */
  follow() {
    if (!this.headings.length) return;
    const atEnd = innerHeight + scrollY >= document.documentElement.scrollHeight - 2;
    const passed = this.headings.filter((heading) => heading.getBoundingClientRect().top < Math.min(innerHeight / 2, TOP + scrollY));
    const current = (atEnd && scrollY > 0 ? this.headings : passed).at(-1) ?? this.headings[0];
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

/** The name of an edition with the title of its book. */
function labelOf({ book, version }, titles) {
  return editionLabel({ book: titles.get(book) || book, version });
}

/** The title of the page: the configured one (`given`), that of the only book, or the names of all books. `own`: a book was opened by its address. */
export function titleOf({ given, own, books, pages }) {
  const named = (own ? books[0]?.title || given : given || (books.length === 1 && books[0].title)) || "";
  if (named) return named;
  const titles = books.map((book) => book.title || folderName(pages[0]?.url ?? ""));
  const shown = titles.length <= NAMED ? titles : [...titles.slice(0, NAMED - 1), `${titles.length - NAMED + 1} more`];
  return [shown.slice(0, -1).join(", "), shown.at(-1)].filter(Boolean).join(" and ");
}

/** A name made from the address of a page, for a book without a title. */
function folderName(url) {
  if (URL.canParse(url)) return new URL(url).host;
  const folder = url.split("/")[0].replace(/[-_]+/g, " ").trim();
  return folder.charAt(0).toUpperCase() + folder.slice(1);
}

/** The description of a page: its first paragraph, shortened. */
export function aboutOf({ text, blocks }) {
  const characters = [...text];
  const block = blocks.find(({ kind }) => kind === "paragraph");
  const words = block ? characters.slice(block.start, block.end).join("").replaceAll("`", "").split(/\s+/).filter(Boolean).join(" ") : "";
  if ([...words].length <= ABOUT) return words;
  const whole = new RegExp(`^.{80,${ABOUT}}(?:[.!?](?= )|[。！？])`, "u").exec(words);
  return whole ? whole[0] : `${[...words].slice(0, ABOUT).join("").replace(/ [^ ]*$/, "")} …`;
}

/**
 * The title page: the chapters of a book, or a list of several books. The header links to other versions.
 * @param {{title: string, about: string, logo: Element|null, contents: Contents, shelf: (book: string) => string}} parts
 *   `shelf`: the address of a book
 */
export function coverOf({ title, about, logo, contents, shelf }) {
  const { place, pages, areSeveral } = contents;
  const head = element("div", { class: "cover" }, logo && element("img", { class: "cover-logo", src: logo.src, alt: "" }), element("h1", { tabindex: "-1", dir: "auto" }, title));
  const card = (name, around) => {
    const links = [...around.querySelectorAll("a[data-url]")];
    const listed = links.length === LISTED + 1 ? links : links.slice(0, LISTED);
    const items = listed.map((link) => element("li", {}, element("a", { href: link.href, dir: "auto" }, link.textContent)));
    const more = links.length - items.length;
    return element("section", { class: "chapter" }, element("h2", {}, name), element("ul", {}, ...items, more > 0 && element("li", { class: "more" }, `and ${more} more`)));
  };
  const book = (section) => card(element("a", { href: shelf(section.dataset.edition.split("@")[0]), dir: "auto" }, section.querySelector("h2").textContent), section);
  if (areSeveral) return [head, element("div", { class: "chapters" }, ...[...place.querySelectorAll("[data-edition]")].map(book))];
  const start = element("a", { class: "main-button", href: contents.hrefOf(pages[0].page_id) }, "Start reading");
  head.append(...[about && element("p", { class: "lede", dir: "auto" }, about), element("p", { class: "buttons" }, start)].filter(Boolean));
  const chapters = [...place.querySelectorAll("details")].map((chapter) => card(chapter.querySelector("summary").textContent, chapter));
  return [head, element("div", { class: "chapters" }, ...chapters)];
}
