// SPDX-License-Identifier: Apache-2.0

// The state of a run, made of its events: turns, calls, subagents, totals. It is pure: no page, no clock, no network.

/**
 * A row of the timeline: a turn with its model call, a tool call, or a note (a failed check, an error, the end).
 * @typedef {object} Node
 * @property {string} id stable while the page is open
 * @property {"turn"|"call"|"note"} kind
 * @property {Agent} agent
 * @property {Node|null} parent
 * @property {Node[]} children
 * @property {number[]} entries the positions of the events about it
 * @property {number} start milliseconds since 1970
 * @property {number|undefined} end undefined while it is under way
 * @property {string} status "" | running | ok | denied | failed | waiting | cancelled
 * @property {number} version counts the changes, so that a row is painted again only if one came
 * @property {boolean|undefined} open as the reader has set it; undefined means by the rule
 * @property {{denied: number, failed: number, waiting: number}} found the problems of the node and below it
 * @property {boolean|undefined} gone it was expected and has not come
 */

/**
 * The main agent, with the empty id, or a subagent.
 * @typedef {object} Agent
 * @property {string} id
 * @property {string} name
 * @property {Node|null} call the call that started it
 * @property {Node[]} turns
 * @property {string} prefix of the numbers of its turns: "7."
 * @property {object[]} pending model calls that belong to a turn that has no event yet
 * @property {string} stream the text that is being written
 * @property {boolean} ended
 */

/** Quiet turns fold once so many newer ones exist. */
export const foldAfter = 3;

const problems = new Set(["denied", "failed", "waiting"]);

/** So many calls name a turn that has no text. */
const namedCalls = 20;

export class RunModel {
  constructor() {
    /** @type {any[]} the events by position - 1 */
    this.entries = [];
    /** @type {string[]} the same as they came */
    this.raw = [];
    /** @type {Node[]} */
    this.roots = [];
    /** @type {Map<string, Agent>} */
    this.agents = new Map();
    this.main = this.#agent("");
    /** @type {Map<string, Node>} the last call of each id */
    this.calls = new Map();
    /** @type {Map<string, any[]>} what is known of calls whose tool_use has not come */
    this.early = new Map();
    /** @type {(Node|undefined)[]} by position */
    this.owner = [];
    this.began = 0;
    this.last = 0;
    this.ended = false;
    this.cwd = "";
    this.init = null;
    this.isolation = null;
    /** @type {any[]} prompt:rendered, each with its tools */
    this.prompts = [];
    this.modelCalls = [];
    this.connections = [];
    this.gatewayNotes = [];
    /** @type {Map<string, {path: string, nodes: Node[]}>} files that tools have written */
    this.files = new Map();
    this.totals = { model: 0, native: 0, ours: 0, denied: 0, failed: 0, waiting: 0, usd: 0, input: 0, output: 0, cacheRead: 0 };
    this.unpriced = false;
    /** @type {[number, number][]} when, and the dollars until then */
    this.cost = [];
    this.nodes = 0;
    /** @type {string[]} the policies of the longest chain, in their order */
    this.policies = [];
    /** @type {any[]} calls that start a subagent */
    this.starters = [];
    /** @type {Map<string, any[]>} calls by the last part of the path that they are about */
    this.byFile = new Map();
    this.touched = new Set();
    this.moved = false;
  }

  /** The nodes that are new, have changed or are gone since the last time, and whether nodes have moved under others. */
  takeChanges() {
    const { touched, moved } = this;
    this.touched = new Set();
    this.moved = false;
    return { touched, moved };
  }

  /** A node has changed, and what sums it up with it. */
  touch(node) {
    for (let n = node; n; n = n.parent) {
      n.version++;
      this.touched.add(n);
    }
  }

  /** The number of entries, which is the position of the last one. */
  get position() {
    return this.entries.length;
  }

  /** @returns {Node|undefined} the row of an entry */
  nodeOf(position) {
    const node = this.owner[position];
    if (node) return node;
    const id = this.entries[position - 1]?.payload?.toolUseId;
    return id ? this.calls.get(id) : undefined;
  }

