// Makes the pages quick: they are complete without it. Whatever the server sends is put in place as parsed markup, never run.
"use strict";

(() => {
  const body = document.body;
  document.documentElement.classList.add("quick");
  const parts = () => document.querySelectorAll("[data-part]");
  const growth = document.getElementById("growth");
  const dialog = document.getElementById("keys");
  let latest = 0;
  let underWay = 0;
  let typing = 0;
  let following = 0;

  // --- going somewhere on the same page without reloading it ---

  async function visit(url, { push = true, keep = "" } = {}) {
    const mine = ++latest;
    underWay += 1;
    if (keep !== "all") {
      // what the reader asks for last wins: a search or a move that still waits must not undo it
      clearTimeout(typing);
      clearTimeout(following);
    }
    const wait = setTimeout(() => parts().forEach((part) => part.setAttribute("aria-busy", "true")), 120);
    try {
      const answer = await fetch(url, { headers: { Accept: "text/html" } });
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (mine !== latest) return false;
      if (!answer.ok || ![...parts()].some((part) => page.getElementById(part.id))) {
        location.assign(url);
        return false;
      }
      const open = new Set([...document.querySelectorAll("details[open] > summary")].map((summary) => summary.textContent));
      const held = focusedKey();
      const ticked = new Set([...document.querySelectorAll("input[name=run]:checked")].map((box) => box.value));
      const scrolled = document.getElementById("pane")?.scrollTop ?? 0;
      const matrix = document.querySelector(".matrix");
      const seen = matrix && [matrix.scrollLeft, matrix.scrollTop];
      parts().forEach((part) => {
        const fresh = page.getElementById(part.id);
        if (fresh) part.replaceWith(document.adoptNode(fresh));
      });
      document.querySelectorAll("#head details > summary").forEach((summary) => {
        if (open.has(summary.textContent)) summary.parentElement.open = true;
      });
      document.querySelectorAll("input[name=run]").forEach((box) => { box.checked = ticked.has(box.value); });
      body.dataset.version = page.body.dataset.version ?? "";
      document.title = page.title;
      takeOver(page);
      if (push) history.pushState(null, "", url);
      if (seen && document.querySelector(".matrix")) [document.querySelector(".matrix").scrollLeft, document.querySelector(".matrix").scrollTop] = seen;
      if (keep === "all" && document.getElementById("pane")) document.getElementById("pane").scrollTop = scrolled;
      refocus(held);
      return true;
    } catch {
      if (mine === latest) tell("the viewer does not answer; is it still running?", false);
      return false;
    } finally {
      underWay -= 1;
      clearTimeout(wait);
      if (mine === latest) parts().forEach((part) => part.removeAttribute("aria-busy"));
    }
  }

  // the filters stay as they are while somebody types; only what they keep of the rest follows
  function takeOver(page) {
    const form = document.getElementById("filters");
    const fresh = page.getElementById("filters");
    if (!form || !fresh) return;
    form.querySelectorAll("[data-keep]").forEach((field) => field.remove());
    fresh.querySelectorAll("[data-keep]").forEach((field) => form.prepend(document.adoptNode(field)));
    for (const field of form.elements) {
      if (!field.name || field === document.activeElement || field.type === "hidden") continue;
      const same = [...fresh.elements].find((other) => other.name === field.name && (field.type !== "checkbox" || other.value === field.value));
      if (!same) continue;
      if (field.type === "checkbox") field.checked = same.checked;
      else field.value = same.value;
    }
  }

  function focusedKey() {
    const focused = document.activeElement;
    if (!focused || !focused.closest("[data-part]")) return null;
    const cell = place(focused);
    return { cell, id: focused.id, href: focused.getAttribute("href") };
  }

  function refocus(held) {
    if (!held) return;
    const found = (held.id && document.getElementById(held.id))
      || (held.cell && cellAt(held.cell.row, held.cell.column))
      || [...document.querySelectorAll("[data-part] a")].find((link) => link.getAttribute("href") === held.href);
    found?.focus({ preventScroll: true });
  }

  // --- filters: applied as they are changed ---

  const form = document.getElementById("filters");

  function asked() {
    const values = new URLSearchParams();
    for (const [name, value] of new FormData(form)) {
      if (value !== "" && !(name === "size" && value === "50")) values.append(name, value);
    }
    const text = values.toString();
    return location.pathname + (text ? `?${text}` : "");
  }

  // a field may stand elsewhere and yet belong to the form
  document.addEventListener("input", (event) => {
    if (!form || event.target.form !== form) return;
    clearTimeout(typing);
    typing = setTimeout(() => visit(asked()), event.target.type === "search" ? 220 : 0);
  });
  form?.addEventListener("submit", (event) => {
    event.preventDefault();
    clearTimeout(typing);
    visit(asked());
  });

  // --- links that lead to another state of this page ---

  document.addEventListener("click", (event) => {
    const link = event.target.closest("a");
    if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    if (link.pathname !== location.pathname || !link.closest("[data-part]") || !document.getElementById("desk")) return;
    event.preventDefault();
    go(link);
  });

  async function go(link) {
    const opens = link.hash === "#pane";
    const url = link.href.replace(/#.*/, "");
    const closes = link.id === "close";
    const cell = document.querySelector(".cell[aria-current]");
    const was = cell && place(cell);
    if (!(await visit(url))) return;
    const pane = document.getElementById("pane");
    if (opens && pane) {
      pane.scrollTop = 0;
      document.getElementById("announcement").textContent = pane.dataset.announcement;
      if (matchMedia("(max-width: 67.99rem)").matches) {
        pane.scrollIntoView();
      } else {
        if (!was) document.getElementById("desk").scrollIntoView();
        document.querySelector(".cell[aria-current]")?.scrollIntoView({ block: "nearest" });
      }
    }
    if (closes && was) cellAt(was.row, was.column)?.focus();
    if (link.rel === "next" || link.rel === "prev") document.getElementById("desk").scrollIntoView();
  }

  addEventListener("popstate", () => visit(location.href, { push: false }));

  // --- two runs at the most can be ticked ---

  document.addEventListener("change", (event) => {
    if (event.target.name !== "run") return;
    const ticked = [...document.querySelectorAll("input[name=run]:checked")];
    if (ticked.length > 2) ticked.find((box) => box !== event.target).checked = false;
  });

  // --- a run that grows ---

  function tell(text, live) {
    if (!growth) return;
    if (growth.textContent !== text) growth.textContent = text;
    growth.classList.toggle("live", live);
  }

  let failures = 0;
  async function pulse() {
    let pause = 10000;
    if (!document.hidden) {
      try {
        const answer = await fetch(body.dataset.pulse);
        if (answer.ok) {
          const state = await answer.json();
          failures = 0;
          pause = state.growing ? 2500 : 10000;
          tell(state.growing ? state.headline : "", state.growing);
          const typed = document.activeElement?.type === "search";
          if (state.version !== body.dataset.version && !typed && !underWay && document.querySelector("[data-part], [data-reload]")) {
            await visit(location.href, { push: false, keep: "all" });
            body.dataset.version = state.version;
          }
        }
      } catch {
        failures += 1;
        if (failures > 1) tell("the viewer does not answer; is it still running?", false);
      }
    }
    setTimeout(pulse, pause);
  }
  if (body.dataset.pulse) setTimeout(pulse, 2000);

  // --- keys ---

  const cells = () => [...document.querySelectorAll("#cells tbody tr")].map((row) => [...row.querySelectorAll(".cell")]);
  const cellAt = (row, column) => cells()[row]?.[column];

  function place(element) {
    const cell = element.closest?.(".cell");
    if (!cell) return null;
    const rows = cells();
    const row = rows.findIndex((each) => each.includes(cell));
    return row < 0 ? null : { row, column: rows[row].indexOf(cell) };
  }

  function move(down, right) {
    const rows = cells();
    if (!rows.length) return;
    const here = place(document.activeElement) ?? (document.querySelector(".cell[aria-current]") && place(document.querySelector(".cell[aria-current]")));
    const row = here ? here.row + down : 0;
    const column = here ? Math.min(Math.max(here.column + right, 0), rows[0].length - 1) : 0;
    if (row < 0 || row >= rows.length) {
      const link = document.querySelector(`#matrix .pager a[rel=${row < 0 ? "prev" : "next"}]`);
      if (link) go(link).then(() => cellAt(row < 0 ? cells().length - 1 : 0, column)?.focus());
      return;
    }
    const cell = rows[row][column];
    cell.focus({ preventScroll: true });
    cell.scrollIntoView({ block: "nearest", inline: "nearest" });
    // what is read follows, as in a mail program
    clearTimeout(following);
    if (document.getElementById("pane") && cell.href) following = setTimeout(() => go(cell), 120);
  }

  const on = document.getElementById("keys-on");
  try {
    on.checked = localStorage.getItem("keys") !== "off";
  } catch { /* a browser may keep nothing */ }
  on?.addEventListener("change", () => {
    try {
      localStorage.setItem("keys", on.checked ? "on" : "off");
    } catch { /* then it holds as long as this page */ }
  });
  const button = document.getElementById("keys-button");
  if (button) {
    button.hidden = false;
    button.addEventListener("click", () => dialog.showModal());
  }

  document.addEventListener("keydown", (event) => {
    if (event.metaKey || event.ctrlKey || event.altKey || dialog?.open) return;
    const target = event.target;
    if (target.matches("input[type=search], input[type=password], select, textarea")) {
      if (event.key === "Escape") target.blur();
      return;
    }
    const inMatrix = Boolean(target.closest(".matrix"));
    const arrows = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] };
    if (inMatrix && arrows[event.key] && document.getElementById("cells")) {
      event.preventDefault();
      move(...arrows[event.key]);
      return;
    }
    if (event.key === "Escape") {
      document.getElementById("close")?.click();
      return;
    }
    if (on && !on.checked) return;
    const control = /^[a-z0-9]$/.test(event.key) && document.querySelector(`[data-key="${event.key}"]`);
    if (control && !event.repeat) {
      event.preventDefault();
      control.click();
      return;
    }
    const letters = { j: [1, 0], k: [-1, 0], l: [0, 1], h: [0, -1] };
    if (letters[event.key] && document.getElementById("cells")) {
      event.preventDefault();
      move(...letters[event.key]);
    } else if (event.key === "n" || event.key === "p") {
      document.getElementById(event.key === "n" ? "next" : "previous")?.click();
    } else if (event.key === "/") {
      const search = document.querySelector("input[type=search]");
      if (search) {
        event.preventDefault();
        search.focus();
        search.select();
      }
    } else if (event.key === "?") {
      event.preventDefault();
      dialog?.showModal();
    }
  });
})();
