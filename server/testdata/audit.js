// SPDX-License-Identifier: Apache-2.0

// An audit of the page that is shown, to be evaluated in it: contrast of every text node, contrast of what tells controls apart,
// names, roles and relations. Its value is a list of findings, each a text; an empty list means that nothing was found.
// With plant, it first adds three faults (dim text, a button without a name, a row outside of a grid), which it has to find.
(({ plant = false } = {}) => {
  const findings = [];
  const scheme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  let planted;
  if (plant) {
    planted = document.createElement("div");
    const dim = document.createElement("p");
    dim.textContent = "planted dim text";
    dim.style.color = scheme === "dark" ? "#444" : "#ccc";
    const nameless = document.createElement("button");
    const row = document.createElement("div");
    row.setAttribute("role", "row");
    row.textContent = "planted row";
    planted.append(dim, nameless, row);
    planted.style.cssText = "position: fixed; left: 0; top: 0; z-index: 99;";
    document.body.append(planted);
  }

  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 1;
  const paint = canvas.getContext("2d", { willReadFrequently: true });
  const colours = new Map();
  /** Any colour of CSS as [red, green, blue, alpha]. */
  const rgba = (text) => {
    if (!colours.has(text)) {
      paint.clearRect(0, 0, 1, 1);
      paint.fillStyle = "#000";
      paint.fillStyle = text;
      paint.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = paint.getImageData(0, 0, 1, 1).data;
      colours.set(text, [r, g, b, a / 255]);
    }
    return colours.get(text);
  };
  const over = ([r, g, b, a], [x, y, z]) => [r * a + x * (1 - a), g * a + y * (1 - a), b * a + z * (1 - a), 1];
  /** The colour behind an element: its own background over those of its ancestors. */
  const behind = (el) => {
    const layers = [];
    for (let e = el; e; e = e.parentElement) {
      const c = rgba(getComputedStyle(e).backgroundColor);
      if (c[3] > 0) layers.push(c);
      if (c[3] === 1) break;
    }
    let colour = rgba(scheme === "dark" ? "#0f1113" : "#f5f5f2");
    for (const layer of layers.reverse()) colour = over(layer, colour);
    return colour;
  };
  const light = ([r, g, b]) => {
    const part = (v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4);
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  };
  const contrast = (a, b) => {
    const [x, y] = [light(a), light(b)].sort((p, q) => q - p);
    return (x + 0.05) / (y + 0.05);
  };
  const shown = (el) => el.checkVisibility?.({ checkVisibilityCSS: true, checkOpacity: true }) !== false && el.getClientRects().length > 0;
  const where = (el) => `${el.tagName.toLowerCase()}${el.id ? "#" + el.id : ""}${el.className && typeof el.className === "string" ? "." + el.className.trim().replace(/\s+/g, ".") : ""}`;

  // Every text node: 4.5 to 1, also where a control is disabled, for its word says what cannot be done.
  let texts = 0;
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const el = node.parentElement;
    if (!node.data.trim() || !el || ["SCRIPT", "STYLE", "NOSCRIPT"].includes(el.tagName) || !shown(el) || el.closest(".unseen")) continue;
    texts++;
    const back = behind(el);
    const ratio = contrast(over(rgba(getComputedStyle(el).color), back), back);
    if (ratio < 4.5) findings.push(`contrast ${ratio.toFixed(2)} of "${node.data.trim().slice(0, 40)}" in ${where(el)} (${scheme})`);
  }
  for (const el of document.querySelectorAll("input, textarea")) {
    if (!shown(el) || !el.placeholder) continue;
    const back = behind(el);
    const ratio = contrast(over(rgba(getComputedStyle(el, "::placeholder").color), back), back);
    if (ratio < 4.5) findings.push(`contrast ${ratio.toFixed(2)} of the placeholder of ${where(el)} (${scheme})`);
  }

  // What tells controls and bars apart: 3 to 1 against what is around them.
  const edge = (el, colour, what) => {
    const around = behind(el.parentElement);
    const ratio = contrast(over(rgba(colour), around), around);
    if (ratio < 3) findings.push(`contrast ${ratio.toFixed(2)} of ${what} of ${where(el)} (${scheme})`);
  };
  for (const el of document.querySelectorAll("input:not([type=range], [type=checkbox], [type=file]), select, textarea")) if (shown(el)) edge(el, getComputedStyle(el).borderTopColor, "the edge");
  for (const el of document.querySelectorAll(".lane .bar, .meter .bar")) {
    if (!shown(el)) continue;
    const style = getComputedStyle(el);
    const painted = rgba(style.backgroundColor)[3] > 0 ? style.backgroundColor : rgba(style.borderTopColor)[3] > 0 && style.borderTopWidth !== "0px" ? style.borderTopColor : "";
    if (painted) edge(el, painted, "the bar");
  }

  // Names: everything that can have the focus has one.
  const nameOf = (el) => {
    const by = el.getAttribute("aria-labelledby");
    if (by) return by.split(/\s+/).map((id) => document.getElementById(id)?.textContent ?? "").join(" ").trim();
    const label = el.getAttribute("aria-label") ?? "";
    if (label.trim()) return label.trim();
    if (el.labels?.length) return [...el.labels].map((l) => l.textContent).join(" ").trim();
    const copy = el.cloneNode(true);
    for (const hidden of copy.querySelectorAll("[aria-hidden=true]")) hidden.remove();
    return (copy.textContent.trim() || el.getAttribute("title") || "").trim();
  };
  for (const el of document.querySelectorAll("button, a[href], input, select, textarea, [tabindex], [role=row], [role=tab], [role=meter], [role=img], dialog, summary")) {
    if (!shown(el) || el.closest("[aria-hidden=true]") || el.tabIndex === -1 && el.matches("[tabindex]") && !el.matches("[role=tab]")) continue;
    if (!nameOf(el)) findings.push(`no name: ${where(el)}`);
  }
  for (const img of document.images) if (shown(img) && !img.hasAttribute("alt")) findings.push(`no alt: ${where(img)}`);

  // Roles: each is where it may be, and what it refers to is there.
  const inside = { row: "[role=treegrid], [role=grid], [role=rowgroup], table", gridcell: "[role=row]", columnheader: "[role=row]", tab: "[role=tablist]", listitem: "[role=list]" };
  for (const [role, parents] of Object.entries(inside)) for (const el of document.querySelectorAll(`[role=${role}]`)) if (!el.parentElement.closest(parents)) findings.push(`role ${role} outside of its parent: ${where(el)}`);
  for (const name of ["aria-controls", "aria-labelledby", "aria-activedescendant"]) for (const el of document.querySelectorAll(`[${name}]`)) if (!document.getElementById(el.getAttribute(name))) findings.push(`${name} of ${where(el)} names nothing`);
  for (const list of document.querySelectorAll("[role=tablist]")) {
    if (list.querySelectorAll("[role=tab][aria-selected=true]").length !== 1) findings.push("a tablist has not one selected tab");
    if (list.querySelectorAll("[role=tab][tabindex='0']").length !== 1) findings.push("a tablist has not one tab stop");
  }
  for (const el of document.querySelectorAll("[role=treegrid] [role=row][aria-selected]")) if (!el.hasAttribute("aria-level")) findings.push(`a row has no level: ${where(el)}`);
  for (const el of document.querySelectorAll("[role=meter]")) if (!el.hasAttribute("aria-valuenow") || !el.hasAttribute("aria-valuetext")) findings.push(`a meter has no value: ${where(el)}`);
  const ids = [...document.querySelectorAll("[id]")].map((el) => el.id);
  for (const id of new Set(ids.filter((x, i) => ids.indexOf(x) !== i))) findings.push(`two elements have the id ${id}`);
  if (!document.querySelector("main")) findings.push("no main");
  if (document.querySelectorAll("h1").length !== 1) findings.push(`${document.querySelectorAll("h1").length} h1`);

  // No sideways scroll of the page.
  if (document.documentElement.scrollWidth > innerWidth) findings.push(`the page is ${document.documentElement.scrollWidth} wide, the window ${innerWidth}`);

  planted?.remove();
  return { texts, findings };
})
