/** Stretches of a page's stored text without what its reader knew of them: as they look in the page, as plain text, as one line. */
import { lengthOf } from "./offsets.js";
import { ITEM, render } from "./render.js";

const MATH = /\$\$[^$]+\$\$|(?<![\w$\\])\$(?=[^\s$])[^$\n]{0,300}?[\\^_={][^$\n]{0,300}?(?<=[^\s$])\$(?![\w$])/g; // in text without marks

/** A stretch of stored text for reading in passing: table rows without their bars, code without its fences. */
export function plain(text) {
  return text
    .replace(/^(?:`{3,}.*|\|[ :|-]+\|)$\n?/gm, "")
    .replace(/^\| *(.*?) *\|$/gm, (_, row) => row.replace(/ +\| +/g, " · "));
}

/** A stretch of stored text as one line of words, for those who listen and for previews. */
export function flat(text) {
  return plain(text)
    .replace(/^#{1,6} (.*)$\n*(?=.)/gm, "$1 · ")
    .replace(/^\s*(?:#{1,6}|>|[-*+•]|\d+\.) /gm, "")
    .replace(/`+|\*\*/g, "")
    .replace(/\s+/g, " ")
    .trim();
}

/** An excerpt, which is a page's text without its blocks: what they are is seen in its lines. */
export function renderExcerpt(text) {
  return render({ text, sections: [], blocks: blocksOf(text), marks: formulasOf(text) }, () => null);
}

/** What looks like a formula in a text that nobody has parsed. */
function formulasOf(text) {
  return [...text.matchAll(MATH)].map((found) => {
    const start = lengthOf(text.slice(0, found.index));
    return { kind: "math", start, end: start + lengthOf(found[0]) };
  });
}

/** The blocks of a text that nobody has parsed, counted in characters as those of a page are. */
function blocksOf(text) {
  const blocks = [];
  let open = null; // the block being gathered
  let fence = "";
  let place = 0;
  const close = () => {
    if (open) blocks.push(open);
    open = null;
  };
  for (const line of text.split("\n")) {
    const start = place;
    const end = start + lengthOf(line);
    place = end + 1;
    const mark = /^\s*(`{3,}|~{3,})(\S*)/.exec(line);
    if (fence) {
      open.end = end;
      if (mark && mark[1].startsWith(fence)) {
        fence = "";
        close();
      }
    } else if (mark) {
      close();
      open = { kind: "code", start, end, info: mark[2], caption: "" };
      fence = mark[1];
    } else if (!line.trim()) {
      if (open?.kind !== "list") close();
    } else {
      const heading = /^#{1,6} /.test(line);
      const goesOn = open?.kind === "list" && line.startsWith(" ");
      const kind = heading ? "heading" : line.startsWith("|") ? "table" : ITEM.test(line) || goesOn ? "list" : "paragraph";
      if (heading || open?.kind !== kind) close();
      open ??= { kind, start, end, info: "", caption: "" };
      open.end = end;
      if (heading) close();
    }
  }
  close();
  return blocks;
}
