/**
 * The reader page. The address gives the open page: `read/PAGE#book-ANCHOR` opens it at a heading, `read/PAGE?quote=START-END`
 * at a quotation (`&answering=START-END,…` marks the parts that answer, `&find=WORDS` the words searched for). `?ask=QUESTION`
 * asks. The server sends the page as HTML; it is rendered again here from its stored text, so that every character has a known
 * offset.
 */
import { Api, longMemory } from "./api.js";
import { AskBox, SESSION } from "./ask.js";
import { editionIn, shelfOf, showBooks } from "./books.js";
import { aboutOf, Contents, coverOf, titleOf } from "./contents.js";
import { at, bookId, copyFrom, editionLabel, editionOf, element, icon, leading, sectionHash } from "./dom.js";
import { fetchHighlighter, languageOf } from "./highlight.js";
import { askForKey, explanationOf } from "./notices.js";
import { mark, placeOf, quoteOf, unitsOf } from "./offsets.js";
import { render } from "./render.js";
import { Search, wordsIn } from "./search.js";
import { SelectionButton } from "./selection.js";

const place = at("page");
const OLDER = [...place.querySelectorAll(".older")]; // that this is not the latest version, above every page
const SWITCH = document.getElementById("book-switch");
const ROOT = new URL(document.documentElement.dataset.root, location.href).href; // of the server; the address changes, this does not
const PRISM = new URL("prism.js", import.meta.url).href;
const NARROW = matchMedia("(max-width: 860px)"); // as in reader.css: the ask panel is a sheet over the page
const BEHIND = ".skip, .bar, .contents, .page, .ask-bar"; // elements behind the ask panel, where it is a sheet
const PAGE = /^read\/([0-9a-f-]{36})$/i;

class Reader {
  constructor() {
    this.texts = new Map();
    this.page = null;
    this.runs = [];
    for (const link of document.querySelectorAll("a[href]")) link.href = link.href; // whole, because the address will change
    this.cover = place.querySelector(".cover") ? [...place.childNodes].filter((node) => !OLDER.includes(node)) : null;
    this.brand = document.querySelector(".brand");
    this.bookTitle = this.brand.textContent;
    this.api = new Api(ROOT, askForKey);
    const { books } = SWITCH.dataset;
    if (books) showBooks(SWITCH, ROOT, JSON.parse(books));
    this.contents = new Contents({ place: at("contents"), outline: at("outline"), hrefOf: hrefOfPage });
    this.showWhetherThereIsABook();
    this.ask = new AskBox({
      place: at("ask"),
      api: this.api,
      hrefOf: (source) => this.hrefOf(source),
      shareOf: (query) => `${ROOT}?ask=${encodeURIComponent(query)}`,
      colour: () => fetchHighlighter(PRISM),
      here: () => this.contents.links.get(address()?.id)?.dataset.url ?? null,
      shortcut: "/",
      name: `${SESSION} ${new URL(ROOT).pathname}`.replace(/ \/$/, ""), // a conversation belongs to the book in which it began
      remembers: true,
      closing: () => this.toggle("ask", false),
    });
    this.search = new Search({
      dialog: at("search"), form: at("search-form"), box: at("search-box"), sheet: at("results"), status: at("search-status"), close: at("search-close"),
      api: this.api, pages: () => this.contents.pages, hrefOf: hrefOfPage, ask: (query) => this.askFor(query),
    });
    this.selection = new SelectionButton({
      place,
      textOf: (range) => {
        const found = this.page && placeOf(range, this.runs);
        return found && this.page.text.slice(...found);
      },
      chosen: (text) => this.askAbout(text),
      free: () => ({ top: at("search-button").closest(".bar").offsetHeight, bottom: document.querySelector(".ask-bar").offsetHeight }),
    });
    if (/^(?:Mac|iP)/.test(navigator.platform)) document.querySelector(".search-button kbd").textContent = "⌘ K";
    this.listen();
  }

