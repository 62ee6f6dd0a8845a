// SPDX-License-Identifier: Apache-2.0

// The timeline: a treegrid of turns and calls with their bars, its axis, and the overview of the whole run.
// Rows have one fixed height, and only those in view are elements.

import { announce, h, fill, icon, setText } from "./dom.js";
import { duration, money, plural, tick, tickStep, clock } from "./format.js";
import { plain } from "./plain.js";
import { appendText, lineSpan } from "./text.js";
import { allNodes, endOf, endOfPath, isOpen, labelOf, targetOf, tookOf } from "./model.js";
import { Rows } from "./rows.js";

/** Rows beyond the view that are elements too, so that a fast scroll shows no gap. */
const spare = 12;

/** A bar is at least so wide; folded turns draw no more bars than could be told apart. */
const leastBar = 3;

/** The end of a live timeline is so far ahead, as a part of its span: two or three pixels. */
const ahead = 1 / 200;

/** The overview of the whole run is drawn again when so many times the time has gone that drawing took. */
const overviewShare = 50;

const words = { denied: "denied", failed: "failed", waiting: "waits for you", cancelled: "did not end" };
const noteWords = { check: "Check failed", error: "Error", retry: "Tried again", limit: "Limit", refused: "Refused", connection: "Connection", breach: "Cell limit", compacting: "Compacting", compacted: "Compacted", prompt: "Prompt", end: "", "back-off": "Upstream busy", "rate limit": "Rate limit" };

