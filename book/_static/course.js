// What the pages need besides the theme's scripts.
"use strict";
(() => {
  // The listeners of a document are told in tasks of their own (_ext/course/polish.py). What is here
  // is told at once, before them: it stands when the page is complete.
  const whenRead = (act) => window.addEventListener("DOMContentLoaded", act);

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
  const missed = new Set(); // what had gone off the screen when it was due
  const markSoon = (boxes) => {
    if (!due.size && boxes.length) {
      requestAnimationFrame(() => {
        const all = [...due];
        due.clear();
        for (const box of all) missed[isLaid(box) ? "delete" : "add"](box);
        mark(all.filter((box) => !missed.has(box)));
      });
    }
    for (const box of boxes) due.add(box);
  };
  document.addEventListener("contentvisibilityautostatechange", ({ target, skipped }) => {
    if (!skipped) markSoon([...missed].filter((box) => target.contains(box)));
  }, true);
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
  whenRead(() => {
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
  whenRead(foldTests);
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
  whenRead(keepKeyboard);

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
  whenRead(announce);

  // Search results quote the pages they found, which a browser forbids to a page opened as a file.
  if (window.location.protocol === "file:") {
    DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
  }

  // What they quote is a page's text. A formula stands in it three times, of which one is for
  // listeners and one for copying; and the name of a fold is no part of what it says. A result
  // that leads to a section of a page tells which (course.css).
  const UNSAID = /<span class="katex-mathml">.*?<\/math><\/span>|<summary>\s*<p class="collapsed.*?<\/summary>/gs;
  const headingOf = (html, anchor) => {
    const page = anchor && new DOMParser().parseFromString(html, "text/html");
    return page && page.querySelector(`[role="main"] section${anchor} > :is(h2, h3)`);
  };
  whenRead(() => {
    if (typeof Search === "undefined") return;
    const { makeSearchSummary } = Search;
    Search.makeSearchSummary = (html, words, anchor) => {
      const said = html.replaceAll(UNSAID, "");
      const heading = headingOf(said, anchor);
      const quoted = makeSearchSummary(heading ? said.replace(heading.outerHTML, "") : said, words, anchor);
      if (quoted && heading) quoted.dataset.section = heading.firstChild.textContent;
      return quoted;
    };
  });

  // Paper is light, and shows what is folded, except the code that made a picture.
  window.addEventListener("beforeprint", () => {
    const { dataset } = document.documentElement;
    dataset.onScreen ??= dataset.theme;
    dataset.theme = "light";
    for (const fold of document.querySelectorAll("details:not(.hide, [open])")) {
      fold.dataset.folded = "";
      fold.open = true;
    }
  });
  window.addEventListener("afterprint", () => {
    const { dataset } = document.documentElement;
    dataset.theme = dataset.onScreen ?? dataset.theme;
    delete dataset.onScreen;
    for (const fold of document.querySelectorAll("[data-folded]")) {
      delete fold.dataset.folded;
      fold.open = false;
    }
  });

  // Where a link leads, or where a reader was, a browser finds by lengths; those of parts that were
  // never near are guesses (course.css). So a place is a section and how far one is in it, and what
  // lies there is put where it belongs until nothing around it grows any more.
  const MOVES = ["wheel", "touchstart", "pointerdown", "keydown"]; // a reader who goes on by themselves
  let settling = 0;
  let aim; // where it is going: a place, or null for where the address leads; undefined once there
  const leave = () => {
    settling += 1;
    aim = undefined;
  };
  const settle = (put, to) => {
    settling += 1;
    aim = to;
    const mine = settling;
    let still = 0;
    const step = () => {
      if (mine !== settling) return;
      const before = window.scrollY;
      put();
      still = Math.abs(window.scrollY - before) > 1 ? 0 : still + 1;
      if (still < 20 || document.readyState !== "complete") requestAnimationFrame(step);
      else aim = undefined;
    };
    step();
  };
  const AT_ONCE = { behavior: "instant" };
  const sectionAt = () => {
    const all = [...document.querySelectorAll(".bd-article section[id]")].filter(isLaid);
    return all.filter((section) => section.getBoundingClientRect().top < 200).at(-1);
  };
  const placeNow = () => {
    const section = sectionAt();
    return section && { section: section.id, top: section.getBoundingClientRect().top };
  };
  const note = () => { // on the way, what is at the top is nowhere a reader was
    const place = aim === undefined ? placeNow() : aim;
    if (place !== undefined) history.replaceState({ ...history.state, place }, "");
  };
  const placed = history.state?.place; // Sphinx's own script forgets it when the page is there
  const asked = () => {
    try {
      return decodeURIComponent(window.location.hash.slice(1));
    } catch {
      return ""; // an address that was cut within a letter
    }
  };
  const arrive = (place, again) => {
    const section = document.getElementById(place?.section);
    const target = document.getElementById(asked());
    if (section) {
      const off = () => section.getBoundingClientRect().top - place.top;
      settle(() => window.scrollBy({ top: off(), ...AT_ONCE }), place);
    } else if (target) {
      settle(() => target.scrollIntoView(AT_ONCE), null);
    } else if (again) {
      settle(() => window.scrollTo({ top: 0, ...AT_ONCE }), null);
    }
  };
  let noting = 0;
  const noteSoon = () => {
    noting ||= setTimeout(() => {
      noting = 0;
      note();
    }, 400); // a browser allows a hundred of these in half a minute
  };
  history.scrollRestoration = "manual";
  for (const move of MOVES) window.addEventListener(move, leave, { passive: true, capture: true });
  whenRead(() => {
    arrive(placed, false);
    window.addEventListener("scroll", noteSoon, { passive: true });
    window.addEventListener("click", ({ target }) => target.closest?.("a") && note(), true);
    window.addEventListener("popstate", ({ state }) => arrive(state?.place, true));
    window.addEventListener("pagehide", note);
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
    const sections = [...document.querySelectorAll(".bd-article section[id]")];
    const here = sectionAt();
    if (!/^\d\d_/.test(page) || !here || here === sections[0]) return;
    const heading = (section) => section.querySelector("h1, h2, h3").firstChild.textContent;
    const title = document.title.split(" \u2014 ")[0];
    const read = new Set(kept().read);
    if (sections.at(-1).getBoundingClientRect().top < window.innerHeight) read.add(page);
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
  whenRead(welcomeBack);
})();
