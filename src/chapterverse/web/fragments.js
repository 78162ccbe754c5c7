/** A quotation as part of an address, so that the browser finds and highlights it in the published page (text fragments). */
import { plain } from "./excerpts.js";
import { LABEL } from "./render.js";

const WHOLE = 100; // characters up to which a quotation is named from its first to its last
const WORDS = 6; // of a longer one, at either end
const LEAD = /^(?:[-*>#\s]|\d+\.\s)+/; // marks of Markdown that a page does not show as text

/** The address of a page at a quotation from its stored text. Where it is not found, the section's anchor still holds. */
export function pointTo(url, quote) {
  const blocks = plain(quote)
    .split(/\n| · /)
    .map((block) => block.replace(LEAD, "").replace(LABEL, "").replace(/`/g, "").trim().split(/\s+/))
    .filter(([first]) => first);
  if (!blocks.length) return url;
  const [first, last] = [blocks[0], blocks.at(-1)];
  const ends =
    blocks.length === 1 && (first.length === 1 || first.join(" ").length <= WHOLE)
      ? [first]
      : [first.slice(0, share(first, blocks)), last.slice(-share(last, blocks))];
  return `${url}${url.includes("#") ? "" : "#"}:~:text=${ends.map(encode).join(",")}`;
}

/** How many words to name: those of both ends must not overlap. */
function share(words, blocks) {
  return Math.min(WORDS, blocks.length > 1 ? words.length : Math.floor(words.length / 2));
}

/** A dash has a meaning of its own there. */
function encode(words) {
  return encodeURIComponent(words.join(" ")).replace(/-/g, "%2D");
}
