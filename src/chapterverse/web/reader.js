/**
 * The reader page: which page is open (the address says it, so links can be shared and Back works), the evidence highlighted in
 * it, drawers on narrow screens, keys. `#/PAGE?quote=START-END` opens a page at a quotation (`&answering=START-END,…` marks what answers in it), `?section=ANCHOR` at a heading.
 */
import { Api } from "./api.js";
import { AskBox } from "./ask.js";
import { Contents } from "./contents.js";
import { bookId, element, leading } from "./dom.js";
import { mark, placeOf, quoteOf, unitsOf } from "./offsets.js";
import { render } from "./render.js";
import { Search } from "./search.js";
import { SelectionButton } from "./selection.js";

const at = (id) => document.getElementById(`cv-${id}`);
const place = at("page");

class Reader {
  constructor() {
    this.texts = new Map();
    this.pages = JSON.parse(at("first").textContent)?.pages ?? null;
    this.page = null;
    this.runs = [];
    this.api = new Api(new URL("./", document.baseURI), askForKey);
    this.ask = new AskBox({ place: at("ask"), api: this.api, hrefOf: (source) => this.hrefOf(source), shortcut: "/" });
    this.search = new Search({ form: at("search"), box: at("search-box"), sheet: at("results"), api: this.api });
    this.selection = new SelectionButton({
      place,
      textOf: (range) => {
        const found = this.page && placeOf(range, this.runs);
        return found && this.page.text.slice(...found);
      },
      chosen: (text) => this.askAbout(text),
    });
    for (const name of ["contents", "ask"]) at(`${name}-button`).addEventListener("click", () => this.toggle(name));
    at("search").addEventListener("submit", () => this.closeDrawers()); // what is found would lie under them
    addEventListener("hashchange", () => this.open(true));
    document.addEventListener("click", (event) => this.clicked(event));
    document.addEventListener("keydown", (event) => this.pressed(event));
  }

  async start() {
    try {
      this.pages ??= (await this.api.pages()).pages;
    } catch (failure) {
      this.explain(failure);
      return;
    }
    if (!this.pages.length) {
      this.explain({ code: "no_book", message: "Nothing has been ingested into this server." });
      return;
    }
    this.contents = new Contents(at("contents"), this.pages);
    await this.open(location.hash.length > 2);
  }

  /** Shows what the address names. */
  async open(moveFocus) {
    const wanted = address() ?? { id: this.pages?.[0]?.page_id };
    if (!wanted.id || !this.contents) return;
    try {
      if (!this.texts.has(wanted.id)) this.texts.set(wanted.id, await this.api.page(wanted.id));
    } catch (failure) {
      this.explain(failure);
      return;
    }
    if ((address()?.id ?? wanted.id) !== wanted.id) return; // the reader has gone on meanwhile
    this.show(this.texts.get(wanted.id), wanted, moveFocus);
  }

  show(page, { quote, answering = [], section }, moveFocus) {
    const { nodes, runs } = render(page, (target) => this.wayTo(target));
    this.page = page;
    this.runs = runs;
    place.replaceChildren(element("p", { class: "module" }, page.module), ...nodes, this.turning(page));
    this.offerSections(page);
    document.title = `${page.title} · Chapterverse`;
    this.contents.open(page);
    this.closeDrawers();
    this.search.close();
    this.selection.close();
    const units = unitsOf(page.text);
    const marks = quote ? mark(runs, units(quote[0]), units(quote[1])) : [];
    for (const [start, end] of answering) mark(runs, units(start), units(end), "answering");
    const heading = section ? document.getElementById(bookId(section)) : null;
    const target = marks[0] ?? heading;
    if (target) target.scrollIntoView({ block: marks.length ? "center" : "start", behavior: "auto" });
    else scrollTo({ top: 0, behavior: "auto" });
    if (moveFocus) (target ?? place.querySelector("h1") ?? place).focus({ preventScroll: true });
  }

  /** A button beside each heading, for those who select without a mouse. */
  offerSections(page) {
    const units = unitsOf(page.text);
    for (const section of page.sections) {
      const heading = section.anchor && document.getElementById(bookId(section.anchor));
      if (!heading) continue;
      const text = page.text.slice(units(section.start), units(section.end)).trim();
      const label = `Ask about the section ${section.heading}`;
      const button = element("button", { type: "button", class: "ask-section", "aria-label": label, onclick: () => this.askAbout(text) }, "Ask about this");
      const both = element("div", { class: `headed level-${section.level}`, dir: "auto" });
      heading.replaceWith(both);
      both.append(heading, button);
    }
  }

  turning(page) {
    const index = this.pages.findIndex((other) => other.page_id === page.page_id);
    const link = (other, label, relation) =>
      other ? element("a", { href: `#/${other.page_id}`, rel: relation }, element("span", {}, label), other.title) : element("span");
    return element("nav", { class: "turning", "aria-label": "Next and previous page" }, link(this.pages[index - 1], "Previous", "prev"), link(this.pages[index + 1], "Next", "next"));
  }