  /**
   * Takes the next event. One that has been taken already is passed over; a gap is an error.
   * @param {any} e @param {string} [raw]
   */
  add(e, raw) {
    const position = Number(e.position);
    if (position <= this.entries.length) return;
    if (position !== this.entries.length + 1) throw new Error(`event ${position} came after event ${this.entries.length}`);
    this.entries.push(e);
    this.raw.push(raw ?? JSON.stringify(e));
    const at = e.timestamp || this.last;
    if (!this.began || (at && at < this.began)) this.began = at;
    if (at > this.last) this.last = at;
    const handle = handlers[e.type];
    if (handle) handle(this, e, e.payload ?? {}, position);
  }

  /** Takes a part of a text that is being written. @returns {boolean} whether a row has changed */
  addPart(e) {
    const agent = this.#agentOf(e, e.payload ?? {});
    agent.stream = (agent.stream + (e.payload?.delta ?? "")).slice(-4000);
    const turn = agent.turns.at(-1);
    if (!turn || (!turn.provisional && turn.ended)) this.provision(agent, e.timestamp);
    const now = agent.turns.at(-1);
    if (!now?.provisional || now.writing) return false;
    now.writing = true;
    this.touch(now);
    return true;
  }

  /** Ends what is under way: the run has ended, or its program is gone. */
  finish() {
    if (this.ended) return;
    this.ended = true;
    for (const [id, events] of this.early) {
      const first = events[0];
      const call = this.#newCall(this.main, id, first.payload.toolName ?? "", first.payload.input, first.timestamp);
      for (const e of events) this.about(call, e, Number(e.position));
    }
    this.early.clear();
    for (const agent of this.agents.values()) {
      agent.stream = "";
      agent.ended = true;
      const turn = agent.turns.at(-1);
      if (turn?.provisional) this.#remove(turn);
    }
    for (const call of this.calls.values()) {
      if (call.end !== undefined) continue;
      call.end = this.last;
      this.setStatus(call, call.status === "denied" ? "denied" : "cancelled");
    }
    for (const node of this.roots) settle(node, this.last);
  }

