// SPDX-License-Identifier: Apache-2.0

// Tests of the modules of the page that need no browser: node --test server/testdata

import { test } from "node:test";
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { RunModel, allNodes, endOfPath, isOpen, labelOf, parseFilter, targetOf, tookOf } from "../page/model.js";
import { Rows } from "../page/rows.js";
import { readEvents } from "../page/api.js";
import { plain } from "../page/plain.js";
import { exact, parseDiff } from "../page/text.js";
import { count, duration, money, plural, tickStep, titleOf } from "../page/format.js";
import { splitPrompt } from "../page/panel.js";

function log(name) {
  return readFileSync(new URL(`logs/${name}.jsonl`, import.meta.url), "utf8").trim().split("\n").slice(1).map((line) => {
    const entry = JSON.parse(line);
    return { ...entry.event, position: String(entry.pos) };
  });
}

function fold(events) {
  const model = new RunModel();
  for (const e of events) model.add(e);
  return model;
}

/** The rows of a model as it is now. */
function flatten(model, filter = null) {
  const rows = new Rows(model);
  rows.filter = filter;
  rows.rebuild();
  return rows.list;
}

/** A row as a text: "5.1 turn", "Bash failed". */
const rows = (model, filter = null) => flatten(model, filter).map(({ node, level }) => "  ".repeat(level - 1) + (node.kind === "turn" ? node.number : `${node.label.split(" ")[0]} ${node.status}`));

/** Makes events of a run with one agent. */
function events() {
  const list = [];
  let at = 1_000_000;
  const add = (type, payload, more = {}) => list.push({ type, timestamp: (at += 10), payload, position: String(list.length + 1), ...more });
  return { list, add, wait: (ms) => (at += ms) };
}

test("a run becomes turns, calls, a subagent's turns and notes", () => {
  const model = fold(log("review"));
  for (const n of allNodes(model.roots)) n.open = true;
  assert.deepEqual(rows(model), ["Review ok", "1", "  Bash ok", "  Read ok", "2", "  Read ok", "  Read ok", "  Read ok", "3", "  Write denied", "4", "  Edit ok", "  Write ok", "  Bash failed", "5", "  Agent ok", "    5.1", "      Bash ok", "      Read ok", "      Read ok", "    5.2", "      Bash ok", "      read_section ok", "    5.3", "  Bash failed", "6", "Answer ok"]);
  const { usd, ...totals } = model.totals;
  assert.deepEqual(totals, { model: 9, native: 15, ours: 1, denied: 1, failed: 2, waiting: 0, input: 116900, output: 1970, cacheRead: 91000 });
  assert.equal(usd.toFixed(4), "0.1662");
  assert.ok(model.ended);
});

test("each turn has its model call, and each entry its row", () => {
  const model = fold(log("review"));
  for (const agent of model.agents.values()) for (const turn of agent.turns) assert.equal(turn.modelCalls.length, 1, `turn ${turn.number}`);
  for (const e of model.entries) {
    const id = e.payload.toolUseId;
    if (id) assert.equal(model.nodeOf(Number(e.position)).callID, id, `${e.position} ${e.type}`);
  }
  assert.equal(labelOf(model, model.nodeOf(33)).length > 0, true);
});

test("a rolled back call, a person's answer and a denial are kept with their call", () => {
  const model = fold(log("review"));
  const calls = [...model.calls.values()];
  const rolled = calls.find((c) => c.restored);
  assert.equal(rolled.status, "failed");
  assert.deepEqual(rolled.restored.restored, ["cart/left.txt"]);
  const asked = calls.find((c) => c.asked);
  assert.ok(asked.answered > asked.asked);
  assert.equal(asked.decisions[0].policy, "approver");
  const denied = calls.find((c) => c.status === "denied");
  assert.equal(denied.decisions.at(-1).chain.at(-1).verdict, "deny");
});

test("what fails inside a turn keeps it open, quiet turns fold", () => {
  const model = fold(log("review"));
  const turn = (n) => model.main.turns[n - 1];
  assert.equal(isOpen(model, turn(1)), false);
  assert.equal(isOpen(model, turn(3)), true);
  assert.deepEqual(turn(5).found, { denied: 0, failed: 1, waiting: 0 });
});

