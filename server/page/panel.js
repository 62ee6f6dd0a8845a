// SPDX-License-Identifier: Apache-2.0

// The panel beside the timeline: the selected row, the prompt, the session, files, the gateway, all events.

import { h, fill, icon, button, setText } from "./dom.js";
import { api } from "./api.js";
import { clock, count, duration, money, plural, size } from "./format.js";
import { plain } from "./plain.js";
import { appendText, block, diffTable, exact, inputBlocks, json, lineSpan, outputBlocks, parseDiff, textSpan } from "./text.js";
import { endWord, shapeOf } from "./timeline.js";
import { endOf, endOfPath, isEdit, labelOf, pathOf, shortPath, summaryOf, targetOf, tookOf, turnOf } from "./model.js";

export const tabNames = ["Event", "Prompt", "Session", "Files", "Gateway", "Events"];

const policyWords = {
  limits: "deadline, tokens, cost, number of calls", "allow-list": "the tools that the run may use", "deny-list": "tools that are taken away", "ask-list": "tools that a person is asked about",
  rules: "rules for paths and commands", capabilities: "writing files, running commands, network", blocked: "tools that are blocked during the run", risk: "what the tool may break",
  approver: "the person who was asked", otherwise: "the rule if no policy has an opinion", gate: "the gate itself", engine: "the gate itself",
};