  /** @returns {Agent} */
  #agent(id) {
    let agent = this.agents.get(id);
    if (!agent) {
      agent = { id, name: id === "" ? "main" : "", type: "", call: null, turns: [], prefix: "", pending: [], stream: "", ended: false, count: 0 };
      this.agents.set(id, agent);
    }
    return agent;
  }

  #agentOf(e, p) {
    const agent = this.#agent(e.agentId ?? p.agentId ?? "");
    if (agent.id && e.parentToolUseId) this.adopt(agent, e.parentToolUseId);
    return agent;
  }

  agentOf(e, p) {
    return this.#agentOf(e, p);
  }

  agentById(id) {
    return this.#agent(id);
  }

  /** Notes which call started an agent. */
  adopt(agent, callID) {
    if (agent.call || agent.id === "") return;
    const call = this.calls.get(callID);
    if (!call) return;
    agent.call = call;
    agent.name ||= firstWords(call.input?.description) || agent.type || agent.id;
    const turn = call.parent;
    const nth = turn ? turn.agents++ : 0;
    agent.prefix = (turn?.number ?? "") + (nth ? String.fromCharCode(97 + (nth % 26)) : "") + ".";
    for (const t of agent.turns) {
      this.roots = this.roots.filter((n) => n !== t);
      t.parent = call;
      t.number = agent.prefix + t.index;
      call.children.push(t);
      this.#count(t, 1);
      this.moved = true;
    }
    call.subagent = agent;
    this.touch(call);
  }

  #node(kind, agent, parent, start) {
    const node = { id: kind[0] + ++this.nodes, kind, agent, parent, children: [], entries: [], start, end: undefined, status: "", version: 0, open: undefined, found: { denied: 0, failed: 0, waiting: 0 } };
    (parent ? parent.children : this.roots).push(node);
    this.touch(node);
    return node;
  }

  /** Adds the problems of a node to those above it, or takes them away. */
  #count(node, sign) {
    for (let n = node.parent; n; n = n.parent) for (const status of problems) n.found[status] += sign * node.found[status];
  }

  #remove(node) {
    const list = node.parent ? node.parent.children : this.roots;
    const at = list.lastIndexOf(node);
    if (at >= 0) list.splice(at, 1);
    if (node.agent.turns.at(-1) === node) node.agent.turns.pop();
    node.gone = true;
    this.touch(node);
  }

  /** Begins a turn of which no event has come: the model is at work. */
  provision(agent, at) {
    if (this.ended || agent.turns.at(-1)?.provisional) return;
    const turn = this.#newTurn(agent, (agent.turns.at(-1)?.index ?? 0) + 1, at);
    turn.provisional = true;
    turn.status = "running";
  }

  #newTurn(agent, index, start) {
    const turn = this.#node("turn", agent, agent.call, start);
    Object.assign(turn, { index, number: agent.prefix + index, text: "", thinking: "", modelCalls: [], agents: 0, openCalls: 0, calls: 0, provisional: false, writing: false, ended: false });
    agent.turns.push(turn);
    if (agent.call) this.touch(agent.call);
    return turn;
  }

  /** The turn that an event of an agent belongs to. */
  turnFor(agent, e) {
    let turn = agent.turns.at(-1);
    const index = agent.id === "" ? e.turn : undefined;
    if (index && turn && index < turn.index) {
      turn = agent.turns.findLast((t) => t.index === index) ?? turn;
    } else if (index && (!turn || index > turn.index)) {
      if (turn?.provisional) this.#remove(turn);
      turn = this.#newTurn(agent, index, e.timestamp);
    } else if (!index && turn?.provisional && e.type === "tool_use" && !turn.writing && agent.pending.length === 0 && agent.turns.length > 1) {
      turn = agent.turns.at(-2); // a further call of an answer of which one call has ended already
    } else if (!turn) {
      turn = this.#newTurn(agent, index || 1, e.timestamp);
    }
    if (turn.provisional) {
      turn.provisional = false;
      turn.status = "";
    }
    while (agent.pending.length > 0 && turn === agent.turns.at(-1)) this.#giveModelCall(turn, agent.pending.shift());
    turn.ended = false;
    return turn;
  }

  #giveModelCall(turn, call) {
    if (turn.modelCalls.length === 0 || call.start < turn.start) turn.start = call.start;
    turn.modelCalls.push(call);
    call.turn = turn;
    this.own(turn, call.position);
    this.grow(turn, call.end);
  }

  modelCall(e, p, position) {
    const call = { ...p, position, end: e.timestamp, start: e.timestamp - (p.durationMs || 0), turn: null };
    this.modelCalls.push(call);
    if (p.operation && p.operation !== "messages") return;
    this.totals.model++;
    this.totals.usd += p.costUsd || 0;
    if (p.unpriced) this.unpriced = true;
    const t = p.tokens ?? {};
    const cached = (t.cacheRead || 0) + (t.cacheWrite5m || 0) + (t.cacheWrite1h || 0);
    this.totals.input += (t.input || 0) + cached;
    this.totals.cacheRead += t.cacheRead || 0;
    this.totals.output += t.output || 0;
    this.cost.push([call.end, this.totals.usd]);
    const agent = this.#agent(p.agent && p.agent !== "main" ? p.agent : "");
    const turn = agent.turns.at(-1);
    if (turn && !turn.provisional && turn.modelCalls.length === 0 && call.start <= turn.start + 50) {
      this.#giveModelCall(turn, call);
      return;
    }
    const late = turn && agent.id ? (turn.provisional ? agent.turns.at(-2) : turn) : undefined;
    const moved = late?.modelCalls.length ? late.children.filter((c) => c.kind === "call" && c.start >= call.start) : [];
    if (moved.length > 0 && late) { // a subagent's call came before its model call had ended
      if (turn.provisional) this.#remove(turn);
      const next = this.#newTurn(agent, late.index + 1, call.start);
      late.children = late.children.filter((c) => !moved.includes(c));
      this.moved = true;
      for (const c of moved) {
        this.#count(c, -1);
        c.parent = next;
        this.#count(c, 1);
        next.children.push(c);
        next.calls++;
        late.calls--;
        if (c.end === undefined) {
          late.openCalls--;
          next.openCalls++;
        }
      }
      this.#giveModelCall(next, call);
      return;
    }
    agent.pending.push(call);
    if (turn?.provisional) {
      this.own(turn, position);
      if (call.start > turn.start) turn.start = call.start;
      this.touch(turn);
    }
  }

  #newCall(agent, id, name, input, at) {
    const turn = agent.turns.at(-1) ?? this.#newTurn(agent, 1, at);
    return this.#callIn(turn, agent, id, name, input, at);
  }

  #callIn(turn, agent, id, name, input, at) {
    const call = this.#node("call", agent, turn, at);
    Object.assign(call, { callID: id, name, input, decisions: [], request: null, asked: 0, answered: 0, result: null, invoked: null, restored: null, progress: null, logs: [], steps: [], subagent: null });
    call.ours = name.startsWith("mcp__");
    call.label = name.replace(/^mcp__.*?__/, "");
    this.totals[call.ours ? "ours" : "native"]++;
    this.calls.set(id, call);
    if (name === "Agent" || name === "Task") this.starters.push(call);
    const file = baseOf(pathOf(input));
    if (file && !this.byFile.get(file)?.push(call)) this.byFile.set(file, [call]);
    turn.openCalls++;
    turn.calls++;
    this.setStatus(call, "running");
    return call;
  }

  toolUse(e, p, position) {
    const agent = this.#agentOf(e, p);
    const turn = this.turnFor(agent, e);
    const call = this.#callIn(turn, agent, p.toolUseId, p.toolName ?? "", p.input, e.timestamp);
    this.own(call, position);
    for (const x of this.early.get(p.toolUseId) ?? []) this.about(call, x, Number(x.position));
    this.early.delete(p.toolUseId);
    this.grow(turn, e.timestamp);
  }

  /** Takes an event about a call, which may come before the call. */
  aboutCall(e, p, position) {
    const call = this.calls.get(p.toolUseId);
    const before = e.type === "gate:decision" || e.type === "permission_request";
    if (!call || (call.result && before)) {
      const list = this.early.get(p.toolUseId);
      if (list) list.push(e);
      else this.early.set(p.toolUseId, [e]);
      return;
    }
    this.about(call, e, position);
  }

  about(call, e, position) {
    const p = e.payload;
    this.own(call, position);
    switch (e.type) {
      case "permission_request":
        call.request = p;
        call.asked = e.timestamp;
        this.setStatus(call, "waiting");
        break;
      case "gate:decision":
        call.decisions.push({ ...p, position, at: e.timestamp });
        this.#learnPolicies(p.chain ?? []);
        if (call.asked && !call.answered) call.answered = e.timestamp;
        this.setStatus(call, p.verdict === "deny" ? "denied" : "running");
        break;
      case "tool_result":
        this.#result(call, e, p);
        break;
      case "tool:invoked":
        call.invoked = p;
        if (p.source === "bridged" && !call.ours) {
          call.ours = true;
          this.totals.native--;
          this.totals.ours++;
        }
        break;
      case "workspace:restored":
        call.restored = p;
        break;
      case "tool:progress":
        call.progress = p;
        break;
      case "tool:log":
        call.logs.push(p);
        break;
      case "tool:step":
        call.steps.push({ ...p, at: e.timestamp });
        break;
      default:
    }
    this.touch(call);
  }

  #learnPolicies(chain) {
    if (chain.length <= this.policies.length) return;
    const names = new Set(chain.map((c) => c.policy).filter((p) => !["approver", "otherwise", "gate", "engine"].includes(p)));
    if (names.size > this.policies.length) this.policies = [...names];
  }

  #result(call, e, p) {
    const first = call.end === undefined;
    call.result = p;
    call.end = e.timestamp;
    // An answer that the completion check sends back was allowed, and is no denial.
    call.sentBack = call.name === "StructuredOutput" && p.status === "denied" && call.decisions.at(-1)?.verdict !== "deny";
    if (call.sentBack) {
      this.setStatus(call, "ok");
      this.#ended(call, e, first);
      return;
    }
    const denied = p.status === "denied" || (p.status !== "success" && call.decisions.at(-1)?.verdict === "deny");
    this.setStatus(call, denied ? "denied" : p.status === "error" || p.status === "needs_approval" ? "failed" : p.status === "cancelled" ? "cancelled" : "ok");
    this.#ended(call, e, first);
  }

  #ended(call, e, first) {
    this.grow(call.parent, e.timestamp);
    if (!first || !call.parent) return;
    const turn = call.parent;
    turn.openCalls--;
    if (turn.openCalls === 0 && turn === call.agent.turns.at(-1)) this.provision(call.agent, e.timestamp);
  }

  /** Sets the status of a node, and keeps the totals and the marks of those above it right. */
  setStatus(node, status) {
    const before = node.status;
    if (before === status) return;
    node.status = status;
    if (node.kind === "call" || node.kind === "note") {
      if (before in this.totals && problems.has(before)) this.totals[before]--;
      if (problems.has(status)) this.totals[status]++;
    }
    for (let n = node; n; n = n.parent) {
      if (problems.has(before)) n.found[before]--;
      if (problems.has(status)) n.found[status]++;
    }
    this.touch(node);
  }

  /** A row that is neither a turn nor a call. */
  note(e, position, what, label, status, agent = this.main) {
    const turn = agent.turns.findLast((t) => !t.provisional);
    const top = what === "prompt" || what === "end";
    const node = this.#node("note", agent, top ? null : turn ?? null, e.timestamp);
    Object.assign(node, { what, label, end: e.timestamp });
    const siblings = node.parent ? node.parent.children : this.roots;
    let at = siblings.length - 1;
    while (siblings[at - 1]?.provisional) at--; // a turn to come stays last
    siblings.pop();
    siblings.splice(at, 0, node);
    this.setStatus(node, status);
    if (status === "") node.status = "ok";
    this.own(node, position);
    if (node.parent) this.grow(node.parent, e.timestamp);
    return node;
  }

  own(node, position) {
    this.owner[position] = node;
    node.entries.push(position);
    this.touch(node);
  }

  /** Moves the end of a turn, and of the calls and turns around it. */
  grow(node, at) {
    for (let n = node; n; n = n.parent) {
      if (n.kind === "turn" && !(n.end >= at)) {
        n.end = at;
        this.touch(n);
      }
    }
  }
}

