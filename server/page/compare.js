// SPDX-License-Identifier: Apache-2.0

// Two runs beside each other: figures, where they part, and what differs.

import { h, fill, icon } from "./dom.js";
import { api } from "./api.js";
import { clock, count, dayAndTime, money, plural, titleOf } from "./format.js";
import { statusOf } from "./runs.js";
import { askedFor } from "./questions.js";
import { plain } from "./plain.js";
import { diffTable, lineSpan, parseDiff, textSpan } from "./text.js";

export class ComparePage {
  /** @param {import("./app.js").App} app */
  constructor(app) {
    this.app = app;
    const query = new URLSearchParams(location.search);
    this.a = query.get("a") ?? "";
    this.b = query.get("b") ?? "";
    this.body = h("div", { class: "compare" }, h("p", { class: "dim" }, "Reading both runs."));
    this.el = h("div", { class: "runs-page" }, h("header", { class: "top" }, h("a", { href: "/", class: "brand" }, icon("logo", "ink"), "Drover"), h("nav", { "aria-label": "Path", class: "path" }, h("span", { class: "slash" }, "/"), h("a", { href: "/" }, "Runs"), h("span", { class: "slash" }, "/"), h("span", { class: "here" }, "Compare"))), h("main", null, this.body));
    document.title = "Compare: Drover";
    this.#load();
  }

  async #load() {
    try {
      this.#paint(await api.compare(this.a, this.b));
    } catch (err) {
      if (err.status === 401) this.app.lock(err);
      else fill(this.body, h("p", { class: "tone-failed" }, "The runs cannot be compared: ", textSpan(err.message)), err.next && h("p", null, "Next: ", textSpan(err.next)));
    }
  }

  #paint(c) {
    const now = this.app.now();
    const side = (r) => {
      const [shape, tone, word] = statusOf(r);
      return { link: h("a", { href: "/r/" + encodeURIComponent(r.id) }, textSpan(titleOf(r))), status: h("span", { class: `status tone-${tone}` }, icon(shape, tone), word) };
    };
    const [a, b] = [side(c.a), side(c.b)];
    const tokens = (r) => (r.inputTokens === undefined ? "–" : count(r.inputTokens + (r.outputTokens ?? 0)));
    const rows = [["Run", a.link, b.link], ["Status", a.status, b.status], ["Started", dayAndTime(c.a.began, now), dayAndTime(c.b.began, now)], ["Agent", textSpan(c.a.name || c.a.promptName), textSpan(c.b.name || c.b.promptName)], ["Model", textSpan(c.a.model ?? "–"), textSpan(c.b.model ?? "–")], ["Duration", c.a.durationMs === undefined ? "–" : clock(c.a.durationMs), c.b.durationMs === undefined ? "–" : clock(c.b.durationMs)], ["Cost", money(c.a.costUsd), money(c.b.costUsd)], ["Tokens", tokens(c.a), tokens(c.b)], ["Turns", String(c.a.turns ?? "–"), String(c.b.turns ?? "–")], ["Denied", String(c.a.denied ?? 0), String(c.b.denied ?? 0)]];
    const part = (title, ...content) => h("section", { class: "card part" }, h("h2", null, title), ...content);
    const call = (run, x) => h("dd", null, x ? [h("a", { href: `/r/${encodeURIComponent(run.id)}#e=${x.position}`, class: "mono" }, textSpan(x.tool), " ", lineSpan(askedFor(x))), x.status && [", ", textSpan(x.status)], x.denied && [": ", textSpan(x.denied)]] : "no further call");
    const calls = c.callA || c.callB ? [h("p", null, c.same ? `The first ${plural(c.same, "call")} are the same. Then:` : "They part at the first call:"), h("dl", { class: "pairs" }, h("dt", null, "A"), call(c.a, c.callA), h("dt", null, "B"), call(c.b, c.callB))] : [h("p", null, c.same ? `All ${plural(c.same, "call")} are the same.` : "Neither has made a call.")];
    const tools = (title, list) => (list?.length ? h("p", null, `${title}: `, list.map((t, i) => [i ? ", " : "", textSpan(t, "mono")])) : null);
    const diff = (title, text) => {
      if (!text) return part(title, h("p", { class: "dim" }, "The same."));
      const files = parseDiff(text);
      return part(title, files.length ? files.map((f) => diffTable({ ...f, path: f.path || plain(title) }, { head: files.length > 1 })) : h("pre", { class: "block" }, textSpan(text)));
    };
    fill(this.body, h("h1", null, "Compare two runs"), h("section", { class: "card part" }, h("table", { class: "figures two" }, h("thead", null, h("tr", null, h("th", null, h("span", { class: "unseen" }, "Figure")), h("th", { scope: "col" }, "A"), h("th", { scope: "col" }, "B"))), h("tbody", null, rows.map(([name, x, y]) => h("tr", null, h("th", { scope: "row" }, name), h("td", null, x), h("td", null, y)))))), part("Where they part", ...calls, tools("Tools only in A", c.onlyA), tools("Tools only in B", c.onlyB)), diff("Prompt", c.prompt), diff("Settings", c.settings), diff("Answer", c.answer), diff("Changes", c.changes));
  }

  close() {}
}
