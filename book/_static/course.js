// A displayed formula is a stop for the keyboard only where it has to be scrolled.
"use strict";
(() => {
  const mark = () => {
    for (const box of document.querySelectorAll(".math-scroll")) {
      box.tabIndex = box.scrollWidth > box.clientWidth ? 0 : -1;
    }
  };
  window.addEventListener("load", mark);
  window.addEventListener("resize", mark);
})();