  listen() {
    for (const name of ["contents", "ask"]) at(`${name}-button`).addEventListener("click", () => this.toggle(name));
    at("search-button").addEventListener("click", () => this.search.open());
    at("ask-bar").addEventListener("click", () => this.toggle("ask", true));
    at("back").addEventListener("click", () => this.backToAnswer());
    at("ask").addEventListener("click", (event) => this.leaveAnswer(event));
    history.scrollRestoration = "manual";
    for (const name of ["pagehide", "scrollend"]) addEventListener(name, () => history.replaceState({ scroll: scrollY }, ""));
    addEventListener("popstate", (event) => this.open({ scroll: event.state?.scroll ?? null }));
    document.addEventListener("click", (event) => this.clicked(event));
    document.addEventListener("keydown", (event) => this.pressed(event));
    NARROW.addEventListener("change", () => this.showAskState());
    this.showAskState();
  }

  async start() {
    const kept = history.state?.scroll ?? null;
    const failure = await this.fetchContents().catch((caught) => caught);
    // The server may have sent the page, or why there is none.
    if (failure && !place.querySelector(".missing, .cover, .turning")) this.explain(failure);
    if (!this.contents.pages.length && !this.cover) {
      if (!failure) this.explain({ code: "no_book" });
      return;
    }
    const old = /^#\/([0-9a-f-]{36})(?:\?(.*))?$/i.exec(location.hash); // addresses of an earlier version
    if (old) {
      const { section, ...rest } = Object.fromEntries(new URLSearchParams(old[2] ?? ""));
      const query = Object.keys(rest).length ? `?${new URLSearchParams(rest)}` : "";
      history.replaceState(null, "", `${hrefOfPage(old[1])}${query}${section ? sectionHash(section) : ""}`);
    }
    const asked = new URLSearchParams(location.search).get("ask");
    if (asked) history.replaceState(history.state, "", location.pathname + location.hash); // a reload must not ask again
    const named = location.search || location.hash;
    // After a reload, restore the scroll position; otherwise keep where the reader has scrolled meanwhile.
    const scroll = kept ?? (named ? null : scrollY);
    if (!place.querySelector(".missing") && (address() || !this.cover)) await this.open({ moveFocus: Boolean(old || named), scroll });
    else if (kept) scrollTo({ top: kept, behavior: "instant" });
    if (asked) this.askFor(asked);
  }

  /** Asks in a new conversation. */
  askFor(query) {
    this.toggle("ask", true);
    this.ask.begin();
    this.ask.ask(query);
  }

  /** Fetches the list of pages, if the page came without it or with a part of it. */
  async fetchContents() {
    const { dataset } = at("contents");
    if (dataset.list) this.contents.fill((await this.api.json("GET", dataset.list)).pages, this.titles(SWITCH.dataset.books ? JSON.parse(SWITCH.dataset.books).books : []));
    dataset.list = ""; // it is whole
    if (this.contents.pages.length) return;
    const [{ pages }, shelf] = await Promise.all([this.api.pages(), this.api.books()]);
    this.contents.fill(pages, this.titles(shelf.books));
    this.showWhetherThereIsABook();
    if (!pages.length) return;
    const names = new Set(pages.map(({ book }) => book));
    const own = Boolean(editionIn(ROOT));
    this.bookTitle = titleOf({ given: this.brand.dataset.given, own, books: shelf.books.filter(({ name }) => names.has(name)), pages });
    this.brand.querySelector("span").textContent = this.bookTitle;
    if (!SWITCH.dataset.books) showBooks(SWITCH, ROOT, shelf);
  }

  titles(books) {
    return new Map(books.map(({ name, title }) => [name, title]));
  }

  /** Tells the styles whether there is a book. Without one, asking and searching are disabled. */
  showWhetherThereIsABook() {
    document.documentElement.dataset.book = this.contents.pages.length || at("contents").dataset.list ? "open" : "none"; // the list of a large book comes later
  }

