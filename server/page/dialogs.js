// SPDX-License-Identifier: Apache-2.0

// Dialogs: start a run, continue it or send a message, choose a run to compare with, say what did not work.

import { h, fill, button, openDialog, announce } from "./dom.js";
import { api } from "./api.js";
import { dayAndTime, money, plural, titleOf } from "./format.js";
import { plain } from "./plain.js";
import { lineSpan, textSpan } from "./text.js";

/** Says in a dialog what did not work, and what to do. */
export function failed(title, err) {
  openDialog(title, (close) => [h("p", null, textSpan(err.message)), err.next && h("p", null, "Next: ", textSpan(err.next)), h("div", { class: "dialog-foot" }, button("Close", { class: "primary", onclick: close }))]);
}

/** A field with its label. */
function field(label, control, note = "") {
  return h("label", { class: "field" }, h("span", { class: "label" }, label), control, note && h("span", { class: "dim" }, note));
}

/** The foot of a form: its problem, cancel, send. */
function foot(close, word) {
  const problem = h("p", { class: "tone-denied", role: "alert", hidden: true });
  const send = h("button", { type: "submit", class: "primary" }, word);
  return { problem, send, el: [problem, h("div", { class: "dialog-foot" }, button("Cancel", { onclick: close }), send)] };
}

async function sending({ problem, send }, act) {
  send.disabled = true;
  problem.hidden = true;
  try {
    await act();
  } catch (err) {
    problem.hidden = false;
    fill(problem, textSpan(err.message), err.next && [" Next: ", textSpan(err.next)], err.retryAfter ? ` Try again in ${plural(err.retryAfter, "second")}.` : "");
    send.disabled = false;
  }
}

/** Sends a message to a run, or continues one that has ended. */
export function sendMessage(app, run, state) {
  const ended = state === "ended";
  openDialog(ended ? "Continue this run" : "Send a message", (close) => {
    const text = h("textarea", { rows: "5", "aria-label": "Message", placeholder: ended ? "Empty: continue where it stopped" : "The agent reads it after its answer", required: !ended });
    const end = foot(close, ended ? "Continue" : "Send");
    const form = h("form", { onsubmit: (e) => {
      e.preventDefault();
      sending(end, async () => {
        const sent = api.message(run.id, text.value.trim());
        fill(end.send, ended ? "Starting…" : "Waiting for the turn to end…");
        try {
          const next = await sent;
          close();
          announce(ended ? "The run continues." : "The message is sent.");
          if (next?.id && next.id !== run.id) app.go("/r/" + encodeURIComponent(next.id));
        } finally {
          fill(end.send, ended ? "Continue" : "Send");
        }
      });
    } }, h("p", null, ended ? "The conversation continues in a new run with the same settings." : "The message reaches the agent when the turn under way has ended. It may take as long as that turn."), text, ...end.el);
    return [form];
  }, "form");
}

