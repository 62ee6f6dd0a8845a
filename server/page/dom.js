// SPDX-License-Identifier: Apache-2.0

// Elements, icons, dialogs. Texts become text nodes only: there is no way from here to markup.

import { plain } from "./plain.js";


/**
 * Makes an element. Properties: class, on*, data-*, aria-*, and attributes; children: nodes, texts, lists, null.
 * @param {string} tag @param {Record<string, any>|null} [props] @param {...any} children
 * @returns {any}
 */
export function h(tag, props, ...children) {
  const el = document.createElement(tag);
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) el.addEventListener(name.slice(2), value);
    else if (name === "class") el.className = value;
    else if (name in properties) el[name] = value;
    else el.setAttribute(name, value === true ? "" : plain(String(value)));
  }
  append(el, children);
  return el;
}

const properties = { value: 1, checked: 1, disabled: 1, tabIndex: 1, hidden: 1, open: 1, htmlFor: 1, type: 1, placeholder: 1, required: 1, selected: 1 };

function append(el, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false || child === "") continue;
    if (Array.isArray(child)) append(el, child);
    else el.append(child);
  }
}

/** Replaces the children of an element. */
export function fill(el, ...children) {
  el.replaceChildren();
  append(el, children);
  return el;
}

/** Sets a text only if it differs, so that nothing is painted for nothing. */
export function setText(el, text) {
  if (el.textContent !== text) el.textContent = text;
}

const svg = "http://www.w3.org/2000/svg";

/** Shapes on a grid of 16. A path that begins with "!" is filled, others are drawn. */
const shapes = {
  logo: ["M3 4h10", "M3 8h7", "M3 12h4", "!M12 6.2a1.8 1.8 0 1 1 0 3.6a1.8 1.8 0 1 1 0 -3.6z"],
  model: ["!M8 4a4 4 0 1 1 0 8a4 4 0 1 1 0 -8z"],
  native: ["!M4 4h8v8h-8z"],
  ours: ["!M8 2.5l5.5 5.5l-5.5 5.5l-5.5 -5.5z"],
  denied: ["M8 2.8a5.2 5.2 0 1 1 0 10.4a5.2 5.2 0 1 1 0 -10.4z", "M4.4 11.6l7.2 -7.2"],
  failed: ["M3.8 3.8l8.4 8.4", "M12.2 3.8l-8.4 8.4"],
  waiting: ["!M4.5 3h2.4v10h-2.4z", "!M9.1 3h2.4v10h-2.4z"],
  cancelled: ["M3.5 8h9"],
  ok: ["M3 8.5l3.2 3.2l6.8 -7.2"],
  running: ["!M8 4.2a3.8 3.8 0 1 1 0 7.6a3.8 3.8 0 1 1 0 -7.6z"],
  lost: ["M8 4.2a3.8 3.8 0 1 1 0 7.6a3.8 3.8 0 1 1 0 -7.6z"],
  stopped: ["M4 4h8v8h-8z"],
  note: ["M4 4.5h8", "M4 8h8", "M4 11.5h5"],
  prompt: ["M5 4l4 4l-4 4", "M10 12h3"],
  alert: ["M8 3v6", "!M8 11.4a1.1 1.1 0 1 1 0 2.2a1.1 1.1 0 1 1 0 -2.2z"],
  closed: ["M6 4.5l3.5 3.5l-3.5 3.5"],
  opened: ["M4.5 6l3.5 3.5l3.5 -3.5"],
  left: ["!M10 4l-5 4l5 4z"],
  right: ["!M6 4l5 4l-5 4z"],
  more: ["!M3 7h2v2h-2z", "!M7 7h2v2h-2z", "!M11 7h2v2h-2z"],
};

/** Each icon as it was made first: a copy takes a fraction of the time. */
const icons = new Map();

/** An icon. Readers of screens do not get it: its word is beside it. */
export function icon(name, tone = name) {
  const known = icons.get(`${name} ${tone}`);
  if (known) return known.cloneNode(true);
  const el = document.createElementNS(svg, "svg");
  el.setAttribute("viewBox", "0 0 16 16");
  el.setAttribute("aria-hidden", "true");
  el.setAttribute("class", `icon tone-${tone}`);
  for (const d of shapes[name] ?? shapes.note) {
    const path = document.createElementNS(svg, "path");
    path.setAttribute("d", d.replace("!", ""));
    path.setAttribute("class", d.startsWith("!") ? "filled" : "drawn");
    el.append(path);
  }
  icons.set(`${name} ${tone}`, el);
  return el.cloneNode(true);
}

export function button(text, props, ...rest) {
  return h("button", { type: "button", ...props }, text, ...rest);
}

export function key(name) {
  return h("kbd", { "aria-hidden": "true" }, name);
}

let polite;

/** Says something to readers of screens, without moving the focus. */
export function announce(text) {
  polite ??= document.getElementById("announcements");
  if (polite) polite.textContent = text;
}

/**
 * Opens a dialog and closes it when its form is sent or cancelled. The focus returns to where it was.
 * @param {string} title @param {(close: () => void) => any[]} content
 * @returns {HTMLDialogElement}
 */
export function openDialog(title, content, className = "") {
  const before = document.activeElement;
  const dialog = h("dialog", { "aria-label": title, class: className });
  const close = () => dialog.close();
  append(dialog, [h("h2", null, title), ...content(close)]);
  dialog.addEventListener("close", () => {
    dialog.remove();
    if (before instanceof HTMLElement && before.isConnected) before.focus();
  });
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

/** A gauge: label, figure, and a bar if a limit is known. */
export function meter(value, max, label, spoken) {
  const share = max > 0 ? Math.min(1, Math.max(0, value / max)) : 0;
  const bar = h("span", { class: "bar" });
  bar.style.width = `${share * 100}%`;
  return h("span", { class: `meter${share >= 1 ? " over" : share > 0.8 ? " high" : ""}`, role: "meter", "aria-label": label, "aria-valuemin": 0, "aria-valuemax": max, "aria-valuenow": Math.min(value, max), "aria-valuetext": spoken }, bar);
}

/** Saves a text as a file. */
export function save(name, text, type = "text/plain") {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const a = h("a", { href: url, download: name });
  document.body.append(a);
  a.click();
  a.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** Whether a key belongs to a field in which text is written. */
export function inField(e) {
  const t = e.target;
  return t instanceof HTMLElement && (t.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(t.tagName));
}

/** Keys and what they do, for the foot of a page: ["j", "k", "move"]. */
export function keysHint(list) {
  return list.map((group) => h("span", { class: "hint" }, group.slice(0, -1).map((k) => key(k)), group.at(-1)));
}
