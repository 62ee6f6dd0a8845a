// SPDX-License-Identifier: Apache-2.0

// Text of agents, as text: control and bidi characters as small boxed names, long blocks cut, JSON and diffs in colour,
// pictures of known types. What comes in ends in text nodes only.

import { h, fill, button, save } from "./dom.js";
import { plural, size } from "./format.js";
import { joinsEmoji, nameOf, plain, unsafe } from "./plain.js";

/** Boxes in one text; what is beyond them is written as [ESC]. */
const maxBoxes = 2000;

/**
 * Appends a text to an element: text nodes, and a box for each run of an unsafe character.
 * @param {Element|DocumentFragment} to @param {string} text
 */
export function appendText(to, text) {
  text = text.replace(/\r\n/g, "\n");
  let at = 0;
  let boxes = 0;
  for (const match of text.matchAll(unsafe)) {
    const from = match.index;
    if (from < at || joinsEmoji(text, from)) continue;
    if (++boxes > maxBoxes) {
      to.append(plain(text.slice(at)));
      return to;
    }
    if (from > at) to.append(text.slice(at, from));
    const char = match[0];
    let n = 1;
    while (text.startsWith(char, from + n * char.length)) n++;
    const name = nameOf(char);
    to.append(h("span", { class: "control", title: `${name}, U+${(char.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}${n > 1 ? `, ${n} times` : ""}` }, n > 1 ? `${name}×${n}` : name));
    at = from + n * char.length;
  }
  if (at < text.length) to.append(text.slice(at));
  return to;
}

/** A span with a text of an agent. Its direction does not reach beyond it. */
export function textSpan(text, className = "") {
  return appendText(h("bdi", { class: className }), text ?? "");
}

/** One line of it: what is beyond the first line is left out. */
export function lineSpan(text, className = "", max = 300) {
  const line = (text ?? "").trimStart();
  const end = line.indexOf("\n");
  return textSpan((end < 0 ? line : line.slice(0, end)).slice(0, max), className);
}

/** The largest block that is shown at once. */
export const blockLimit = 64 * 1024;

/**
 * A block of text. Beyond 64 kB it shows the start, the size, and a way to the rest.
 * @param {string} text @param {{prose?: boolean, paint?: (to: Element, text: string) => void, name?: string}} [how]
 */
export function block(text, how = {}) {
  const paint = how.paint ?? appendText;
  const pre = h("pre", { class: how.prose ? "block prose" : "block", dir: how.prose ? "auto" : "ltr", tabIndex: 0, role: "group", "aria-label": how.name ?? "text" });
  if (text.length <= blockLimit) {
    paint(pre, text);
    return pre;
  }
  let shown = 0;
  const info = h("span");
  const next = button("Show more", { class: "quiet", onclick: () => more(4 * blockLimit) });
  const more = (n) => {
    let end = Math.min(text.length, shown + n);
    if (end < text.length && /[\ud800-\udbff]/.test(text[end - 1])) end--;
    const part = h("span");
    paint(part, text.slice(shown, end));
    pre.append(part);
    shown = end;
    fill(info, shown < text.length ? `The first ${size(shown)} of ${size(text.length)}.` : `All ${size(text.length)}.`);
    next.hidden = shown >= text.length;
  };
  more(blockLimit);
  return h("div", { class: "cut" }, pre, h("div", { class: "cut-foot" }, info, next, button("Save all", { class: "quiet", onclick: () => save((how.name ?? "text").replace(/\W+/g, "-").toLowerCase() + ".txt", text) })));
}

/** Parses JSON and keeps numbers as they are written, where the browser can. */
export function exact(raw) {
  const raws = /** @type {any} */ (JSON).rawJSON;
  return JSON.parse(raw, (_, value, context) => (raws && typeof value === "number" && context?.source && String(value) !== context.source ? raws(context.source) : value));
}

const jsonToken = /("(?:\\.|[^"\\])*")(\s*:)?|\b(true|false|null)\b|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

/** Appends JSON in colour. */
function paintJSON(to, text) {
  let at = 0;
  for (const match of text.matchAll(jsonToken)) {
    if (match.index > at) appendText(to, text.slice(at, match.index));
    const [whole, string, colon] = match;
    const kind = string ? (colon ? "json-key" : "json-string") : "json-word";
    to.append(appendText(h("span", { class: kind }), string ?? whole));
    if (colon) to.append(colon);
    at = match.index + whole.length;
  }
  if (at < text.length) appendText(to, text.slice(at));
}

/** A block of JSON. */
export function json(value, name = "JSON") {
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 2) ?? "";
  return block(text, { paint: paintJSON, name });
}

const longText = 160;

/** The input of a call: JSON, with its long texts as blocks below it. @returns {any[]} */
export function inputBlocks(input) {
  if (input === null || typeof input !== "object" || Array.isArray(input)) return [json(input ?? null, "Input")];
  const short = {};
  const long = [];
  for (const [name, value] of Object.entries(input)) {
    if (typeof value === "string" && (value.includes("\n") || value.length > longText)) {
      short[name] = `(${plural(value.split("\n").length, "line")} below)`;
      long.push([name, value]);
    } else {
      short[name] = value;
    }
  }
  return [json(short, "Input"), ...long.flatMap(([name, value]) => [h("h4", null, textSpan(name)), block(value, { name })])];
}

const pictures = /^image\/(png|jpeg|gif|webp)$/;

