// SPDX-License-Identifier: Apache-2.0

// The page of one run: what waits, what it is doing, what it did, why calls were refused, what it cost.

import { h, fill, icon, button, key, setText, announce, openDialog, meter, inField, keysHint, save } from "./dom.js";
import { api, follow } from "./api.js";
import { clock, count, money, duration, titleOf } from "./format.js";
import { RunModel, parseFilter, targetOf } from "./model.js";
import { endWord, Timeline } from "./timeline.js";
import { Panel, tabNames } from "./panel.js";
import { QuestionStrip, askedFor } from "./questions.js";
import { plain } from "./plain.js";
import { appendText, textSpan } from "./text.js";
import { chooseRun, failed, sendMessage, startRun } from "./dialogs.js";

const kinds = [["model", "Model", "model"], ["native", "Native", "native"], ["ours", "Ours", "ours"], ["denied", "Denied", "denied"], ["failed", "Failed", "failed"], ["waiting", "Waiting", "waiting"]];

export class RunPage {
  /** @param {string} id @param {import("./app.js").App} app */
  constructor(id, app) {
    this.id = id;
    this.app = app;
    this.model = new RunModel();
    this.run = null;
    this.state = { state: "running", controllable: false, questions: [] };
    this.connection = "connecting";
    this.selected = null;
    this.wanted = Number(new URLSearchParams(location.hash.slice(1)).get("e")) || 0;
    this.strips = new Map();
    this.stops = [];
    this.#build();
    this.#start();
  }

  now() {
    return this.live() ? this.app.now() : this.model.last;
  }

  live() {
    return this.state.state === "running" && !this.model.ended;
  }

  #build() {
    this.dot = h("span", { class: "dot" });
    this.connectionText = h("span");
    this.connectionMore = h("span", { class: "wide" }); // what a narrow page leaves out
    this.top = h("header", { class: "top" }, h("a", { href: "/", class: "brand" }, icon("logo", "ink"), "Drover"), h("nav", { "aria-label": "Path", class: "path" }, h("span", { class: "slash" }, "/"), h("a", { href: "/" }, "Runs"), h("span", { class: "slash" }, "/"), h("span", { class: "here" }, plain(this.id.slice(0, this.id.startsWith("bundle-") ? 20 : 8)))), h("span", { class: "space" }), h("span", { class: "connection" }, this.dot, h("span", null, this.connectionText, this.connectionMore)), button("Copy link", { class: "quiet wide", onclick: () => this.copyLink() }, key(".")), button(key("?"), { class: "quiet", "aria-label": "Help: keys", onclick: () => this.help() }));
    this.title = h("h1", null, "…");
    this.pill = h("span", { class: "pill" });
    this.meta = h("p", { class: "meta" });
    this.reason = h("p", { class: "reason", hidden: true });
    this.gauges = h("div", { class: "gauges" });
    this.actions = h("div", { class: "actions" });
    this.header = h("header", { class: "run-head" }, h("div", { class: "what" }, h("div", { class: "title-line" }, this.title, this.pill), this.meta, this.reason), this.gauges, this.actions);
    this.questions = h("div", { class: "questions" });
    this.gone = h("p", { class: "gone", role: "status", hidden: true });

    this.timeline = new Timeline(this.model, { now: () => this.now(), live: () => this.live(), select: (node) => this.choose(node.entries[0] ?? 0, node, false), open: () => this.panel.focus(), follow: (on) => this.followButton.setAttribute("aria-pressed", String(on)), filter: () => {} });
    this.panel = new Panel(this.model, { id: this.id, run: () => this.run, now: () => this.now(), live: () => this.live(), select: (position, node) => this.choose(position, node ?? this.model.nodeOf(position), !node, true), back: () => this.backToTimeline(), tab: (name) => this.work?.setAttribute("data-tab", name) });