  /** Shows the page of the current address. `scroll`: an earlier scroll position on it. */
  async open({ moveFocus = true, scroll = null } = {}) {
    const wanted = address();
    if (!wanted) return this.showCover(scroll);
    if (this.page?.page_id === wanted.id && !wanted.quote && !this.quoted && scroll === null) {
      this.closeDrawers();
      this.goTo(wanted, [], moveFocus);
      return;
    }
    try {
      const known = await this.text(wanted.id, wanted.quote && scroll === null);
      if (known.blocks.some((block) => block.kind === "code" && languageOf(block.info))) await fetchHighlighter(PRISM);
    } catch (failure) {
      this.explain(failure);
      if (moveFocus) place.focus({ preventScroll: true });
      return;
    }
    if (address()?.id !== wanted.id) return; // the reader has moved on meanwhile
    this.show(this.texts.get(wanted.id), wanted, moveFocus, scroll);
  }

  /** The text of a page; `fresh`: as it is now, because offsets are of the latest text. */
  async text(id, fresh) {
    if (fresh || !this.texts.has(id)) this.texts.set(id, await this.api.page(id));
    return this.texts.get(id);
  }

  show(page, wanted, moveFocus, scroll) {
    // An image element cannot send the key.
    const fetchImage = this.api.key ? (source) => this.api.image(source) : null;
    const { nodes, runs } = render(page, (target) => this.wayTo(target, page), ROOT, fetchImage);
    this.page = page;
    this.runs = runs;
    const named = [this.contents.areSeveral && editionLabel(page), page.category].filter(Boolean).join(" · ");
    place.replaceChildren(...OLDER, ...(named ? [element("p", { class: "module" }, named)] : []), ...nodes, this.turning(page));
    this.offerSections(page);
    document.title = `${page.title} · ${this.bookTitle}`;
    document.querySelector("link[rel=alternate]").href = `${ROOT}pages/${page.page_id}.md`;
    this.contents.open(page);
    this.closeDrawers();
    this.selection.close();
    const units = unitsOf(page.text);
    this.quoted = Boolean(wanted.quote);
    const marks = wanted.quote ? this.mark(runs, wanted.quote.map(units), wanted.find) : [];
    for (const [start, end] of wanted.answering ?? []) mark(runs, units(start), units(end), "answering");
    if (scroll !== null) scrollTo({ top: scroll, behavior: "instant" });
    else this.goTo(wanted, marks, moveFocus);
    this.contents.follow();
    this.ask.offer();
  }

  /** Marks the words searched for in a range of the page, or the whole range if it contains none of them. */
  mark(runs, [start, end], find) {
    const words = wordsIn(this.page.text.slice(start, end), find);
    const found = words.flatMap(([from, to]) => mark(runs, start + from, start + to, "evidence found"));
    return found.length ? found : mark(runs, start, end);
  }

  /** Scrolls to the quotation or the section in the address. */
  goTo({ section }, marks, moveFocus) {
    const target = marks[0] ?? (section ? document.getElementById(section) : null);
    if (target) target.scrollIntoView({ block: marks.length ? "center" : "start", behavior: "instant" });
    else scrollTo({ top: 0, behavior: "instant" });
    if (moveFocus) (target ?? place.querySelector("h1") ?? place).focus({ preventScroll: true });
  }

  /** The title page: as the server sent it, or rendered here if another page was opened first. */
  async showCover(scroll) {
    if (!this.cover) {
      const failure = await this.fetchContents().catch((caught) => caught);
      const first = failure || this.contents.areSeveral ? null : await this.text(this.contents.pages[0].page_id).catch(() => null); // if the text cannot be fetched, the title page still has a title
      if (address()) return; // the reader has moved on meanwhile
      if (failure) return this.explain(failure);
      this.cover = coverOf({ title: this.bookTitle, about: first ? aboutOf(first) : "", logo: this.brand.querySelector("img"), contents: this.contents, shelf: (book) => shelfOf(ROOT, book) });
    }
    this.leavePage(this.cover);
    scrollTo({ top: scroll ?? 0, behavior: "instant" });
    this.ask.offer();
  }