export class Timeline {
  /**
   * @param {import("./model.js").RunModel} model
   * @param {object} on
   * @param {() => number} on.now milliseconds since 1970, of the server
   * @param {() => boolean} on.live
   * @param {(node: any) => void} on.select @param {() => void} on.open Enter: to the panel
   * @param {(following: boolean) => void} on.follow @param {(text: string) => void} on.filter
   */
  constructor(model, on) {
    this.model = model;
    this.on = on;
    this.rows = new Rows(model);
    this.painted = new Map();
    this.selected = null;
    this.following = true;
    this.zoom = null;
    this.structure = true; // all rows are to be made again
    this.top = 0; // where the rows that are painted begin
    this.frame = 0;
    this.drawn = "";
    this.narrow = matchMedia("(max-width: 760px)");
    this.narrow.addEventListener("change", () => this.reset());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.reset());
    this.#build();
    this.sizes = { width: 300, view: 400, overview: 0 };
    new ResizeObserver(() => {
      const width = this.axis.clientWidth || 300;
      const same = width === this.sizes.width;
      this.sizes = { width, view: this.grid.clientHeight - 23, overview: this.overviewBox.clientWidth };
      if (same) this.schedule();
      else this.reset();
    }).observe(this.grid);
  }

  get rowHeight() {
    return this.narrow.matches ? 40 : 22;
  }

  #build() {
    this.overview = h("canvas", { class: "overview-canvas", "aria-hidden": "true" });
    this.brush = h("div", { class: "brush", hidden: true });
    this.overviewLabel = h("span", { class: "overview-label" });
    this.overviewCost = h("span", { class: "overview-cost" });
    this.overviewBox = h("div", { class: "overview", title: "Drag to zoom, double-click to see the whole run", "aria-hidden": "true", onpointerdown: (e) => this.#drag(e), ondblclick: () => this.fit() }, this.overview, this.overviewLabel, this.overviewCost, this.brush);
    this.axis = h("span", { class: "lane axis", role: "columnheader", "aria-label": "Time" });
    this.lines = h("div", { class: "grid-lines", "aria-hidden": "true" });
    this.body = h("div", { class: "rows", role: "rowgroup" }, h("div", { class: "lines-box", "aria-hidden": "true" }, this.lines));
    this.empty = h("p", { class: "empty", hidden: true });
    this.head = h("div", { role: "row", class: "head", "aria-rowindex": 1 }, h("span", { role: "columnheader", class: "name" }, "Turn and call"), h("span", { role: "columnheader", class: "took" }, "Took"), this.axis);
    this.grid = h("div", { class: "treegrid", role: "treegrid", "aria-label": "Turns and calls", tabIndex: 0, onkeydown: (e) => this.#key(e), onscroll: () => Math.abs(this.grid.scrollTop - this.top) >= 1 && this.schedule(), onwheel: (e) => e.deltaY < 0 && this.setFollow(false), ontouchmove: () => this.setFollow(false), onclick: (e) => this.#click(e), ondblclick: (e) => this.#doubleClick(e) },
      h("div", { role: "rowgroup", class: "head-group" }, this.head), this.body, this.empty);
    this.el = h("div", { class: "timeline" }, this.overviewBox, this.grid);
  }

  /** The model has changed. */
  changed() {
    this.structure = true;
    this.schedule();
  }

  /** Everything is painted again, in the elements that are there. */
  reset() {
    for (const row of this.painted.values()) row.sign = row.bars = "";
    this.drawn = "";
    this.axisSign = "";
    this.changed();
  }

  schedule() {
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      this.render();
    });
  }

  setFilter(filter) {
    this.rows.filter = filter;
    this.changed();
  }

  setFollow(following) {
    if (this.following === following) return;
    this.following = following;
    if (following && this.zoom) {
      const span = this.zoom[1] - this.zoom[0];
      const end = this.on.now();
      this.zoom = [end - span, end];
    }
    this.on.follow(following);
    this.schedule();
  }

  /** Selects a row, unfolds the way to it, and brings it into view. */
  select(node, reveal = true) {
    this.selected = node;
    for (let n = node?.parent; n; n = n.parent) {
      if (n.open) continue;
      n.open = true;
      this.structure = true;
    }
    this.revealed = reveal ? node : null;
    this.schedule();
  }

  fit() {
    this.zoom = null;
    this.schedule();
  }

  zoomBy(factor) {
    const [a, b] = this.window();
    const at = this.selected && this.selected.start >= a && this.selected.start <= b ? this.selected.start : (a + b) / 2;
    this.#setZoom(at - (at - a) * factor, at + (b - at) * factor);
  }

  #setZoom(a, b) {
    const [from, to] = this.whole();
    a = Math.max(from, a);
    b = Math.min(to, b);
    if (b - a < 5) return;
    this.zoom = a <= from && b >= to ? null : [a, b];
    if (this.zoom) this.setFollow(false);
    this.schedule();
  }

  /**
   * The time of the whole run. The end of a live one is a little ahead, and moves on when it is reached: until then bars stay where
   * they are, and an event costs what its own row does.
   */
  whole() {
    const from = this.model.began || this.on.now();
    const to = Math.max(this.model.last, this.on.live() ? this.on.now() : from + 100);
    if (!this.on.live()) this.end = to;
    else if (!(to <= this.end)) this.end = to + (to - from) * ahead;
    return [from, Math.max(this.end, from + 100)];
  }

  window() {
    if (!this.zoom) return this.whole();
    if (!this.following) return this.zoom;
    const span = this.zoom[1] - this.zoom[0];
    const step = span * ahead;
    const end = Math.ceil(this.on.now() / step) * step;
    return [end - span, end];
  }

  render() {
    const height = this.rowHeight;
    const { view, width } = this.sizes; // sizes are measured once, not while rows are written
    const was = this.grid.scrollTop;
    let top = this.#update(was, height);
    if (this.following && this.on.live()) top = this.#newest(top, view, height);
    if (this.revealed) {
      top = scrolled(this.rows.index.get(this.revealed), top, view, height);
      this.revealed = null;
    }
    const { list } = this.rows;
    this.top = Math.max(0, Math.min(top, list.length * height - view));
    if (this.top !== was) this.grid.scrollTop = this.top;
    const from = Math.max(0, Math.floor(this.top / height) - spare);
    const to = Math.min(list.length, Math.ceil((this.top + view) / height) + spare);
    const [a, b] = this.window();
    this.width = width;
    const keep = new Set();
    for (let i = from; i < to; i++) keep.add(this.#paint(i, a, b, height));
    const active = this.selected && this.rows.index.get(this.selected);
    if (active !== undefined && active !== null) keep.add(this.#paint(active, a, b, height));
    for (const [node, row] of this.painted) {
      if (keep.has(node)) continue;
      row.el.remove();
      this.painted.delete(node);
    }
    const name = active === undefined || active === null ? "" : "row-" + this.selected.id;
    if (this.activeName !== name) {
      this.activeName = name;
      if (name) this.grid.setAttribute("aria-activedescendant", name);
      else this.grid.removeAttribute("aria-activedescendant");
    }
    this.#paintAxis(a, b);
    this.#paintOverview();
  }

  /** Brings the rows up to date. @returns {number} where the view is, so that what is in it has not moved */
  #update(top, height) {
    const { rows } = this;
    const anchor = this.#anchor(top, height);
    const before = rows.index.get(anchor);
    if (this.structure) rows.rebuild();
    else rows.update();
    this.structure = false;
    const count = rows.list.length;
    if (this.tall !== count * height) {
      this.tall = count * height;
      this.body.style.height = `${count * height}px`;
      this.grid.setAttribute("aria-rowcount", String(count + 1));
      this.empty.hidden = count > 0;
    }
    if (count === 0) setText(this.empty, rows.filter ? "No turn and no call matches the filter." : "The first turn appears here as soon as the agent has started.");
    const after = rows.index.get(anchor);
    return this.following || before === undefined || after === undefined ? top : top + (after - before) * height;
  }

  /** The row that must not move: the selected one if it is in view, otherwise the first. */
  #anchor(top, height) {
    const at = this.selected ? this.rows.index.get(this.selected) : undefined;
    if (at !== undefined && at * height >= top - height && at * height <= top + this.sizes.view) return this.selected;
    return this.rows.list[Math.ceil(top / height)]?.node;
  }

  /** Where the view is when the newest row is in it. */
  #newest(top, view, height) {
    const { index, list } = this.rows;
    let node = this.model.nodeOf(this.model.position);
    while (node && !index.has(node)) node = node.parent;
    const last = list.length - 1;
    const at = node ? index.get(node) : last;
    return (last - at) * height < view ? list.length * height : scrolled(at, top, view, height);
  }

  #paint(i, a, b, height) {
    const { node, level, open } = this.rows.list[i];
    const now = this.on.now();
    let row = this.painted.get(node);
    if (!row) {
      row = { el: h("div", { role: "row", id: "row-" + node.id }), sign: "", bars: "", text: "", name: h("span", { role: "gridcell", class: "name" }), took: h("span", { role: "gridcell", class: "took" }), lane: h("span", { class: "lane", "aria-hidden": "true" }) };
      row.el.append(row.name, row.took, row.lane);
      row.el.node = node;
      this.body.append(row.el);
      this.painted.set(node, row);
    }
    const folds = node.children.length > 0;
    const selected = node === this.selected;
    if (row.at !== i || row.height !== height) {
      row.at = i;
      row.height = height;
      row.el.style.top = `${i * height}px`;
      row.el.setAttribute("aria-rowindex", String(i + 2));
    }
    const sign = `${node.version} ${open} ${level} ${selected} ${folds} ${node.agent.name}`;
    const took = this.#took(node, now);
    if (row.text !== took) row.took.textContent = row.text = took;
    if (row.sign !== sign) {
      row.sign = sign;
      row.el.className = `row ${node.kind} is-${node.status || "ok"}${selected ? " selected" : ""}`;
      row.el.setAttribute("aria-level", String(level));
      row.el.setAttribute("aria-selected", String(selected));
      if (folds) row.el.setAttribute("aria-expanded", String(open));
      else row.el.removeAttribute("aria-expanded");
      row.name.style.setProperty("--level", String(level - 1));
      fill(row.name, this.#name(node, open, folds));
      row.el.setAttribute("aria-label", plain(this.#spoken(node, took)));
    }
    const bars = `${node.version} ${open} ${a} ${b} ${this.width}`;
    if (row.bars !== bars) {
      row.bars = bars;
      this.#paintBars(row.lane, node, open, a, b, now);
    }
    return node;
  }

  #took(node, now) {
    if (node.kind === "note") return node.ready > node.start ? `${duration(node.ready - node.start)}` : "";
    if (node.kind === "call" && node.status === "denied") return "never ran";
    return duration(tookOf(node, now));
  }

  #spoken(node, took) {
    const status = words[node.status] ?? "";
    const what = node.kind === "turn" ? `Turn ${node.number}: ${labelOf(this.model, node).slice(0, 120)}` : node.kind === "call" ? `${node.label} ${targetOf(this.model, node).slice(0, 120)}` : `${noteWords[node.what] ?? node.what} ${labelOf(this.model, node).slice(0, 120)}`;
    const inside = node.kind === "turn" ? this.#problems(node).map(([, text]) => text).join(", ") : "";
    return [what, status, inside, took].filter(Boolean).join(", ");
  }

  #name(node, open, folds) {
    const twist = folds ? h("span", { class: "twist", title: open ? "Fold" : "Unfold" }, icon(open ? "opened" : "closed", "ink")) : h("span", { class: "twist" });
    if (node.kind === "turn") {
      const label = labelOf(this.model, node);
      const tags = !open && folds ? [h("span", { class: "calls" }, plural(node.calls, "call")), ...this.#problems(node).map(([tone, text]) => tag(tone, text))] : [];
      return [twist, icon("model"), h("span", { class: "number" }, node.number), lineSpan(label, `label${node.provisional ? " dim" : ""}`), tags];
    }
    if (node.kind === "note") {
      const shape = node.status === "denied" ? "denied" : node.status === "failed" ? "failed" : node.what === "end" ? "ok" : node.what === "prompt" ? "prompt" : "note";
      const what = noteWords[node.what] ?? node.what;
      const text = node.what === "end" ? [h("span", { class: "label short" }, node.status === "failed" ? endWord(node.done?.status) : "Answer"), lineSpan(node.text, "target prose")] : [what && h("span", { class: "label short" }, what), lineSpan(node.label, "target prose")];
      return [twist, icon(shape), text];
    }
    const tags = [];
    if (node.status === "failed") tags.push(tag("failed", node.restored ? "failed, rolled back" : "failed"));
    else if (words[node.status]) tags.push(tag(node.status, words[node.status]));
    else if (node.sentBack) tags.push(tag("plain", "sent back"));
    else if (node.asked && node.answered) tags.push(tag("plain", "was asked"));
    if (node.status === "running" && node.progress?.message) tags.push(tag("plain", node.progress.message));
    return [twist, icon(shapeOf(node)), lineSpan(node.label, "label short"), lineSpan(endOfPath(targetOf(this.model, node)), node.subagent || node.name === "Agent" ? "target prose" : "target"), tags];
  }

  /** What went wrong inside a turn: [tone, text]. */
  #problems(node) {
    return Object.entries(node.found).filter(([, n]) => n > 0).map(([tone, n]) => [tone, tone === "waiting" ? (n === 1 ? "waits for you" : `${n} wait for you`) : n === 1 ? tone : `${n} ${tone}`]);
  }

  #paintBars(lane, node, open, a, b, now) {
    const span = b - a;
    const width = this.width;
    const list = [];
    const rightmost = {}; // of the bars of each tone
    const add = (start, end, tone, low) => {
      if (end < a || start > b) return list.push(h("span", { class: `edge ${end < a ? "before" : "after"} tone-${tone}` }));
      const left = ((Math.max(start, a) - a) / span) * width;
      const right = ((Math.min(end, b) - a) / span) * width;
      const size = Math.max(leastBar, right - left);
      if (low && left + size <= rightmost[tone] + 0.5) return 0; // it would be drawn on another one
      rightmost[tone] = left + size;
      const el = h("span", { class: `bar tone-${tone}${low ? " low" : ""}${size < 8 ? " small" : ""}` });
      el.style.left = `${Math.min(left, width - size)}px`;
      el.style.width = `${size}px`;
      return list.push(el);
    };
    const call = (n, low) => {
      const end = endOf(n, now);
      if (n.asked) {
        if (!low && n.asked - n.start > 100) add(n.start, n.asked, "queued", low);
        add(n.asked, n.answered || end, "waiting", low);
        if (n.answered && n.status !== "denied") add(n.answered, end, toneOf(n), low);
        else if (n.status === "denied") add(end - 1, end, "denied", low);
      } else add(n.start, end, toneOf(n), low);
    };
    const turn = (n, low) => {
      for (const m of modelSpans(n, now)) add(m.start, m.end, m.status === 200 || !m.status ? "model" : "failed", low);
    };
    if (node.kind === "turn") {
      turn(node, !open && node.children.length > 0);
      if (!open) for (const n of allNodes(node.children)) n.kind === "turn" ? turn(n, true) : n.kind === "call" && n.name !== "Agent" ? call(n, true) : 0;
    } else if (node.kind === "call") {
      call(node, false);
    } else {
      if (node.ready > node.start) add(node.start, node.ready, "queued", false);
      add(node.start, node.start, node.status === "ok" ? "note" : node.status, false);
    }
    const edges = new Set(list.filter((e) => e.classList.contains("edge")).map((e) => e.className));
    fill(lane, list.filter((e) => !e.classList.contains("edge") || edges.delete(e.className)));
  }

  #paintAxis(a, b) {
    const width = this.width;
    const live = this.on.live();
    const step = tickStep(b - a, Math.max(2, width / 88));
    const began = this.model.began;
    const sign = `${a} ${b} ${width} ${live}`;
    if (this.axisSign === sign) return;
    this.axisSign = sign;
    const ticks = [];
    const lines = [];
    const nowAt = live ? ((this.on.now() - a) / (b - a)) * width : -1;
    for (let t = Math.ceil((a - began) / step) * step; t <= b - began; t += step) {
      const left = ((t + began - a) / (b - a)) * width;
      const line = h("i", { class: "line" });
      line.style.left = `${left}px`;
      lines.push(line);
      if (left < 24 || left > width - 20 || (nowAt >= 0 && Math.abs(left - nowAt) < 44)) continue;
      const el = h("span", { class: "tick" }, tick(t, step));
      el.style.left = `${left}px`;
      ticks.push(el);
    }
    if (nowAt >= 0 && nowAt <= width + 1) {
      const el = h("span", { class: "tick now" }, "now");
      el.style.left = `${Math.min(nowAt, width - 12)}px`;
      ticks.push(el);
      const line = h("i", { class: "line now" });
      line.style.left = `${Math.min(nowAt, width - 1)}px`;
      lines.push(line);
    }
    fill(this.axis, ticks);
    fill(this.lines, lines);
  }

  #paintOverview() {
    const width = this.sizes.overview;
    const height = 36;
    if (!width) return;
    const [from, to] = this.whole();
    const span = to - from;
    setText(this.overviewLabel, this.zoom ? `Zoomed to ${clock(this.window()[0] - from)} to ${clock(this.window()[1] - from)}` : "Whole run, cost as the slope");
    setText(this.overviewCost, this.on.live() ? `${money(this.model.totals.usd)} so far` : money(this.model.totals.usd));
    this.brush.hidden = !this.zoom;
    if (this.zoom) {
      const [a, b] = this.window();
      this.brush.style.left = `${((a - from) / span) * 100}%`;
      this.brush.style.width = `${((b - a) / span) * 100}%`;
    }
    const sign = `${this.model.position} ${to} ${width}`;
    if (this.drawn === sign) return;
    const began = performance.now();
    if (this.drawn !== "" && began < this.drawAt) {
      this.later ||= setTimeout(() => { this.later = 0; this.schedule(); }, this.drawAt - began);
      return;
    }
    this.drawn = sign;
    const scale = devicePixelRatio || 1;
    const canvas = this.overview;
    canvas.width = width * scale;
    canvas.height = height * scale;
    const c = canvas.getContext("2d");
    c.scale(scale, scale);
    const x = (t) => ((t - from) / span) * width;
    const cost = this.model.cost;
    const most = cost.at(-1)?.[1] || 0;
    if (most > 0) {
      c.fillStyle = this.#resolve("--slope");
      c.beginPath();
      c.moveTo(0, height);
      let y = height;
      let drawn = -1;
      for (const [t, usd] of cost) {
        y = height - (usd / most) * (height - 6);
        if (x(t) < drawn + 0.5) continue;
        drawn = x(t);
        c.lineTo(drawn, y);
      }
      c.lineTo(width, y);
      c.lineTo(width, height);
      c.fill();
    }
    const tones = {};
    const drawnTo = {}; // by what looks the same, so that no more is drawn than can be told apart
    const draw = (start, end, tone, depth, thin) => {
      const problem = tone === "denied" || tone === "failed";
      const left = x(start);
      const size = Math.max(problem ? 2 : 1, x(end) - left);
      const like = `${tone} ${depth} ${thin}`;
      if (left + size <= drawnTo[like]) return;
      drawnTo[like] = left + size;
      c.fillStyle = tones[tone] ??= this.#resolve(`--bar-${tone}`);
      const y = Math.min(height - 5, 18 + depth * 8);
      if (problem) c.fillRect(left, y - 1, size, 7);
      else c.fillRect(left, thin ? y + 5 : y, size, thin ? 2 : 4);
    };
    const now = this.on.now();
    for (const agent of this.model.agents.values()) {
      const depth = agent.id === "" ? 0 : 1;
      for (const t of agent.turns) {
        for (const m of modelSpans(t, now)) draw(m.start, m.end, "model", depth, false);
        for (const n of t.children) {
          if (n.kind !== "call" || n.name === "Agent" || n.name === "Task") continue;
          const tone = toneOf(n);
          const end = endOf(n, now);
          if (n.asked) draw(n.asked, n.answered || end, "waiting", depth, true);
          if (!n.asked || n.answered) draw(n.answered || n.start, end, tone, depth, end - n.start < span / 100 && tone !== "denied" && tone !== "failed");
        }
      }
    }
    this.drawAt = performance.now() + Math.max(150, overviewShare * (performance.now() - began));
  }

  /** The value of a colour in the scheme that is shown: a canvas does not know light-dark(). */
  #resolve(name) {
    this.probe ??= this.el.appendChild(h("i", { class: "probe", "aria-hidden": "true" }));
    this.probe.style.color = `var(${name})`;
    return getComputedStyle(this.probe).color;
  }

  #drag(e) {
    if (e.button !== 0) return;
    const box = this.overviewBox.getBoundingClientRect();
    const [from, to] = this.whole();
    const timeAt = (x) => from + (Math.min(1, Math.max(0, (x - box.left) / box.width)) * (to - from));
    const start = e.clientX;
    const move = (m) => {
      if (Math.abs(m.clientX - start) > 4) this.#setZoom(timeAt(Math.min(start, m.clientX)), timeAt(Math.max(start, m.clientX)));
    };
    const up = () => {
      removeEventListener("pointermove", move);
      removeEventListener("pointerup", up);
    };
    addEventListener("pointermove", move);
    addEventListener("pointerup", up);
    e.preventDefault();
  }

  #click(e) {
    const row = e.target.closest?.(".row");
    if (!row?.node) return;
    if (e.target.closest(".twist") && row.node.children.length > 0) this.toggle(row.node);
    else this.#choose(row.node);
  }

  #doubleClick(e) {
    const row = e.target.closest?.(".row");
    if (row?.node?.children.length && !e.target.closest(".twist")) this.toggle(row.node);
  }

  toggle(node, open = !isOpen(this.model, node)) {
    if (node.children.length === 0) return;
    node.open = open;
    for (let n = this.selected?.parent; n && !open; n = n.parent) if (n === node) this.#choose(node);
    this.changed();
  }

  #choose(node) {
    this.setFollow(false);
    this.select(node);
    this.on.select(node);
  }

  /** Moves the selection by so many rows. */
  move(by) {
    if (this.structure) this.render();
    const { index, list } = this.rows;
    const at = this.selected ? index.get(this.selected) : undefined;
    const to = Math.min(list.length - 1, Math.max(0, (at ?? (by > 0 ? -1 : list.length)) + by));
    if (list[to]) this.#choose(list[to].node);
  }

  /** Selects the next or previous row with a problem, folded or not. */
  problem(by) {
    const all = [...allNodes(this.model.roots)].filter((n) => n === this.selected || (n.kind !== "turn" && ["denied", "failed", "waiting"].includes(n.status)));
    let at = all.indexOf(this.selected);
    if (at < 0) at = by > 0 ? -1 : all.length;
    const next = all[at + by];
    if (next) this.#choose(next);
    else announce(all.length ? "There is no further problem." : "There is no problem.");
  }

  fold() {
    const node = this.selected;
    if (!node) return;
    if (node.children.length && isOpen(this.model, node)) this.toggle(node, false);
    else if (node.parent) this.#choose(node.parent);
  }

  unfold() {
    const node = this.selected;
    if (!node) return;
    if (node.children.length && !isOpen(this.model, node)) this.toggle(node, true);
    else if (node.children.length) this.move(1);
  }

  #key(e) {
    if (e.altKey || e.ctrlKey || e.metaKey) return;
    const page = Math.max(1, Math.floor(this.grid.clientHeight / this.rowHeight) - 2);
    const keys = { ArrowDown: () => this.move(1), ArrowUp: () => this.move(-1), ArrowLeft: () => this.fold(), ArrowRight: () => this.unfold(), Home: () => this.move(-Infinity), End: () => this.move(Infinity), PageDown: () => this.move(page), PageUp: () => this.move(-page), Enter: () => this.on.open() };
    const act = keys[e.key];
    if (!act) return;
    e.preventDefault();
    e.stopPropagation();
    act();
  }
}