/** What a tool returned: text, content blocks with pictures, or JSON. @returns {any[]} */
export function outputBlocks(output) {
  if (output === undefined || output === null) return [h("p", { class: "dim" }, "No output.")];
  if (typeof output === "string") {
    const trimmed = output.trim();
    if (/^[[{]/.test(trimmed) && trimmed.length < 4 * blockLimit) {
      try {
        return [json(exact(trimmed), "Output")];
      } catch {
        // It only looks like JSON.
      }
    }
    return [output === "" ? h("p", { class: "dim" }, "Empty output.") : block(output, { name: "Output" })];
  }
  if (Array.isArray(output) && output.every((b) => b && typeof b.type === "string")) return output.flatMap(contentBlock);
  return [json(output, "Output")];
}

function contentBlock(b) {
  if (b.type === "text" && typeof b.text === "string") return outputBlocks(b.text);
  const source = b.type === "image" ? b.source ?? b : null;
  const type = source?.media_type ?? source?.mimeType ?? "";
  if (source && pictures.test(type) && /^[A-Za-z0-9+/=\s]+$/.test(source.data ?? "")) {
    const img = h("img", { src: `data:${type};base64,${source.data}`, alt: "the picture that the tool returned" });
    const info = h("figcaption", { class: "dim" }, `${type}, ${size(Math.floor((source.data.length * 3) / 4))}`);
    img.addEventListener("load", () => fill(info, `${type}, ${img.naturalWidth} × ${img.naturalHeight}, ${size(Math.floor((source.data.length * 3) / 4))}`));
    img.addEventListener("error", () => fill(info, `${type} that cannot be shown`));
    return [h("figure", null, img, info)];
  }
  return [json(b, "Output")];
}

/**
 * @typedef {{path: string, added: number, removed: number, hunks: {head: string, oldStart: number, newStart: number, lines: string[]}[], notes: string[]}} FileDiff
 */

/** Reads a unified diff. @returns {FileDiff[]} */
export function parseDiff(text) {
  const files = [];
  let file = null;
  let hunk = null;
  let left = [0, 0];
  for (const line of text.split("\n")) {
    if (hunk && (left[0] > 0 || left[1] > 0 || line.startsWith("\\"))) {
      const mark = line[0] ?? " ";
      hunk.lines.push(line === "" ? " " : line);
      if (mark !== "+" && mark !== "\\") left[0]--;
      if (mark !== "-" && mark !== "\\") left[1]--;
      if (mark === "+") file.added++;
      if (mark === "-") file.removed++;
      continue;
    }
    const head = line.match(/^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@(.*)$/);
    if (head) {
      if (!file) files.push((file = { path: "", added: 0, removed: 0, hunks: [], notes: [] }));
      hunk = { head: line, oldStart: Number(head[1]), newStart: Number(head[3]), lines: [] };
      left = [Number(head[2] ?? 1), Number(head[4] ?? 1)];
      file.hunks.push(hunk);
    } else if (line.startsWith("diff --git ")) {
      file = { path: line.replace(/^diff --git "?a\/.*? "?b\//, "").replace(/"$/, ""), added: 0, removed: 0, hunks: [], notes: [] };
      files.push(file);
      hunk = null;
    } else if (line.startsWith("--- ")) {
      if (!file || file.hunks.length > 0) files.push((file = { path: line.slice(4), added: 0, removed: 0, hunks: [], notes: [] }));
      hunk = null;
    } else if (line.startsWith("+++ ")) {
      if (file && line !== "+++ /dev/null" && !file.path) file.path = line.slice(4).replace(/^b\//, "");
    } else if (file && line && !line.startsWith("index ")) {
      file.notes.push(line);
    }
  }
  return files;
}

/** The diff of one file, with the numbers of the lines. */
export function diffTable(file, { head = true } = {}) {
  const body = h("div", { class: "diff-lines", role: "group", tabIndex: 0, "aria-label": `changes of ${file.path}` });
  let shown = 0;
  const rows = file.hunks.flatMap((hunk) => {
    let o = hunk.oldStart;
    let n = hunk.newStart;
    const list = [["hunk", "", "", "", hunk.head]];
    for (const line of hunk.lines) {
      const mark = line[0];
      if (mark === "\\") list.push(["hunk", "", "", "", line]);
      else list.push([mark === "+" ? "added" : mark === "-" ? "removed" : "", mark === "+" ? "" : o++, mark === "-" ? "" : n++, mark === "+" ? "+" : mark === "-" ? "−" : "", line.slice(1)]);
    }
    return list;
  });
  const more = () => {
    for (const [kind, o, n, mark, text] of rows.slice(shown, (shown += 1000))) {
      body.append(h("div", { class: `diff-line ${kind}` }, h("span", { class: "line-number" }, String(o)), h("span", { class: "line-number" }, String(n)), h("span", { class: "mark" }, mark), appendText(h("code"), text)));
    }
    next.hidden = shown >= rows.length;
  };
  const next = button("Show more lines", { class: "quiet", onclick: () => more() });
  more();
  return h("div", { class: "diff" }, head && h("div", { class: "diff-head" }, textSpan(file.path), " ", h("span", { class: "plus" }, `+${file.added}`), " ", h("span", { class: "minus" }, `−${file.removed}`), file.notes.length > 0 && h("span", { class: "dim" }, " " + plain(file.notes.join(", ")))), body, next);
}
