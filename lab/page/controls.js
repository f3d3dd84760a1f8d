// Controls with their names, and a place whose content changes.

let copies = 0;

// A control with its own label; the id ties them together.
function labelled(text, control, after = false) {
  control.id = `translator-${(copies += 1)}`;
  const label = make("label", { for: control.id }, [text]);
  return make("span", { class: "tr-control" }, after ? [control, label] : [label, control]);
}

function select(options, change) {
  const control = make("select", {}, Object.entries(options).map(([value, text]) => make("option", { value }, [text])));
  control.addEventListener("change", () => change(control.value));
  return control;
}

function check(change) {
  const control = make("input", { type: "checkbox" });
  control.addEventListener("change", () => change(control.checked));
  return control;
}

function push(text, act, attributes = {}) {
  const button = make("button", { type: "button", ...attributes }, [text]);
  button.addEventListener("click", act);
  return button;
}

// Put new content into a place; the button that had the keyboard has it afterwards too.
function swap(place, content) {
  const buttons = [...place.querySelectorAll("button")];
  const held = buttons.indexOf(document.activeElement);
  place.replaceChildren(content);
  if (held >= 0) [...place.querySelectorAll("button")].at(Math.min(held, place.querySelectorAll("button").length - 1))?.focus({ preventScroll: true });
}