  /** Where a source can be read here. A passage that is only about to be read has no page id, but an address. */
  hrefOf(source) {
    if (source.page_id) return `#/${source.page_id}?${quoteOf(source)}`;
    const [url, anchor] = source.source_url.split("#");
    const page = this.pageAt(url);
    return page ? `#/${page.page_id}${anchor ? `?section=${encodeURIComponent(anchor)}` : ""}` : null;
  }

  /** The page of the book at an address, whatever slash it ends with. */
  pageAt(url) {
    if (this.addresses?.of !== this.pages) {
      this.addresses = { of: this.pages, found: new Map((this.pages ?? []).map((page) => [bare(page.url), page])) };
    }
    return this.addresses.found.get(bare(url));
  }

  /** Attributes of a link in the book's text: a page of the book is opened here, others in a tab of their own. */
  wayTo(target) {
    const href = this.hrefOf({ source_url: target });
    if (href) return { href };
    return /^(?:https?|mailto):/i.test(target) ? leading(target) : null;
  }

  askAbout(text) {
    this.ask.select(text);
    this.toggle("ask", true);
    this.ask.focus();
  }

  explain(failure) {
    const again = element("button", { type: "button", onclick: () => (this.contents ? this.open(true) : location.reload()) }, "Try again");
    const empty = failure.code === "no_book";
    const missing = empty || failure.code === "retrieval_unavailable";
    const how = [
      element("p", {}, empty ? "Ingest a folder, a file or a website on the server, then open this page again:" : "If no book has been ingested yet, do it on the server, then open this page again:"),
      element("pre", { tabindex: "0" }, element("code", {}, "chapterverse ingest docs/\nchapterverse ingest https://docs.example.com/guide/")),
    ];
    place.replaceChildren(
      element("h1", {}, empty ? "No book to read yet" : missing ? "The book cannot be opened" : "The page cannot be shown"),
      element("p", { role: "alert" }, failure.message),
      ...(missing ? how : []),
      element("p", { class: "buttons" }, again),
    );
  }

  /** Opens or closes a drawer; on wide screens both are always there. */
  toggle(name, open = document.body.dataset.drawer !== name) {
    document.body.dataset.drawer = open ? name : "";
    for (const each of ["contents", "ask"]) at(`${each}-button`).setAttribute("aria-expanded", String(open && each === name));
    this.search.close();
    const button = at(`${name}-button`); // not there on wide screens
    if (!open) (button.offsetParent ? button : place).focus({ preventScroll: true });
    else if (name === "ask") this.ask.focus();
    else at("contents").focus();
  }

  closeDrawers() {
    document.body.dataset.drawer = "";
    for (const name of ["contents", "ask"]) at(`${name}-button`).setAttribute("aria-expanded", "false");
  }

  /** A link to where the reader is already changes no address, but is meant all the same. */
  clicked(event) {
    const link = event.target.closest?.("a[href^='#']");
    if (link?.classList.contains("skip")) {
      event.preventDefault();
      place.focus();
    } else if (link && link.getAttribute("href") === location.hash) {
      event.preventDefault();
      this.open(true);
    }
  }

  pressed(event) {
    const writing = event.target.closest?.("input, textarea");
    if (event.key === "/" && !writing && !event.ctrlKey && !event.metaKey && !event.altKey && !at("key").open) {
      event.preventDefault();
      this.toggle("ask", true);
    } else if (event.key === "Escape") {
      if (this.selection.isOpen) this.selection.close();
      else if (this.search.isOpen) this.search.close();
      else if (document.body.dataset.drawer) this.toggle(document.body.dataset.drawer, false);
      else if (writing) place.focus({ preventScroll: true });
    }
  }
}

function bare(url) {
  return url.replace(/(?:\/|\/index\.html)$/, "");
}

function address() {
  const found = /^#\/([0-9a-f-]{36})(?:\?(.*))?$/i.exec(location.hash);
  if (!found) return null;
  const named = new URLSearchParams(found[2] ?? "");
  const spans = (name) => [...(named.get(name) ?? "").matchAll(/(\d+)-(\d+)/g)].map(([, start, end]) => [Number(start), Number(end)]);
  return { id: found[1].toLowerCase(), quote: spans("quote")[0] ?? null, answering: spans("answering"), section: named.get("section") };
}

/** Asks for the server's key; null when the reader has none. */
function askForKey(again) {
  const dialog = at("key");
  at("key-message").textContent = again
    ? "That key was not accepted. Try another one."
    : "Its server asks for an API key. The key is kept until you close this tab.";
  at("key-box").value = "";
  dialog.showModal();
  return new Promise((resolve) => {
    let key = null;
    at("key-form").onsubmit = (event) => {
      event.preventDefault();
      key = at("key-box").value.trim() || null;
      dialog.close();
    };
    at("key-cancel").onclick = () => dialog.close();
    dialog.onclose = () => resolve(key);
  });
}

new Reader().start();