test("a completion check and a limit are notes", () => {
  const demo = fold(log("demo"));
  const check = [...allNodes(demo.roots)].find((n) => n.what === "check");
  assert.equal(check.status, "failed");
  assert.equal(check.parent.number, "5");
  const budget = fold(log("budget"));
  assert.ok([...allNodes(budget.roots)].some((n) => n.what === "limit" && n.status === "failed"));
});

test("events are taken once, and a gap is an error", () => {
  const all = log("demo");
  const model = fold(all);
  const before = JSON.stringify(model.totals);
  for (const e of all) model.add(e);
  assert.equal(JSON.stringify(model.totals), before);
  assert.equal(model.position, all.length);
  assert.throws(() => model.add({ ...all[0], position: String(all.length + 2) }), /came after/);
});

test("a log that stops anywhere has no row twice, and what was under way has an end", () => {
  const all = log("review");
  for (let n = 1; n < all.length; n++) {
    const model = fold(all.slice(0, n));
    model.finish();
    const nodes = [...allNodes(model.roots)];
    assert.equal(new Set(nodes).size, nodes.length, `after ${n}`);
    for (const node of nodes) assert.notEqual(tookOf(node, undefined), undefined, `after ${n}: ${node.kind}`);
    assert.equal(nodes.filter((x) => x.provisional).length, 0, `after ${n}`);
    assert.equal(model.totals.waiting, 0, `after ${n}`);
  }
});

test("rows do not depend on how far ahead a reader was", () => {
  const all = log("review");
  const whole = fold(all);
  const live = new RunModel();
  for (const e of all) {
    live.add(e);
    flatten(live, null);
    if (e.type === "text") live.addPart({ ...e, type: "text_delta", payload: { delta: "x" } });
  }
  for (const m of [whole, live]) for (const n of allNodes(m.roots)) n.open = true;
  assert.deepEqual(rows(live), rows(whole));
});

test("rows that are kept up to date are those that are made at once", () => {
  for (const name of ["review", "demo", "budget"]) {
    const all = log(name);
    for (const filter of ["", "is:denied", "is:running", "is:waiting", "tool:bash", "is:subagent", "go", "turn:3-5", "is:model"]) for (const step of [1, 3, 10]) {
      const model = new RunModel();
      const live = new Rows(model);
      live.filter = parseFilter(filter)?.node(model) ?? null;
      live.rebuild();
      all.forEach((e, i) => {
        model.add(e);
        if (e.type === "tool_result") model.addPart({ ...e, type: "text_delta", payload: { delta: "x" } });
        if (i === all.length - 2) model.finish();
        if (i % step) return;
        live.update();
        const shown = (list) => list.map((r) => `${r.level} ${r.open} ${r.node.id}`);
        const where = `${name} "${filter}" in steps of ${step}, event ${i + 1} ${e.type}`;
        assert.deepEqual(shown(live.list), shown(flatten(model, live.filter)), where);
        assert.deepEqual([...live.index].sort((a, b) => a[1] - b[1]).map(([n, at]) => `${at} ${n.id}`), live.list.map((r, at) => `${at} ${r.node.id}`), where);
        for (const n of allNodes(model.roots)) for (const kind of ["denied", "failed", "waiting"]) assert.equal(n.found[kind], [...allNodes([n])].filter((x) => x.kind !== "turn" && x.status === kind).length, `${where}: ${kind} in ${n.id}`);
      });
    }
  }
});

test("what an event costs does not grow with the run", () => {
  for (const filter of ["", "tool:read", "is:denied"]) {
    const { list, add } = events();
    add("text", { content: "one turn with all calls" }, { turn: 1 });
    const call = (id) => {
      add("tool_use", { toolUseId: id, toolName: "Read", input: { file_path: `/w/${id}.go` } }, { turn: 1 });
      add("tool_result", { toolUseId: id, status: "success" }, { turn: 1 });
    };
    for (let k = 0; list.length < 10_000; k++) call(`c${k}`);
    const model = fold(list);
    let asked = 0;
    const rows = new Rows(model);
    const holds = parseFilter(filter)?.node(model);
    rows.filter = holds ? (n) => ++asked && holds(n) : null;
    rows.rebuild();
    const before = new Set(rows.list);
    asked = 0;
    for (const id of ["next", "last"]) {
      call(id);
      for (const e of list.slice(-2)) {
        model.add(e);
        rows.update();
      }
    }
    assert.equal(rows.list.filter((r) => !before.has(r)).length, filter === "is:denied" ? 0 : 2, `rows made of two calls with the filter "${filter}"`);
    assert.ok(asked <= 40, `the filter "${filter}" was asked ${asked} times about four events`);
    const children = model.roots[0].children;
    model.roots[0].children = new Proxy(children, { get: (of, name) => (/^\d+$/.test(String(name)) ? (asked++, of[name]) : Reflect.get(of, name)) });
    asked = 0;
    model.roots[0].text = "";
    labelOf(model, model.roots[0]);
    assert.ok(asked <= 40, `a label has read ${asked} calls`);
  }
});