/** Starts a run: an agent of the offer with its arguments, or a prompt. What the server offers can only be narrowed. */
export async function startRun(app, again = null) {
  let offer;
  try {
    offer = await api.offer();
  } catch (err) {
    failed("No run can be started", err);
    return;
  }
  openDialog(again ? "Start again with changes" : "Start a run", (close) => {
    const agents = offer.agents ?? [];
    const choose = h("select", { "aria-label": "Agent", onchange: () => paint() }, offer.prompts && h("option", { value: "" }, "A prompt of yours"), agents.map((a) => h("option", { value: a.name }, plain(a.name))));
    choose.value = again?.agent && agents.some((a) => a.name === again.agent) ? again.agent : offer.prompts ? "" : agents[0]?.name ?? "";
    const prompt = h("textarea", { rows: "5", placeholder: "What the agent should do", "aria-label": "Prompt", value: again?.prompt ?? "" });
    const fields = h("div");
    const paint = () => {
      const agent = agents.find((a) => a.name === choose.value);
      fill(fields, agent ? [agent.description && h("p", { class: "dim" }, textSpan(agent.description)), (agent.args ?? []).map((a) => field([textSpan(a.name), a.required && " (required)"], h("input", { type: "text", "data-arg": a.name, required: a.required, value: again?.args?.[a.name] ?? "" }), a.description ? plain(a.description) : ""))] : field("Prompt", prompt));
      prompt.required = !agent;
    };
    paint();
    const folders = offer.folders ?? [];
    const folder = h("select", { "aria-label": "Folder" }, folders.map((f) => h("option", { value: f, selected: f === again?.folder }, plain(f))));
    const model = h("input", { type: "text", value: again?.model ?? "", placeholder: "the agent's own" });
    const most = offer.limits ?? {};
    const limit = (name, label, step) => [name, field(label, h("input", { type: "number", min: "0", max: most[name], step, "data-limit": name, placeholder: most[name] ? `at most ${most[name]}` : "no limit", value: again?.limits?.[name] ?? "" }))];
    const limits = [limit("usd", "Cost, in dollars", "any"), limit("tokens", "Tokens", "1"), limit("turns", "Turns", "1"), limit("seconds", "Time, in seconds", "1")];
    const words = { fileWrite: "change files", shellExecute: "run commands", networkAccess: "reach the network" };
    const permissions = Object.entries(offer.permissions ?? {}).map(([name, level]) => h("label", { class: "check" }, h("input", { type: "checkbox", "data-capability": name, checked: level !== "deny" && !(again?.deny ?? []).includes(name), disabled: level === "deny" }), ` may ${words[name] ?? plain(name)}`, h("span", { class: "dim" }, level === "ask" ? ", a person is asked" : level === "deny" ? ", not offered here" : "")));
    const readOnly = h("input", { type: "checkbox", checked: Boolean(again?.readOnly) });
    const tools = offer.tools ?? [];
    const toolChecks = tools.map((t) => h("label", { class: "check" }, h("input", { type: "checkbox", "data-tool": t, checked: !again?.tools || again.tools.includes(t) }), " ", textSpan(t, "mono")));
    const end = foot(close, "Start");
    const form = h("form", { onsubmit: (e) => {
      e.preventDefault();
      sending(end, async () => {
        const start = { folder: folder.value || undefined };
        const all = (name) => [...form.querySelectorAll(`[data-${name}]`)];
        if (choose.value) {
          start.agent = choose.value;
          start.args = Object.fromEntries(all("arg").filter((i) => i.value !== "").map((i) => [i.dataset.arg, i.value]));
        } else {
          start.prompt = prompt.value;
        }
        if (model.value.trim()) start.model = model.value.trim();
        const given = all("limit").filter((i) => i.value !== "").map((i) => [i.dataset.limit, Number(i.value)]);
        if (given.length) start.limits = Object.fromEntries(given);
        const deny = all("capability").filter((i) => !i.checked && !i.disabled).map((i) => i.dataset.capability);
        if (deny.length) start.deny = deny;
        if (readOnly.checked) start.readOnly = true;
        const wanted = all("tool").filter((i) => i.checked).map((i) => i.dataset.tool);
        if (wanted.length < tools.length) start.tools = wanted;
        const run = await api.start(start);
        close();
        app.go("/r/" + encodeURIComponent(run.id));
      });
    } },
    field("Agent", choose), fields, folders.length > 0 && field("Folder", folder), field("Model", model),
    h("fieldset", { class: "limits" }, h("legend", null, "Limits"), limits.map(([, el]) => el)),
    h("fieldset", null, h("legend", null, "What it may do"), permissions, h("label", { class: "check" }, readOnly, " only read", h("span", { class: "dim" }, ", every tool that changes something is refused"))),
    toolChecks.length > 0 && h("details", null, h("summary", null, `Tools (${tools.length})`), h("div", { class: "checks" }, toolChecks)),
    ...end.el);
    return [form];
  }, "form wide-dialog");
}

/** Chooses a run to compare with. */
export async function chooseRun(app, run) {
  let list = [];
  openDialog("Compare with", (close) => {
    const rows = h("ul", { class: "links choose-run" });
    const paint = (q) => fill(rows, list.filter((r) => r.id !== run.id && plain(`${r.title} ${r.id} ${r.name ?? ""}`).toLowerCase().includes(q)).slice(0, 50).map((r) => h("li", null, h("button", { type: "button", class: "link-row", onclick: () => {
      close();
      app.go(`/compare?${new URLSearchParams({ a: run.id, b: r.id })}`);
    } }, h("span", { class: "mono dim" }, plain(r.id.slice(0, 8))), " ", lineSpan(titleOf(r), "target prose"), h("span", { class: "took" }, `${dayAndTime(r.began, app.now())}, ${money(r.costUsd)}`)))));
    const search = h("input", { type: "search", "aria-label": "Search runs", placeholder: "Search", oninput: () => paint(search.value.toLowerCase()) });
    api.runs({ limit: "200" }).then((answer) => {
      const same = (r) => (r.name && r.name === run.name ? 0 : 1);
      list = answer.runs.sort((a, b) => same(a) - same(b));
      paint("");
      if (!rows.children.length) fill(rows, h("li", { class: "dim" }, "There is no other run."));
    }).catch((err) => fill(rows, h("li", { class: "tone-failed" }, textSpan(err.message))));
    return [search, rows, h("div", { class: "dialog-foot" }, button("Cancel", { onclick: close }))];
  }, "form");
}

/** Opens a bundle from a file. */
export function openBundle(app, control) {
  const input = h("input", { type: "file", accept: ".zip,application/zip", class: "unseen", tabIndex: -1, "aria-hidden": "true", onchange: async () => {
    const file = input.files[0];
    input.value = "";
    if (!file) return;
    try {
      announce("The bundle is being read.");
      const run = await api.openBundle(file);
      app.go("/r/" + encodeURIComponent(run.id));
    } catch (err) {
      failed("The bundle cannot be opened", err);
    }
  } });
  return [input, button("Open a bundle", { ...control, onclick: () => input.click() })];
}
