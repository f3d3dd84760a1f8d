// What the pages need besides the theme's scripts.
"use strict";
(() => {
  // A displayed formula is a stop for the keyboard only where it has to be scrolled. What goes on to
  // the right fades there until its end is in sight.
  const WIDE = ".math-scroll, .bd-article pre, .pst-scrollable-table-container";
  const fade = (box) => {
    box.classList.toggle("goes-on", box.scrollLeft + box.clientWidth < box.scrollWidth - 1);
  };
  const mark = () => {
    for (const box of document.querySelectorAll(".math-scroll")) {
      box.tabIndex = box.scrollWidth > box.clientWidth ? 0 : -1;
    }
    document.querySelectorAll(WIDE).forEach(fade);
  };
  window.addEventListener("load", mark);
  document.addEventListener("scroll", ({ target }) => target.matches?.(WIDE) && fade(target), true);
  window.addEventListener("resize", mark);

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
    const sections = [...document.querySelectorAll(".bd-article section[id]")];
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