/** Ends what has no end. */
function settle(node, at) {
  if (node.end === undefined) node.end = at;
  if (node.kind === "turn") node.openCalls = 0;
  for (const child of node.children) settle(child, at);
}

function firstWords(text) {
  return typeof text === "string" ? text.split(/[:\n]/)[0].slice(0, 40) : "";
}

/** @type {Record<string, (m: RunModel, e: any, p: any, position: number) => void>} */
const handlers = {
  init(m, e, p, position) {
    m.init = { ...p, position };
    m.cwd = p.cwd || "";
    const prompt = m.roots.find((n) => n.kind === "note" && n.what === "prompt");
    if (prompt && prompt.ready === undefined) { // until then the agent has started
      prompt.ready = e.timestamp;
      m.touch(prompt);
    }
    m.provision(m.main, e.timestamp);
  },
  "isolation:walls"(m, e, p) {
    m.isolation = p;
  },
  "prompt:rendered"(m, e, p, position) {
    m.prompts.push({ ...p, position, toolSchemas: [] });
    m.note(e, position, "prompt", promptLabel(p.text), "");
  },
  "prompt:tools"(m, e, p, position) {
    const prompt = m.prompts.findLast((x) => x.eventId === p.renderEventId) ?? m.prompts.at(-1);
    if (prompt) prompt.toolSchemas = p.tools ?? [];
    if (prompt) m.owner[position] = m.owner[prompt.position];
  },
  text(m, e, p, position) {
    const agent = m.agentOf(e, p);
    const turn = m.turnFor(agent, e);
    turn.text += (turn.text && p.content ? "\n" : "") + (p.content ?? "");
    agent.stream = "";
    m.own(turn, position);
    m.grow(turn, e.timestamp);
  },
  thinking(m, e, p, position) {
    const turn = m.turnFor(m.agentOf(e, p), e);
    turn.thinking += (turn.thinking && p.summary ? "\n" : "") + (p.summary ?? "");
    m.own(turn, position);
    m.grow(turn, e.timestamp);
  },
  tool_use: (m, e, p, position) => m.toolUse(e, p, position),
  tool_result: (m, e, p, position) => m.aboutCall(e, p, position),
  permission_request: (m, e, p, position) => m.aboutCall(e, p, position),
  "gate:decision": (m, e, p, position) => m.aboutCall(e, p, position),
  "tool:invoked": (m, e, p, position) => m.aboutCall(e, p, position),
  "tool:step": (m, e, p, position) => m.aboutCall(e, p, position),
  "tool:progress": (m, e, p, position) => m.aboutCall(e, p, position),
  "tool:log": (m, e, p, position) => m.aboutCall(e, p, position),
  "workspace:restored": (m, e, p, position) => m.aboutCall(e, p, position),
  "file:modified"(m, e, p, position) {
    const file = m.files.get(p.path) ?? { path: p.path, nodes: [] };
    m.files.set(p.path, file);
    const call = m.byFile.get(baseOf(p.path ?? ""))?.findLast((c) => p.path.endsWith(pathOf(c.input)));
    if (call) {
      file.nodes.push(call);
      m.owner[position] = call;
    }
  },
  "gateway:model_call": (m, e, p, position) => m.modelCall(e, p, position),
  "gateway:connection"(m, e, p, position) {
    m.connections.push({ ...p, position, at: e.timestamp });
    if (p.verdict !== "allowed") m.note(e, position, "connection", `${p.host ?? ""}${p.port ? ":" + p.port : ""}: ${p.reason ?? p.verdict}`, p.verdict === "denied" ? "denied" : "failed", m.agentOf(e, p));
  },
  "gateway:refused"(m, e, p, position) {
    m.gatewayNotes.push({ ...p, kind: "refused", position, at: e.timestamp });
    m.note(e, position, "refused", `${p.method ?? ""} ${p.path ?? ""}: ${p.reason ?? ""}`, "denied");
  },
  "gateway:limit"(m, e, p, position) {
    m.gatewayNotes.push({ ...p, kind: "limit", position, at: e.timestamp });
    m.note(e, position, "limit", p.reason ?? p.limit ?? "", "failed");
  },
  "gateway:back_off"(m, e, p, position) {
    m.gatewayNotes.push({ ...p, kind: "back_off", position, at: e.timestamp });
    m.note(e, position, "back-off", `${p.upstream ?? "upstream"} answered ${p.status}, asked again in ${Math.round(p.waitMs || 0)} ms`, "");
  },
  "isolation:breach"(m, e, p, position) {
    m.note(e, position, "breach", p.message ?? p.what ?? "", "failed");
  },
  "completion:failed"(m, e, p, position) {
    m.note(e, position, "check", `round ${p.round ?? "?"}: ${p.feedback ?? ""}`, "failed", m.agentOf(e, p));
  },
  error(m, e, p, position) {
    m.note(e, position, p.code === "RETRY" ? "retry" : "error", p.message ?? "", p.recoverable ? "" : "failed", m.agentOf(e, p));
  },
  "context:compacting"(m, e, p, position) {
    m.note(e, position, "compacting", "the conversation is being shortened", "", m.agentOf(e, p));
  },
  "claude-code:compaction"(m, e, p, position) {
    m.note(e, position, "compacted", `from ${p.tokensBefore ?? "?"} to ${p.tokensAfter ?? "?"} tokens`, "", m.agentOf(e, p));
  },
  "claude-code:rate_limit"(m, e, p, position) {
    m.note(e, position, "rate limit", p.status ?? "", p.status === "rejected" ? "failed" : "");
  },
  "subagent:started"(m, e, p, position) {
    const agent = m.agentById(p.agentId);
    agent.type = p.type ?? "";
    agent.ended = false;
    if (!agent.call) {
      const open = m.starters.findLast((c) => !c.subagent && c.end === undefined);
      if (open) m.adopt(agent, open.callID);
    }
    if (agent.call) m.own(agent.call, position);
    m.provision(agent, e.timestamp);
  },
  "subagent:stopped"(m, e, p, position) {
    const agent = m.agentById(p.agentId);
    agent.ended = true;
    agent.stream = "";
    const turn = agent.turns.at(-1);
    if (turn && !turn.provisional) turn.ended = true;
    if (agent.call) m.own(agent.call, position);
  },
  "claude-code:task"(m, e, p, position) {
    const call = m.calls.get(p.toolUseId);
    if (!call) return;
    if (p.taskType === "local_agent" || p.subagentType || m.agents.has(p.taskId)) m.adopt(m.agentById(p.taskId), p.toolUseId);
    call.task = p;
    m.own(call, position);
  },
  "turn:done"(m, e, p, position) {
    const turn = m.main.turns.findLast((t) => !t.provisional);
    if (turn) {
      m.own(turn, position);
      turn.ended = true;
    }
  },
  done(m, e, p, position) {
    m.finish();
    const node = m.note(e, position, "end", p.status === "success" ? "Answer" : p.status ?? "end", p.status === "success" ? "" : "failed");
    node.text = answerLine(p);
    node.done = p;
  },
};

