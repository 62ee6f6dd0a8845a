// SPDX-License-Identifier: Apache-2.0
"use strict";

// The search finds the sections that have all words of the query. Those with the words in their heading come first.
(() => {
  const query = document.getElementById("query");
  const found = document.getElementById("found");
  const page = document.getElementById("page");
  const most = 30;

  // A script, since a page without a server may not read a file of data.
  let loading;
  const load = () => loading ??= new Promise((done, failed) => {
    const script = document.createElement("script");
    script.src = "search-index.js";
    script.onload = () => done(window.searchIndex);
    script.onerror = () => failed(new Error("search-index.js could not be loaded"));
    document.head.append(script);
  });

  const score = (section, words) => {
    const heading = (section.p + " " + section.h).toLowerCase();
    const text = section.t.toLowerCase();
    let sum = 0;
    for (const word of words) {
      if (heading.includes(word)) sum += 10;
      else if (text.includes(word)) sum += 1;
      else return 0;
    }
    return sum;
  };

  // The text around the first word of the query, in whole words.
  const excerpt = (section, words) => {
    const at = Math.max(0, section.t.toLowerCase().indexOf(words[0]) - 60);
    const from = at > 0 ? section.t.indexOf(" ", at) + 1 : 0;
    const space = section.t.lastIndexOf(" ", from + 200);
    const end = from + 200 >= section.t.length ? section.t.length : space > from ? space : from + 200;
    return (from > 0 ? "… " : "") + section.t.slice(from, end) + (end < section.t.length ? " …" : "");
  };

  const element = (name, text) => {
    const e = document.createElement(name);
    e.textContent = text;
    return e;
  };

  const show = (sections, words) => {
    const hits = sections.map((section) => [score(section, words), section]).filter(([n]) => n > 0)
      .sort((a, b) => b[0] - a[0]);
    const all = hits.length === 1 ? "1 section" : hits.length + " sections";
    found.replaceChildren(element("h2", hits.length > most ? "The first " + most + " of " + all : all));
    for (const [, section] of hits.slice(0, most)) {
      const title = element("a", section.p === section.h ? section.h : section.p + ": " + section.h);
      title.href = section.a;
      title.addEventListener("click", () => { query.value = ""; search(); });
      found.append(title, element("p", excerpt(section, words)));
    }
  };

  const search = async () => {
    const words = query.value.toLowerCase().split(/\s+/).filter(Boolean);
    found.hidden = words.length === 0;
    page.hidden = words.length > 0;
    if (words.length === 0) return;
    try {
      show(await load(), words);
    } catch (problem) {
      found.replaceChildren(element("p", problem.message));
    }
  };

  query.addEventListener("input", search);
})();
