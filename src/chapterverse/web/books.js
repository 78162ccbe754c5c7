/**
 * The switcher of books and versions in the header. Each edition has an address of its own, `editions/NAME/`, under which the page
 * and all that it asks is about that edition alone; so the switcher only leads there.
 */
import { element } from "./dom.js";

/** What of an address names the edition that it is about; empty: all books. */
export function editionIn(root) {
  return /\/editions\/([^/]+)\/$/.exec(root)?.[1] ?? "";
}

/** Where a book is read: its latest version. */
export function shelfOf(root, book) {
  const top = editionIn(root) ? root.slice(0, root.lastIndexOf("/editions/") + 1) : root;
  return `${top}editions/${book ? encodeURIComponent(book) : "@latest"}/`;
}

/** Fills the place with the choice, where there are several editions. `root` is the address that the page belongs to. */
export function showBooks(place, root, { books }) {
  const opened = editionIn(root);
  const { pathname } = new URL(root);
  const top = opened ? pathname.slice(0, pathname.lastIndexOf("/editions/") + 1) : pathname;
  const [name, version] = decodeURIComponent(opened).split("@");
  const book = opened ? books.find((each) => each.name === name) : books.length === 1 ? books[0] : null;
  // Of an edition; of a book: of its latest version, whichever that will be.
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
