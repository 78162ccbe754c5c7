/** Chooses which of the questions that the server suggests are shown in the empty panel and after an answer. */
const MOST_SUGGESTED = 4;
const MOST_NEXT = 3; // after an answer
const MOST_PAGES = 8; // pages of an answer that suggestions may be near
const MOST_ASKED_FOR = 50; // the server's maximum

/** Returns suggested questions that were not asked yet, those near `pages` first. `isNext`: after an answer, only near ones. */
export async function suggestedQuestions(api, edition, { pages, isNext, asked }) {
  const known = new Set(asked.map(bareQuestion));
  const most = isNext ? MOST_NEXT : MOST_SUGGESTED;
  const found = await api.suggestions({ limit: Math.min(most + known.size, MOST_ASKED_FOR), ...edition, page: pages });
  const near = found.filter(({ page }) => !isNext || isNear(page, pages));
  return near.map(({ question }) => question).filter((query) => !known.has(bareQuestion(query))).slice(0, most);
}

/** The pages that an answer is about or, after a refusal, the nearest ones; null if there is no answer. */
export function lastOf(turn) {
  const { selection, events } = turn.asked;
  const done = events.find(({ type }) => type === "done");
  if (!done || selection !== null) return null;
  const urls = [...turn.sources, ...(done.nearest ?? [])].map(({ source_url: url }) => url.split("#")[0]);
  return { turn, pages: [...new Set(urls)].slice(0, MOST_PAGES) };
}

/** Whether a page is one of `pages`, or in the same folder as one of them. The root folder does not count. */
function isNear(page, pages) {
  const folder = /^(?:\w+:\/\/)?[^/]+\/.+\/(?=[^/]+\/?$)/;
  const own = folder.exec(page)?.[0];
  return pages.some((other) => other === page || (own && own === folder.exec(other)?.[0]));
}

function bareQuestion(query) {
  return query.toLowerCase().replace(/[\s?!.…]+$/, "");
}
