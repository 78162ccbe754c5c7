/**
 * Requests to the server: JSON, the stream of an answer, and the API key if one is needed. Every failure is an `ApiError`.
 * Independent of the page; the widget uses it too.
 */

const KEY = "chapterverse.key";

/** A failure with a message that may be shown to the reader. */
export class ApiError extends Error {
  /** @param {{error_code: string, message: string, retry_after?: number|null}} body */
  constructor(status, body) {
    super(body.message);
    this.status = status;
    this.code = body.error_code;
    this.retryAfter = body.retry_after ?? null;
  }
}

/** Wraps browser storage, which may be forbidden or full; then nothing is stored. `json` returns null if there is no valid JSON. */
const storage = (of) => ({
  get: (name) => {
    try {
      return of().getItem(name);
    } catch {
      return null;
    }
  },
  json: (name) => {
    try {
      return JSON.parse(of().getItem(name));
    } catch {
      return null;
    }
  },
  set: (name, value) => {
    try {
      if (value === null) of().removeItem(name);
      else of().setItem(name, value);
      return true;
    } catch {
      return false;
    }
  },
});
export const memory = storage(() => sessionStorage); // for this tab
export const longMemory = storage(() => localStorage); // for this browser

export class Api {
  /**
   * @param {string} base  base address of the routes
   * @param {(again: boolean) => Promise<string|null>} askForKey  asks the reader for a key; `again`: the last key was wrong;
   *   resolves to null if the reader has none
   */
  constructor(base, askForKey) {
    this.base = base;
    this.askForKey = askForKey;
    const server = new URL(base).pathname.replace(/editions\/[^/]+\/$/, ""); // others may be on the same host
    this.name = server === "/" ? KEY : `${KEY} ${server}`;
    this.key = memory.get(this.name);
    this.asking = null;
  }

  pages() {
    return this.json("GET", "pages");
  }

  books() {
    return this.json("GET", "books");
  }

  page(id) {
    return this.json("GET", `pages/${encodeURIComponent(id)}`);
  }

  /** Fetches an image of the book with the key. Returns its object URL. */
  async image(path) {
    return URL.createObjectURL(await (await this.send("GET", path)).blob());
  }

  search(query, signal) {
    return this.json("POST", "search", { query, top_k: 8 }, signal);
  }

  /** Returns questions that the book answers, each with the address of its page; none after a failure. Never asks for a key. */
  async suggestions({ limit, book = [], version = [], page = [] }) {
    const named = Object.entries({ book, version, page }).flatMap(([name, values]) => [values].flat().map((value) => [name, value]));
    try {
      const answer = await this.once("GET", `suggestions?${new URLSearchParams([["limit", limit], ...named])}`);
      return answer.ok ? ((await answer.json()).suggestions ?? []) : [];
    } catch {
      return [];
    }
  }

  deleteSession(id) {
    return this.send("DELETE", `sessions/${encodeURIComponent(id)}`);
  }

  /** Sends the reader's rating of an answer. */
  rate(feedback) {
    return this.json("POST", "feedback", feedback);
  }

  /** Yields the events of an answer; the last is `done` or `error`. Aborting the signal cancels the model's run on the server. */
  async *ask(question, signal) {
    const answer = await this.send("POST", "chat/stream", question, signal);
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    try {
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        const events = (rest + value).split("\n\n");
        rest = events.pop();
        for (const event of events) {
          if (!event.startsWith("data:")) continue; // a comment keeps the connection open
          const parsed = JSON.parse(event.slice("data:".length));
          yield parsed;
          if (parsed.type === "done" || parsed.type === "error") return;
        }
      }
    } catch (failure) {
      throw lost(failure);
    }
    throw new ApiError(0, { error_code: "broken_off", message: "The answer broke off before its end. Ask again." });
  }

  async json(...request) {
    return (await this.send(...request)).json().catch(unread);
  }

  async send(method, path, body, signal) {
    for (;;) {
      const used = this.key;
      const answer = await this.once(method, path, body, signal);
      if (answer.ok) return answer;
      const failure = await refusal(answer);
      if (answer.status !== 401 || !(await this.newKey(used))) throw failure;
    }
  }

  async once(method, path, body, signal) {
    const headers = {};
    if (body) headers["Content-Type"] = "application/json";
    if (this.key) headers["X-API-Key"] = this.key;
    try {
      return await fetch(new URL(path, this.base), { method, headers, signal, body: body && JSON.stringify(body) });
    } catch (failure) {
      throw lost(failure);
    }
  }

  /** Asks the reader for another key, once for all requests that fail at the same time. Returns whether there is one to try. */
  async newKey(used) {
    if (this.key !== used) return true;
    this.asking ??= this.askForKey(used !== null).finally(() => (this.asking = null));
    const key = await this.asking;
    if (!key) return false;
    this.key = key;
    memory.set(this.name, key);
    return true;
  }
}

/** Fails like a request whose answer is not from Chapterverse: of a login page, or cut off. */
function unread(failure) {
  if (failure.name === "AbortError") throw failure;
  throw new ApiError(0, { error_code: "unexpected", message: "The answer cannot be read: reload the page, or sign in again." });
}

async function refusal(answer) {
  const after = Number(answer.headers.get("Retry-After")) || null;
  try {
    const body = await answer.json();
    return new ApiError(answer.status, { ...body, retry_after: body.retry_after ?? after });
  } catch {
    const message = `The server answered ${answer.status}.`;
    return new ApiError(answer.status, { error_code: "unexpected", message, retry_after: after });
  }
}

function lost(failure) {
  if (failure.name === "AbortError" || failure instanceof ApiError) return failure;
  return new ApiError(0, { error_code: "unreachable", message: "The server cannot be reached." });
}
