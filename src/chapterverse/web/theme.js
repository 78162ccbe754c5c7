/* Sets the light or dark theme: that of the system, unless the reader has chosen one. Runs before the first paint, so that the
   page does not flash. Also records that scripts run; otherwise the styles hide elements that need scripts. */
"use strict";
(() => {
  const KEY = "chapterverse.theme";
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);

  let kept = null;
  try {
    kept = localStorage.getItem(KEY);
    if (localStorage.getItem("chapterverse.ask") === "closed") root.dataset.ask = "closed";
  } catch {
    // Storage may be forbidden; then the theme lasts as long as the page.
  }
  if (kept === "dark" || kept === "light") root.dataset.theme = kept;
  root.dataset.script = "runs";

  addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("cv-theme");
    const name = () => {
      button.setAttribute("aria-label", isDark() ? "Switch to light" : "Switch to dark");
      button.title = button.getAttribute("aria-label");
    };
    button.addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      try {
        localStorage.setItem(KEY, root.dataset.theme);
      } catch {
        // Storage may be forbidden, as above.
      }
      name();
    });
    system.addEventListener("change", name);
    name();
  });
})();
