/**
 * The widget: the ask box and "Ask about this" in the pages of any site, from one script tag whose data attributes say how. It
 * lives in a shadow root, so that neither it nor the site can restyle the other, and survives a site that changes pages in place.
 */
import { Api, memory } from "./api.js";
import { AskBox } from "./ask.js";
import { element } from "./dom.js";
import { pointTo } from "./fragments.js";
import { quoteOf } from "./offsets.js";
import { SelectionButton } from "./selection.js";

const SCRIPT = document.currentScript ?? document.querySelector("script[src*='/widget.js']");
const BASE = new URL("./", SCRIPT.src);
const STYLES = "the styles are put here by the server";
const HERE = Symbol.for("chapterverse.widget"); // on the document, once there is one
const NARROW = matchMedia("(max-width: 600px)"); // as in widget.css: the panel covers the page
const REST = 1500; // milliseconds after the page is loaded; Chromium looks for 500
const DARK = matchMedia("(prefers-color-scheme: dark)");

class Widget {
  constructor({ title = "Ask the book", module, prefix, theme = "auto", position = "right", target }) {
    Object.assign(this, { theme, target });
    this.name = `chapterverse.widget ${BASE.href}`;
    this.panel = element("section", { id: "panel", class: "panel ask-place", "aria-label": title, role: target ? "region" : "dialog", hidden: !target });
    this.launcher = element("button", { type: "button", class: "launcher main-button", "aria-expanded": "false", "aria-controls": "panel", hidden: Boolean(target), onclick: () => this.open() }, title);
    this.root = element("div", { class: "widget", "data-position": position, "data-placed": target ? "in-page" : "floating" }, this.launcher, this.panel);
    // A site's own keys are not meant while one writes here.
    for (const name of ["keydown", "keypress", "keyup"]) this.root.addEventListener(name, (event) => event.stopPropagation());
    this.root.addEventListener("keydown", (event) => this.pressed(event));
    this.host = document.createElement("chapterverse-widget");
    this.host.attachShadow({ mode: "open" }).append(this.root);
    const filters = { ...(module && { module }), ...(prefix && { source_url_prefix: new URL(prefix, location.href).href }) };
    this.ask = new AskBox({
      place: this.panel,
      api: new Api(BASE, async () => null),
      hrefOf,
      title,
      filters: Object.keys(filters).length ? filters : null,
      name: this.name,
    });
    if (!target) {
      const close = element("button", { type: "button", class: "plain close", "aria-label": "Close", title: "Close (Esc)", onclick: () => this.close() }, "✕");
      this.panel.querySelector(".ask-head").append(close);
    }
    this.selection = new SelectionButton({
      place: document.body,
      beside: this.launcher,
      textOf: () => getSelection().toString().trim(),
      chosen: (text) => this.askAbout(text),
    });
    this.keepInPlace();
    this.keepInTune();
    if (!target && memory.get(`${this.name}.open`) && !NARROW.matches) this.show(true);
    this.rest();
  }

  /** Browsers look for the quotation of an address until a while after the page is loaded. They must not find it in here. */
  rest() {
    const { turns } = this.ask;
    const wake = () => (turns.inert = false);
    turns.inert = true;
    for (const name of ["pointerdown", "focusin"]) this.panel.addEventListener(name, wake, { once: true });
    const loaded = () => setTimeout(wake, REST);
    if (document.readyState === "complete") loaded();
    else addEventListener("load", loaded);
  }

  /** Sites that change pages in place may drop the widget, or bring the place that it belongs to. */
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

  /** The styles, with `rem` as the reader has it: the site may have made its own of it. */
  dress() {
    const bare = new CSSStyleSheet();
    bare.replaceSync(":host { all: initial !important; display: block !important; }");
    this.host.shadowRoot.adoptedStyleSheets = [bare];
    const size = parseFloat(getComputedStyle(this.host).fontSize);
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(STYLES.replace(/([\d.]+)rem/g, (_, number) => `${number * size}px`));
    this.host.shadowRoot.adoptedStyleSheets = [bare, sheet];
    this.ask.showLast();
  }

  /** Light or dark like the page around it, also when its reader changes that. */
  keepInTune() {
    if (this.theme !== "auto") return;
    const nodes = [document.documentElement, document.body];
    const settled = () => Promise.allSettled(nodes.flatMap((node) => node.getAnimations()).map((each) => each.finished));
    const changed = () => requestAnimationFrame(() => settled().then(() => this.tune()));
    for (const node of nodes) new MutationObserver(changed).observe(node, { attributes: true });
    DARK.addEventListener("change", changed);
  }

  tune() {
    this.root.dataset.theme = this.theme === "auto" ? (isDark(this.host) ? "dark" : "light") : this.theme;
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
    if (open) this.ask.showLast();
  }

  askAbout(text) {
    this.ask.select(text);
    if (!this.target) this.show(true);
    this.ask.focus();
  }

  /** The panel is beside the page, not over it: Tab leads out of it, Escape closes it. */
  pressed(event) {
    if (event.key !== "Escape" || event.isComposing) return;
    if (this.selection.isOpen) this.selection.close();
    else if (!this.target && !this.panel.hidden) this.close();
  }
}

/** Where a source can be read: in the site, at the quotation; a page that was not published, in the server's reader page. */
function hrefOf(source) {
  const { source_url: url, page_id: page, quote } = source;
  if (/^https?:/.test(url)) return quote ? pointTo(url, quote) : url;
  return page ? new URL(`#/${page}?${quoteOf(source)}`, BASE).href : null;
}

/** Whether what lies behind a node is dark. */
function isDark(node) {
  for (let behind = node.parentElement; behind; behind = behind.parentElement) {
    const [red, green, blue, opacity] = channels(getComputedStyle(behind).backgroundColor);
    if (opacity > 127) return 0.2126 * red + 0.7152 * green + 0.0722 * blue < 127;
  }
  return DARK.matches && getComputedStyle(document.documentElement).colorScheme.includes("dark");
}

/** Red, green, blue and opacity of a colour, however it is written. */
function channels(colour) {
  const context = new OffscreenCanvas(1, 1).getContext("2d");
  context.fillStyle = colour;
  context.fillRect(0, 0, 1, 1);
  return context.getImageData(0, 0, 1, 1).data;
}

function start() {
  if (document[HERE]) return;
  document[HERE] = new Widget({ ...SCRIPT.dataset });
}

if (document.body) start();
else addEventListener("DOMContentLoaded", start);