export class Panel {
  /**
   * @param {import("./model.js").RunModel} model
   * @param {object} on
   * @param {string} on.id of the run @param {() => any} on.run @param {() => number} on.now @param {() => boolean} on.live
   * @param {(position: number) => void} on.select @param {() => void} on.back Esc: to the timeline
   * @param {(tab: string) => void} on.tab
   */
  constructor(model, on) {
    this.model = model;
    this.on = on;
    this.tab = "Event";
    this.node = null;
    this.position = 0;
    this.signs = {};
    this.filter = null;
    this.sessionAt = 0;
    this.drawn = 0;
    this.tabs = new Map();
    this.pages = new Map();
    this.list = h("div", { class: "tabs", role: "tablist", "aria-label": "Details", onkeydown: (e) => this.#tabKey(e) });
    this.el = h("section", { class: "panel", "aria-label": "Details", onkeydown: (e) => this.#key(e) }, this.list);
    for (const name of ["Timeline", ...tabNames]) {
      const tab = h("button", { type: "button", role: "tab", id: "tab-" + name, "aria-controls": "page-" + name, class: name === "Timeline" ? "only-narrow" : "", onclick: () => this.show(name) }, h("span", null, name), h("span", { class: "count" }));
      this.tabs.set(name, tab);
      this.list.append(tab);
      if (name === "Timeline") continue;
      const page = h("div", { role: "tabpanel", id: "page-" + name, "aria-labelledby": "tab-" + name, tabIndex: 0, class: `page page-${name.toLowerCase()}`, hidden: true });
      this.pages.set(name, page);
      this.el.append(page);
    }
    this.narrow = matchMedia("(max-width: 760px)");
    this.narrow.addEventListener("change", () => this.show(this.narrow.matches ? "Timeline" : this.tab === "Timeline" ? "Event" : this.tab));
    this.show(this.narrow.matches ? "Timeline" : "Event");
  }

  show(name) {
    this.tab = name;
    for (const [n, tab] of this.tabs) {
      tab.setAttribute("aria-selected", String(n === name));
      tab.tabIndex = n === name ? 0 : -1;
    }
    for (const [n, page] of this.pages) page.hidden = n !== name;
    this.on.tab?.(name);
    this.render(true);
  }

  focus() {
    if (this.narrow.matches && this.tab === "Timeline") this.show("Event");
    this.pages.get(this.tab)?.focus();
  }

  /** Shows a row, or an event that has none. */
  select(node, position) {
    this.node = node;
    this.position = position;
    this.signs.Event = "";
    const page = this.pages.get("Event");
    page.scrollTop = 0;
    this.sessionAt = position || node?.entries.at(-1) || 0;
    if (!this.narrow.matches && this.tab !== "Session" && this.tab !== "Events") this.show("Event");
    else this.render(true);
  }

  setFilter(filter) {
    this.filter = filter;
    this.listed = null;
    this.signs.Events = "";
    this.render();
  }

  #tabKey(e) {
    const names = [...this.tabs.keys()].filter((n) => n !== "Timeline" || this.narrow.matches);
    const step = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
    const to = step ? names[(names.indexOf(this.tab) + step + names.length) % names.length] : { Home: names[0], End: names.at(-1) }[e.key];
    if (!to) return;
    e.preventDefault();
    this.show(to);
    this.tabs.get(to).focus();
  }

  #key(e) {
    if (e.key !== "Escape" || e.defaultPrevented) return;
    e.preventDefault();
    this.on.back();
  }

  /** Paints the tab that is shown, if what it shows has changed. */
  render(force = false) {
    const m = this.model;
    setText(this.tabs.get("Files").lastChild, m.files.size ? String(m.files.size) : "");
    setText(this.tabs.get("Gateway").lastChild, m.modelCalls.length ? String(m.modelCalls.length) : "");
    setText(this.tabs.get("Events").lastChild, m.position ? String(m.position) : "");
    const page = this.pages.get(this.tab);
    if (!page) return;
    const sign = {
      Event: () => `${this.node?.id ?? ""} ${this.node?.version ?? ""} ${this.position} ${this.node ? "" : m.position}`,
      Prompt: () => String(m.prompts.length),
      Session: () => `${this.sessionAt} ${this.sessionAt ? "" : m.position}`,
      Files: () => `${m.files.size} ${m.ended}`,
      Gateway: () => `${m.modelCalls.length} ${m.connections.length} ${m.gatewayNotes.length}`,
      Events: () => String(m.position),
    }[this.tab]();
    if (!force && this.signs[this.tab] === sign) return;
    const pause = this.drawn + (this.tab === "Events" ? 0 : this.tab === "Event" && this.node ? 250 : 1000) - performance.now();
    if (!force && pause > 0) { // what sums up the run, or a turn, changes with each event
      this.later ||= setTimeout(() => {
        this.later = 0;
        this.render();
      }, pause);
      return;
    }
    this.drawn = performance.now();
    if (this.signs[this.tab] === sign && this.tab !== "Events") return;
    this.signs[this.tab] = sign;
    const top = page.scrollTop;
    ({ Event: () => this.#event(page), Prompt: () => this.#prompt(page), Session: () => this.#session(page), Files: () => this.#files(page), Gateway: () => this.#gateway(page), Events: () => this.#events(page) })[this.tab]();
    page.scrollTop = top;
  }

  #event(page) {
    const { node, model: m } = this;
    const open = new Set([...page.querySelectorAll("details.entry[open]")].map((d) => d.dataset.position));
    if (!node) {
      const e = m.entries[this.position - 1];
      if (e) fill(page, heading(icon("note"), e.type, []), this.#facts([["At", "+" + clock(Math.max(0, e.timestamp - m.began))], ["Event", String(this.position)]]), e.type === "isolation:walls" ? this.#isolation(e.payload) : null, this.#entries([this.position], new Set([String(this.position)])));
      else fill(page, this.#overview());
      return;
    }
    if (this.position) open.add(String(this.position));
    const parts = { turn: () => this.#turn(node), call: () => this.#call(node), note: () => this.#note(node) }[node.kind]();
    fill(page, parts, this.#entries(node.entries, open));
  }

  /** Nothing is selected: the run in a few words. */
  #overview() {
    const run = this.on.run();
    const m = this.model;
    if (!m.position) return [h("p", { class: "dim" }, "Select a turn or a call to see what it did.")];
    const end = run?.end;
    const parts = [heading(icon(run?.state === "ended" ? (run.status === "success" ? "ok" : "failed") : run?.state === "lost" ? "lost" : "running"), run?.state === "ended" ? endWord(run.status, run.kind) : run?.state === "lost" ? "Lost" : "Under way", [])];
    if (run?.damage?.length) parts.push(h("div", { class: "verdict failed" }, run.damage.map((d) => h("p", null, textSpan(d)))));
    if (end?.error) parts.push(h("div", { class: "verdict failed" }, h("p", null, textSpan(end.error)), end.advice && h("p", null, "Next: ", textSpan(end.advice))));
    if (end?.output !== undefined) parts.push(section("Answer", "JSON", json(end.output, "Answer")));
    else if (end?.text && run.status === "success") parts.push(section("Answer", "", block(end.text, { prose: true, name: "Answer" })));
    const t = m.totals;
    parts.push(section("What happened", "", h("dl", { class: "pairs" },
      pair("Model calls", String(t.model)), pair("Tool calls", `${t.native + t.ours}, ${t.ours} of them to tools of ours`), pair("Denied", String(t.denied)), pair("Failed", String(t.failed)), pair("Files written", String(m.files.size)), pair("Cost", money(t.usd) + (m.unpriced ? ", without models that have no price" : "")), pair("Tokens", `${count(t.input)} in, ${count(t.cacheRead)} of them from the cache, ${count(t.output)} out`))));
    if (m.isolation) parts.push(this.#isolation(m.isolation));
    parts.push(h("p", { class: "dim" }, "Select a turn or a call to see what it did."));
    return parts;
  }

  #isolation(p) {
    return section("Isolation", p.level ?? "", h("ul", { class: "plain" }, (p.enforced ?? []).map((t) => h("li", null, icon("ok"), textSpan(t))), (p.missing ?? []).map((t) => h("li", null, icon("alert", "waiting"), textSpan("not protected: " + t)))));
  }

  #facts(list) {
    return h("dl", { class: "facts" }, list.map(([name, value, mono]) => h("div", null, h("dt", null, name), h("dd", { class: mono ? "mono" : "" }, textSpan(value)))));
  }

  #turn(node) {
    const now = this.on.now();
    const m = this.model;
    const parts = [heading(icon("model"), `Turn ${node.number}`, [node.agent.id ? tag("plain", node.agent.name) : null, node.provisional ? tag("plain", "the model is at work") : null])];
    parts.push(this.#facts([["Started", "+" + clock(Math.max(0, node.start - m.began))], ["Took", duration(tookOf(node, now))], ["Calls", String(node.calls)], ["Cost", money(node.modelCalls.reduce((sum, c) => sum + (c.costUsd || 0), 0))]]));
    if (node.thinking) parts.push(section("Thinking", "", block(node.thinking, { prose: true, name: "Thinking" })));
    if (node.text) parts.push(section("Text", size(new Blob([node.text]).size), block(node.text, { prose: true, name: "Text of the turn" })));
    const calls = node.children.filter((c) => c.kind !== "turn");
    if (calls.length) parts.push(section("Calls", latest(calls, "call"), h("ul", { class: "links" }, calls.slice(-most).map((c) => h("li", null, this.#link(c))))));
    for (const c of node.modelCalls.slice(-most)) parts.push(section("Model call", c.model ?? "", modelCallFacts(c)));
    return parts;
  }

  #link(node) {
    const what = node.kind === "call" ? [icon(shapeOf(node)), lineSpan(node.label, "label short"), " ", lineSpan(endOfPath(targetOf(this.model, node)), "target")] : node.kind === "turn" ? [icon("model"), `${node.number} `, lineSpan(labelOf(this.model, node), "target prose")] : [icon(node.status === "failed" || node.status === "denied" ? node.status : "note"), h("span", { class: "label short" }, node.what), " ", lineSpan(node.label, "target prose")];
    return h("button", { type: "button", class: "link-row", onclick: () => this.on.select(node.entries[0] ?? 0, node) }, what, h("span", { class: "took" }, node.kind === "note" ? "" : node.status === "denied" ? "never ran" : duration(tookOf(node, this.on.now()))));
  }

  #note(node) {
    const m = this.model;
    const shape = node.status === "denied" || node.status === "failed" ? node.status : node.what === "end" ? "ok" : "note";
    const e = m.entries[node.entries[0] - 1];
    const p = e?.payload ?? {};
    const titles = { check: "Completion check failed", prompt: "Prompt", end: node.status === "failed" ? endWord(p.status) : "Answer", error: "Error", limit: "Limit reached", refused: "Request refused by the gateway", connection: "Connection", breach: "Limit of the cell reached", retry: "Tried again", "back-off": "Upstream is busy" };
    const parts = [heading(icon(shape), titles[node.what] ?? node.what, [])];
    if (node.ready) parts.push(h("p", { class: "dim" }, `The agent has started ${duration(node.ready - node.start)} after it.`));
    parts.push(this.#facts([["At", "+" + clock(Math.max(0, node.start - m.began))], ["Event", String(node.entries[0] ?? "")], ...(turnOf(node) ? [["Turn", turnOf(node).number]] : [])]));
    if (node.what === "prompt") parts.push(block(p.text ?? "", { prose: true, name: "Prompt" }));
    else if (node.what === "end") {
      if (p.output !== undefined) parts.push(section("Answer", "JSON", json(p.output, "Answer")));
      else if (p.result) parts.push(block(p.result, { prose: true, name: "Answer" }));
      if (p.reason) parts.push(h("div", { class: "verdict failed" }, h("p", null, textSpan(p.reason))));
    } else {
      parts.push(h("div", { class: `verdict ${node.status}` }, h("p", null, textSpan(node.label)), p.next && h("p", null, "Next: ", textSpan(p.next)), node.what === "check" && h("p", { class: "dim" }, p.sentBack ? "The agent was sent back with this text." : "No rounds are left.")));
    }
    return parts;
  }

  #call(node) {
    const now = this.on.now();
    const m = this.model;
    const used = node.entries.find((n) => m.entries[n - 1].type === "tool_use");
    const input = (used && exact(m.raw[used - 1]).payload.input) ?? node.request?.input;
    const status = node.sentBack ? tag("plain", "sent back") : { ok: tag("ok", "ok"), denied: tag("denied", "denied"), failed: tag("failed", node.restored ? "failed, rolled back" : "failed"), waiting: tag("waiting", "waits for you"), cancelled: tag("plain", "did not end"), running: tag("plain", "is running") }[node.status];
    const whose = node.ours ? "our tool" : node.name === "Agent" || node.name === "Task" ? "subagent" : "native tool";
    const parts = [heading(icon(shapeOf(node)), node.label, [status, tag("plain", whose)], node.name)];
    const target = targetOf(m, node);
    if (target) parts.push(h("p", { class: "target-line mono" }, textSpan(target.slice(0, 2000))));
    const took = node.status === "denied" ? "never ran" : duration(tookOf(node, now));
    const facts = [["Started", "+" + clock(Math.max(0, node.start - m.began))], ["Took", took], ["Turn", turnOf(node)?.number ?? "–"], ["Call id", node.callID, true]];
    if (node.asked) facts.splice(2, 0, ["Waited", duration((node.answered || endOf(node, now)) - node.asked)]);
    const output = node.result?.output;
    const last = node.decisions.at(-1);
    const gate = () => this.#gate(node);
    const inputPart = () => section("Input", "JSON", ...inputBlocks(input ?? {}));
    const outputPart = (name = "Output") => (node.result ? section(name, outputNote(output), ...outputBlocks(output)) : node.end === undefined ? section("Output", "", h("p", { class: "dim" }, node.status === "waiting" ? "The call waits for an answer." : "The call is running.")) : null);
    if (node.status === "denied" && last?.verdict === "deny") {
      parts.push(h("div", { class: "verdict denied" }, h("p", null, h("strong", { class: "tone-denied" }, "Denied"), " by ", h("strong", null, textSpan(last.policy === "approver" ? "the person who was asked" : last.policy ?? "the gate")), "."), last.reason && h("p", null, textSpan(last.reason)), h("p", { class: "dim" }, "The call never ran; nothing changed.")));
      return [...parts, this.#facts(facts), gate(), node.result ? section("Sent to the model", "", ...outputBlocks(output)) : null, inputPart()];
    }
    if (node.status === "waiting") parts.push(h("div", { class: "verdict waiting" }, h("p", null, h("strong", null, "Waits for an answer. "), textSpan(node.request?.reason ?? ""))));
    parts.push(this.#facts(facts));
    if (node.status === "failed" || (node.status === "denied" && last?.verdict !== "deny")) {
      parts.push(h("div", { class: `verdict ${node.status}` }, h("p", null, h("strong", null, node.status === "failed" ? "Failed" : "Refused"), exitOf(node) ? `, exit code ${exitOf(node)}` : "", "."), node.result?.failure?.message && h("p", null, lineSpan(node.result.failure.message.replace(/^Exit code \d+\n?/, "")))));
      if (node.restored) parts.push(this.#restored(node.restored));
      return [...parts, outputPart(), inputPart(), gate()];
    }
    if (node.sentBack) parts.push(h("div", { class: "verdict" }, h("p", null, h("strong", null, "Sent back"), " by the completion check."), h("p", null, lineSpan(node.result?.failure?.message ?? "", "", 1000))));
    const change = this.#change(node, input);
    if (change) return [...parts, change, inputPart(), gate(), outputPart()];
    const subagent = node.subagent ? section("Subagent", node.subagent.type, h("ul", { class: "links" }, node.children.slice(-most).map((c) => h("li", null, this.#link(c))))) : null;
    const logs = node.logs.length ? section("Log", "", block(node.logs.map((l) => `${l.level} ${l.message}`).join("\n"), { name: "Log" })) : null;
    return [...parts, inputPart(), subagent, outputPart(), logs, gate()];
  }

  #restored(r) {
    const list = (title, paths) => (paths?.length ? [h("p", null, title), h("ul", { class: "plain mono" }, paths.map((p) => h("li", null, textSpan(typeof p === "string" ? p : `${p.path}: ${p.reason ?? ""}`))))] : []);
    return section("Rolled back", "", ...list("Put back as they were before the call:", r.restored), ...list("Left as they are:", r.kept), ...list("Could not be put back:", r.conflicts), r.error ? h("p", { class: "tone-failed" }, textSpan(r.error)) : null);
  }

  /** The change that an edit made: from its result, or from its input. */
  #change(node, input) {
    if (!isEdit(node)) return null;
    const path = shortPath(this.model, pathOf(input));
    const patch = node.invoked?.value?.structuredPatch;
    let hunks = [];
    if (Array.isArray(patch) && patch.length) hunks = patch.map((x) => ({ head: `@@ -${x.oldStart},${x.oldLines} +${x.newStart},${x.newLines} @@`, oldStart: x.oldStart, newStart: x.newStart, lines: x.lines ?? [] }));
    else if (typeof input?.content === "string") hunks = [{ head: "the whole file", oldStart: 0, newStart: 1, lines: input.content.replace(/\n$/, "").split("\n").map((l) => "+" + l) }];
    else if (typeof input?.old_string === "string") hunks = [{ head: "where the old text is", oldStart: 1, newStart: 1, lines: [...input.old_string.split("\n").map((l) => "-" + l), ...String(input.new_string ?? "").split("\n").map((l) => "+" + l)] }];
    if (!hunks.length) return null;
    const lines = hunks.flatMap((x) => x.lines);
    return section("Change", node.status === "ok" ? "made by the call" : "asked for by the call", diffTable({ path, added: lines.filter((l) => l[0] === "+").length, removed: lines.filter((l) => l[0] === "-").length, hunks, notes: [] }));
  }

  /** Every policy in order, the one that decided marked. */
  #gate(node) {
    if (node.decisions.length === 0) return node.kind === "call" && node.result ? section("Gate", "", h("p", { class: "dim" }, "The log has no decision about this call: the agent refused it before, or the gate was not asked.")) : null;
    return node.decisions.map((d, i) => {
      const chain = d.chain ?? [{ policy: d.policy ?? "gate", verdict: d.verdict, reason: d.reason }];
      const decided = decidedBy(d, chain);
      const denied = d.verdict === "deny";
      const rest = denied ? this.model.policies.filter((p) => !chain.some((c) => c.policy === p)) : [];
      const rows = [...chain.map((c, k) => this.#gateRow(k + 1, c, k === decided, d.verdict)), ...rest.map((p, k) => this.#gateRow(chain.length + k + 1, { policy: p, reason: "not asked: denied above", skipped: true }, false, ""))];
      const note = denied && d.policy !== "approver" ? "first denial wins" : d.asked ? (d.remembered ? "an earlier answer was used" : "a person was asked") : d.input ? "the input was replaced" : "";
      return section(node.decisions.length > 1 ? `Gate, decision ${i + 1}` : "Gate", note, h("table", { class: "gate", "aria-label": "Policies in order, their verdicts and reasons" }, h("colgroup", null, h("col", { class: "order-column" }), h("col", { class: "policy-column" }), h("col", { class: "verdict-column" }), h("col")), h("tbody", null, rows)), d.input && [h("h4", null, "Input that replaced it"), json(d.input, "Replaced input")]);
    });
  }

  #gateRow(n, c, decided, verdict) {
    const tone = c.verdict === "deny" ? "denied" : c.verdict === "ask" ? "waiting" : c.verdict === "allow" ? "ok" : "dim";
    return h("tr", { class: `${decided ? `decided ${verdict}` : ""}${c.skipped ? " skipped" : ""}` }, h("td", { class: "order" }, String(n)), h("td", null, textSpan(c.policy), c.toolName && h("span", { class: "dim" }, " for ", textSpan(c.toolName)), decided && h("span", { class: "unseen" }, " (decided)")), h("td", { class: `tone-${tone}` }, c.skipped ? "–" : c.verdict ?? "no opinion"), h("td", null, c.reason ? textSpan(c.reason) : h("span", { class: "dim" }, policyWords[c.policy] ?? ""), c.again && h("span", { class: "dim" }, " (asked again about the new input)")));
  }

  #entries(positions, open) {
    const shown = positions.slice(0, most);
    return section("Events", plural(positions.length, "event"), shown.map((n) => {
      const e = this.model.entries[n - 1];
      const d = h("details", { class: "entry", "data-position": n, open: open.has(String(n)), ontoggle: () => d.open && d.children.length === 1 && d.append(this.#raw(n)) }, h("summary", null, h("span", { class: "mono dim" }, String(n)), " ", textSpan(e.type, "mono"), " ", h("span", { class: "dim" }, "+" + clock(Math.max(0, e.timestamp - this.model.began)))));
      if (d.open) d.append(this.#raw(n));
      return d;
    }), positions.length > shown.length && h("p", { class: "dim" }, `${positions.length - shown.length} more are in the tab Events.`));
  }

  #raw(n) {
    return json(exact(this.model.raw[n - 1]), `Event ${n}`);
  }

  #prompt(page) {
    const m = this.model;
    if (!m.prompts.length) return fill(page, h("p", { class: "dim" }, "The prompt appears here when it is sent."));
    return fill(page, m.prompts.flatMap((p, i) => {
      const sections = splitPrompt(p);
      return [h("div", { class: "head-line" }, h("h2", null, m.prompts.length > 1 ? `Prompt ${i + 1}: ` : "", textSpan(p.name ?? "")), h("span", { class: "dim" }, `${plural(sections.length, "section")}, ${size(new Blob([p.text ?? ""]).size)}`)),
        sections.map((s) => h("details", { class: "prompt-section", open: true }, h("summary", null, h("strong", null, textSpan(s.title)), " ", textSpan(s.path, "mono dim"), " ", s.summary && tag("plain", "shown as a summary"), h("span", { class: "right dim" }, size(new Blob([s.text]).size))), block(s.text, { prose: true, name: s.title }), s.hash && h("p", { class: "dim hash", title: s.hash }, `hash ${s.hash.slice(0, 12)}`))),
        p.params && section("Arguments", "", json(p.params, "Arguments")),
        p.toolSchemas.length > 0 && section("Tools of the prompt", String(p.toolSchemas.length), p.toolSchemas.map((t) => h("details", { class: "entry" }, h("summary", null, icon("ours"), textSpan(t.name, "mono"), " ", lineSpan(t.description, "dim")), json(t.parameters, t.name))))];
    }), m.init?.tools?.length ? section("Tools of the agent", String(m.init.tools.length), h("p", { class: "words mono" }, m.init.tools.map((t) => [textSpan(t), " "]))) : null);
  }

  #session(page) {
    const last = this.model.position;
    const at = Math.min(this.sessionAt || last, last);
    if (!page.querySelector("input")) {
      const range = h("input", { type: "range", min: 1, max: Math.max(1, last), value: String(at), "aria-label": "State after event", oninput: () => { this.sessionAt = Number(range.value); this.#loadSession(page); } });
      const step = (by) => () => { this.sessionAt = Math.min(this.model.position, Math.max(1, (this.sessionAt || this.model.position) + by)); this.#loadSession(page); };
      fill(page, h("div", { class: "head-line" }, h("h2", null, "State of the session"), h("span", { class: "dim session-at" })), h("div", { class: "session-range" }, button("‹", { "aria-label": "One event back", onclick: step(-1) }), range, button("›", { "aria-label": "One event on", onclick: step(1) }), button("Latest", { onclick: () => { this.sessionAt = 0; this.#loadSession(page); } })), h("div", { class: "slices" }));
    }
    this.#loadSession(page);
  }

  #loadSession(page) {
    clearTimeout(this.sessionTimer);
    const last = this.model.position;
    const at = Math.min(this.sessionAt || last, last);
    const range = page.querySelector("input");
    range.max = String(Math.max(1, last));
    range.value = String(at);
    const e = this.model.entries[at - 1];
    fill(page.querySelector(".session-at"), `after event ${at} of ${last}`, e && [", ", textSpan(e.type, "mono")]);
    this.signs.Session = `${this.sessionAt} ${this.sessionAt ? "" : last}`;
    if (!at) return;
    this.sessionTimer = setTimeout(async () => {
      const slices = page.querySelector(".slices");
      try {
        const [now, before] = await Promise.all([api.session(this.on.id, at), at > 1 ? api.session(this.on.id, at - 1) : null]);
        if (Number(range.value) !== at) return;
        const was = new Map((before?.slices ?? []).map((s) => [s.name, JSON.stringify(s.value)]));
        const closed = new Set([...slices.querySelectorAll("details:not([open])")].map((d) => d.dataset.name));
        fill(slices, now.slices.length ? now.slices.map((s) => h("details", { class: "slice", "data-name": s.name, open: !closed.has(s.name) }, h("summary", null, textSpan(s.name, "mono"), " ", before && was.get(s.name) !== JSON.stringify(s.value) && tag("ours", "changed by this event")), isEmpty(s.value) ? h("p", { class: "dim" }, "empty") : json(s.value, s.name))) : h("p", { class: "dim" }, "The session has no slices."));
      } catch (err) {
        fill(slices, h("p", { class: "tone-failed" }, `The state cannot be read: ${plain(err.message)}`));
      }
    }, 120);
  }

  #files(page) {
    const m = this.model;
    const written = [...m.files.values()];
    const list = h("ul", { class: "links" }, written.slice(-most).map((f) => h("li", null, h("p", { class: "mono" }, textSpan(shortPath(m, f.path))), f.nodes.slice(-most / 10).map((n) => this.#link(n)))));
    const changes = h("div");
    fill(page, h("div", { class: "head-line" }, h("h2", null, "Changes in the workspace"), h("span", { class: "dim files-note" })), changes, written.length ? section("Written by calls", latest(written, "file"), list) : null);
    fill(changes, h("p", { class: "dim" }, m.ended ? "Reading the changes." : "The changes of the workspace are listed when the run has ended. Until then, each edit is below."));
    api.diff(this.on.id).then((text) => {
      const files = parseDiff(text);
      setText(page.querySelector(".files-note"), files.length ? plural(files.length, "file") : "");
      if (files.length) fill(changes, files.map((f) => diffTable(f)));
      else if (m.ended) fill(changes, h("p", { class: "dim" }, written.length ? "The run had no workspace of its own; its edits are below." : "The run changed no file."));
    }).catch((err) => {
      if (m.ended) fill(changes, h("p", { class: "dim" }, `There is no list of changes: ${plain(err.message)}`));
    });
  }

  #gateway(page) {
    const m = this.model;
    const byModel = new Map();
    for (const c of m.modelCalls) {
      const u = byModel.get(c.model ?? "") ?? { calls: 0, input: 0, cached: 0, output: 0, usd: 0 };
      byModel.set(c.model ?? "", u);
      const t = c.tokens ?? {};
      u.calls++;
      u.input += (t.input || 0) + (t.cacheWrite5m || 0) + (t.cacheWrite1h || 0);
      u.cached += t.cacheRead || 0;
      u.output += t.output || 0;
      u.usd += c.costUsd || 0;
    }
    if (!m.modelCalls.length && !m.connections.length && !m.gatewayNotes.length) return fill(page, h("p", { class: "dim" }, "Model calls and connections appear here when they have ended."));
    const [calls, connections, notes] = [m.modelCalls.slice(-most), m.connections.slice(-most), m.gatewayNotes.slice(-most)];
    return fill(page,
      section("By model", "", table(["Model", "Calls", "In", "Cached", "Out", "Cost"], [...byModel].map(([name, u]) => [textSpan(name), u.calls, count(u.input), count(u.cached), count(u.output), money(u.usd)]))),
      section("Model calls", latest(m.modelCalls, "call"), table(["At", "Agent", "In", "Out", "First byte", "Took", "Cost", "Status"], calls.map((c) => [clock(Math.max(0, c.start - m.began)), textSpan(agentName(m, c.agent)), count((c.tokens?.input || 0) + (c.tokens?.cacheRead || 0) + (c.tokens?.cacheWrite5m || 0) + (c.tokens?.cacheWrite1h || 0)), count(c.tokens?.output || 0), duration(c.firstByteMs), duration(c.durationMs), c.unpriced ? "no price" : money(c.costUsd), statusOf(c)]), (i) => this.on.select(calls[i].position))),
      section("Network", latest(m.connections, "connection"), connections.length ? table(["At", "Host", "Verdict", "Up", "Down", "Reason"], connections.map((c) => [clock(Math.max(0, c.at - m.began)), textSpan(`${c.host ?? ""}${c.port ? ":" + c.port : ""}`), h("span", { class: c.verdict === "allowed" ? "tone-ok" : c.verdict === "denied" ? "tone-denied" : "tone-failed" }, c.verdict), size(c.bytesUp || 0), size(c.bytesDown || 0), textSpan(c.reason ?? "")]), (i) => this.on.select(connections[i].position)) : h("p", { class: "dim" }, "No tool tried to reach the network.")),
      notes.length ? section("Refused, limits, waits", latest(m.gatewayNotes, "event"), table(["At", "What", "Detail"], notes.map((c) => [clock(Math.max(0, c.at - m.began)), c.kind.replace("_", "-"), textSpan(c.reason ?? `${c.upstream ?? ""} ${c.status ?? ""}`)]), (i) => this.on.select(notes[i].position))) : null);
  }

  /** All events, as rows of one height: only those in view are elements. */
  #events(page) {
    const m = this.model;
    if (!page.list) {
      page.list = h("div", { class: "event-rows", role: "list" });
      page.rows = new Map();
      page.note = h("p", { class: "dim event-note" });
      fill(page, page.note, page.list);
      page.addEventListener("scroll", () => this.tab === "Events" && this.#paintEvents(page));
      page.list.addEventListener("click", (e) => {
        const row = e.target.closest(".event-row");
        if (row) this.on.select(Number(row.dataset.position));
      });
    }
    if (this.listed?.filter !== this.filter) {
      this.listed = { filter: this.filter, positions: [], until: 0, at: performance.now() };
      this.#clearEvents(page);
    } else if (this.filter && this.listed.until < m.position) { // what an earlier event is about may match by now, or no longer
      if (performance.now() - this.listed.at > 1000) {
        this.listed = null;
        this.#events(page);
        return;
      }
      this.later ||= setTimeout(() => {
        this.later = 0;
        this.listed = null;
        this.signs.Events = "";
        this.render();
      }, 1000);
    }
    const { listed } = this;
    for (; listed.until < m.position; listed.until++) {
      const node = this.filter ? m.nodeOf(listed.until + 1) : null;
      if (!this.filter || (node && this.filter(node))) listed.positions.push(listed.until + 1);
    }
    setText(page.note, this.filter ? `${listed.positions.length} of ${plural(m.position, "event")} match the filter.` : `${plural(m.position, "event")}, by position in the log.`);
    page.list.style.height = `${listed.positions.length * 22}px`;
    this.#paintEvents(page);
  }

  #clearEvents(page) {
    for (const el of page.rows.values()) el.remove();
    page.rows.clear();
  }

  #paintEvents(page) {
    const m = this.model;
    const { positions } = this.listed;
    const from = Math.max(0, Math.floor((page.scrollTop - 40) / 22) - 10);
    const to = Math.min(positions.length, from + Math.ceil((page.clientHeight || 600) / 22) + 24);
    for (const [i, el] of page.rows) {
      if (i >= from && i < to) continue;
      el.remove();
      page.rows.delete(i);
    }
    for (let i = from; i < to; i++) {
      const n = positions[i];
      if (page.rows.has(i)) {
        page.rows.get(i).firstChild.classList.toggle("selected", n === this.position);
        continue;
      }
      const e = m.entries[n - 1];
      const el = h("div", { role: "listitem", class: "event-item" }, h("button", { type: "button", class: `event-row${n === this.position ? " selected" : ""}${isProblem(e) ? " problem" : ""}`, "data-position": n }, h("span", { class: "mono dim position" }, String(n)), h("span", { class: "mono dim at" }, clock(Math.max(0, e.timestamp - m.began))), lineSpan(e.type, "mono type"), lineSpan(summaryOf(e), "says", 160)));
      el.style.top = `${i * 22}px`;
      page.list.append(el);
      page.rows.set(i, el);
    }
  }
}

/** Lists show so many of the latest. */
const most = 200;

function latest(list, one) {
  return list.length > most ? `the latest ${most} of ${plural(list.length, one)}` : plural(list.length, one);
}

function heading(shape, title, tags, name = "") {
  return h("div", { class: "panel-title" }, shape, h("h2", { title: name || undefined }, textSpan(title)), tags);
}

function section(title, note, ...content) {
  return h("section", { class: "part" }, h("div", { class: "part-head" }, h("h3", null, title), note && textSpan(note, "dim")), ...content);
}

function pair(name, value) {
  return [h("dt", null, name), h("dd", null, value)];
}

export function tag(tone, text) {
  return appendText(h("span", { class: `tag tone-${tone}` }), text);
}

function table(heads, rows, choose) {
  return h("div", { class: "table-box", tabIndex: 0, role: "group", "aria-label": heads.join(", ") }, h("table", { class: "figures" }, h("thead", null, h("tr", null, heads.map((t) => h("th", { scope: "col" }, t)))), h("tbody", null, rows.map((cells, i) => h("tr", choose ? { class: "choose", onclick: () => choose(i) } : null, cells.map((c, k) => h("td", null, choose && k === 0 ? h("button", { type: "button", class: "in-table" }, c) : typeof c === "number" ? String(c) : c)))))));
}

function modelCallFacts(c) {
  const t = c.tokens ?? {};
  const rows = [["Tokens in", `${count((t.input || 0) + (t.cacheRead || 0) + (t.cacheWrite5m || 0) + (t.cacheWrite1h || 0))}, ${count(t.cacheRead || 0)} from the cache`], ["Tokens out", `${count(t.output || 0)}${t.thinking ? `, ${count(t.thinking)} of them thinking` : ""}`], ["Cost", c.unpriced ? "no price is known" : money(c.costUsd)], ["First byte", duration(c.firstByteMs)], ["Took", duration(c.durationMs)], ["Status", `${c.status}${c.attempts > 1 ? `, after ${c.attempts} attempts` : ""}${c.aborted ? ", aborted" : ""}`]];
  if (c.stopReason) rows.push(["Stopped", c.stopReason]);
  if (c.error) rows.push(["Error", c.error]);
  return h("dl", { class: "pairs" }, rows.map(([n, v]) => [h("dt", null, n), h("dd", null, textSpan(v))]));
}

function statusOf(c) {
  return c.status === 200 && !c.error ? "200" : h("span", { class: "tone-failed" }, `${c.status}${c.error ? " " : ""}`, c.error ? textSpan(c.error) : "");
}

function agentName(model, id) {
  return !id || id === "main" ? "main" : model.agents.get(id)?.name || id;
}

function exitOf(node) {
  return String(node.result?.failure?.message ?? node.result?.output ?? "").match(/^Exit code (\d+)/)?.[1] ?? "";
}

function outputNote(output) {
  if (typeof output === "string") return `${size(new Blob([output]).size)}, shown as text`;
  if (Array.isArray(output)) return plural(output.length, "block");
  return output === undefined ? "" : "JSON";
}

/** Which entry of a chain decided: the last one with the verdict and the policy of the decision. */
function decidedBy(d, chain) {
  const exactly = chain.findLastIndex((c) => c.policy === d.policy && c.verdict === d.verdict);
  return exactly >= 0 ? exactly : chain.findLastIndex((c) => c.verdict === d.verdict);
}

function isProblem(e) {
  const p = e.payload ?? {};
  return p.verdict === "deny" || p.status === "denied" || p.status === "error" || (e.type === "error" && !p.recoverable);
}

function isEmpty(value) {
  return value === null || value === undefined || (typeof value === "object" && Object.keys(value).length === 0);
}

/** Splits a rendered prompt at the headings of its sections: "## 1. Title (path)". */
export function splitPrompt(p) {
  const hashes = new Map((p.descriptor?.sections ?? []).map((s) => [s.path, s]));
  const sections = [];
  let current = { title: "Text", path: "", lines: [] };
  for (const line of (p.text ?? "").split("\n")) {
    const head = line.match(/^#{2,6} (\d+(?:\.\d+)*\.? .*?)(?: \(([\w.-]+)\))?$/);
    const path = head?.[2] ?? "";
    if (head && (hashes.size === 0 || hashes.has(path))) {
      if (current.lines.some((l) => l.trim())) sections.push(current);
      current = { title: head[1], path, lines: [] };
    } else {
      current.lines.push(line);
    }
  }
  if (current.lines.some((l) => l.trim()) || current.path) sections.push(current);
  return sections.map((s) => ({ title: s.title, path: s.path, text: s.lines.join("\n").trim(), hash: hashes.get(s.path)?.hash ?? "", summary: s.lines.some((l) => l.startsWith("This is a summary.")) }));
}
