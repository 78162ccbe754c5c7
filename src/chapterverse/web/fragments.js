/** Adds a quotation to an address as a text fragment, so that the browser finds and highlights it in the published page. */
import { plain } from "./excerpts.js";
import { LABEL } from "./render.js";

const WHOLE = 100; // characters; a longer quotation is given by its beginning and end
const WORDS = 6; // words of the beginning and of the end
const LEAD = /^(?:[-*>#\s]|\d+\.\s)+/; // Markdown markers that a page does not show as text

/** The address of a page at a quotation. If the quotation is not found, the browser uses the section's anchor. */
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

/** The number of words to quote from each end, so that the two ends do not overlap. */
function share(words, blocks) {
  return Math.min(WORDS, blocks.length > 1 ? words.length : Math.floor(words.length / 2));
}

/** Encodes words, including hyphens, which have a special meaning in text fragments. */
function encode(words) {
  return encodeURIComponent(words.join(" ")).replace(/-/g, "%2D");
}
