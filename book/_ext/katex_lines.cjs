// Render TeX with KaTeX: one JSON request a line on stdin, one JSON answer a line on stdout.
"use strict";
const katex = require("../_vendor/katex.min.js");

require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { tex, display, macros } = JSON.parse(line);
  const options = { displayMode: display, macros, output: "htmlAndMathml", strict: "error", throwOnError: true };
  let answer;
  try {
    answer = { html: katex.renderToString(tex, options) };
  } catch (error) {
    answer = { error: error.message };
  }
  process.stdout.write(JSON.stringify(answer) + "\n");
});