test("a turn that is being written is a row, and ends as the same turn", () => {
  const { list, add } = events();
  add("init", { model: "m", cwd: "/w", tools: [] });
  add("text", { content: "one" }, { turn: 1 });
  add("tool_use", { toolUseId: "a", toolName: "Read", input: { file_path: "/w/x" } }, { turn: 1 });
  add("tool_result", { toolUseId: "a", toolName: "Read", status: "success" }, { turn: 1 });
  const model = fold(list);
  assert.deepEqual(rows(model), ["1", "  Read ok", "2"]);
  assert.equal(model.addPart({ type: "text_delta", timestamp: 1_000_060, payload: { delta: "tw" } }), true);
  assert.equal(model.addPart({ type: "text_delta", timestamp: 1_000_061, payload: { delta: "o" } }), false);
  assert.equal(labelOf(model, model.main.turns[1]), "writing…");
  assert.equal(model.main.stream, "two");
  add("text", { content: "two" }, { turn: 2 });
  model.add(list.at(-1));
  assert.deepEqual(rows(model), ["1", "  Read ok", "2"]);
  assert.equal(model.main.stream, "");
  assert.equal(targetOf(model, model.calls.get("a")), "x");
});

test("a question waits until it is decided", () => {
  const { list, add } = events();
  add("permission_request", { toolUseId: "a", toolName: "Bash", input: { command: "ls" }, reason: "r" });
  add("tool_use", { toolUseId: "a", toolName: "Bash", input: { command: "ls" } }, { turn: 1 });
  const model = fold(list);
  assert.equal(model.totals.waiting, 1);
  assert.equal(model.main.turns[0].found.waiting, 1);
  add("gate:decision", { toolUseId: "a", verdict: "deny", policy: "approver", reason: "no" });
  model.add(list.at(-1));
  assert.deepEqual([model.totals.waiting, model.totals.denied], [0, 1]);
});

test("a subagent's turns are told apart without numbers", () => {
  const { list, add, wait } = events();
  const sub = { agentId: "s", parentToolUseId: "t" };
  const call = (id) => add("tool_use", { toolUseId: id, toolName: "Read", input: {}, agentId: "s" }, { turn: 1, ...sub });
  const result = (id) => add("tool_result", { toolUseId: id, status: "success" }, { turn: 1, ...sub });
  const modelCall = (durationMs) => add("gateway:model_call", { operation: "messages", agent: "s", status: 200, durationMs, tokens: {} });
  add("tool_use", { toolUseId: "t", toolName: "Agent", input: { description: "look: around" } }, { turn: 1 });
  add("subagent:started", { agentId: "s", type: "Explore" }, { agentId: "s" });
  wait(100);
  modelCall(90);
  call("a"); // it has ended before the next call of the same answer comes
  result("a");
  call("b");
  result("b");
  wait(500);
  call("c"); // it comes before its model call, which is streamed, has ended
  modelCall(400);
  result("c");
  const model = fold(list);
  model.finish();
  for (const n of allNodes(model.roots)) n.open = true;
  assert.deepEqual(rows(model), ["1", "  Agent cancelled", "    1.1", "      Read ok", "      Read ok", "    1.2", "      Read ok"]);
  const agent = model.agents.get("s");
  assert.deepEqual([agent.name, agent.turns.map((t) => t.modelCalls.length)], ["look", [1, 1]]);
});

test("a turn that was expected and did not come leaves no row", () => {
  const { list, add } = events();
  add("tool_use", { toolUseId: "a", toolName: "Read", input: {} }, { turn: 1 });
  add("tool_result", { toolUseId: "a", status: "success" }, { turn: 1 });
  add("text", { content: "x" }, { turn: 3 });
  assert.deepEqual(rows(fold(list)), ["1", "  Read ok", "3"]);
});