/** An answer in one line: a text, or of a structured one the text that sums it up. */
function answerLine(p) {
  const out = p.output;
  if (out && typeof out === "object") for (const name of ["summary", "answer", "message", "title", "result"]) if (typeof out[name] === "string") return out[name];
  return typeof p.result === "string" ? p.result : "";
}

/** The first line of a rendered prompt that is no heading. */
function promptLabel(text) {
  return (text ?? "").split("\n").find((l) => l.trim() && !l.startsWith("#"))?.slice(0, 300) ?? "";
}

/** The file that a call is about, or an empty text. */
export function pathOf(input) {
  const path = input?.file_path ?? input?.notebook_path ?? input?.path;
  return typeof path === "string" ? path : "";
}

function baseOf(path) {
  return path.slice(Math.max(path.lastIndexOf("/"), path.lastIndexOf("\\")) + 1);
}

/** A path without the working directory in front of it. */
export function shortPath(model, path) {
  return model.cwd && path.startsWith(model.cwd + "/") ? path.slice(model.cwd.length + 1) : path;
}

/** A long path of a row, by its end: the name of the file tells more than the folders above it. */
export function endOfPath(path) {
  const parts = path.split("/");
  return path.length > 32 && path.startsWith("/") && parts.length > 3 && !/\s/.test(path) ? "…/" + parts.slice(-2).join("/") : path;
}

