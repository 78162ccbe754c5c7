/**
 * Syntax highlighting with Prism (see prism/NOTICE), which is loaded if a page has code in a language that it supports. Only its
 * tokens are used: named pieces of the text, which `render.js` puts into text nodes.
 */
const LANGUAGES = new Set("html xml svg markup css clike javascript js typescript ts jsx python py bash sh shell json webmanifest yaml yml toml ini java c cpp go rust sql docker dockerfile diff".split(" "));
const OTHER_NAMES = { "c++": "cpp", console: "bash", "shell-session": "bash", zsh: "bash", golang: "go", json5: "json", jsonc: "json", mjs: "js", python3: "py", pycon: "py", rs: "rust", tsx: "jsx", conf: "ini", cfg: "ini", xacro: "xml", urdf: "xml" };

let fetching = null;

/** Prism's name of a language; null if it is not supported. */
export function languageOf(info) {
  const name = (info ?? "").split(/[\s,{]/)[0].toLowerCase();
  const known = OTHER_NAMES[name] ?? name;
  return LANGUAGES.has(known) ? known : null;
}

/** Loads the library once. The promise also resolves if loading fails; then code has no colours. */
export function fetchHighlighter(address) {
  fetching ??= new Promise((resolve) => {
    globalThis.Prism = { manual: true, disableWorkerMessageHandler: true };
    const script = document.createElement("script");
    script.src = address;
    script.onload = script.onerror = resolve;
    document.head.append(script);
  });
  return fetching;
}

/** The tokens of code in order: `[text, kind]`, where the kind may be null. Their texts joined are the code. */
export function tokensOf(code, info) {
  const grammar = globalThis.Prism?.languages?.[languageOf(info)];
  return grammar ? [...pieces(globalThis.Prism.tokenize(code, grammar), null)] : [[code, null]];
}

function* pieces(token, kind) {
  if (typeof token === "string") yield [token, kind];
  else if (Array.isArray(token)) for (const one of token) yield* pieces(one, kind);
  else yield* pieces(token.content, token.alias && token.type !== "string" ? [token.alias].flat()[0] : token.type);
}
