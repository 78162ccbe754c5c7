/** Creates DOM nodes. Text is only inserted as text nodes, never as markup. */

const SVG = "http://www.w3.org/2000/svg";
// Icons as SVG paths in a square of 24 units, because not every machine has a font with these symbols.
const ICONS = {
  check: "M5 12.5l4.5 4.5L19 7.5",
  close: "M6 6l12 12M18 6L6 18",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  history: "M12 7.5V12l3 2M4.5 9A8 8 0 1 1 4 12M4 4.5V9h4.5",
  link: "M10 14a4 4 0 0 0 5.7 0l3-3a4 4 0 0 0-5.7-5.7l-1 1M14 10a4 4 0 0 0-5.7 0l-3 3A4 4 0 0 0 11 18.7l1-1",
  plus: "M12 5v14M5 12h14",
  send: "M12 19V5M6 11l6-6 6 6",
  stop: "M7 7h10v10H7z",
  thumb: "M4 11h3v9H4zM7 11l4-7.5c1.5 0 2.6 1.1 2.6 2.6V10h5a1.8 1.8 0 0 1 1.7 2.3l-1.7 6A2.3 2.3 0 0 1 16.4 20H7",
  trash: "M5 7h14M10 7V4.5h4V7M7 7l1 13h8l1-13M10.5 11v5M13.5 11v5",
};

/**
 * An element with attributes and children; strings become text nodes, empty ones and null are left out.
 * @param {string} tag
 * @param {Object<string, unknown>} attributes  `onclick` and the like are listeners; true is an empty attribute
 * @param {...(Node|string|null|false)} children
 */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  attach(made, attributes);
  made.append(...children.filter(Boolean));
  return made;
}

export function attach(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === false || value === undefined) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
}

/** An element of the reader page by its name. */
export const at = (name) => document.getElementById(`cv-${name}`);

/** An icon that is hidden from screen readers: the element around it has a name. */
export function icon(name) {
  const drawing = document.createElementNS(SVG, "svg");
  const line = document.createElementNS(SVG, "path");
  attach(drawing, { class: "icon", viewBox: "0 0 24 24", "aria-hidden": "true" });
  attach(line, { d: ICONS[name] });
  drawing.append(line);
  return drawing;
}

/** A button with only an icon; its name is for screen readers and the tooltip. */
export function iconButton(name, label, onclick, kind = "") {
  return element("button", { type: "button", class: `icon-button ${kind}`, "aria-label": label, title: label, onclick }, icon(name));
}

/** Copies a text to the clipboard and confirms it on the button for a while. */
export async function copyFrom(button, text, done = "Copied") {
  const [before, label] = (button.usual ??= [[...button.childNodes], button.getAttribute("aria-label")]); // not those of a confirmation
  let copied = true;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    copied = copyByCommand(text);
  }
  button.replaceChildren(icon(copied ? "check" : "close"));
  const outcome = copied ? done : "Not copied: the browser does not allow it";
  attach(button, { "aria-label": outcome, title: outcome });
  clearTimeout(button.confirming);
  button.confirming = setTimeout(() => {
    button.replaceChildren(...before);
    attach(button, { "aria-label": label, title: label });
  }, 1800);
}

/** The clipboard API exists only on secure connections; otherwise the old command is used. */
function copyByCommand(text) {
  const field = element("textarea", { class: "unseen", "aria-hidden": "true" });
  const focused = document.activeElement;
  field.value = text;
  document.body.append(field);
  field.select();
  const copied = document.execCommand("copy");
  field.remove();
  focused?.focus({ preventScroll: true });
  return copied;
}

/** Attributes of a link: other sites, and addresses that cannot be parsed because of a placeholder, open in a new tab. */
export function leading(href) {
  const url = href !== null && URL.canParse(href, document.baseURI) ? new URL(href, document.baseURI) : null;
  const away = href !== null && url?.origin !== location.origin;
  return { href, target: away && "_blank", rel: away && "noopener" };
}

/**
 * The id of a heading of the book. The prefix prevents conflicts with ids of the page, such as `cv-search`. The anchor may be
 * percent-encoded.
 */
export function bookId(anchor) {
  try {
    return `book-${decodeURIComponent(anchor)}`;
  } catch {
    return `book-${anchor}`; // not encoded: a percent sign of its own
  }
}

/** The fragment of an address that links to a heading. */
export function sectionHash(anchor) {
  return `#${encodeURIComponent(bookId(anchor))}`;
}

/** How to scroll: smoothly, unless the reader prefers reduced motion. */
export function scrolling() {
  return matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth";
}

/** "1 source", "2 sources". */
export function count(number, noun) {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}

/** The key of the edition of an item, as on the server. */
export function editionOf({ book = "", version = "" }) {
  return version ? `${book}@${version}` : book;
}

/** The name of an edition; empty if books have no names. */
export function editionLabel({ book = "", version = "" }) {
  return [book || (version && "version"), version].filter(Boolean).join(" ");
}
