// What the pages need besides the theme's scripts.
"use strict";
(() => {
  // What has to be scrolled sideways, and only that, is a stop for the keyboard and has a name; it
  // fades where it goes on, until its end is in sight. Parts of figures have names of their own.
  const NAMES = {
    ".math-scroll": "Formula",
    ".cell_output pre": "Output",
    pre: "Code",
    ".pst-scrollable-table-container": "Table",
  };
  const TABLES = ".pst-scrollable-table-container";
  const FADING = `.math-scroll, .bd-article pre, ${TABLES}`;
  const WIDE = `${FADING}, .bd-article [role=region][aria-label]`;
  const NARROW = window.matchMedia("(max-width: 600px)");
  const tooWide = (box) => box.scrollWidth > box.clientWidth;
  const goesOn = (box) => box.scrollLeft + box.clientWidth < box.scrollWidth - 1;
  const fade = (box, on) => {
    if (box.classList.contains("goes-on") !== on) box.classList.toggle("goes-on", on);
  };
  const stop = ([box, wide, on]) => {
    if (box.tabIndex !== (wide ? 0 : -1)) box.tabIndex = wide ? 0 : -1;
    if (!box.matches(FADING)) return;
    fade(box, on);
    const name = NAMES[Object.keys(NAMES).find((kind) => box.matches(kind))];
    for (const [key, value] of [["role", "group"], ["aria-label", `${name}, scrolls sideways`]]) {
      if (wide) box.setAttribute(key, value);
      else if (box.hasAttribute(key)) box.removeAttribute(key);
    }
  };
  // On a phone a table that would have to be scrolled stands row by row, each cell under the name of
  // its column. What is laid out so is a table to nobody who cannot see it, unless it says so.
  const PARTS = { table: "table", "thead, tbody": "rowgroup", tr: "row", "thead th": "columnheader" };
  const shown = (cell) => { // a formula is there a second time, for those who do not see it
    const copy = cell.cloneNode(true);
    for (const unseen of copy.querySelectorAll(".katex-mathml")) unseen.remove();
    return copy.textContent.replaceAll("\u200b", "").trim();
  };
  const name = (table) => {
    const heads = [...table.tHead.rows[0].cells].map(shown);
    for (const [part, role] of Object.entries(PARTS)) {
      for (const one of [table, ...table.querySelectorAll(part)]) {
        if (one.matches(part)) one.setAttribute("role", role);
      }
    }
    for (const row of [...table.tBodies].flatMap((body) => [...body.rows])) {
      [...row.cells].forEach((cell, i) => {
        cell.dataset.label = heads[i] ? `${heads[i]}: ` : "";
        cell.setAttribute("role", "cell");
      });
    }
  };
  const plain = (table) => table?.tHead?.rows.length === 1 && !table.querySelector("[colspan]");
  const layTables = (boxes) => {
    for (const box of boxes) box.classList.remove("row-by-row");
    const cut = NARROW.matches ? boxes.filter(tooWide) : [];
    for (const box of cut.filter((one) => plain(one.querySelector("table")))) {
      box.classList.add("row-by-row");
      name(box.querySelector("table"));
    }
  };
  const mark = (boxes) => {
    layTables(boxes.filter((box) => box.matches(TABLES)));
    // all are measured before one is changed: what is in sight is laid out once, and not for each
    boxes.map((box) => [box, tooWide(box), goesOn(box)]).forEach(stop);
  };
  // What is off the screen is not laid out (course.css), and to ask for its width would do it. The
  // browser says when a part has a width for the first time, or another: when it comes near, is
  // unfolded, or grows.
  const isLaid = (one) => one.checkVisibility({ contentVisibilityAuto: true });
  const due = new Set();
  const markSoon = (boxes) => {
    if (!due.size && boxes.length) {
      requestAnimationFrame(() => {
        const all = [...due];
        due.clear();
        mark(all);
      });
    }
    for (const box of boxes) due.add(box);
  };
  const widths = new WeakMap(); // of boxes and of what is in them
  const sizes = new ResizeObserver((changes) => {
    const other = changes.filter(({ target, contentRect: { width } }) => widths.get(target) !== width);
    for (const { target, contentRect } of other) widths.set(target, contentRect.width);
    markSoon(other.map(({ target }) => target.closest(WIDE)));
  });
  const watch = () => {
    for (const box of document.querySelectorAll(WIDE)) {
      for (const part of [box, box.firstElementChild]) {
        if (!part || widths.has(part)) continue;
        widths.set(part, 0);
        sizes.observe(part);
      }
    }
  };
  document.addEventListener("DOMContentLoaded", () => {
    watch();
    const article = document.querySelector(".bd-article");
    const grown = new MutationObserver((changes) => { // a drawing has a width that nobody is told
      watch();
      markSoon(changes.map(({ target }) => target.closest(WIDE)).filter((box) => box && isLaid(box)));
    });
    if (article) grown.observe(article, { childList: true, subtree: true });
  });
  document.addEventListener("scroll", ({ target }) => target.matches?.(FADING) && fade(target, goesOn(target)), true);

  // The names of tests are half of a table that nobody reads on a phone: folded there.
  const foldTests = () => {
    for (const fold of document.querySelectorAll("details.tests")) fold.open = !NARROW.matches;
  };
  document.addEventListener("DOMContentLoaded", foldTests);
  NARROW.addEventListener("change", foldTests);

  // The arrow keys turn the page only while no part of it has the keyboard: a figure, and what has to
  // be scrolled, need them for themselves.
  document.documentElement.addEventListener("keydown", (event) => {
    const turns = event.key === "ArrowLeft" || event.key === "ArrowRight";
    if (turns && event.target !== document.body) event.stopPropagation();
  });

  // The theme takes the focus from the buttons of its bar when they are pressed. Whoever pressed a
  // key, which is a click of no button of a mouse, goes on from there.
  const BAR = ".theme-switch-button, .search-button, .primary-toggle, .secondary-toggle";
  const keepKeyboard = () => {
    let byKey = false;
    window.addEventListener("click", (event) => { byKey = event.detail === 0; }, true);
    for (const button of document.querySelectorAll(BAR)) {
      button.blur = () => byKey || HTMLElement.prototype.blur.call(button);
    }
  };
  document.addEventListener("DOMContentLoaded", keepKeyboard);

  // What the theme shows without a word is said: the colours, and what a search found.
  const announce = () => {
    const said = document.createElement("p");
    said.className = "visually-hidden";
    said.setAttribute("role", "status");
    document.body.append(said);
    const root = document.documentElement;
    const colours = () => { said.textContent = `Color mode: ${root.dataset.mode}`; };
    new MutationObserver(colours).observe(root, { attributeFilter: ["data-mode"] });
    const results = document.getElementById("search-results");
    const found = () => {
      const summary = results.querySelector(".search-summary")?.textContent ?? "";
      if (said.textContent !== summary) said.textContent = summary;
    };
    if (results) new MutationObserver(found).observe(results, { childList: true, subtree: true });
  };
  document.addEventListener("DOMContentLoaded", announce);

  // Search results quote the pages they found, which a browser forbids to a page opened as a file.
  if (window.location.protocol === "file:") {
    DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
  }

  // Paper shows what is folded, except the code that made a picture.
  window.addEventListener("beforeprint", () => {
    for (const fold of document.querySelectorAll("details:not(.hide, [open])")) {
      fold.dataset.folded = "";
      fold.open = true;
    }
  });
  window.addEventListener("afterprint", () => {
    for (const fold of document.querySelectorAll("[data-folded]")) {
      delete fold.dataset.folded;
      fold.open = false;
    }
  });

  // Where a reader was, and which chapters were read to their end: kept in this browser alone.
  const KEPT = "course-reading";
  const kept = () => {
    try {
      return JSON.parse(localStorage.getItem(KEPT)) || { read: [] };
    } catch {
      return { read: [] };
    }
  };
  const keep = (what) => {
    try {
      localStorage.setItem(KEPT, JSON.stringify(what));
    } catch {
      // a browser that keeps nothing: the page works as before
    }
  };

  const remember = () => {
    const page = window.location.pathname.split("/").pop();
    const sections = [...document.querySelectorAll(".bd-article section[id]")].filter(isLaid);
    const above = sections.filter((section) => section.getBoundingClientRect().top < 200);
    const here = above.at(-1);
    if (!/^\d\d_/.test(page) || above.length < 2) return;
    const heading = (section) => section.querySelector("h1, h2, h3").firstChild.textContent;
    const title = document.title.split(" \u2014 ")[0];
    const read = new Set(kept().read);
    if (here === sections.at(-1)) read.add(page);
    keep({ page, section: here.id, title, heading: heading(here), read: [...read] });
  };
  window.addEventListener("pagehide", remember);
  document.addEventListener("visibilitychange", () => document.hidden && remember());

  const welcomeBack = () => {
    const doors = document.querySelector(".front-doors p");
    const { page, section, title, heading, read } = kept();
    if (doors && page) {
      const link = document.createElement("a");
      link.href = `${page}#${section}`;
      link.textContent = `Go on with ${title}: ${heading}`;
      doors.append(link);
    }
    for (const link of document.querySelectorAll(".chapter-title a")) {
      const name = link.getAttribute("href");
      if (read.includes(name)) link.closest(".chapter-link").classList.add("chapter-read");
    }
  };
  document.addEventListener("DOMContentLoaded", welcomeBack);
})();
