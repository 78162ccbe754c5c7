/**
 * The switcher of books and versions in the header. Each edition has its own address, `editions/NAME/`. Under this address the
 * page and all its requests are limited to that edition. So a choice in the switcher opens an address.
 */
import { element } from "./dom.js";

/** The part of an address that names its edition; empty: all books. */
export function editionIn(root) {
  return /\/editions\/([^/]+)\/$/.exec(root)?.[1] ?? "";
}

/** The address of a book: its latest version. */
export function shelfOf(root, book) {
  const top = editionIn(root) ? root.slice(0, root.lastIndexOf("/editions/") + 1) : root;
  return `${top}editions/${book ? encodeURIComponent(book) : "@latest"}/`;
}

/** Adds the switcher if there are several editions. `root` is the base address of the page. */
export function showBooks(place, root, { books }) {
  const opened = editionIn(root);
  const { pathname } = new URL(root);
  const top = opened ? pathname.slice(0, pathname.lastIndexOf("/editions/") + 1) : pathname;
  const [name, version] = decodeURIComponent(opened).split("@");
  const book = opened ? books.find((each) => each.name === name) : books.length === 1 ? books[0] : null;
  // The address of an edition, or of a book, which opens its latest version at that time.
  const at = (of, wanted = of ? null : "latest") =>
    `${top}editions/${encodeURIComponent(of)}${wanted === null ? "" : `@${encodeURIComponent(wanted)}`}/`;
  const choice = (label, options, current) => {
    const select = element("select", { "aria-label": label, onchange: () => location.assign(select.value) });
    select.append(...options.map(([text, value]) => new Option(text, value, value === current, value === current)));
    place.append(select);
  };
  if (books.length > 1) choice("Book", [["All books", top], ...books.map((each) => [each.title || "Book", at(each.name)])], book ? at(book.name) : top);
  if (book?.versions.length > 1) {
    const known = book.versions.some((each) => each.version === version);
    const text = (each) => (each.version || "no version") + (each.version === book.latest ? " (latest)" : "");
    choice("Version", book.versions.map((each) => [text(each), at(book.name, each.version)]), at(book.name, known ? version : book.latest));
  }
}
