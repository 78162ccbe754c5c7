/** Messages in place of the book: it needs a key, there is none, or it cannot be shown. */
import { at, element } from "./dom.js";

const HEADS = { no_book: "No book to read yet", retrieval_unavailable: "The book cannot be opened", unauthorized: "This book needs a key" };
const HOW = "Ingest a folder, a file or a website on the server, then open this page again:";

/** Returns elements that say why there is nothing to read and what to do. */
export function explanationOf({ code, message = "" }, again) {
  return [
    element("h1", {}, HEADS[code] ?? "The page cannot be shown"),
    message && element("p", { role: "alert" }, message),
    code === "no_book" && element("p", {}, HOW),
    code === "no_book" && element("pre", { tabindex: "0" }, element("code", {}, "chapterverse ingest docs/\nchapterverse ingest https://docs.example.com/guide/")),
    element("p", { class: "buttons" }, element("button", { type: "button", onclick: again }, code === "unauthorized" ? "Enter a key" : "Try again")),
  ].filter(Boolean);
}

/** Asks the reader for the API key. Resolves to null if the reader has none. */
export function askForKey(again) {
  const dialog = at("key");
  at("key-message").textContent = again
    ? "That key was not accepted. Try another one."
    : "Its server asks for an API key. The key is kept until you close this tab.";
  at("key-box").value = "";
  dialog.showModal();
  return new Promise((resolve) => {
    let key = null;
    at("key-form").onsubmit = (event) => {
      event.preventDefault();
      key = at("key-box").value.trim() || null;
      dialog.close();
    };
    at("key-cancel").onclick = () => dialog.close();
    dialog.onclose = () => resolve(key);
  });
}