/** What a call is about, in one line: a path, a command, a pattern, or its input. */
export function targetOf(model, call) {
  const input = call.input ?? {};
  const path = pathOf(input);
  if (path && !input.pattern) return shortPath(model, path);
  for (const key of ["command", "pattern", "url", "query", "description", "prompt", "skill"]) {
    if (typeof input[key] === "string" && input[key]) return input[key];
  }
  const text = JSON.stringify(input);
  return text === "{}" ? "" : text.slice(0, 300);
}

/** Whether a call changes a file. */
export function isEdit(call) {
  return /^(Edit|MultiEdit|Write|NotebookEdit|Replace|Create)$/.test(call.name ?? "");
}

/** The text of a row. */
export function labelOf(model, node) {
  if (node.kind === "turn") {
    if (node.provisional) return node.writing ? "writing…" : "waits for the model…";
    return node.text.trim() || node.thinking.trim() || namesOf(node.children) || "no text";
  }
  return node.label;
}

/** The names of the first calls of a turn. */
function namesOf(nodes) {
  const names = [];
  for (const n of nodes) {
    if (n.kind !== "call") continue;
    if (names.push(n.label) > namedCalls) return names.slice(0, namedCalls).join(", ") + ", …";
  }
  return names.join(", ");
}

/** How long a node took in milliseconds, or undefined while it is under way. */
export function tookOf(node, now) {
  if (node.kind === "call" && node.result?.durationMs !== undefined) return node.result.durationMs;
  const end = endOf(node, now);
  return end === undefined ? undefined : Math.max(0, end - node.start);
}

