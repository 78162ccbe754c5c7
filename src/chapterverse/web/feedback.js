/**
 * What the reader thinks of an answer: two thumbs and, after a thumb down, a reason. A thumb is kept as soon as it is pressed; the
 * reason is sent after it, if the reader gives one.
 */
import { attach, element } from "./dom.js";

const REASONS = [
  ["", "No reason"],
  ["wrong", "It is wrong"],
  ["incomplete", "Something is missing"],
  ["off_topic", "It does not answer my question"],
  ["unclear", "It is hard to understand"],
  ["outdated", "It is out of date"],
  ["other", "Something else"],
];
const LONGEST_COMMENT = 1000; // characters, as the server has it

/** A thumb that points up, drawn here: not every machine has a font with one. The styles turn it over. */
function thumbIcon() {
  const drawing = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const line = document.createElementNS("http://www.w3.org/2000/svg", "path");
  attach(drawing, { viewBox: "0 0 24 24", "aria-hidden": "true" });
  attach(line, { d: "M4 11h3v9H4zM7 11l4-7.5c1.5 0 2.6 1.1 2.6 2.6V10h5a1.8 1.8 0 0 1 1.7 2.3l-1.7 6A2.3 2.3 0 0 1 16.4 20H7" });
  drawing.append(line);
  return drawing;
}

/**
 * The thumbs of one answer.
 * @param {(given: {rating: "up"|"down", reason: string|null, comment: string}) => Promise<object>} keep
 * @param {{rating: string, reason: string|null, comment: string}|null} [rated]  what was kept before
 */
export function ratingOf(keep, rated = null) {
  const told = element("p", { class: "told", role: "status" });
  const thumb = (rating, name) =>
    element("button", { type: "button", class: `thumb ${rating}`, "aria-pressed": String(rated?.rating === rating), onclick: () => rate(rating) }, thumbIcon(), ` ${name}`);
  const up = thumb("up", "Helpful");
  const down = thumb("down", "Not helpful");
  const choice = element("select", {}, ...REASONS.map(([value, text]) => element("option", { value }, text)));
  const comment = element("textarea", { rows: "2", maxlength: LONGEST_COMMENT, dir: "auto" });
  const form = element(
    "form",
    { hidden: true, "aria-label": "Why the answer is not helpful" },
    element("label", {}, "What is wrong with it?", choice),
    element("label", {}, "In your own words (optional)", comment),
    element("p", { class: "buttons" }, element("button", { type: "submit" }, "Send reason"), element("button", { type: "button", class: "plain", onclick: () => close() }, "Close")),
  );
  choice.value = rated?.reason ?? "";
  comment.value = rated?.comment ?? "";

  async function send(given, thanks) {
    try {
      await keep(given);
    } catch (failure) {
      told.textContent = `⚠ Not kept. ${failure.message}`;
      return false;
    }
    for (const [button, rating] of [[up, "up"], [down, "down"]]) button.setAttribute("aria-pressed", String(given.rating === rating));
    told.textContent = thanks;
    return true;
  }

  async function rate(rating) {
    const given = rating === "up" ? { rating, reason: null, comment: "" } : { rating, reason: choice.value || null, comment: comment.value };
    if (!(await send(given, rating === "up" ? "Thank you." : "Thank you. You may say why."))) return;
    form.hidden = rating === "up";
    if (!form.hidden) choice.focus();
  }

  function close() {
    form.hidden = true;
    down.focus();
  }

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (await send({ rating: "down", reason: choice.value || null, comment: comment.value }, "Thank you, the reason is kept.")) close();
  });
  form.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || event.isComposing) return;
    event.stopPropagation(); // closes the reason alone, not the panel around it
    close();
  });
  return element("div", { class: "rating", role: "group", "aria-label": "Rate this answer" }, element("p", { class: "thumbs" }, up, down), form, told);
}
