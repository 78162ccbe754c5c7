/**
 * The widget: the ask box and "Ask about this" on any site, from one script tag that is configured by data attributes. It is in
 * a shadow root, so that the site's styles do not affect it. It takes over the site's font and colours (see look.js), and it
 * works on sites that replace their content in place.
 */
import { Api, memory } from "./api.js";
import { AskBox } from "./ask.js";
import { element } from "./dom.js";
import { pointTo } from "./fragments.js";
import { DARK, wear } from "./look.js";
import { quoteOf } from "./offsets.js";
import { SelectionButton } from "./selection.js";

const SCRIPT = document.currentScript ?? document.querySelector("script[src*='/widget.js']");
const BASE = new URL("./", SCRIPT.src);
const STYLES = "the styles are put here by the server";
const HERE = Symbol.for("chapterverse.widget"); // set on the document, once there is a widget
const NARROW = matchMedia("(max-width: 600px)"); // as in widget.css: the panel covers the page
const REST = 1500; // milliseconds after the page has loaded; Chromium searches for 500

class Widget {
  constructor({ title = "Ask the book", module, prefix, book, version, theme = "auto", position = "right", target, accent, font, logo, suggestions = "" }) {
    Object.assign(this, { theme, target, wanted: { accent, font } });
    this.name = `chapterverse.widget ${BASE.href}`;
    this.panel = element("section", { id: "panel", class: "panel ask-place", "aria-label": title, role: target ? "region" : "dialog", hidden: !target });
    this.launcher = element("button", { type: "button", class: "launcher main-button", "aria-expanded": "false", "aria-controls": "panel", hidden: Boolean(target), onclick: () => this.open() }, picture(logo), title);
    this.root = element("div", { class: "widget", "data-position": position, "data-placed": target ? "in-page" : "floating" }, this.launcher, this.panel);
    // Keys typed here must not trigger the site's own shortcuts.
    for (const name of ["keydown", "keypress", "keyup"]) this.root.addEventListener(name, (event) => event.stopPropagation());
    this.root.addEventListener("keydown", (event) => this.pressed(event));
    this.host = document.createElement("chapterverse-widget");
    this.host.attachShadow({ mode: "open" }).append(this.root);
    const filters = { ...(module && { module }), ...(prefix && { source_url_prefix: new URL(prefix, location.href).href }), ...(book && { book }), ...(version && { version }) };
    const questions = suggestions.split("|").map((each) => each.trim()).filter(Boolean);
    this.ask = new AskBox({
      place: this.panel,
      api: new Api(BASE, async () => null),
      hrefOf,
      title,
      filters: Object.keys(filters).length ? filters : null,
      name: this.name,
      closing: target ? null : () => this.close(),
      suggestions: questions,
      offers: module || prefix ? null : { ...(book && { book }), ...(version && { version }) }, // suggestions are not tested on a part of a book
    });
    if (logo) this.panel.querySelector(".ask-head h2").prepend(picture(logo));
    this.selection = new SelectionButton({
      place: document.documentElement, // the site may replace its body
      beside: this.launcher,
      textOf: () => getSelection().toString().trim(),
      chosen: (text) => this.askAbout(text),
    });
    this.behind = []; // elements that the panel covers on a phone
    NARROW.addEventListener("change", () => this.cover());
    this.keepInPlace();
    this.keepInTune();
    if (!target && memory.get(`${this.name}.open`) && !NARROW.matches) this.show(true);
    if (target) this.ask.offer();
    this.rest();
  }

  /** Makes the turns inert for a while: browsers search for a text fragment until some time after loading, and must not find it in the widget. */
  rest() {
    const { turns } = this.ask;
    const wake = () => (turns.inert = false);
    turns.inert = true;
    for (const name of ["pointerdown", "focusin"]) this.panel.addEventListener(name, wake, { once: true });
    const loaded = () => setTimeout(wake, REST);
    if (document.readyState === "complete") loaded();
    else addEventListener("load", loaded);
  }

  /** Puts the widget back when a site that replaces its content in place removes it, or adds the element that it belongs to. */
  keepInPlace() {
    const settle = () => {
      if (this.host.isConnected) return;
      const place = this.target ? document.querySelector(this.target) : document.body;
      if (!place) return;
      place.append(this.host);
      this.dress();
      this.tune();
    };
    new MutationObserver(settle).observe(document.documentElement, { childList: true, subtree: true });
    settle();
  }