/** Where the view is when a row is in it. */
function scrolled(at, top, view, height) {
  if (at === undefined) return top;
  return Math.max(Math.min(top, at * height), (at + 1) * height - view);
}

/** When the model was at work in a turn: its calls, or without a gateway the time until the first tool call. */
function modelSpans(turn, now) {
  if (turn.modelCalls.length > 0) return turn.modelCalls;
  const end = turn.provisional ? now : Math.min(turn.children[0]?.start ?? endOf(turn, now), endOf(turn, now));
  return [{ start: turn.start, end }];
}

function tag(tone, text) {
  return appendText(h("span", { class: `tag tone-${tone}` }), text);
}

/** The shape of a call: its problem, or whose tool it is. */
export function shapeOf(node) {
  if (node.status === "denied" || node.status === "failed" || node.status === "waiting") return node.status;
  return node.ours ? "ours" : "native";
}

function toneOf(node) {
  if (node.status === "denied" || node.status === "failed" || node.status === "waiting") return node.status;
  if (node.subagent || node.name === "Agent" || node.name === "Task") return "agent";
  return node.ours ? "ours" : "native";
}

/** The word for how a run ended. */
export function endWord(status, kind) {
  return { success: "Done", error: "Failed", interrupted: "Stopped", max_turns: "Out of turns", max_budget: "Out of budget" }[status] ?? (kind || status || "Ended");
}
