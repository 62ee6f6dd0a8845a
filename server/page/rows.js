// SPDX-License-Identifier: Apache-2.0

// The rows of the timeline: the nodes that are visible, from top to bottom. It is pure. An event changes the rows that it is about,
// and all others stay as they are: what it costs does not grow with the run.

import { foldAfter, isOpen } from "./model.js";

/** @typedef {{node: import("./model.js").Node, level: number, open: boolean}} Row */

export class Rows {
  /** @param {import("./model.js").RunModel} model */
  constructor(model) {
    this.model = model;
    /** @type {Row[]} */
    this.list = [];
    /** @type {Map<import("./model.js").Node, number>} */
    this.index = new Map();
    /** @type {((n: import("./model.js").Node) => boolean)|null} */
    this.filter = null;
    /** @type {Map<import("./model.js").Node, boolean>|null} with a filter: the nodes to show, and whether they match or are above one that does */
    this.kept = null;
  }

  /** Makes all rows again. */
  rebuild() {
    this.model.takeChanges();
    this.kept = this.filter ? new Map() : null;
    if (this.filter) for (const node of this.model.roots) this.#match(node, true);
    this.list = this.#below(this.model.roots, 1);
    this.index = new Map(this.list.map((row, i) => [row.node, i]));
  }

  /** Takes what has changed in the model. */
  update() {
    const { touched, moved } = this.model.takeChanges();
    if (moved || (this.filter && [...touched].some((n) => this.kept.get(n) && !n.gone && !this.filter(n)))) {
      this.rebuild();
      return;
    }
    const turns = new Map(); // how many came and went, by agent: the newest ones decide which are folded
    for (const node of touched) {
      if (node.kind === "turn" && (node.gone || !this.index.has(node))) turns.set(node.agent, (turns.get(node.agent) ?? 0) + 1);
      if (node.gone) this.#drop(node);
      else if (this.filter) this.#match(node, false);
    }
    for (const node of touched) if (!node.gone) this.#place(node);
    for (const node of touched) this.#fold(node);
    for (const [agent, n] of turns) for (const turn of agent.turns.slice(-(n + foldAfter + 1))) this.#fold(turn);
  }

  #isOpen(node) {
    return this.kept ? node.children.length > 0 && node.open !== false : isOpen(this.model, node);
  }

  /** Notes whether a node matches the filter, and those above it with it. */
  #match(node, deep) {
    if (deep) for (const child of node.children) this.#match(child, true);
    if (!this.filter(node)) return;
    this.kept.set(node, true);
    for (let n = node.parent; n && !this.kept.has(n); n = n.parent) this.kept.set(n, false);
  }

  /** The rows of nodes and of what is open below them. */
  #below(nodes, level, rows = []) {
    for (const node of nodes) {
      if (this.kept && !this.kept.has(node)) continue;
      const open = this.#isOpen(node);
      rows.push({ node, level, open });
      if (open) this.#below(node.children, level + 1, rows);
    }
    return rows;
  }

  #number(from) {
    for (let i = from; i < this.list.length; i++) this.index.set(this.list[i].node, i);
  }

  /** Takes a node that is gone out. It had nothing below it. */
  #drop(node) {
    const at = this.index.get(node);
    this.kept?.delete(node);
    if (at === undefined) return;
    this.list.splice(at, 1);
    this.index.delete(node);
    this.#number(at);
  }

  /** Puts the row of a new node in, behind that of the sibling before it. */
  #place(node) {
    if (this.index.has(node) || (this.kept && !this.kept.has(node))) return;
    const { parent } = node;
    if (parent) this.#place(parent);
    const above = parent ? this.index.get(parent) : -1;
    if (above === undefined || (parent && !this.list[above].open)) return; // it is folded away, or #fold shows it
    const siblings = parent ? parent.children : this.model.roots;
    const before = this.#shown(siblings, siblings.lastIndexOf(node) - 1);
    const at = before ? this.#lastBelow(before) + 1 : above + 1;
    this.list.splice(at, 0, { node, level: parent ? this.list[above].level + 1 : 1, open: false });
    this.#number(at);
  }

  /** The last of some nodes, from one on backwards, that has a row. */
  #shown(nodes, from) {
    for (let i = from; i >= 0; i--) if (this.index.has(nodes[i])) return nodes[i];
    return undefined;
  }

  /** The index of the last row below a node, or of its own. */
  #lastBelow(node) {
    for (;;) {
      const at = this.index.get(node);
      const below = this.list[at].open ? this.#shown(node.children, node.children.length - 1) : undefined;
      if (!below) return at;
      node = below;
    }
  }

  /** Shows what is below a node, or takes it out, if that is another than before. */
  #fold(node) {
    const at = this.index.get(node);
    if (at === undefined) return;
    const row = this.list[at];
    const open = this.#isOpen(node);
    if (row.open === open) return;
    row.open = open;
    let end = at + 1;
    while (end < this.list.length && this.list[end].level > row.level) this.index.delete(this.list[end++].node);
    this.list = this.list.slice(0, at + 1).concat(open ? this.#below(node.children, row.level + 1) : [], this.list.slice(end));
    this.#number(at + 1);
  }
}
