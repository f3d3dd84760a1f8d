// Chapter 8: the next word after the right beginning and after a wrong one, and how each goes on.

class ForcedLens extends Lens {
  read(sentence) {
    this.source = this.model.encode(this.model.ids(sentence));
    this.right = carryOn(this.model, this.source).steps.map(({ id }) => id);
  }

  // Opens with a word of the translation written one place too early.
  start(word) {
    const place = this.names().indexOf(word ?? "");
    this.place = Math.max(0, place - 1);
    this.wrong = this.right[this.place + 1] ?? this.right[0];
  }

  names() {
    return this.right.map((id) => this.model.target.words[id]);
  }

  parts() {
    const words = this.model.target.words.map((word, id) => [id, word]).filter(([, word]) => !word.startsWith("<")).sort((a, b) => a[1].localeCompare(b[1], "fr"));
    this.words = select({}, (id) => { this.wrong = Number(id); this.show(); });
    this.words.append(...words.map(([value, word]) => make("option", { value }, [word])));
    return [
      this.asksSentence("Translate"), make("p", { class: "tr-head" }, ["The right translation. Press the word to get wrong:"]), this.chips,
      make("div", { class: "tr-row" }, [labelled("Write there instead", this.words)]), this.picture, this.line,
    ];
  }

  choose(place) {
    this.place = place;
    this.wrong = this.right[place + 1] ?? this.right[0];
    this.show();
  }

  side(title, beginning, kind) {
    const { model } = this;
    const { steps, ids } = carryOn(model, this.source, beginning);
    const next = likeliest(steps[0].logProbs, 5).map((id) => ({ word: model.target.words[id], share: Math.exp(steps[0].logProbs[id]), taken: id === steps[0].id }));
    const sentence = make("p", { class: "tr-beginning", lang: "fr" }, [model.text(beginning.slice(0, -1)), " ", make("mark", { class: kind }, [model.text(beginning.slice(-1))]), " ", make("span", { class: "tr-rest" }, [model.text(ids)])]);
    return { rest: ids, element: make("div", { class: kind }, [make("p", { class: "tr-head" }, [title]), sentence, bars(next)]) };
  }

  show() {
    const { right, place, model } = this;
    this.words.value = String(this.wrong);
    this.showChips("The word to get wrong", this.names().slice(0, -1), [place], (one) => this.choose(one));
    const before = right.slice(0, place);
    const [good, bad] = [this.side("fed with the right word", [...before, right[place]], "tr-good"), this.side("fed with the wrong word", [...before, this.wrong], "tr-bad")];
    swap(this.picture, make("div", { class: "tr-sides" }, [good.element, bad.element]));
    const same = good.rest.join() === bad.rest.join();
    this.say(same ? "It goes on as before: this error stays alone." : `One wrong word, and it goes on with “${model.text(bad.rest)}” in place of “${model.text(good.rest)}”`);
  }
}