test("an id that is used again is another call", () => {
  const { list, add } = events();
  for (const status of ["error", "success"]) {
    add("gate:decision", { toolUseId: "a", verdict: "allow", policy: "p" });
    add("tool_use", { toolUseId: "a", toolName: "Bash", input: {} }, { turn: 1 });
    add("tool_result", { toolUseId: "a", toolName: "Bash", status }, { turn: 1 });
  }
  const model = fold(list);
  assert.deepEqual(model.main.turns[0].children.map((c) => [c.status, c.decisions.length]), [["failed", 1], ["ok", 1]]);
});

test("the filter knows words, tools, states, agents and turns", () => {
  const model = fold(log("review"));
  const find = (text) => {
    const filter = parseFilter(text).node(model);
    return [...allNodes(model.roots)].filter(filter).map((n) => (n.kind === "turn" ? n.number : n.label.split(" ")[0]));
  };
  assert.deepEqual(find("is:denied"), ["Write"]);
  assert.deepEqual(find("tool:write"), ["Write", "Write"]);
  assert.deepEqual(find("tool:bash agent:audit"), ["Bash", "Bash"]);
  assert.deepEqual(find("turn:5.2 is:call"), ["Bash", "read_section"]);
  assert.deepEqual(find("turn:3-4 is:problem"), ["Write", "Bash"]);
  assert.deepEqual(find('"round once"').slice(0, 1), ["Edit"]);
  assert.deepEqual(find("is:ours"), ["read_section"]);
  assert.equal(parseFilter("  "), null);
  assert.deepEqual(rows(model, parseFilter("is:denied").node(model)), ["3", "  Write denied"]);
});

test("10,000 events fold and flatten in well under a second", () => {
  const { list, add } = events();
  for (let turn = 1; list.length < 10_000; turn++) {
    add("text", { content: `turn ${turn}` }, { turn });
    for (let k = 0; k < 3; k++) {
      add("tool_use", { toolUseId: `${turn}.${k}`, toolName: "Read", input: {} }, { turn });
      add("gate:decision", { toolUseId: `${turn}.${k}`, verdict: "allow", chain: [] });
      add("tool_result", { toolUseId: `${turn}.${k}`, status: "success" }, { turn });
    }
  }
  const before = process.cpuUsage();
  const model = fold(list);
  assert.equal(flatten(model, null).length, 1001 + 2 * 3); // with the turn to come; the last three are open
  const used = process.cpuUsage(before);
  assert.ok((used.user + used.system) / 1000 < 700, `${(used.user + used.system) / 1000} ms of CPU`);
});

test("server-sent events may be split anywhere", async () => {
  const text = ': beat\n\nevent: entry\nid: 1\ndata: {"a":\ndata: "ü€𝄞"}\n\nevent: end\ndata: {}\n\nevent: cut\ndata: x';
  const bytes = new TextEncoder().encode(text);
  for (const step of [1, 2, 3, 7, bytes.length]) {
    const got = [];
    const body = new ReadableStream({
      start(c) {
        for (let i = 0; i < bytes.length; i += step) c.enqueue(bytes.slice(i, i + step));
        c.close();
      },
    });
    await readEvents(body, (e) => got.push(e));
    assert.deepEqual(got, [{ event: "entry", id: "1", data: '{"a":\n"ü€𝄞"}' }, { event: "end", id: "", data: "{}" }], `in steps of ${step}`);
  }
});

test("control and bidi characters get names, joined emoji stay", () => {
  assert.equal(plain("a\u001b[31m\u202ecba\u202c\u0000\u200b"), "a[ESC][31m[RLO]cba[PDF][NUL][ZWSP]");
  assert.equal(plain("👩\u200d🚀 a\u200db"), "👩\u200d🚀 a[ZWJ]b");
  assert.equal(plain("tab\tline\r\nend\r"), "tab\tline\nend[CR]");
  assert.equal(plain("\ud800x\u{e0041}"), "[U+D800]x[U+E0041]");
});

test("numbers stay as they are written", () => {
  const text = '{"a":12345678901234567890,"b":1.50,"c":"x"}';
  const value = exact(text);
  assert.equal(JSON.rawJSON ? JSON.stringify(value) : text, text);
});