/** When a node ended: now, if something of it is under way. */
export function endOf(node, now) {
  if (node.kind === "turn" && (node.provisional || node.openCalls > 0)) return now;
  return node.end ?? now;
}

/** Whether the children of a node are shown. */
export function isOpen(model, node) {
  if (node.children.length === 0) return false;
  if (node.open !== undefined) return node.open;
  if (node.kind === "call") return true;
  if (node.found.denied || node.found.failed || node.found.waiting) return true;
  const turns = node.agent.turns;
  return node.index > (turns.at(-1)?.index ?? 0) - foldAfter;
}

/** All nodes, from top to bottom. */
export function* allNodes(nodes) {
  for (const node of nodes) {
    yield node;
    yield* allNodes(node.children);
  }
}

/**
 * Reads a filter: words, and tool:, is:, agent:, turn:. All of them must hold. Quotes keep words together.
 * @param {string} text
 * @returns {{node: (m: RunModel) => (n: Node) => boolean}|null} null for an empty filter
 */
export function parseFilter(text) {
  const terms = [];
  for (const [, key, quoted, bare] of text.matchAll(/(?:(tool|is|agent|turn):)?(?:"([^"]*)"?|(\S+))/gi)) {
    const value = (quoted ?? bare ?? "").toLowerCase();
    if (value) terms.push({ key: (key ?? "").toLowerCase(), value });
  }
  if (terms.length === 0) return null;
  return { node: (model) => (n) => terms.every((t) => holds(model, n, t)) };
}

