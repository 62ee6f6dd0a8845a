// SPDX-License-Identifier: Apache-2.0

// Questions of runs: what is asked, and the answer with its reason.

import { h, fill, icon, button, key, announce } from "./dom.js";
import { api } from "./api.js";
import { ago, clock } from "./format.js";
import { plain } from "./plain.js";
import { inputBlocks, lineSpan, textSpan } from "./text.js";

/** What a question is about, in one line. */
export function askedFor(q) {
  const input = q.input ?? {};
  for (const name of ["command", "file_path", "notebook_path", "path", "pattern", "url", "query"]) if (typeof input[name] === "string") return input[name];
  return JSON.stringify(input);
}

/** How long a question waits, and when it is denied: "Waiting 1:25. No answer is a deny, in 3:35." */
export function waiting(q, now) {
  const since = `Waiting ${clock(Math.max(0, now - Date.parse(q.asked)))}.`;
  if (!q.until) return since;
  return `${since} No answer is a deny, in ${clock(Math.max(0, Date.parse(q.until) - now))}.`;
}

export function waitingShort(q, now) {
  const left = q.until ? `, denies itself in ${clock(Math.max(0, Date.parse(q.until) - now))}` : "";
  return ago(Math.max(0, now - Date.parse(q.asked))) + left;
}

/**
 * The buttons of a question. Deny asks for a reason, which the model reads.
 * @param {any} q
 * @param {object} on
 * @param {() => string} on.refused why no answer can be sent, or empty
 * @param {(text: string) => void} on.done @param {boolean} [on.short] without the answer for the whole run @param {boolean} [on.keys]
 */
export function answerButtons(q, on) {
  const box = h("div", { class: "answers" });
  const problem = h("p", { class: "tone-denied answer-problem", role: "alert", hidden: true });
  const send = async (answer, text) => {
    for (const b of box.querySelectorAll("button, input")) b.disabled = true;
    on.sending?.(true);
    try {
      await api.answer(q.run, q.id, answer);
      announce(text);
      on.done(text);
    } catch (err) {
      on.sending?.(false);
      problem.hidden = false;
      if (err.status === 409) fill(problem, "Already answered: ", textSpan(err.message));
      else fill(problem, "The answer could not be sent: ", textSpan(err.message));
      announce(problem.textContent);
      update();
    }
  };
  const what = plain(`${q.tool}: ${askedFor(q)}`).slice(0, 120);
  const deny = button("Deny", { class: "deny", "aria-label": `Deny ${what}`, onclick: () => reason() }, on.keys && key("n"));
  const rest = on.short ? null : button("Allow this run", { class: "rest", title: "This call and equal ones, for the rest of the run", "aria-label": `Allow for the rest of this run ${what}`, onclick: () => send({ verdict: "allow", remember: "input" }, "Allowed for this run") }, on.keys && key("a"));
  const once = button("Allow once", { class: "primary once", "aria-label": `Allow once ${what}`, onclick: () => send({ verdict: "allow", remember: "once" }, "Allowed once") }, on.keys && key("y"));
  const first = [deny, rest, once].filter(Boolean);
  const text = h("input", { type: "text", placeholder: "Reason, for the model (optional)", "aria-label": "Reason of the denial, which the model reads", maxlength: 2000, onkeydown: (e) => {
    if (e.key === "Enter") sendDeny();
    if (e.key === "Escape") choose();
    if (e.key === "Enter" || e.key === "Escape") {
      e.preventDefault();
      e.stopPropagation();
    }
  } });
  const sendDeny = () => send({ verdict: "deny", remember: "once", ...(text.value.trim() ? { reason: text.value.trim() } : {}) }, "Denied");
  const second = [text, button("Cancel", { onclick: () => choose() }), button("Deny", { class: "danger", onclick: sendDeny })];
  const reason = () => {
    fill(box, second);
    box.classList.add("with-reason");
    update();
    text.focus();
  };
  const choose = () => {
    fill(box, first);
    box.classList.remove("with-reason");
    update();
    deny.focus();
  };
  const update = () => {
    const refused = on.refused();
    for (const b of box.querySelectorAll("button, input")) {
      if (b.textContent === "Cancel") continue;
      b.disabled = refused !== "";
      if (refused) b.title = refused;
      else if (b !== rest) b.removeAttribute("title");
    }
  };
  fill(box, first);
  update();
  return { box, problem, update, deny: reason, once: () => once.click(), rest: () => rest?.click() };
}

/** A strip of the page of a run: one question. It takes the focus as one thing, and y a n answer while it has it. */
export class QuestionStrip {
  constructor(q, on) {
    this.q = q;
    this.on = on;
    this.buttons = answerButtons(q, { refused: on.refused, done: on.done, sending: (mine) => (this.mine = mine), keys: true });
    this.mine = false; // whether the answer comes from here
    this.waits = h("span");
    this.offline = h("strong", { class: "offline" });
    this.input = h("div", { class: "question-input", hidden: true });
    const show = button("Show all", { class: "quiet", "aria-expanded": "false", onclick: () => {
      this.input.hidden = !this.input.hidden;
      show.setAttribute("aria-expanded", String(!this.input.hidden));
      fill(show, this.input.hidden ? "Show all" : "Hide");
      if (!this.input.hidden && !this.input.firstChild) fill(this.input, q.reason && h("p", null, textSpan(q.reason), q.policy && [" Asked by the policy ", textSpan(q.policy), "."], q.risk && [" Risk: ", textSpan(q.risk), "."]), inputBlocks(q.input ?? {}), h("p", { class: "every" }, button(`Allow every ${plain(q.tool)} of this run`, { class: "quiet", onclick: () => this.every() }), h("span", { class: "dim" }, " without another question, whatever its input")));
    } });
    this.el = h("section", { class: "question", tabIndex: -1, "aria-label": `Question: ${plain(q.tool)} wants to run`, onkeydown: (e) => this.#key(e) },
      icon("waiting"),
      h("div", { class: "asks" }, h("p", null, h("strong", null, textSpan(q.tool), " wants to run"), " ", lineSpan(askedFor(q), "wanted mono", 200), " ", show), h("p", { class: "why" }, q.reason && lineSpan(q.reason.replace(/\.?$/, ".")), " ", this.waits, " ", this.offline), this.buttons.problem),
      this.buttons.box, this.input);
    this.update();
  }

  async every() {
    this.mine = true;
    try {
      await api.answer(this.q.run, this.q.id, { verdict: "allow", remember: "tool" });
      this.on.done(`Every ${plain(this.q.tool)} is allowed`);
    } catch (err) {
      this.mine = false;
      this.buttons.problem.hidden = false;
      fill(this.buttons.problem, textSpan(err.message));
    }
  }

  update() {
    const refused = this.on.refused();
    if (this.refused !== refused) {
      this.refused = refused;
      this.buttons.update();
      this.offline.textContent = refused;
    }
    const text = waiting(this.q, this.on.now());
    if (this.waits.textContent !== text) this.waits.textContent = text;
  }

  #key(e) {
    if (e.ctrlKey || e.metaKey || e.altKey || e.repeat || e.target instanceof HTMLInputElement || this.on.refused()) return;
    const act = { y: this.buttons.once, a: this.buttons.rest, n: this.buttons.deny }[e.key];
    if (!act) return;
    e.preventDefault();
    e.stopPropagation();
    act();
  }
}