  /** Shows something else than a page of the book. */
  leavePage(nodes) {
    this.page = null;
    this.runs = [];
    place.replaceChildren(...OLDER, ...nodes);
    document.title = this.bookTitle;
    document.querySelector("link[rel=alternate]").href = `${ROOT}llms.txt`;
    this.contents.open(null);
    this.closeDrawers();
    this.selection.close();
  }

  /** Adds to each heading a link to it, and a button to ask about its section without a mouse. */
  offerSections(page) {
    const units = unitsOf(page.text);
    for (const section of page.sections) {
      const heading = section.anchor && document.getElementById(bookId(section.anchor));
      if (!heading) continue;
      const text = page.text.slice(units(section.start), units(section.end)).trim();
      const label = `Ask about the section ${section.heading}`;
      const href = hrefOfPage(page.page_id) + sectionHash(section.anchor);
      const link = element("a", { class: "anchor", href, "aria-label": `Link to the section ${section.heading}`, title: "Copy the link", onclick: () => copyFrom(link, href, "Link copied") }, icon("link"));
      const button = element("button", { type: "button", class: "ask-section", "aria-label": label, onclick: () => this.askAbout(text) }, "Ask about this");
      const both = element("div", { class: `headed level-${section.level}`, dir: "auto" });
      heading.replaceWith(both);
      both.append(heading, link, button);
    }
  }

  turning(page) {
    const { pages } = this.contents;
    const index = pages.findIndex((other) => other.page_id === page.page_id);
    const link = (other, label, relation) =>
      other ? element("a", { href: hrefOfPage(other.page_id), rel: relation }, element("span", {}, label), other.title) : element("span");
    return element("nav", { class: "turning", "aria-label": "Next and previous page" }, link(pages[index - 1], "Previous", "prev"), link(pages[index + 1], "Next", "next"));
  }

  /** The address of a source in this reader. A near section, and a passage that is still being read, have no page id. */
  hrefOf(source) {
    if (source.page_id) return `${hrefOfPage(source.page_id)}?${quoteOf(source)}`;
    const [url, anchor] = source.source_url.split("#");
    const page = this.pageAt(url, editionOf(source));
    if (page) return hrefOfPage(page.page_id) + (anchor ? sectionHash(anchor) : "");
    return source.reader_url ? ROOT + source.reader_url.slice(1) : null;
  }

  /** The page at a URL, ignoring a slash at its end. */
  pageAt(url, edition) {
    const { pages, areSeveral } = this.contents;
    const key = (of, at) => `${areSeveral ? of : ""} ${bare(at)}`;
    if (this.addresses?.of !== pages) this.addresses = { of: pages, found: new Map(pages.map((page) => [key(page.edition, page.url), page])) };
    return this.addresses.found.get(key(edition, url));
  }

  /** Attributes of a link in the book's text: pages of the book open here, others in a new tab. */
  wayTo(target, { book, version }) {
    const href = this.hrefOf({ source_url: target, book, version });
    if (href) return { href };
    return /^(?:https?|mailto):/i.test(target) ? leading(target) : null;
  }

  askAbout(text) {
    this.ask.select(text);
    this.toggle("ask", true);
    this.ask.focus();
  }

  explain(failure) {
    const again = () => (this.contents.pages.length ? this.open() : location.reload());
    this.leavePage(explanationOf(failure, again));
  }