test("a diff is read with its numbers, also lines that look like headers", () => {
  const [file, second] = parseDiff("diff --git a/x.go b/x.go\nindex 1..2 100644\n--- a/x.go\n+++ b/x.go\n@@ -1,3 +1,3 @@ func\n a\n--- b\n+++ c\n d\n\\ No newline at end of file\ndiff --git a/y b/y\nnew file mode 100644\n--- /dev/null\n+++ b/y\n@@ -0,0 +1 @@\n+z\n");
  assert.deepEqual([file.path, file.added, file.removed, file.hunks[0].lines.length], ["x.go", 1, 1, 5]);
  assert.deepEqual([second.path, second.added, second.removed, second.notes], ["y", 1, 0, ["new file mode 100644"]]);
});

test("a prompt is split at its sections, and not at headings inside them", () => {
  const parts = splitPrompt({ text: "## 1. Task (task)\n\nDo it.\n## 9. Not one (other)\n\n### 1.1. Part (task.part)\n\nx", descriptor: { sections: [{ path: "task", hash: "h" }, { path: "task.part", hash: "i" }] } });
  assert.deepEqual(parts.map((p) => [p.title, p.path, p.text]), [["1. Task", "task", "Do it.\n## 9. Not one (other)"], ["1.1. Part", "task.part", "x"]]);
});

test("a title is the first sentence of the prompt", () => {
  const title = (text) => titleOf({ title: text, name: "review", id: "1" });
  assert.equal(title("## 1. Task (task) Review shop: money and trust. Fix it. ## 2. Rules (rules) Work"), "Review shop: money and trust");
  assert.equal(title("Make the tests pass"), "Make the tests pass");
  assert.equal(title("List a.go and b.go"), "List a.go and b.go");
  assert.equal(title(""), "review");
});

test("figures are short and exact enough", () => {
  assert.deepEqual([0.2, 3, 38, 7300, 84_700, 246_000, 3_723_000].map(duration), ["200 µs", "3.0 ms", "38 ms", "7.3 s", "84.7 s", "4:06", "1:02:03"]);
  assert.deepEqual([undefined, 0, 0.0042, 0.43, 1234.5].map(money), ["–", "$0.00", "$0.0042", "$0.43", "$1,234.50"]);
  assert.deepEqual([954, 16_700, 167_000, 1_310_000].map(count), ["954", "16.7k", "167k", "1.31M"]);
  assert.deepEqual([plural(1, "call"), plural(2000, "call")], ["1 call", "2,000 calls"]);
  assert.equal(tickStep(246_000, 4), 120_000);
});

test("the modules of the page do not import each other in a circle", () => {
  const folder = new URL("../page/", import.meta.url);
  const modules = readdirSync(folder).filter((name) => name.endsWith(".js"));
  const imports = new Map(modules.map((name) => [name, [...readFileSync(new URL(name, folder), "utf8").matchAll(/from "\.\/([\w.]+)"/g)].map((m) => m[1])]));
  assert.ok(imports.get("text.js")?.includes("dom.js"), "the imports are seen");
  const walk = (name, above) => {
    assert.ok(!above.includes(name), `a circle: ${[...above, name].join(" -> ")}`);
    for (const next of imports.get(name) ?? []) walk(next, [...above, name]);
  };
  for (const name of modules) walk(name, []);
});

test("each module is loaded at once, and not when another asks for it", () => {
  const folder = new URL("../page/", import.meta.url);
  const modules = readdirSync(folder).filter((name) => name.endsWith(".js"));
  const html = readFileSync(new URL("index.html", folder), "utf8");
  assert.deepEqual(modules.filter((name) => !html.includes(`href="/static/${name}"`) && !html.includes(`src="/static/${name}"`)), []);
});

test("an answer that the completion check sends back is no denial", () => {
  const model = fold(log("demo"));
  const answers = [...model.calls.values()].filter((c) => c.name === "StructuredOutput");
  assert.deepEqual(answers.map((c) => [c.status, c.sentBack]), [["ok", true], ["ok", false]]);
  assert.equal(model.totals.denied, 1);
});

test("the row of the prompt lasts until the agent has started, and paths are known by their end", () => {
  const model = fold(log("demo"));
  const prompt = model.roots[0];
  assert.equal(prompt.what, "prompt");
  assert.ok(prompt.ready - prompt.start > 1000);
  assert.equal(endOfPath("/tmp/drover-demo-4163829643/shop/cart.go"), "…/shop/cart.go");
  assert.equal(endOfPath("cart/cart.go"), "cart/cart.go");
  assert.equal(endOfPath("/usr/bin/find . -name '*.go' -newer /tmp/mark"), "/usr/bin/find . -name '*.go' -newer /tmp/mark");
});
