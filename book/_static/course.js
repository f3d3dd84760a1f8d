// What the pages need besides the theme's scripts.
"use strict";
(() => {
  // A displayed formula is a stop for the keyboard only where it has to be scrolled.
  const mark = () => {
    for (const box of document.querySelectorAll(".math-scroll")) {
      box.tabIndex = box.scrollWidth > box.clientWidth ? 0 : -1;
    }
  };
  window.addEventListener("load", mark);
  window.addEventListener("resize", mark);

  // Search results quote the pages they found, which a browser forbids to a page opened as a file.
  if (window.location.protocol === "file:") {
    DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
  }
})();