  /** Opens or closes a drawer. On wide screens the contents are always visible, and the ask panel can be closed. */
  toggle(name, open = name === "ask" && !NARROW.matches ? this.isAskAway() : document.body.dataset.drawer !== name) {
    if (name === "ask" && !NARROW.matches) {
      document.documentElement.dataset.ask = open ? "open" : "closed";
      longMemory.set("chapterverse.ask", open ? null : "closed");
    } else document.body.dataset.drawer = open ? name : "";
    this.showAskState();
    at("contents-button").setAttribute("aria-expanded", String(open && name === "contents"));
    if (open && name === "ask") this.ask.focus();
    else if (open) at("contents").focus();
    else [at(`${name}-button`), at("ask-bar")].find((button) => button.offsetParent)?.focus({ preventScroll: true });
  }

  isAskAway() {
    return document.documentElement.dataset.ask === "closed";
  }

  showAskState() {
    at("ask-button").setAttribute("aria-expanded", String(!this.isAskAway()));
    const covered = NARROW.matches && document.body.dataset.drawer === "ask";
    document.body.classList.toggle("covered", covered);
    for (const node of document.querySelectorAll(BEHIND)) node.inert = covered; // prevents focus on hidden elements
  }

  closeDrawers() {
    document.body.dataset.drawer = "";
    at("contents-button").setAttribute("aria-expanded", "false");
    this.showAskState();
  }

  /** On a phone, closes the answer to show its evidence, with a button back to the answer. */
  leaveAnswer(event) {
    const link = event.target.closest("a[href]");
    if (!link || !NARROW.matches) return;
    this.left = link;
    at("back").hidden = false;
  }

  backToAnswer() {
    at("back").hidden = true;
    this.toggle("ask", true);
    this.left?.scrollIntoView({ block: "center", behavior: "instant" });
    this.left?.focus({ preventScroll: true });
  }

  /** Opens links to pages of the book in place, so that a running answer continues. */
  clicked(event) {
    const link = event.target.closest?.("a[href]");
    if (document.body.dataset.drawer === "contents" && !event.target.closest?.(".contents, .for-contents")) this.closeDrawers();
    if (!link || event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    if (link.classList.contains("skip")) {
      event.preventDefault();
      place.focus();
    } else if ((PAGE.test(pathOf(link.href)) || link.href === ROOT) && link.target !== "_blank" && this.contents.pages.length) {
      event.preventDefault();
      history.replaceState({ scroll: scrollY }, "");
      if (link.href !== location.href) history.pushState(null, "", link.href);
      this.open();
    }
  }

  pressed(event) {
    if (event.isComposing || !event.key) return; // without a key: the browser fills in a form
    const writing = event.target.closest?.("input, textarea, select");
    if (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey) && !event.altKey && !at("key").open) {
      event.preventDefault();
      this.search.open();
    } else if (event.key === "/" && !writing && !event.ctrlKey && !event.metaKey && !event.altKey && !document.querySelector("dialog[open]")) {
      event.preventDefault();
      this.toggle("ask", true);
    } else if (event.key === "Escape" && !document.querySelector("dialog[open]")) {
      if (this.selection.isOpen) this.selection.close();
      else if (document.body.dataset.drawer) this.toggle(document.body.dataset.drawer, false);
      else if (writing) place.focus({ preventScroll: true });
    }
  }
}

function hrefOfPage(id) {
  return `${ROOT}read/${id}`;
}

/** An address without the server's root, query and fragment. */
function pathOf(href) {
  const { origin, pathname } = new URL(href);
  return (origin + pathname).startsWith(ROOT) ? (origin + pathname).slice(ROOT.length) : "";
}

function bare(url) {
  return url.replace(/(?:\/|\/index\.html)$/, "");
}

function address() {
  const found = PAGE.exec(pathOf(location.href));
  if (!found) return null;
  const named = new URLSearchParams(location.search);
  const spans = (name) => [...(named.get(name) ?? "").matchAll(/(\d+)-(\d+)/g)].map(([, start, end]) => [Number(start), Number(end)]);
  return { id: found[1].toLowerCase(), quote: spans("quote")[0] ?? null, answering: spans("answering"), find: named.get("find") ?? "", section: location.hash.startsWith("#book-") ? bookId(location.hash.slice("#book-".length)) : null };
}

new Reader().start();
