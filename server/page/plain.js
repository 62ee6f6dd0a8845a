// SPDX-License-Identifier: Apache-2.0

// Unsafe characters of texts, and their names. Pure.

const names = {
  0x00: "NUL", 0x01: "SOH", 0x02: "STX", 0x03: "ETX", 0x04: "EOT", 0x05: "ENQ", 0x06: "ACK", 0x07: "BEL", 0x08: "BS", 0x0b: "VT", 0x0c: "FF", 0x0d: "CR",
  0x0e: "SO", 0x0f: "SI", 0x10: "DLE", 0x18: "CAN", 0x1a: "SUB", 0x1b: "ESC", 0x7f: "DEL", 0x85: "NEL", 0x9b: "CSI", 0xad: "SHY", 0x61c: "ALM",
  0x200b: "ZWSP", 0x200c: "ZWNJ", 0x200d: "ZWJ", 0x200e: "LRM", 0x200f: "RLM", 0x2028: "LS", 0x2029: "PS", 0x202a: "LRE", 0x202b: "RLE", 0x202c: "PDF",
  0x202d: "LRO", 0x202e: "RLO", 0x2060: "WJ", 0x2066: "LRI", 0x2067: "RLI", 0x2068: "FSI", 0x2069: "PDI", 0xfeff: "BOM",
};

// Control characters but for tab and line feed, what has no width, what turns the direction, tags, and halves of pairs.
export const unsafe = /[\0-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb]|[\u{e0000}-\u{e0fff}]|\p{Surrogate}/gu;

/** ESC, U+E0001 */
export function nameOf(char) {
  const code = char.codePointAt(0) ?? 0;
  return names[code] ?? "U+" + code.toString(16).toUpperCase().padStart(4, "0");
}

/** A joiner between two parts of one emoji is no trick. */
export function joinsEmoji(text, at) {
  return text[at] === "\u200d" && /[\p{Extended_Pictographic}\ufe0f\u{1f3fb}-\u{1f3ff}]$/u.test(text.slice(Math.max(0, at - 2), at)) && /^\p{Extended_Pictographic}/u.test(text.slice(at + 1, at + 3));
}

/** A text for names, titles and attributes: unsafe characters as [ESC]. */
export function plain(text) {
  return text.replace(/\r\n/g, "\n").replace(unsafe, (c, at) => (joinsEmoji(text, at) ? c : `[${nameOf(c)}]`));
}