  /** Applies the styles. `rem` is replaced by the default font size of the browser, because the site may have changed its own. */
  dress() {
    const bare = new CSSStyleSheet();
    bare.replaceSync(`:host { all: initial !important; display: block !important; ${this.target ? "height: 100% !important;" : ""} }`);
    this.host.shadowRoot.adoptedStyleSheets = [bare];
    this.fill();
    const size = parseFloat(getComputedStyle(this.host).fontSize);
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(STYLES.replace(/([\d.]+)rem/g, (_, number) => `${number * size}px`));
    this.host.shadowRoot.adoptedStyleSheets = [bare, sheet];
    this.ask.showLast();
  }

  /** Gives the panel the height of its target, if the target has a fixed one; otherwise the panel has its own height. */
  fill() {
    this.root.remove();
    this.root.dataset.fills = String(Boolean(this.target) && this.host.offsetHeight > 0);
    this.host.shadowRoot.append(this.root);
  }

  /** Adapts to the page, also when its styles load late or the reader changes the colour scheme. */
  keepInTune() {
    addEventListener("load", () => this.tune());
    const running = () => [document.documentElement, document.body].flatMap((node) => node?.getAnimations() ?? []);
    const ending = () => running().filter((each) => each.effect.getComputedTiming().endTime < Infinity);
    const settled = () => Promise.allSettled(ending().map((each) => each.finished));
    const changed = () => requestAnimationFrame(() => settled().then(() => this.tune()));
    const observer = new MutationObserver((changes) => {
      if (changes.some(({ type }) => type === "childList")) observe(); // the site may have replaced its body
      changed();
    });
    const observe = () => {
      observer.observe(document.documentElement, { attributes: true, childList: true });
      if (document.body) observer.observe(document.body, { attributes: true });
    };
    observe();
    DARK.addEventListener("change", changed);
  }

  tune() {
    wear(this.host, this.root, { theme: this.theme, ...this.wanted });
  }

  open() {
    this.show(true);
    this.ask.focus();
  }

  close() {
    this.show(false);
    this.launcher.focus();
  }

  show(open) {
    this.panel.hidden = !open;
    this.launcher.hidden = open;
    this.launcher.setAttribute("aria-expanded", String(open));
    memory.set(`${this.name}.open`, open ? "yes" : null);
    this.cover();
    if (open) this.ask.showLast();
    if (open) this.ask.offer(); // not before the panel is visible
  }

  /** While the panel covers the page, makes everything behind it inert and stops the page from scrolling. */
  cover() {
    const covers = !this.target && !this.panel.hidden && NARROW.matches;
    for (const node of this.behind) node.inert = false;
    this.behind = covers ? [...document.body.children].filter((node) => node !== this.host && !node.inert && !node.contains(this.host)) : [];
    for (const node of this.behind) node.inert = true;
    const { style } = document.documentElement;
    if (covers) {
      this.overflow ??= style.overflow;
      style.overflow = "hidden";
    } else if (this.overflow !== undefined) {
      style.overflow = this.overflow;
      this.overflow = undefined;
    }
    if (covers) this.panel.setAttribute("aria-modal", "true");
    else this.panel.removeAttribute("aria-modal");
  }

  askAbout(text) {
    this.ask.select(text);
    if (!this.target) this.show(true);
    this.ask.focus();
  }

  /** Closes the selection button or the panel on Escape. Tab is not caught: the panel is next to the page, not over it. */
  pressed(event) {
    if (event.key !== "Escape" || event.isComposing) return;
    if (this.selection.isOpen) this.selection.close();
    else if (!this.target && !this.panel.hidden) this.close();
  }
}

/** The address of a source or a near section: on the site, at the quotation; for a page that is not published, in the server's reader page. */
function hrefOf(source) {
  const { source_url: url, page_id: page, reader_url: path, quote } = source;
  if (/^https?:/.test(url)) return quote ? pointTo(url, quote) : url;
  if (page) return new URL(`read/${page}?${quoteOf(source)}`, BASE).href;
  return path ? new URL(path.slice(1), BASE).href : null;
}

/** The site's logo; hidden if it cannot be loaded. */
function picture(address) {
  return address ? element("img", { class: "logo", src: new URL(address, document.baseURI).href, alt: "", onerror: (event) => event.target.remove() }) : null;
}

function start() {
  if (document[HERE]) return;
  document[HERE] = new Widget({ ...SCRIPT.dataset });
}

if (document.body) start();
else addEventListener("DOMContentLoaded", start);
