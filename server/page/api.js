// SPDX-License-Identifier: Apache-2.0

// The HTTP API of Drover: access, requests, and streams of server-sent events that are taken up again by position.

const secretKey = "drover-secret";

/** A refusal: a problem document of RFC 9457. */
export class Problem extends Error {
  constructor(status, body, retryAfter) {
    super(body?.detail || body?.title || `the server answered ${status}`);
    this.status = status;
    this.next = body?.next ?? "";
    this.retryAfter = retryAfter;
  }
}

let secret = read();
let readOnlyToken = false;

function read() {
  try {
    return localStorage.getItem(secretKey) ?? "";
  } catch {
    return "";
  }
}

export function hasAccess() {
  return secret !== "";
}

/** Forgets the secret, which is no longer valid. */
export function forget() {
  secret = "";
  try {
    localStorage.removeItem(secretKey);
  } catch {
    // Without a store nothing was kept.
  }
}

/**
 * Takes the token out of the address at once, and trades it for a cookie and the secret of this page.
 * @returns {Promise<void>}
 */
export async function takeToken() {
  const parts = new URLSearchParams(location.hash.slice(1));
  const token = parts.get("t");
  if (!token) return;
  parts.delete("t");
  const rest = parts.toString();
  history.replaceState(null, "", location.pathname + location.search + (rest ? "#" + rest : ""));
  const answer = await request("POST", "/v1/session", { token });
  secret = answer.secret;
  readOnlyToken = Boolean(answer.readOnly);
  try {
    localStorage.setItem(secretKey, secret);
  } catch {
    // It holds until the page is left.
  }
}

function headers(more = {}) {
  return secret ? { "Drover-Secret": secret, ...more } : more;
}

async function answered(response) {
  if (response.ok) return response;
  let body = null;
  try {
    body = await response.json();
  } catch {
    // No problem document: the status must do.
  }
  throw new Problem(response.status, body, Number(response.headers.get("Retry-After")) || 0);
}

async function request(method, path, body, type = "application/json") {
  const init = { method, headers: headers(), cache: "no-store", credentials: "same-origin" };
  if (body !== undefined) {
    init.headers["Content-Type"] = type;
    init.body = type === "application/json" ? JSON.stringify(body) : body;
  }
  const response = await answered(await fetch(path, init));
  if (response.status === 204) return null;
  const kind = response.headers.get("Content-Type") ?? "";
  return kind.includes("json") && !kind.includes("jsonl") ? response.json() : response.text();
}

const run = (id) => "/v1/runs/" + encodeURIComponent(id);

export const api = {
  server: () => request("GET", "/v1/server").then((s) => ({ ...s, readOnly: s.readOnly || readOnlyToken })),
  runs: (query) => request("GET", "/v1/runs?" + new URLSearchParams(query)),
  run: (id) => request("GET", run(id)),
  answer: (id, question, answer) => request("POST", `${run(id)}/questions/${encodeURIComponent(question)}`, answer),
  interrupt: (id) => request("POST", run(id) + "/interrupt", {}),
  stop: (id) => request("POST", run(id) + "/stop", {}),
  message: (id, text) => request("POST", run(id) + "/messages", text ? { text } : {}),
  start: (start) => request("POST", "/v1/runs", start),
  offer: () => request("GET", "/v1/offer"),
  session: (id, at) => request("GET", `${run(id)}/session?at=${at}`),
  diff: (id) => request("GET", run(id) + "/diff"),
  compare: (a, b) => request("GET", "/v1/compare?" + new URLSearchParams({ a, b })),
  openBundle: (file) => request("POST", "/v1/bundles", file, "application/zip"),
  /** A file of a run, read with the secret, which a link could not send. */
  file: async (id, name) => (await answered(await fetch(`${run(id)}/${name}`, { headers: headers(), cache: "no-store" }))).blob(),
};

/**
 * Reads server-sent events from a stream of bytes. Lines may be split anywhere.
 * @param {ReadableStream<Uint8Array>} body @param {(e: {event: string, id: string, data: string}) => void} on
 * @param {() => void} [batch] is called after each chunk
 */
export async function readEvents(body, on, batch) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const text = rest + value;
    let at = 0;
    for (;;) {
      const end = text.indexOf("\n\n", at);
      if (end < 0) break;
      const e = parseEvent(text.slice(at, end));
      if (e) on(e);
      at = end + 2;
    }
    rest = text.slice(at);
    batch?.();
  }
}

function parseEvent(text) {
  let event = "message";
  let id = "";
  let data = null;
  for (const line of text.split("\n")) {
    const colon = line.indexOf(":");
    if (colon === 0 || line === "") continue;
    const name = colon < 0 ? line : line.slice(0, colon);
    let value = colon < 0 ? "" : line.slice(colon + 1);
    if (value.startsWith(" ")) value = value.slice(1);
    if (name === "data") data = data === null ? value : data + "\n" + value;
    else if (name === "event") event = value;
    else if (name === "id") id = value;
  }
  return data === null ? null : { event, id, data };
}

/** A server that sends nothing for so long is gone: it beats every 15 seconds. */
const silence = 40_000;

/**
 * Follows a stream until it ends, and connects again when it is cut.
 * @param {string} path
 * @param {object} on
 * @param {(e: {event: string, id: string, data: string}) => boolean|void} on.event returns true at the end of the stream
 * @param {() => void} [on.batch] @param {(state: "live"|"reconnecting"|"gone", problem?: Problem) => void} on.state
 * @param {() => number} [on.position] the last position that was taken
 * @returns {() => void} stops
 */
export function follow(path, on) {
  const stopped = new AbortController();
  let attempt = 0;
  const once = async () => {
    const cut = new AbortController();
    const stop = () => cut.abort();
    stopped.signal.addEventListener("abort", stop);
    let timer = setTimeout(stop, silence);
    let ended = false;
    try {
      const more = { Accept: "text/event-stream" };
      const position = on.position?.() ?? 0;
      if (position > 0) more["Last-Event-ID"] = String(position);
      const response = await answered(await fetch(path, { headers: headers(more), cache: "no-store", signal: cut.signal }));
      attempt = 0;
      on.state("live");
      await readEvents(response.body, (e) => {
        if (on.event(e)) ended = true;
      }, () => {
        clearTimeout(timer);
        timer = setTimeout(stop, silence);
        on.batch?.();
      });
    } finally {
      clearTimeout(timer);
      stopped.signal.removeEventListener("abort", stop);
    }
    return ended;
  };
  const forever = async () => {
    while (!stopped.signal.aborted) {
      try {
        if (await once()) return;
      } catch (err) {
        if (stopped.signal.aborted) return;
        if (err instanceof Problem && [401, 403, 404, 410].includes(err.status)) {
          on.state("gone", err);
          return;
        }
        if (!(err instanceof Problem) && err?.name !== "AbortError" && !(err instanceof TypeError)) console.error(err);
      }
      if (stopped.signal.aborted) return;
      on.state("reconnecting");
      await pause(Math.min(5000, 250 * 2 ** attempt++) * (0.75 + Math.random() / 2), stopped.signal);
    }
  };
  forever();
  return () => stopped.abort();
}

/** Waits, but no longer than until the network is back or the page is looked at. */
function pause(ms, signal) {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      removeEventListener("online", done);
      signal.removeEventListener("abort", done);
      resolve(null);
    };
    const timer = setTimeout(done, ms);
    addEventListener("online", done);
    signal.addEventListener("abort", done);
  });
}
