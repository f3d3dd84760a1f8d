// Chapter 2: the same words in two orders, translated with positions and without.

const LONGEST = 10; // words of a translation that are shown

class OrderLens extends Lens {
  read(sentence) {
    this.first = sentence.split(" ");
    this.model.encode(this.model.ids(sentence));
  }

  // Opens with the second word and the last one in exchanged places.
  start() {
    this.order = range(this.first.length);
    this.picked = null;
    if (this.order.length > 3) this.exchange(1, this.order.length - 2);
  }

  parts() {
    const moves = make("div", { class: "tr-row" }, [
      push("Shuffle", () => { this.order = this.shuffled(); this.show(); }),
      push("Back in order", () => { this.order.sort((a, b) => a - b); this.show(); }),
    ]);
    return [this.asksSentence("Translate"), make("p", { class: "tr-head" }, ["Press two words: they change places."]), this.chips, moves, this.picture, this.line];
  }

  exchange(a, b) {
    [this.order[a], this.order[b]] = [this.order[b], this.order[a]];
  }

  shuffled() {
    const order = [...this.order];
    for (let i = order.length - 1; i > 0; i -= 1) {
      const j = Math.floor(Math.random() * (i + 1));
      [order[i], order[j]] = [order[j], order[i]];
    }
    return order;
  }

  pick(place) {
    if (this.picked === null) this.picked = place;
    else {
      this.exchange(this.picked, place);
      this.picked = null;
    }
    this.show();
  }

  translation(words, positions) {
    this.model.switches = { ...WHOLE, positions };
    const { ids } = greedy(this.model, words.join(" "));
    return this.model.text(ids.slice(0, LONGEST)) + (ids.length > LONGEST ? " …" : "");
  }

  show() {
    const words = this.order.map((place) => this.first[place]);
    this.showChips("The sentence in its new order", words, this.picked === null ? [] : [this.picked], (place) => this.pick(place));
    const given = [this.first, words];
    const [adds, lacks] = [true, false].map((positions) => given.map((one) => this.translation(one, positions)));
    const cells = (title, texts, kind) => [make("span", { class: "tr-head" }, [title]), ...texts.map((text) => make("span", { class: kind, lang: "fr" }, [text]))];
    swap(this.picture, make("div", { class: "tr-orders" }, [
      make("span"), ...given.map((one) => make("span", { class: "tr-given", lang: "en" }, [one.join(" ")])),
      ...cells("positions added", adds, "tr-with"), ...cells("no positions", lacks, "tr-without"),
    ]));
    const same = lacks[0] === lacks[1];
    this.say(words.join() === this.first.join() ? "Both orders are the same: exchange two words." : `Without positions both orders give ${same ? "the same sentence, word for word" : "different sentences: rounding has decided"}.`);
  }
}
