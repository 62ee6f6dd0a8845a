// SPDX-License-Identifier: Apache-2.0

// The page as a whole: access, the address, and which of the pages is shown.

import { h, fill, icon } from "./dom.js";
import { api, forget, hasAccess, takeToken } from "./api.js";
import { textSpan } from "./text.js";
import { RunsPage } from "./runs.js";
import { RunPage } from "./run.js";
import { ComparePage } from "./compare.js";

export class App {
  constructor() {
    this.root = document.getElementById("app");
    this.page = null;
    /** @type {{version: string, readOnly: boolean, start: boolean, now: string}|null} */
    this.server = null;
    this.offset = 0;
  }

  /** The time of the server in milliseconds since 1970. */
  now() {
    return Date.now() + this.offset;
  }

  setClock(now) {
    const at = Date.parse(now);
    if (at) this.offset = at - Date.now();
  }

  async start() {
    document.addEventListener("click", (e) => this.#click(e));
    addEventListener("popstate", (e) => {
      if (e.state?.page || location.pathname + location.search !== this.shown) this.show();
    });
    try {
      await takeToken();
    } catch (err) {
      if (err.status) return this.lock(err);
    }
    if (!hasAccess()) return this.lock(null);
    this.show();
    try {
      this.server = await api.server();
      this.setClock(this.server.now);
      this.page?.server?.();
    } catch (err) {
      if (err.status === 401) this.lock(err);
    }
  }

  /** Links of this page are followed without loading it again. */
  #click(e) {
    const a = e.target.closest?.("a[href]");
    if (!a || e.defaultPrevented || e.button !== 0 || e.ctrlKey || e.metaKey || e.shiftKey || a.origin !== location.origin || a.hasAttribute("download")) return;
    e.preventDefault();
    this.go(a.pathname + a.search + a.hash);
  }

  go(address) {
    history.pushState({ page: true }, "", address);
    this.show();
    scrollTo(0, 0);
  }

  show() {
    this.page?.close();
    this.shown = location.pathname + location.search;
    const run = location.pathname.match(/^\/r\/([^/]+)$/);
    this.page = run ? new RunPage(decodeURIComponent(run[1]), this) : location.pathname === "/compare" ? new ComparePage(this) : new RunsPage(this);
    fill(this.root, this.page.el);
  }

  /** There is no access: says how to get it. */
  lock(problem) {
    if (problem?.status === 401) forget();
    this.page?.close();
    this.page = null;
    document.title = "Drover: no access";
    fill(this.root, h("main", { class: "access" }, h("h1", null, icon("logo", "ink"), "Drover"), h("p", null, problem ? ["This browser has no access: ", textSpan(problem.message), "."] : "This browser has no access to these runs."),
      h("p", null, "Drover prints an address with a key behind ", h("code", null, "#t="), " when it starts. Open that address once in this browser; after that, every tab of it has access."),
      h("ul", null, h("li", null, "The terminal in which ", h("code", null, "drover serve"), " or ", h("code", null, "drover run --watch"), " runs has the address."), h("li", null, "Where it is out of view, stop and start ", h("code", null, "drover serve"), ": it prints a new one."), h("li", null, "An address that worked before may be of a server that has been started again.")),
      problem?.next && h("p", null, "Next: ", textSpan(problem.next))));
  }
}

new App().start();
