/** Puts the Chapterverse widget into every page of a Docusaurus site. */
"use strict";

const NAME = "docusaurus-plugin-chapterverse";
// Each but `server` is a data attribute of the widget.
const TEXTS = ["title", "accent", "font", "logo", "module", "book", "version", "prefix", "theme", "position", "target"];
const CHOICES = { theme: ["auto", "light", "dark"], position: ["right", "left"] };

module.exports = function chapterverse(_context, { server, suggestions = [], ...texts }) {
  const values = { ...texts, suggestions: suggestions.join("|") };
  const data = TEXTS.concat("suggestions").filter((name) => values[name]);
  const attributes = Object.fromEntries(data.map((name) => [`data-${name}`, values[name]]));
  const src = `${server.replace(/\/+$/, "")}/widget.js`;
  return {
    name: NAME,
    injectHtmlTags: () => ({ headTags: [{ tagName: "script", attributes: { src, async: true, ...attributes } }] }),
  };
};

module.exports.validateOptions = function validateOptions({ options }) {
  const wrong = (message) => {
    throw new Error(`${NAME}: ${message}`);
  };
  const { id, server, suggestions = [], ...texts } = options; // Docusaurus adds the id
  if (typeof server !== "string" || !/^https?:\/\/[^\s/?#]+(?:\/[^\s?#]*)?$/.test(server)) {
    wrong('"server" must be the address of a server, such as "https://ask.example.com"');
  }
  if (!Array.isArray(suggestions) || suggestions.some((each) => typeof each !== "string")) wrong('"suggestions" must be a list of questions');
  if (suggestions.some((each) => each.includes("|"))) wrong('a question in "suggestions" must not contain "|"');
  for (const [name, value] of Object.entries(texts)) {
    if (!TEXTS.includes(name)) wrong(`there is no option "${name}"; there are server, suggestions, ${TEXTS.join(", ")}`);
    if (typeof value !== "string") wrong(`"${name}" must be a text`);
    if (CHOICES[name] && !CHOICES[name].includes(value)) wrong(`"${name}" must be one of ${CHOICES[name].join(", ")}`);
  }
  return options;
};
