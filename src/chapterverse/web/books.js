/**
 * The switcher of books and versions in the header. Each edition has an address of its own, `editions/NAME/`, under which the page
 * and all that it asks is about that edition alone; so the switcher only leads there. The server adds it where there are several.
 */
const place = document.getElementById("book-switch");
const { books } = JSON.parse(place.dataset.books);
const here = new URL(document.documentElement.dataset.root ?? "./", document.baseURI).pathname;
const [, root, opened] = /^(.*\/)editions\/([^/]+)\/$/.exec(here) ?? [null, here, ""];
const [name, version] = decodeURIComponent(opened).split("@");
const book = opened ? books.find((each) => each.name === name) : books.length === 1 ? books[0] : null;

/** Of an edition; of a book: of its latest version, whichever that will be. */
function address(of, wanted = of ? null : "latest") {
  return `${root}editions/${encodeURIComponent(of)}${wanted === null ? "" : `@${encodeURIComponent(wanted)}`}/`;
}

function choice(label, options, current) {
  const select = document.createElement("select");
  select.setAttribute("aria-label", label);
  select.append(...options.map(([text, value]) => new Option(text, value, value === current, value === current)));
  select.addEventListener("change", () => location.assign(select.value));
  place.append(select);
}

if (books.length > 1) choice("Book", [["All books", root], ...books.map((each) => [each.title || "Book", address(each.name)])], book ? address(book.name) : root);
if (book?.versions.length > 1) {
  const latest = (each) => (each.version === book.latest ? " (latest)" : "");
  const known = book.versions.some((each) => each.version === version);
  choice("Version", book.versions.map((each) => [(each.version || "no version") + latest(each), address(book.name, each.version)]), address(book.name, known ? version : book.latest));
}
