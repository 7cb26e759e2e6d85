// The page of rows to label: an answer per item (a context, a sentence, or the whole row).
// The judge's answers are not on the page, so that nobody repeats them.
"use strict";
(() => {
  let mark = 0; // the item that a number answers
  const NAME = "ragmetrics-person";

  const items = (page) => page.entry.groups.flatMap((group) => group.items.map(() => group));
  const isDone = (one) => one.every((answer) => answer !== null);

  function choice(page, place, group, option) {
    const button = document.createElement("button");
    button.type = "button";
    button.setAttribute("aria-pressed", String(page.decision.answers[place] === option.value));
    const key = document.createElement("kbd");
    key.textContent = option.key;
    button.append(option.text, " ", key);
    button.addEventListener("click", () => {
      mark = place;
      answer(page, option);
    });
    return button;
  }

  function item(page, group, text, place) {
    const element = document.createElement("li");
    element.className = place === mark ? "item marked" : "item";
    if (place === mark) element.setAttribute("aria-current", "true");
    const words = document.createElement("p");
    words.className = "text";
    words.textContent = text;
    const choices = document.createElement("div");
    choices.className = "choices";
    choices.setAttribute("role", "group");
    choices.setAttribute("aria-label", `${group.title}, item ${place + 1}`);
    choices.append(...group.options.map((option) => choice(page, place, group, option)));
    if (text) element.append(words);
    element.append(choices);
    return element;
  }

  function show(page) {
    const { entry, decision } = page;
    byId("question").textContent = entry.row.user_input;
    byId("facts").textContent = entry.facts;
    for (const [id, text, whole] of [["response", entry.response, "logged"], ["reference", entry.reference, "right"]]) {
      byId(id).textContent = text;
      byId(whole).hidden = !text;
    }
    byId("contexts").replaceChildren(...entry.contexts.map((text) => {
      const element = document.createElement("li");
      element.className = "item";
      const words = document.createElement("p");
      words.textContent = text;
      element.append(words);
      return element;
    }));
    byId("retrieved").hidden = !entry.contexts.length;
    byId("none").hidden = entry.groups.length > 0;
    let place = 0;
    byId("groups").replaceChildren(...entry.groups.map((group) => {
      const section = document.createElement("section");
      const title = document.createElement("h3");
      title.textContent = group.title;
      const list = document.createElement("ol");
      list.append(...group.items.map((text) => item(page, group, text, place++)));
      section.append(title, list);
      return section;
    }));
    const done = page.decisions.filter((one) => isDone(one.answers)).length;
    const state = isDone(decision.answers) ? "labelled" : "open";
    byId("progress").textContent = `Row ${page.number} of ${page.entries.length} (${state}): ${done} labelled`;
  }

  function answer(page, option) {
    if (!option) return false;
    page.decision.answers[mark] = option.value;
    page.keep();
    if (mark < page.decision.answers.length - 1) return moved(page, 1);
    if (page.isLast) {
      page.refresh();
      byId("message").textContent = "The last one. Download the file.";
      return undefined;
    }
    mark = 0;
    page.go(1);
    return undefined;
  }

  function moved(page, step) {
    mark = Math.min(Math.max(mark + step, 0), page.decision.answers.length - 1);
    page.refresh();
    document.querySelector(".marked")?.scrollIntoView({ block: "nearest" });
    return undefined;
  }

  const byKey = (page, key) => items(page)[mark]?.options.find((option) => option.key === key);

  function turn(page, step) {
    mark = 0;
    page.go(step);
  }

  function name() {
    try {
      return localStorage.getItem(NAME) ?? "";
    } catch { return ""; }
  }

  startLabelling({
    blank: (entry) => ({ answers: entry.groups.flatMap((group) => group.items.map(() => null)) }),
    show,
    record(entry, one) {
      const row = { ...entry.row, person: byId("person").value.trim() };
      let place = 0;
      for (const group of entry.groups) {
        const own = one.answers.slice(place, place + group.items.length);
        place += group.items.length;
        if (own.length && isDone(own)) row[group.column] = group.whole ? own[0] : own;
      }
      return row;
    },
    keys: (page) => ({
      ArrowUp: () => moved(page, -1),
      ArrowDown: () => moved(page, 1),
      ArrowLeft: () => turn(page, -1),
      ArrowRight: () => turn(page, 1),
      c: () => {
        page.decision.answers.fill(null);
        mark = 0;
        page.keep();
        page.refresh();
      },
      ...Object.fromEntries(Array.from({ length: 10 }, (_, n) => [String(n), () => answer(page, byKey(page, String(n)))])),
    }),
    isText: (element) => element === byId("person"),
    start(page) {
      byId("person").value = name();
      byId("person").addEventListener("input", (event) => {
        try {
          localStorage.setItem(NAME, event.target.value);
        } catch { /* the name lasts as long as the page */ }
      });
      byId("clear").addEventListener("click", () => {
        page.decision.answers.fill(null);
        mark = 0;
        page.keep();
        page.refresh();
      });
      for (const id of ["previous", "next"]) byId(id).addEventListener("click", () => { mark = 0; page.refresh(); });
    },
  });
})();
