// SPDX-License-Identifier: Apache-2.0

// The list of runs: what needs a person first, then what is live, then the days.

import { h, fill, icon, button, key, keysHint, setText, meter, inField, announce } from "./dom.js";
import { api, follow } from "./api.js";
import { clock, count, dayAndTime, money, plural, timeOfDay, titleOf } from "./format.js";
import { endWord } from "./timeline.js";
import { answerButtons, askedFor, waitingShort } from "./questions.js";
import { plain } from "./plain.js";
import { lineSpan, textSpan } from "./text.js";
import { openBundle, startRun } from "./dialogs.js";

const filters = [["all", "All", () => true], ["live", "Live", (r) => r.state === "running"], ["wrong", "Went wrong", (r) => wentWrong(r)], ["denied", "With denials", (r) => r.denied > 0]];

function wentWrong(r) {
  return r.state === "lost" || r.state === "unreadable" || (r.state === "ended" && r.status !== "success");
}

export class RunsPage {
  /** @param {import("./app.js").App} app */
  constructor(app) {
    this.app = app;
    this.limit = 200;
    this.show = new URLSearchParams(location.search).get("show") ?? "all";
    this.answer = null;
    this.questions = new Map();
    this.marked = new Set();
    this.marking = false;
    this.selected = 0;
    this.stops = [];
    this.#build();
    this.#load();
    this.stops.push(follow("/v1/events", { event: (e) => { if (e.event === "runs") this.#soon(); }, state: (s, problem) => this.#connection(s, problem) }));
    const tick = setInterval(() => this.#tick(), 1000);
    this.stops.push(() => clearInterval(tick));
  }

  #build() {
    this.dot = h("span", { class: "dot" });
    this.connectionText = h("span");
    this.top = h("header", { class: "top" }, h("a", { href: "/", class: "brand" }, icon("logo", "ink"), "Drover"), h("span", { class: "space" }), h("span", { class: "connection" }, this.dot, this.connectionText));
    this.figures = h("div", { class: "figures-line" });
    this.chart = h("figure", { class: "chart" });
    this.needs = h("section", { class: "card needs", "aria-label": "Waits for you", hidden: true });
    this.search = h("input", { type: "search", placeholder: "Search title, agent, id, folder, error", "aria-label": "Search runs", autocomplete: "off", spellcheck: "false", value: new URLSearchParams(location.search).get("q") ?? "", oninput: () => {
      clearTimeout(this.typing);
      this.typing = setTimeout(() => this.#load(), 150);
    }, onkeydown: (e) => {
      if (e.key !== "Enter" && e.key !== "Escape") return;
      e.preventDefault();
      if (e.key === "Escape") {
        this.search.value = "";
        this.#load();
      }
      this.table.focus();
    } });
    this.tabs = filters.map(([name, word]) => {
      const n = h("span", { class: "count" });
      return { name, n, el: h("button", { type: "button", class: "toggle", "aria-pressed": "false", onclick: () => { this.show = name; this.#paint(); } }, word, n) };
    });
    this.startButton = button("Start a run", { class: "primary", hidden: true, onclick: () => startRun(this.app) });
    this.markButton = button("Compare", { class: "toggle", "aria-pressed": "false", onclick: () => this.#toggleMarking() });
    this.rows = h("tbody");
    this.headRow = h("tr", null, ["Status", "Run", "Agent", "Started", "Duration", "Cost, of budget", "Tokens", "Turns", "Denied"].map((t) => h("th", { scope: "col", class: "c-" + t.split(/[, ]/)[0].toLowerCase() }, t)));
    this.table = h("table", { class: "runs", tabIndex: -1, "aria-label": "Runs" }, h("thead", null, this.headRow), this.rows);
    this.note = h("p", { class: "empty", hidden: true });
    this.more = button("Show more", { class: "quiet", hidden: true, onclick: () => { this.limit *= 2; this.#load(); } });
    this.el = h("div", { class: "runs-page" }, this.top, h("main", null, h("div", { class: "runs-summary" }, this.figures, this.chart), this.needs, h("section", { class: "card", "aria-label": "Runs" }, h("div", { class: "list-tools" }, h("h1", null, "Runs"), h("span", { class: "search" }, this.search, key("/")), h("span", { class: "tabs-line" }, this.tabs.map((t) => t.el)), h("span", { class: "space" }), this.markButton, ...openBundle(this.app, {}), this.startButton), this.table, this.note, this.more)), h("footer", { class: "foot" }, keysHint([["j", "k", "move"], ["Enter", "open"], ["/", "search"], ["w", "first question"]]), h("span", { class: "space" }), h("span", { class: "mono address" }, location.host)));
    fill(this.rows, Array.from({ length: 6 }, () => h("tr", { class: "waiting-row", "aria-hidden": "true" }, h("td", { colspan: 9 }, h("span")))));
    this.onKey = (e) => this.#key(e);
    document.addEventListener("keydown", this.onKey);
    document.title = "Runs: Drover";
    this.startButton.hidden = !this.app.server?.start || this.app.server?.readOnly;
    this.#connection("connecting");
  }

  #connection(state, problem) {
    if (problem?.status === 401) return this.app.lock(problem);
    if (this.connection === "reconnecting" && state === "live") this.#soon();
    this.connection = state;
    this.dot.className = `dot ${state}`;
    this.top.classList.toggle("is-reconnecting", state === "reconnecting");
    setText(this.connectionText, { connecting: "Connecting", live: "Live", reconnecting: "Reconnecting", gone: "Not there" }[state]);
    for (const q of this.questions.values()) q.buttons.update();
  }

  #refusal() {
    if (this.app.server?.readOnly) return "This access may only look.";
    return this.connection === "reconnecting" ? "Not connected: an answer cannot be sent yet." : "";
  }

  /** Reads the list again, but not more often than a few times a second. */
  #soon() {
    this.soon ||= setTimeout(() => {
      this.soon = 0;
      this.#load();
    }, 300);
  }

  async #load() {
    const q = this.search.value.trim();
    const query = { limit: String(this.limit) };
    if (q) query.q = q;
    const nth = (this.loads = (this.loads ?? 0) + 1);
    try {
      const answer = await api.runs(query);
      if (nth !== this.loads) return;
      this.answer = answer;
      this.app.setClock(answer.now);
      this.#paint();
    } catch (err) {
      if (err.status === 401) this.app.lock(err);
      else if (!this.answer) {
        this.note.hidden = false;
        fill(this.rows);
        fill(this.note, "The list cannot be read: ", textSpan(err.message));
      }
    }
  }

  #tick() {
    const now = this.app.now();
    for (const { q, since } of this.questions.values()) setText(since, waitingShort(q, now));
    for (const cell of this.rows.querySelectorAll("[data-began]")) setText(cell, clock(now - Number(cell.dataset.began)));
  }

  #paint() {
    if (!this.answer) return; // the list has not come yet
    const { runs, hours } = this.answer;
    const now = this.app.now();
    this.startButton.hidden = !this.app.server?.start || this.app.server?.readOnly;
    this.#summary(runs, everyHour(hours ?? [], now), now);
    this.#needs(runs);
    for (const t of this.tabs) {
      const holds = filters.find(([name]) => name === t.name)[2];
      setText(t.n, String(runs.filter(holds).length));
      t.el.setAttribute("aria-pressed", String(t.name === this.show));
    }
    const shown = runs.filter(filters.find(([name]) => name === this.show)?.[2] ?? (() => true));
    const groups = groupByDay(shown, now);
    const focused = document.activeElement?.closest?.("tr[data-id]")?.dataset.id;
    fill(this.rows, groups.flatMap(([title, list]) => [h("tr", { class: "group" }, h("th", { colspan: 9, scope: "colgroup" }, title, h("span", { class: "dim" }, `${plural(list.length, "run")}, ${money(list.reduce((sum, r) => sum + (r.costUsd ?? 0), 0))}`))), ...list.map((r) => this.#row(r, now))]));
    if (focused) this.rows.querySelector(`tr[data-id="${CSS.escape(focused)}"] a`)?.focus();
    this.note.hidden = shown.length > 0;
    if (shown.length === 0) setText(this.note, runs.length === 0 && !this.search.value ? "Runs appear here as soon as one begins: drover demo is one." : "No run matches.");
    this.more.hidden = runs.length < this.limit;
    const count = runs.reduce((n, r) => n + r.questions.length, 0);
    document.title = `${count ? `(${count}) ` : ""}Runs: Drover`;
    if (this.count !== undefined && count > this.count) announce(`${plural(count, "question")} ${count === 1 ? "waits" : "wait"} for you`);
    this.count = count;
    this.table.classList.toggle("marking", this.marking);
  }

  #summary(runs, hours, now) {
    const today = new Date(now).toDateString();
    const running = runs.filter((r) => r.state === "running");
    const spent = runs.filter((r) => new Date(r.began).toDateString() === today).reduce((sum, r) => sum + (r.costUsd ?? 0), 0);
    const wrong = runs.filter((r) => wentWrong(r) && new Date(r.began).toDateString() === today).length;
    const oldest = Math.min(...running.map((r) => Date.parse(r.began)));
    fill(this.figures, figure("Running", String(running.length), running.length ? `oldest ${clock(now - oldest)}` : ""), figure("Ended today", String(runs.filter((r) => r.state !== "running" && new Date(r.began).toDateString() === today).length), wrong ? `${wrong} went wrong` : ""), figure("Spent today", money(spent)));
    const most = Math.max(0.01, ...hours.map((x) => x.usd));
    const last = hours.at(-1);
    const bars = hours.map((x, i) => {
      const bar = h("span", { class: i === hours.length - 1 ? "hour now" : "hour", title: `${timeOfDay(x.hour)}: ${money(x.usd)}` });
      bar.style.height = `${Math.max(x.usd > 0 ? 6 : 2, (x.usd / most) * 100)}%`;
      if (x.usd === 0) bar.classList.add("none");
      return bar;
    });
    fill(this.chart, h("figcaption", null, h("span", null, "Cost per hour, last 24 h"), h("span", null, `this hour ${money(last.usd)}`)), h("div", { class: "hours", role: "img", "aria-label": `Cost per hour of the last 24 hours: ${money(hours.reduce((s, x) => s + x.usd, 0))} in all, at most ${money(most)} in an hour` }, bars), h("div", { class: "hour-labels", "aria-hidden": "true" }, hours.filter((_, i) => i % 6 === 0).map((x) => h("span", null, timeOfDay(x.hour))), h("span", null, "now")));
  }

  #needs(runs) {
    const open = runs.flatMap((r) => r.questions.map((q) => ({ ...q, run: r.id, title: titleOf(r), controllable: r.controllable })));
    const ids = new Set(open.map((q) => q.id + q.run));
    for (const [id, { el }] of this.questions) {
      if (ids.has(id)) continue;
      el.remove();
      this.questions.delete(id);
    }
    this.needs.hidden = open.length === 0;
    if (open.length === 0) return fill(this.needs);
    if (!this.needs.firstChild) fill(this.needs, h("h2", null, icon("waiting"), "Waits for you ", (this.needsCount = h("span", { class: "count" }))));
    setText(this.needsCount, String(open.length));
    for (const q of open) {
      if (this.questions.has(q.id + q.run)) continue;
      const buttons = answerButtons(q, { short: true, refused: () => this.#refusal() || (q.controllable ? "" : "This run cannot be controlled from here."), done: () => this.#load() });
      const since = h("span", { class: "since" });
      const el = h("div", { class: "need", tabIndex: -1 }, h("div", { class: "asks" }, h("p", null, textSpan(q.tool), " ", lineSpan(askedFor(q), "wanted mono", 120)), h("p", null, h("a", { href: "/r/" + encodeURIComponent(q.run) }, lineSpan(q.title)), " ", since), buttons.problem), buttons.box);
      this.questions.set(q.id + q.run, { q, el, since, buttons });
      this.needs.append(el);
    }
    this.#tick();
  }

  #row(r, now) {
    const [shape, tone, word] = statusOf(r);
    const live = r.state === "running";
    const took = live ? now - Date.parse(r.began) : r.durationMs ?? (r.ended ? Date.parse(r.ended) - Date.parse(r.began) : undefined);
    const title = titleOf(r) === r.id && r.problem ? r.problem : titleOf(r);
    const tokens = r.inputTokens === undefined ? undefined : r.inputTokens + (r.outputTokens ?? 0);
    const budget = r.budgetUsd;
    const share = budget ? meter(r.costUsd ?? 0, budget, "Cost, of budget", `${money(r.costUsd)} of ${money(budget)}`) : null;
    const mark = this.marking ? h("input", { type: "checkbox", "aria-label": `Compare ${plain(title).slice(0, 60)}`, checked: this.marked.has(r.id), onclick: (e) => e.stopPropagation(), onchange: (e) => this.#mark(r.id, e.target.checked) }) : null;
    const detail = [r.name || r.promptName || r.agent, timeOfDay(r.began), took === undefined ? "" : clock(took), r.denied ? `${r.denied} denied` : ""].filter(Boolean).join(", ");
    return h("tr", { "data-id": r.id, onclick: (e) => { if (!e.target.closest("a, button, input")) this.app.go("/r/" + encodeURIComponent(r.id)); } },
      h("td", { class: "c-status" }, h("span", { class: `status tone-${tone}` }, icon(shape, tone), word)),
      h("td", { class: "c-run" }, mark, h("span", { class: "mono dim id" }, plain(r.id.slice(0, 8))), h("a", { href: "/r/" + encodeURIComponent(r.id), title: plain(title).slice(0, 300) }, lineSpan(title)), h("span", { class: "detail dim" }, plain(detail)), r.error && wentWrong(r) && lineSpan(r.error, "error dim", 200)),
      h("td", { class: "c-agent" }, lineSpan(r.name || r.promptName || r.agent)),
      h("td", { class: "c-started" }, dayAndTime(r.began, now)),
      h("td", { class: "c-duration", "data-began": live ? Date.parse(r.began) : undefined }, took === undefined ? "–" : clock(took)),
      h("td", { class: "c-cost" }, h("span", null, money(r.costUsd)), share),
      h("td", { class: "c-tokens" }, count(tokens)),
      h("td", { class: "c-turns" }, r.turns === undefined ? "–" : String(r.turns)),
      h("td", { class: `c-denied ${r.denied ? "tone-denied" : "dim"}` }, r.state === "unreadable" ? "–" : String(r.denied ?? 0)));
  }

  #toggleMarking() {
    this.marking = !this.marking;
    this.marked.clear();
    this.markButton.setAttribute("aria-pressed", String(this.marking));
    setText(this.markButton, this.marking ? "Mark two runs" : "Compare");
    this.#paint();
    if (this.marking) this.rows.querySelector("input[type=checkbox]")?.focus();
  }

  #mark(id, on) {
    if (on) this.marked.add(id);
    else this.marked.delete(id);
    if (this.marked.size === 2) {
      const [a, b] = this.marked;
      this.app.go(`/compare?${new URLSearchParams({ a, b })}`);
    }
  }

  #key(e) {
    if (e.defaultPrevented || e.ctrlKey || e.metaKey || e.altKey || inField(e) || document.querySelector("dialog[open]")) return;
    const links = [...this.rows.querySelectorAll("tr[data-id] a")];
    const at = links.indexOf(document.activeElement);
    const move = (by) => links[Math.min(links.length - 1, Math.max(0, at < 0 ? 0 : at + by))]?.focus();
    const keys = { j: () => move(1), k: () => move(-1), ArrowDown: () => move(1), ArrowUp: () => move(-1), "/": () => this.search.focus(), w: () => this.needs.querySelector("button")?.focus() };
    const act = keys[e.key];
    if (!act) return;
    e.preventDefault();
    act();
  }

  /** What the server offers has become known. */
  server() {
    if (this.answer) this.#paint();
  }

  close() {
    for (const stop of this.stops) stop();
    clearTimeout(this.typing);
    clearTimeout(this.soon);
    document.removeEventListener("keydown", this.onKey);
  }
}

/** The last 24 hours, the present one last, with the cost of each. */
function everyHour(hours, now) {
  const cost = new Map(hours.map((x) => [Math.floor(Date.parse(x.hour) / 3600_000), x.usd]));
  const last = Math.floor(now / 3600_000);
  return Array.from({ length: 24 }, (_, i) => ({ hour: (last - 23 + i) * 3600_000, usd: cost.get(last - 23 + i) ?? 0 }));
}

function figure(label, value, beside = "") {
  return h("div", { class: "figure" }, h("span", { class: "gauge-label" }, label), h("span", null, h("b", null, value), beside && h("span", { class: "beside" }, " " + beside)));
}

/** Live first, then by day. @returns {[string, any[]][]} */
function groupByDay(runs, now) {
  const groups = new Map();
  const today = new Date(now).toDateString();
  const yesterday = new Date(now - 86400_000).toDateString();
  for (const r of runs) {
    const d = new Date(r.began);
    const day = d.toDateString();
    const title = r.state === "running" ? "Live" : day === today ? "Today" : day === yesterday ? "Yesterday" : d.toLocaleDateString("en-GB", { weekday: "long", day: "numeric", month: "long", year: d.getFullYear() === new Date(now).getFullYear() ? undefined : "numeric" });
    if (!groups.has(title)) groups.set(title, []);
    groups.get(title).push(r);
  }
  for (const list of groups.values()) list.sort((a, b) => b.questions.length - a.questions.length || Date.parse(b.began) - Date.parse(a.began));
  return [...groups].sort(([a], [b]) => (a === "Live" ? -1 : b === "Live" ? 1 : 0));
}

/** The shape, the tone and the word of the state of a run. */
export function statusOf(r) {
  if (r.state === "running") return r.questions?.length ? ["waiting", "waiting", "Waiting"] : ["running", "ok", "Running"];
  if (r.state === "queued") return ["waiting", "quiet", "Queued"];
  if (r.state === "lost") return ["lost", "failed", "Lost"];
  if (r.state === "unreadable") return ["alert", "denied", "Unreadable"];
  if (r.status === "success") return ["ok", "quiet", "Done"];
  if (r.status === "interrupted") return r.kind === "deadline" ? ["failed", "failed", "Past deadline"] : ["stopped", "quiet", "Stopped"];
  return ["failed", "failed", r.kind === "deadline" ? "Past deadline" : endWord(r.status, r.kind)];
}
