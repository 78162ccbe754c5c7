/** Building nodes. Text only ever becomes text: there is no way here to insert markup. */

/**
 * An element with attributes and children; strings become text nodes, null and false are left out.
 * @param {string} tag
 * @param {Object<string, unknown>} attributes  `onclick` and the like are listeners; true is an empty attribute
 * @param {...(Node|string|null|false)} children
 */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  attach(made, attributes);
  made.append(...children.filter((child) => child !== null && child !== false && child !== undefined));
  return made;
}

export function attach(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === false || value === undefined) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
}

/** Attributes of a link: other sites open in a tab of their own. */
export function leading(href) {
  const away = href !== null && new URL(href, document.baseURI).origin !== location.origin;
  return { href, target: away && "_blank", rel: away && "noopener" };
}

/** The id of a heading of the book. The prefix keeps it apart from ids of the page, such as `cv-search`. */
export const bookId = (anchor) => `book-${anchor}`;

/** How to scroll: gently, unless the reader asked for less motion. */
export function scrolling() {
  return matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth";
}

/** "1 source", "2 sources". */
export function count(number, noun) {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}
