// What the smaller figures share: one sentence that can be changed, its words as buttons, vectors
// as strips of colour. Each figure shows one part of the same model.

const PALEST = 0.04; // share of a strip's largest number that is not drawn

// A vector as a strip, a field a number: positive in the page's blue, negative in its rust.
function strip(vector, most, name) {
  const cells = [...vector].map((value, x) => ({ x, value, share: Math.min(1, Math.abs(value) / most) })).filter(({ share }) => share > PALEST)
    .map(({ x, value, share }) => draw("rect", { x, y: 0, width: 1.02, height: 1, class: value < 0 ? "tr-minus" : "tr-cell", "fill-opacity": share.toFixed(2) }));
  return draw("svg", { viewBox: `0 0 ${vector.length} 1`, preserveAspectRatio: "none", class: "tr-strip", role: "img", "aria-label": name }, cells);
}

const largest = (vector) => vector.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
const mean = (vector) => vector.reduce((sum, value) => sum + value, 0) / vector.length;
const size = (vector) => Math.sqrt(mean(vector.map((value) => value ** 2)));
const decimal = (value, digits = 2) => {
  const text = value.toFixed(digits);
  return (Number(text) === 0 ? text.replace("-", "") : text).replace("-", "−");
};

class Lens {
  constructor(root, model, sentence, word) {
    Object.assign(this, { model, sentence });
    this.line = make("p", { class: "tr-line", "aria-live": "polite" });
    this.chips = make("div", { class: "tr-chips" });
    this.picture = make("div", { class: "tr-drawn" });
    this.read(sentence);
    this.start(word);
    root.replaceChildren(make("div", { class: "tr" }, [make("style", {}, [STYLE]), ...this.parts()]));
    this.show();
  }

  // A field for a text, and what happens when it is sent.
  asking(title, text, act, button) {
    this.input = make("input", { type: "text", autocomplete: "off", spellcheck: "false", enterkeyhint: "go", value: text });
    const form = make("form", { class: "tr-form" }, [labelled(title, this.input), make("button", { type: "submit", class: "tr-main" }, [button])]);
    form.addEventListener("submit", (event) => { event.preventDefault(); act(this.input.value); });
    return form;
  }

  asksSentence(button) {
    return this.asking("English", this.sentence, (text) => this.ask(text), button);
  }

  ask(text) {
    const tidied = tidy(text);
    if (!tidied) return this.say("Write an English sentence first.");
    try {
      this.read(tidied);
    } catch (error) {
      this.read(this.sentence);
      return this.say(`Not read: ${error.message}.`);
    }
    this.sentence = tidied;
    this.input.value = tidied;
    this.start();
    return this.show();
  }

  say(text) {
    this.line.textContent = text;
  }

  // Words as buttons; those in `chosen` are pressed.
  showChips(name, words, chosen, act) {
    const buttons = words.map((word, place) => push(word, () => act(place), { "aria-pressed": String(chosen.includes(place)) }));
    swap(this.chips, make("div", { class: "tr-tokens", role: "group", "aria-label": name }, buttons));
  }
}
