/**
 * Feedback on an answer: thumbs up or down and, after a thumbs down, a reason. The rating is stored as soon as a button is
 * pressed; the reason is sent later, if the reader gives one.
 */
import { element, iconButton, scrolling } from "./dom.js";

const REASONS = [
  ["", "No reason"],
  ["wrong", "It is wrong"],
  ["incomplete", "Something is missing"],
  ["off_topic", "It does not answer my question"],
  ["unclear", "It is hard to understand"],
  ["outdated", "It is out of date"],
  ["other", "Something else"],
];
const LONGEST_COMMENT = 1000; // characters; the server's maximum

/**
 * The buttons for one answer.
 * @param {(given: {rating: "up"|"down", reason: string|null, comment: string}) => Promise<object>} keep
 * @param {{rating: string, reason: string|null, comment: string}|null} [rated]  the stored rating
 * @returns {{thumbs: Element, more: Element}}  the buttons, and the form that may open below them
 */
export function ratingOf(keep, rated = null) {
  const notice = element("p", { class: "notice", role: "status" });
  const thumb = (rating, name) => {
    const button = iconButton("thumb", name, () => rate(rating), `thumb ${rating}`);
    button.setAttribute("aria-pressed", String(rated?.rating === rating));
    return button;
  };
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
      notice.textContent = `⚠ Not stored. ${failure.message}`;
      return false;
    }
    for (const [button, rating] of [[up, "up"], [down, "down"]]) button.setAttribute("aria-pressed", String(given.rating === rating));
    notice.textContent = thanks;
    return true;
  }

  async function rate(rating) {
    const given = rating === "up" ? { rating, reason: null, comment: "" } : { rating, reason: choice.value || null, comment: comment.value };
    if (!(await send(given, rating === "up" ? "Thank you." : "Thank you. You may say why."))) return;
    form.hidden = rating === "up";
    if (form.hidden) return;
    choice.focus();
    form.scrollIntoView({ block: "nearest", behavior: scrolling() });
  }

  function close() {
    form.hidden = true;
    down.focus();
  }

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (await send({ rating: "down", reason: choice.value || null, comment: comment.value }, "Thank you, the reason is stored.")) close();
  });
  form.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || event.isComposing) return;
    event.stopPropagation(); // closes only the form, not the panel around it
    close();
  });
  const thumbs = element("span", { class: "thumbs", role: "group", "aria-label": "Rate this answer" }, up, down);
  return { thumbs, more: element("div", { class: "rating" }, form, notice) };
}
