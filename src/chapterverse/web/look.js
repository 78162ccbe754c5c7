/**
 * The look of the widget: the site's own font, accent and colours, read from the computed styles of its content, so that no
 * theme has to be known by name. Values that would be hard to read (a link like the text around it, weak contrast) are not
 * used. `data-font`, `data-accent` and `data-theme` take precedence.
 */
const BLACK = [0, 0, 0];
const WHITE = [255, 255, 255];
const READABLE = 4.5; // contrast of text (WCAG AA)
const CLEAR = 8; // contrast of the site's text above which a fainter shade of it is readable, too
export const DARK = matchMedia("(prefers-color-scheme: dark)");

/** Applies the look of the page around `host` to the widget's `root`. */
export function wear(host, root, { theme, accent, font }) {
  const site = siteOf(host, accent);
  root.dataset.theme = theme === "auto" ? (luminance(site.paper) < 0.18 ? "dark" : "light") : theme;
  root.style.cssText = "";
  const put = (properties) => Object.entries(properties).forEach(([name, value]) => root.style.setProperty(`--${name}`, value));
  put({ serif: font ?? site.font, sans: font ?? site.font, mono: site.mono });
  if (theme === "auto" && contrast(site.ink, site.paper) >= CLEAR) {
    const shade = (share) => rgb(mix(site.ink, site.paper, share));
    put({ paper: shade(0), sheet: shade(0), line: shade(0.15), edge: shade(0.65), faint: shade(0.8), ink: shade(1) });
  }
  if (!site.accent) return;
  const style = getComputedStyle(root.querySelector(".panel"));
  const [paper, ink] = [channels(style.backgroundColor), channels(style.color)];
  let readable = site.accent;
  for (let share = 0.1; contrast(readable, paper) < READABLE && share <= 1; share += 0.1) readable = mix(ink, site.accent, share);
  put({ accent: rgb(readable), "on-accent": rgb(contrast(WHITE, readable) >= READABLE ? WHITE : BLACK) });
}

/** The site's font and colours, as computed for its content. */
function siteOf(host, wanted) {
  const content = document.querySelector("article") ?? document.querySelector("main, [role=main]") ?? document.body;
  const link = document.createElement("a");
  const code = document.createElement("code");
  link.href = "#";
  content.append(link, code); // removed before they are painted
  const paper = behind(host);
  const ink = over(getComputedStyle(content).color, paper);
  const { fontFamily: font } = getComputedStyle(content);
  const { fontFamily: mono } = getComputedStyle(code);
  let accent = over(getComputedStyle(link).color, paper);
  if (String(accent) === String(ink)) accent = null;
  if (wanted) link.style.setProperty("color", wanted, "important"); // it may be a CSS variable of the site
  if (link.style.color) accent = over(getComputedStyle(link).color, paper);
  link.remove();
  code.remove();
  return { paper, ink, accent, font, mono };
}

/** The background colour of a node. */
function behind(node) {
  for (let each = node.parentElement; each; each = each.parentElement) {
    const colour = getComputedStyle(each).backgroundColor;
    if (channels(colour)[3] > 127) return over(colour, WHITE);
  }
  const dark = DARK.matches && getComputedStyle(document.documentElement).colorScheme.includes("dark");
  return dark ? [18, 18, 18] : WHITE;
}

/** A colour that may be transparent, blended with a background. */
function over(colour, paper) {
  const [red, green, blue, opacity] = channels(colour);
  return mix([red, green, blue], paper, opacity / 255);
}

function mix(one, other, share) {
  return one.slice(0, 3).map((value, at) => Math.round(value * share + other[at] * (1 - share)));
}

function rgb([red, green, blue]) {
  return `rgb(${red} ${green} ${blue})`;
}

/** The contrast ratio of WCAG, from 1 to 21. */
function contrast(one, other) {
  const [darker, lighter] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (lighter + 0.05) / (darker + 0.05);
}

function luminance(colour) {
  const [red, green, blue] = colour.map((value) => (value <= 10 ? value / 3294 : ((value / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

/** Red, green, blue and opacity of a CSS colour in any notation. */
function channels(colour) {
  const context = new OffscreenCanvas(1, 1).getContext("2d");
  context.fillStyle = colour;
  context.fillRect(0, 0, 1, 1);
  return [...context.getImageData(0, 0, 1, 1).data];
}
