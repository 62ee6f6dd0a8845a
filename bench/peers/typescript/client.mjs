// SPDX-License-Identifier: Apache-2.0

// The official TypeScript SDK as a client of the benchmark: one job as JSON in the only argument,
// one sample as JSON on standard output (see bench/internal/rig).

import { readFileSync, rmSync } from "node:fs";
import { createSdkMcpServer, query, tool } from "@anthropic-ai/claude-agent-sdk";
import { z } from "zod";

const job = JSON.parse(process.argv[2]);
const deathCapMS = 2000;

function peakKB() {
  try {
    return Number(/VmHWM:\s+(\d+)/.exec(readFileSync("/proc/self/status", "utf8"))[1]);
  } catch {
    return 0;
  }
}

// after resolves when the signal fires, or when the cap of a death has passed.
function after(signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, deathCapMS);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}

function options(env, mode) {
  const o = {
    pathToClaudeCodeExecutable: job.cli,
    env,
    includePartialMessages: true,
    settingSources: [],
    stderr: () => {},
  };
  if (mode.startsWith("hooks")) {
    o.hooks = { PreToolUse: [{ hooks: [async () => ({})] }] };
  }
  if (mode === "death") {
    o.hooks = {
      PreToolUse: [{ hooks: [async (_input, _id, { signal }) => (await after(signal), {})] }],
    };
  }
  if (mode === "permissions") {
    o.canUseTool = async (_name, input) => ({ behavior: "allow", updatedInput: input });
  }
  if (mode === "mcp") {
    const add = tool("add", "Adds two numbers", { a: z.number(), b: z.number() }, async ({ a, b }) => ({
      content: [{ type: "text", text: `the sum is ${a + b}` }],
    }));
    o.mcpServers = { bench: createSdkMcpServer({ name: "bench", version: "1.0.0", tools: [add] }) };
  }
  return o;
}

function textOf(m) {
  if (m.type === "stream_event") {
    return m.event.delta?.text?.length ?? 0;
  }
  let n = 0;
  for (const b of m.message.content) {
    if (b.type === "text") n += b.text.length;
    else if (b.type === "tool_result") n += b.content.length;
  }
  return n;
}

// converse sends the prompt when the handshake is done and reads up to the result.
async function converse(env, mode, sample) {
  let finish;
  const finished = new Promise((resolve) => (finish = resolve));
  let begin;
  const begun = new Promise((resolve) => (begin = resolve));
  async function* prompts() {
    await begun;
    sample.started = performance.now();
    yield { type: "user", message: { role: "user", content: "go" }, parent_tool_use_id: null, session_id: "" };
    await finished;
  }
  const q = query({ prompt: prompts(), options: options(env, mode) });
  q.initializationResult().then(begin, begin);
  try {
    for await (const m of q) {
      switch (m.type) {
        case "assistant":
        case "user":
        case "stream_event":
          sample.messages++;
          sample.text += textOf(m);
          break;
        case "result":
          sample.seconds = (performance.now() - sample.started) / 1e3;
          return;
      }
    }
  } finally {
    sample.endedAt = performance.timeOrigin + performance.now();
    finish();
  }
}

async function deaths() {
  const seen = [];
  for (const moment of job.moments) {
    rmSync(job.report, { force: true });
    const sample = { messages: 0, text: 0 };
    let said = "the messages ended";
    let timer;
    const inTime = await Promise.race([
      converse({ ...job.env, FAKECLI_DIE: moment }, "death", sample).then(
        () => true,
        (err) => ((said = String(err)), true),
      ),
      new Promise((resolve) => (timer = setTimeout(resolve, deathCapMS + 1000, false))),
    ]);
    clearTimeout(timer);
    if (!inTime) {
      seen.push({ moment, ms: deathCapMS, reason: false, said: "nothing in time" });
      continue;
    }
    const diedAt = JSON.parse(readFileSync(job.report, "utf8")).died_at / 1e6;
    seen.push({ moment, ms: sample.endedAt - diedAt, reason: /(code:?|status) 7/i.test(said), said: said.slice(0, 300) });
  }
  return seen;
}

const sample = { messages: 0, text: 0, seconds: 0 };
// A death before the handshake also rejects promises that nobody waits for.
process.on("unhandledRejection", () => {});
try {
  if (job.scenario === "death") sample.deaths = await deaths();
  else await converse(job.env, job.scenario, sample);
} catch (err) {
  sample.error = String(err);
}
const { messages, text, seconds, error } = sample;
process.stdout.write(JSON.stringify({ messages, text, seconds, deaths: sample.deaths, peak_kb: peakKB(), error }) + "\n", () => process.exit(0));
