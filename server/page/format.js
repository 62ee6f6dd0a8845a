// SPDX-License-Identifier: Apache-2.0

// Numbers and times for people. Pure.

/** 200 µs, 38 ms, 7.3 s, 4:06, 1:02:03 */
export function duration(ms) {
  if (ms === undefined || ms === null || Number.isNaN(ms)) return "–";
  if (ms < 1) return `${Math.round(ms * 1000)} µs`;
  if (ms < 10) return `${ms.toFixed(1)} ms`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 99_950) return `${(ms / 1000).toFixed(1)} s`;
  return clock(ms);
}

/** 4:06, 1:02:03 */
export function clock(ms) {
  const s = Math.max(0, Math.floor(ms / 1000));
  const two = (n) => String(n).padStart(2, "0");
  return s < 3600 ? `${Math.floor(s / 60)}:${two(s % 60)}` : `${Math.floor(s / 3600)}:${two(Math.floor(s / 60) % 60)}:${two(s % 60)}`;
}

/** How long ago: 4:06, 3 h ago, 2 d ago */
export function ago(ms) {
  if (ms < 3600_000) return `${clock(ms)} ago`;
  if (ms < 48 * 3600_000) return `${Math.floor(ms / 3600_000)} h ago`;
  return `${Math.floor(ms / 86400_000)} d ago`;
}

/** $0.43, $0.0087 */
export function money(usd) {
  if (usd === undefined || usd === null) return "–";
  if (usd !== 0 && Math.abs(usd) < 0.01) return `$${usd.toFixed(4)}`;
  return `$${grouped(usd.toFixed(2))}`;
}

/** 954, 16.7k, 167k, 1.31M */
export function count(n) {
  if (n === undefined || n === null) return "–";
  if (n < 1000) return String(n);
  if (n < 99_950) return `${(n / 1000).toFixed(1)}k`;
  if (n < 999_500) return `${Math.round(n / 1000)}k`;
  return `${(n / 1e6).toFixed(2)}M`;
}

/** 153 B, 64.0 kB, 5.1 MB */
export function size(bytes) {
  if (bytes < 1000) return `${bytes} B`;
  if (bytes < 1e6) return `${(bytes / 1000).toFixed(1)} kB`;
  return `${(bytes / 1e6).toFixed(1)} MB`;
}

/** 1234567.89 as 1,234,567.89. toLocaleString takes a thousand times as long. */
function grouped(digits) {
  return digits.replace(/\B(?=(\d{3})+(?!\d))(?<!\.\d*)/g, ",");
}

export function plural(n, one, many = one + "s") {
  return `${grouped(String(n))} ${n === 1 ? one : many}`;
}

/** 14:02 */
export function timeOfDay(at) {
  return new Date(at).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
}

/** 14:02 today, otherwise 18 Nov 14:02 */
export function dayAndTime(at, now) {
  const d = new Date(at);
  if (d.toDateString() === new Date(now).toDateString()) return timeOfDay(at);
  return `${d.toLocaleDateString("en-GB", { day: "numeric", month: "short" })} ${timeOfDay(at)}`;
}

/** A round distance between ticks, so that about so many fit: [milliseconds, text of a tick]. */
export function tickStep(span, ticks) {
  const steps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 10e3, 15e3, 30e3, 60e3, 120e3, 300e3, 600e3, 900e3, 1800e3, 3600e3, 7200e3, 14400e3, 43200e3, 86400e3];
  return steps.find((s) => span / s <= ticks) ?? 86400e3 * Math.ceil(span / ticks / 86400e3);
}

/** The text of a tick: +0.2 s, 1:00 */
export function tick(ms, step) {
  return step < 1000 ? `${(ms / 1000).toFixed(step < 10 ? 3 : step < 100 ? 2 : 1)} s` : clock(ms);
}

/** The title of a run: the first sentence of its prompt, without the heading of its section. */
export function titleOf(run) {
  const text = (run.title ?? "").replace(/^#{1,6} (?:\d+(?:\.\d+)*\.? )?.*? \([\w.-]+\)\s+/, "").split(/ #{2,6} /)[0].trim();
  const end = text.search(/[.!?](?:\s|$)/);
  const sentence = end >= 8 && end < 120 ? text.slice(0, end).replace(/[.]$/, "") : text;
  return sentence || run.name || run.promptName || run.id || "";
}
