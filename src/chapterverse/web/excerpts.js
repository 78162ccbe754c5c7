/** Renders parts of a page's stored text for which the blocks and marks are unknown: as nodes, as plain text, as one line. */
import { lengthOf } from "./offsets.js";
import { ITEM, render } from "./render.js";

const MATH = /\$\$[^$]+\$\$|(?<![\w$\\])\$(?=[^\s$])[^$\n]{0,300}?[\\^_={][^$\n]{0,300}?(?<=[^\s$])\$(?![\w$])/g; // in text without marks

const ROW = /^(\|(?![ :|-]+\|$).*)\|\n(?=\|)/gm; // of a table, with another line below it

/** A part of stored text as plain text: table rows without bars, code without fences. */
export function plain(text) {
  return text
    .replace(/^(?:`{3,}[^`\n]*|\|[ :|-]+\|)$\n?/gm, "")
    .replace(/^\| *(.*?) *\|$/gm, (_, row) => row.replace(/ +\| +/g, " · "));
}

/** A part of stored text as one line, for screen readers and previews. */
export function flat(text) {
  return plain(text.replace(/^(?:> ?)+/gm, "").replace(ROW, (_, row) => `${row.trimEnd()};|\n`))
    .replace(/^#{1,6} (.*)$\n*(?=.)/gm, "$1 · ")
    .replace(/^\s*(?:#{1,6}|[-*+•]|\d+\.) /gm, "")
    .replace(/`+/g, "")
    .replace(/\s+/g, " ")
    .trim();
}

/** An excerpt as nodes. Its blocks are detected from its lines. */
export function renderExcerpt(text) {
  return render({ text, sections: [], blocks: blocksOf(text), marks: formulasOf(text) }, () => null);
}

/** Text that looks like a formula, in text without marks. */
function formulasOf(text) {
  return [...text.matchAll(MATH)].map((found) => {
    const start = lengthOf(text.slice(0, found.index));
    return { kind: "math", start, end: start + lengthOf(found[0]) };
  });
}

/** The blocks of a text, detected from its lines, with offsets in characters like those of a page. */
function blocksOf(text) {
  const blocks = [];
  let open = null; // the block that is being collected
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
    const mark = /^\s*(`{3,}(?!.*`)|~{3,})(\S*)/.exec(line);
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