function holds(model, node, { key, value }) {
  switch (key) {
    case "tool":
      return node.kind === "call" && (node.name.toLowerCase() === value || node.label.toLowerCase().includes(value));
    case "agent":
      return (node.agent.name + " " + node.agent.type + " " + node.agent.id).toLowerCase().includes(value);
    case "turn": {
      const turn = turnOf(node);
      if (!turn) return false;
      const range = value.match(/^(\d+)-(\d+)$/);
      const top = Number(turn.number.match(/^\d+/)?.[0]);
      return range ? top >= Number(range[1]) && top <= Number(range[2]) : turn.number === value || turn.number.startsWith(value + ".");
    }
    case "is":
      return isA(node, value);
    default:
      return textOf(model, node).includes(value);
  }
}

function isA(node, word) {
  switch (word) {
    case "model":
    case "turn":
      return node.kind === "turn";
    case "native":
      return node.kind === "call" && !node.ours;
    case "ours":
    case "own":
      return node.kind === "call" && node.ours;
    case "call":
      return node.kind === "call";
    case "edit":
      return node.kind === "call" && isEdit(node);
    case "subagent":
      return node.agent.id !== "";
    case "asked":
      return Boolean(node.asked);
    case "note":
      return node.kind === "note";
    case "problem":
      return problems.has(node.status);
    default:
      return node.status === word;
  }
}

/** The turn that a node is, or is in. */
export function turnOf(node) {
  for (let n = node; n; n = n.parent) if (n.kind === "turn") return n;
  return undefined;
}

/** The text in which words are searched, cut off, in lower case. It is kept until the node changes. */
function textOf(model, node) {
  if (node.words?.version === node.version) return node.words.text;
  const parts = [labelOf(model, node)];
  if (node.kind === "turn") parts.push(node.text, node.thinking);
  if (node.kind === "note") parts.push(node.what, node.text ?? "");
  if (node.kind === "call") {
    const output = node.result?.output;
    parts.push(node.name, node.callID, JSON.stringify(node.input ?? ""), typeof output === "string" ? output : JSON.stringify(output ?? ""), node.result?.failure?.message ?? "");
  }
  const text = parts.map((p) => String(p).slice(0, 20000)).join("\n").toLowerCase();
  node.words = { version: node.version, text };
  return text;
}

/** What an event says, in one line. */
export function summaryOf(e) {
  const p = e.payload ?? {};
  switch (e.type) {
    case "text":
      return p.content ?? "";
    case "thinking":
      return p.summary ?? "";
    case "tool_use":
      return `${p.toolName} ${JSON.stringify(p.input ?? {})}`.slice(0, 300);
    case "tool_result":
      return `${p.toolName} ${p.status}`;
    case "gate:decision":
      return `${p.toolName} ${p.verdict}${p.policy ? " by " + p.policy : ""}`;
    case "permission_request":
      return `${p.toolName}: ${p.reason ?? ""}`;
    case "gateway:model_call":
      return `${p.agent ?? ""} ${p.model ?? ""} ${p.status} $${(p.costUsd ?? 0).toFixed(4)}`;
    case "error":
      return p.message ?? "";
    case "done":
    case "turn:done":
      return p.status ?? "";
    case "init":
      return `${p.model ?? ""} in ${p.cwd ?? ""}`;
    case "prompt:rendered":
      return promptLabel(p.text);
    case "tool:step":
      return `${p.toolName} ${p.step}`;
    case "file:modified":
    case "workspace:file_written":
    case "workspace:file_deleted":
      return typeof p.path === "string" ? p.path : "";
    case "completion:failed":
      return p.feedback ?? "";
    default:
      return JSON.stringify(p).slice(0, 300);
  }
}