    this.filter = h("input", { type: "search", placeholder: "Filter, or is:denied", "aria-label": "Filter: words, tool:, is:, agent:, turn:", spellcheck: "false", autocomplete: "off", oninput: () => this.applyFilter(), onkeydown: (e) => {
      if (e.key !== "Escape" && e.key !== "Enter") return;
      e.preventDefault();
      if (e.key === "Escape") {
        this.filter.value = "";
        this.applyFilter();
      }
      this.timeline.grid.focus();
    } });
    this.kindButtons = kinds.map(([name, word, shape]) => {
      const n = h("span", { class: "count" });
      const el = h("button", { type: "button", class: `kind${["denied", "failed", "waiting"].includes(name) ? " problem" : ""}`, "aria-pressed": "false", onclick: () => this.toggleKind(name) }, icon(shape), word, n);
      return { name, el, n };
    });
    this.fitButton = button("Fit", { class: "quiet", title: "Show the whole run (0)", onclick: () => this.timeline.fit() });
    this.followButton = button("Follow", { class: "toggle", "aria-pressed": "true", title: "Keep the newest row in view (f)", onclick: () => this.timeline.setFollow(!this.timeline.following) });
    this.tools = h("div", { class: "tools", role: "toolbar", "aria-label": "Timeline" }, h("span", { class: "search" }, this.filter, key("/")), h("span", { class: "kinds" }, this.kindButtons.map((k) => k.el)), h("span", { class: "space" }), this.fitButton, this.followButton);
    this.dock = h("section", { class: "dock", "aria-label": "Now", hidden: true });
    this.side = h("section", { class: "side", id: "page-Timeline", "aria-label": "Timeline" }, this.tools, this.timeline.el, this.dock);
    this.work = h("div", { class: "work", "data-tab": this.panel.tab }, this.side, this.panel.el);
    this.address = h("span", { class: "address mono" });
    this.footer = h("footer", { class: "foot" }, keysHint([["j", "k", "move"], ["h", "l", "fold"], ["[", "]", "problems"], ["1-6", "tabs"], ["f", "follow"], ["w", "question"]]), h("span", { class: "space" }), this.address);
    this.el = h("main", { class: "run-page" }, this.top, this.header, this.gone, this.questions, this.work, this.footer);
    this.onKey = (e) => this.#key(e);
    document.addEventListener("keydown", this.onKey);
    this.onHash = () => {
      const wanted = Number(new URLSearchParams(location.hash.slice(1)).get("e")) || 0;
      if (wanted && wanted !== this.position) this.goTo(wanted);
    };
    addEventListener("hashchange", this.onHash);
    if (this.wanted) this.timeline.setFollow(false);
    this.#connection("connecting");
  }

  async #start() {
    this.stops.push(follow(`/v1/runs/${encodeURIComponent(this.id)}/events`, {
      position: () => this.model.position,
      event: (e) => this.#event(e),
      batch: () => this.#changed(),
      state: (state, problem) => this.#connection(state, problem),
    }));
    const tick = setInterval(() => this.#tick(), 500);
    this.stops.push(() => clearInterval(tick));
    await this.#load();
  }

  async #load() {
    try {
      this.run = await api.run(this.id);
      this.#header();
      this.panel.signs.Event = "";
      this.panel.render();
    } catch (err) {
      if (err.status === 401) this.app.lock(err);
      else if (err.status === 404) this.#connection("gone", err);
    }
  }

  #event({ event, data }) {
    if (event === "entry") {
      this.model.add(JSON.parse(data), data);
      this.entered = true;
    } else if (event === "part") {
      if (this.model.addPart(JSON.parse(data))) this.entered = true;
    } else if (event === "state") {
      this.#state(JSON.parse(data));
    } else if (event === "end") {
      this.run = { ...this.run, ...JSON.parse(data) };
      this.#state({ state: this.run.state, controllable: false, questions: [] });
      this.model.finish();
      this.#changed();
      this.#connection("ended");
      announce(`The run has ended: ${endWord(this.run.status, this.run.kind)}`);
      this.#load();
      return true;
    } else if (event === "failed") {
      this.#connection("gone", JSON.parse(data));
      return true;
    }
    return false;
  }

  #state(state) {
    const before = this.state;
    this.state = state;
    if (before?.state === "queued" && state.state !== "queued") this.#load(); // it has begun
    if (state.answered) {
      const strip = this.strips.get(state.answered.question);
      if (strip && !strip.mine) {
        const word = state.answered.verdict === "allow" ? "Allowed" : "Denied";
        const by = h("p", { class: "question by" }, icon(state.answered.verdict === "allow" ? "ok" : "denied"), h("span", null, `${word} ${state.answered.by === "terminal" ? "in the terminal" : "in another page or program"}.`));
        strip.el.replaceWith(by);
        this.strips.delete(state.answered.question);
        announce(by.textContent);
        setTimeout(() => by.remove(), 6000);
      }
    }
    const open = new Set(state.questions.map((q) => q.id));
    for (const [id, strip] of this.strips) {
      if (open.has(id)) continue;
      const had = strip.el.contains(document.activeElement);
      strip.el.remove();
      this.strips.delete(id);
      if (had) this.timeline.grid.focus();
    }
    for (const q of state.questions) {
      if (this.strips.has(q.id)) continue;
      const strip = new QuestionStrip({ ...q, run: this.id }, { now: () => this.app.now(), refused: () => this.refusal(), done: (text) => {
        strip.el.remove();
        this.strips.delete(q.id);
        this.state.questions = this.state.questions.filter((x) => x.id !== q.id);
        this.#header();
        this.timeline.grid.focus();
        announce(text);
      } });
      this.strips.set(q.id, strip);
      this.questions.append(strip.el);
      announce(`Question: ${plain(q.tool)} wants to run ${plain(askedFor(q)).slice(0, 100)}`);
    }
    if (before.state !== state.state && this.run) this.run.state = state.state;
    if (state.state === "lost") this.model.finish();
    this.#header();
  }

  /** Why nothing can be sent to the run now, or an empty text. */
  refusal() {
    if (this.app.server?.readOnly) return "This access may only look.";
    if (this.connection === "reconnecting" || this.connection === "connecting") return "Not connected: an answer cannot be sent yet.";
    if (!this.state.controllable) return "This run cannot be controlled from here.";
    return "";
  }

  #connection(state, problem) {
    if (problem?.status === 401) {
      this.app.lock(problem);
      return;
    }
    const before = this.connection;
    this.connection = state;
    this.dot.className = `dot ${state}`;
    if (state === "gone") {
      this.gone.hidden = false;
      fill(this.gone, icon("failed"), " ", textSpan(problem?.message ?? problem?.detail ?? "This run is gone."), problem?.next ? [" Next: ", textSpan(problem.next)] : "");
    }
    if (before !== state && state === "reconnecting") announce("Connection lost. What is shown stays.");
    if (before === "reconnecting" && state === "live") announce("Connected again.");
    this.#connectionText();
    if (before !== state) this.#header();
  }

  #connectionText() {
    const n = this.model.position;
    const text = { connecting: "Connecting", live: this.live() ? `Live, event ${n}` : `${n} events`, reconnecting: `Reconnecting, shown up to event ${n}`, ended: `Ended, ${n} events`, gone: n ? `Cannot be read further than event ${n}` : "Not there" }[this.connection];
    const [state, ...more] = text.split(/(?=,)/);
    setText(this.connectionText, state);
    setText(this.connectionMore, more.join(""));
    this.top.classList.toggle("is-reconnecting", this.connection === "reconnecting");
  }

  /** New events have been taken. */
  #changed() {
    if (this.wanted && this.model.position >= this.wanted) {
      const wanted = this.wanted;
      this.wanted = 0;
      this.goTo(wanted);
    }
    if (!this.entered) { // only parts of texts: the dock, a few times a second
      this.streaming ||= setTimeout(() => {
        this.streaming = 0;
        this.#dock();
      }, 80);
      return;
    }
    this.entered = false;
    // A burst is painted less often the longer that takes, so that reading it comes first. What is shown is never old.
    const wait = this.painted ? this.painted.at + 2 * this.painted.took - performance.now() : 0;
    this.frame ||= wait > 4 ? setTimeout(() => this.#paint(), Math.min(wait, 80)) : requestAnimationFrame(() => this.#paint());
  }

  #paint() {
    this.frame = 0;
    const began = performance.now();
    this.timeline.render();
    const t = this.model.totals;
    for (const { name, el, n } of this.kindButtons) {
      setText(n, String(t[name]));
      el.classList.toggle("none", t[name] === 0);
    }
    this.#connectionText();
    const known = `${Boolean(this.model.init)} ${Boolean(this.model.isolation)}`;
    if (this.known !== known) { // the agent has reported its start
      this.known = known;
      this.#header();
    }
    this.followButton.hidden = !this.live();
    this.#gauges();
    this.#dock();
    this.panel.render();
    this.painted = { at: performance.now(), took: performance.now() - began };
  }

  #tick() {
    if (!this.live()) return;
    this.timeline.schedule();
    this.#gauges();
    this.#dock();
    for (const strip of this.strips.values()) strip.update();
  }

  #header() {
    const run = this.run;
    for (const strip of this.strips.values()) strip.update();
    const questions = this.state.questions.length;
    const [shape, tone, word] = this.#status(questions);
    fill(this.pill, icon(shape, tone), word);
    this.pill.className = `pill tone-${tone}`;
    document.title = `${questions ? `(${questions}) ` : ""}${plain(run ? titleOf(run) : this.id.slice(0, 8)).slice(0, 80)}: ${word}`;
    if (!run) return;
    fill(this.title, textSpan(titleOf(run)));
    this.title.title = plain(run.title ?? "");
    const m = this.model;
    const number = run.agentVersion ?? m.init?.capabilities?.claudeCodeVersion;
    const version = number ? `${run.agent} ${number}` : run.agent;
    const cell = run.isolation || m.isolation?.level;
    this.short = h("span", { class: "fact narrow" });
    fill(this.meta, fact("agent", run.name || run.promptName), fact("model", run.model ?? m.init?.model), this.short, fact("runs on", version, "wide"), fact("cell", cell === "cell" ? "own files, processes, network" : cell, "wide"), fact("folder", run.folder, "wide"), run.resumes && fact("continues", "an earlier run", "wide"));
    const failed = run.state === "lost" ? "Its program is gone without an end. What it recorded is here." : run.end?.error ?? run.error ?? "";
    this.reason.hidden = !failed && !run.problem;
    fill(this.reason, failed && [h("strong", null, word, ". "), textSpan(failed)], run.problem && [" ", textSpan(run.problem)], run.end?.advice && [h("span", { class: "dim" }, " Next: "), textSpan(run.end.advice)]);
    this.header.classList.toggle("with-reason", !this.reason.hidden);
    this.#actions();
    this.gaugeSign = "";
    this.#gauges();
  }

  #status(questions) {
    const run = this.run ?? { state: this.state.state };
    if (this.state.state === "running") return questions ? ["waiting", "waiting", `Running, ${questions === 1 ? "1 waits" : `${questions} wait`} for you`] : ["running", "ok", "Running"];
    if (this.state.state === "queued") return ["waiting", "quiet", "Queued"];
    if (this.state.state === "lost" || run.state === "lost") return ["lost", "failed", "Lost"];
    if (run.state === "unreadable") return ["alert", "denied", "Unreadable"];
    if (run.status === "success") return ["ok", "ok", "Done"];
    if (run.status === "interrupted") return ["stopped", "native", "Stopped"];
    return ["failed", "failed", run.kind === "deadline" ? "Past deadline" : endWord(run.status, run.kind)];
  }

  #actions() {
    const run = this.run;
    const readOnly = this.app.server?.readOnly;
    const off = readOnly ? "This access may only look." : this.connection === "reconnecting" ? "Not connected." : "";
    const list = [];
    const more = [];
    if (this.state.state === "running") {
      const why = off || (this.state.controllable ? "" : "This run cannot be stopped from here.");
      list.push(button("Stop run", { class: "danger-outline", disabled: why !== "", title: why || undefined, onclick: () => this.stop() }));
      more.push(["Send a message", () => sendMessage(this.app, run, "under way"), why], ["Interrupt the turn", () => this.interrupt(), why]);
    } else if (run.resumable) {
      list.push(button("Continue", { class: "primary", disabled: off !== "", title: off || undefined, onclick: () => sendMessage(this.app, run, "ended") }));
    }
    if (run.again && this.app.server?.start) more.push(["Start again with changes", () => startRun(this.app, run.again), off]);
    more.push(["Compare with another run", () => chooseRun(this.app, run), ""], ["Save as a bundle", () => this.saveFile("bundle", `drover-${run.id.slice(0, 8)}.zip`), ""], ["Save the transcript", () => this.saveFile("transcript", `drover-${run.id.slice(0, 8)}.jsonl`), ""]);
    const sign = `${this.state.state} ${this.state.controllable} ${off} ${run.resumable} ${Boolean(run.again)} ${this.app.server?.start}`;
    if (this.actionSign === sign) return;
    this.actionSign = sign;
    const shown = this.menu?.matches(":popover-open");
    const focused = shown && this.menu.contains(document.activeElement) ? document.activeElement.textContent : "";
    const menu = h("div", { class: "menu", popover: "auto", role: "group", "aria-label": "More actions" }, more.map(([word, act, why]) => button(word, { disabled: why !== "", title: why || undefined, onclick: () => { menu.hidePopover?.(); act(); } })));
    const toggle = () => {
      const box = open.getBoundingClientRect();
      menu.style.top = `${box.bottom + 4}px`;
      menu.style.right = `${Math.max(8, innerWidth - box.right)}px`;
      menu.togglePopover?.();
    };
    const open = button(icon("more", "ink"), { class: "quiet more", "aria-label": "More actions", "aria-haspopup": "true", onclick: toggle });
    fill(this.actions, list, open, menu);
    this.menu = menu;
    if (!shown) return;
    toggle(); // it was open, and stays so
    [...menu.children].find((b) => b.textContent === focused)?.focus();
  }

  #gauges() {
    const run = this.run;
    const live = this.live();
    const m = this.model;
    const began = run ? Date.parse(run.began) : m.began;
    const usd = live || run?.costUsd === undefined ? m.totals.usd : run.costUsd;
    const tokens = !live && run?.inputTokens !== undefined ? run.inputTokens + (run.outputTokens ?? 0) : m.totals.input + m.totals.output;
    const elapsed = live ? this.app.now() - (began || this.app.now()) : run?.durationMs ?? (m.last - m.began);
    const budget = run?.limits?.usd ?? run?.budgetUsd;
    const maxTokens = run?.limits?.tokens;
    const deadline = run?.deadline ? Date.parse(run.deadline) : 0;
    const sign = `${Math.floor(elapsed / 1000)} ${usd} ${tokens} ${budget} ${deadline} ${live}`;
    if (sign === this.gaugeSign) return;
    this.gaugeSign = sign;
    const cost = money(usd) + (m.unpriced ? "+" : "");
    const time = elapsed < 60_000 && !live ? duration(elapsed) : clock(elapsed);
    if (this.short) fill(this.short, h("span", { class: "dim" }, "elapsed "), time, h("span", { class: "dim" }, " tokens "), count(tokens));
    const items = [gauge("Elapsed", time), gauge("Tokens", count(tokens), maxTokens ? `of ${count(maxTokens)}` : "", maxTokens ? meter(tokens, maxTokens, "Tokens", `${count(tokens)} of ${count(maxTokens)} tokens`) : null), gauge(budget ? "Cost, of budget" : "Cost", cost, budget ? `of ${money(budget)}` : "", budget ? meter(usd, budget, "Cost, of budget", `${cost} of ${money(budget)}`) : null)];
    if (deadline && live) {
      const whole = Math.round((deadline - began) / 1000) * 1000; // a deadline is fixed a little before the run begins
      const left = Math.max(0, deadline - this.app.now());
      items.push(gauge("Deadline", clock(left), `left of ${clock(whole)}`, meter(whole - left, whole, "Time, of the deadline", `${clock(left)} left of ${clock(whole)}`)));
    }
    fill(this.gauges, items);
  }

  /** What each agent does now. */
  #dock() {
    const live = this.live();
    this.dock.hidden = !live || this.model.position === 0;
    if (this.dock.hidden) return;
    const now = this.now();
    const lines = [];
    for (const agent of this.model.agents.values()) {
      if (agent.ended && agent.id) continue;
      const turn = agent.turns.at(-1);
      const calls = turn ? openCalls(turn) : [];
      const asks = calls.find((c) => c.status === "waiting");
      let shape = "model";
      let text = "";
      let prose = false;
      if (asks) [shape, text] = ["waiting", `waits for your answer to ${asks.label}, ${clock(now - asks.asked)}`];
      else if (agent.stream) [text, prose] = [agent.stream, true];
      else if (calls.length) {
        const own = calls.find((c) => !c.subagent) ?? calls[0];
        [shape, text] = [own.ours ? "ours" : "native", own.subagent ? `waits for its subagent ${own.subagent.name}, ${clock(now - own.start)}` : `${own.label} ${targetOf(this.model, own).split("\n")[0].slice(0, 160)}, ${duration(now - own.start)}`];
      } else if (turn?.provisional) text = `the model is at work, ${clock(now - turn.start)}`;
      else if (!turn) text = this.model.init ? "the model is at work" : "starts";
      else text = agent.id ? "" : "ends its turn";
      if (text) lines.push({ agent, shape, text, prose });
    }
    const sign = lines.map((l) => l.agent.id + l.shape + l.text).join("\n");
    if (sign === this.dockSign) return;
    this.dockSign = sign;
    fill(this.dock, h("h2", null, "Now"), h("ul", null, lines.slice(0, 5).map((l) => h("li", null, icon(l.shape), h("span", { class: "who" }, textSpan(l.agent.name || l.agent.type || l.agent.id)), l.prose ? appendText(h("div", { class: "stream", dir: "auto", "aria-hidden": "true" }), l.text.slice(-600)) : h("span", { class: "doing" }, textSpan(l.text)))), lines.length > 5 && h("li", { class: "dim" }, `and ${lines.length - 5} more`)));
    for (const s of this.dock.querySelectorAll(".stream")) {
      s.append(h("span", { class: "caret" }));
      s.scrollTop = s.scrollHeight;
    }
  }

  applyFilter() {
    const parsed = parseFilter(this.filter.value);
    const filter = parsed ? parsed.node(this.model) : null;
    this.timeline.setFilter(filter);
    this.panel.setFilter(filter);
    const words = this.filter.value.split(/\s+/);
    for (const { name, el } of this.kindButtons) el.setAttribute("aria-pressed", String(words.includes("is:" + name)));
  }

  toggleKind(name) {
    const words = this.filter.value.split(/\s+/).filter(Boolean);
    const own = "is:" + name;
    this.filter.value = words.includes(own) ? words.filter((w) => w !== own).join(" ") : [...words.filter((w) => !w.startsWith("is:")), own].join(" ");
    this.applyFilter();
  }

  /** Selects an event, and the row that it belongs to. */
  choose(position, node, exactly, reveal = false) {
    this.position = position;
    this.timeline.setFollow(false);
    if (reveal || node !== this.timeline.selected) this.timeline.select(node ?? null, true);
    this.panel.select(node ?? null, exactly ? position : 0);
    if (position) history.replaceState(null, "", "#e=" + position);
    this.#address();
  }

  goTo(position) {
    const node = this.model.nodeOf(position);
    this.choose(position, node, !node || node.entries[0] !== position, true);
  }

  #address() {
    setText(this.address, plain(location.host + location.pathname + location.hash));
  }

  backToTimeline() {
    if (this.panel.narrow.matches) this.panel.show("Timeline");
    this.timeline.grid.focus();
  }

  async copyLink() {
    try {
      await navigator.clipboard.writeText(location.href);
      announce("The link is copied.");
      setText(this.connectionText, "Link copied");
      setText(this.connectionMore, "");
      setTimeout(() => this.#connectionText(), 1500);
    } catch {
      openDialog("Link to this event", (close) => [h("p", null, h("input", { type: "text", value: location.href, readonly: true, "aria-label": "Link" })), h("div", { class: "dialog-foot" }, button("Close", { onclick: close }))]);
    }
  }

  async saveFile(name, as) {
    try {
      const blob = await api.file(this.id, name);
      save(as, blob, blob.type);
    } catch (err) {
      failed(`The ${name} cannot be saved`, err);
    }
  }

  stop() {
    openDialog("Stop this run?", (close) => {
      const keep = button("Keep running", { class: "primary", onclick: close });
      const stop = button("Stop run", { class: "danger", onclick: async () => {
        stop.disabled = true;
        try {
          await api.stop(this.id);
          announce("The run is being stopped.");
          close();
        } catch (err) {
          close();
          failed("The run could not be stopped", err);
        }
      } });
      queueMicrotask(() => keep.focus());
      return [h("p", null, "The agent and everything that it started end now. What it did so far stays recorded, and the conversation can be continued."), h("div", { class: "dialog-foot" }, stop, keep)];
    });
  }

  async interrupt() {
    try {
      await api.interrupt(this.id);
      announce("The turn is being interrupted.");
    } catch (err) {
      failed("The turn could not be interrupted", err);
    }
  }

  help() {
    const rows = [["j k, arrows", "move"], ["h l, left, right", "fold, unfold"], ["Enter, Esc", "to the panel, back"], ["[ ]", "previous, next problem"], ["/", "filter: words, tool:Bash, is:denied, agent:name, turn:4 or turn:4-7"], ["1 to 6", "tabs of the panel"], ["f", "follow"], ["0, +, −", "the whole run, zoom"], ["w", "to the question; there y allows once, a for this run, n denies"], [".", "copy the link to this event"], ["?", "this help"]];
    openDialog("Keys", (close) => [h("dl", { class: "pairs keys" }, rows.map(([k, v]) => [h("dt", null, k), h("dd", null, v)])), h("h3", null, "Signs"), h("ul", { class: "signs" }, [["model", "a turn: the model was called"], ["native", "a tool of the agent"], ["ours", "a tool of ours"], ["denied", "denied: the call never ran"], ["failed", "failed"], ["waiting", "waits for a person"]].map(([shape, text]) => h("li", null, icon(shape), text))), h("div", { class: "dialog-foot" }, button("Close", { class: "primary", onclick: close }))]);
  }

  focusQuestion() {
    const strip = [...this.strips.values()][0];
    strip?.el.focus();
  }

  #key(e) {
    if (e.defaultPrevented || e.ctrlKey || e.metaKey || e.altKey || inField(e) || document.querySelector("dialog[open]")) return;
    const t = this.timeline;
    const keys = { j: () => t.move(1), k: () => t.move(-1), h: () => t.fold(), l: () => t.unfold(), "[": () => t.problem(-1), "]": () => t.problem(1), "/": () => { if (this.panel.narrow.matches) this.panel.show("Timeline"); this.filter.focus(); this.filter.select(); }, f: () => t.setFollow(!t.following), 0: () => t.fit(), "+": () => t.zoomBy(0.5), "-": () => t.zoomBy(2), w: () => this.focusQuestion(), ".": () => this.copyLink(), "?": () => this.help() };
    tabNames.forEach((name, i) => (keys[i + 1] = () => this.panel.show(name)));
    const act = keys[e.key];
    if (!act) return;
    e.preventDefault();
    act();
  }

  /** What the server offers has become known. */
  server() {
    this.actionSign = "";
    this.#header();
  }

  close() {
    for (const stop of this.stops) stop();
    document.removeEventListener("keydown", this.onKey);
    removeEventListener("hashchange", this.onHash);
  }
}

/** The calls of a turn that are under way. */
function openCalls(turn) {
  const calls = [];
  for (let i = turn.children.length - 1; i >= 0 && calls.length < turn.openCalls; i--) {
    const c = turn.children[i];
    if (c.kind === "call" && c.end === undefined) calls.unshift(c);
  }
  return calls;
}

function gauge(label, figure, beside = "", bar = null) {
  return h("div", { class: `gauge${bar ? " with-bar" : ""} gauge-${label.split(/[, ]/)[0].toLowerCase()}` }, h("span", { class: "gauge-label" }, label), h("span", { class: "gauge-figure" }, h("b", null, figure), beside && h("span", { class: "beside" }, " " + beside)), bar);
}

function fact(name, value, className = "") {
  return value ? h("span", { class: `fact ${className}` }, h("span", { class: "dim" }, name), " ", textSpan(value)) : null;
}
