// The page of suggested golden questions: confirm each with its right answer and passages.
"use strict";
(() => {
  function passage(page, one, number) {
    const item = document.createElement("li");
    const label = document.createElement("label");
    const box = document.createElement("input");
    box.type = "checkbox";
    box.checked = page.decision.passages[number];
    box.addEventListener("change", () => {
      page.decision.passages[number] = box.checked;
      page.keep();
    });
    const id = document.createElement("span");
    id.className = "id";
    id.textContent = `${number + 1}${one.id && ` · ${one.id}`}`;
    const text = document.createElement("span");
    text.className = "text";
    text.textContent = one.text;
    label.append(box, id, text);
    item.append(label);
    return item;
  }

  function show(page) {
    const { entry, decision } = page;
    byId("question").textContent = entry.row.user_input;
    byId("reason").textContent = `${entry.reason}:`;
    byId("why").textContent = entry.row.why;
    byId("facts").textContent = `Asked ${entry.asked} times, last on ${entry.night}`;
    byId("reference").value = decision.reference;
    byId("response").textContent = entry.row.response;
    byId("logged").hidden = !entry.row.response;
    byId("passages").replaceChildren(...entry.passages.map((one, number) => passage(page, one, number)));
    byId("none").hidden = entry.passages.length > 0;
    const count = (word) => page.decisions.filter((one) => one.confirmed === word).length;
    const state = { yes: "confirmed", no: "not added", "": "open" }[decision.confirmed];
    byId("progress").textContent =
      `Question ${page.number} of ${page.entries.length} (${state}): ${count("yes")} confirmed, ${count("no")} not added`;
  }

  function decide(page, word) {
    const one = page.decision;
    if (word === "yes" && !one.reference.trim() && !one.passages.includes(true)) {
      byId("message").textContent = "Write the right answer, or choose a passage that it needs.";
      return;
    }
    one.confirmed = word;
    page.keep();
    if (page.isLast) page.refresh();
    page.go(1);
  }

  function use(page) {
    if (byId("logged").hidden) return;
    byId("reference").value = page.entry.row.response;
    page.decision.reference = page.entry.row.response;
    page.keep();
  }

  function choose(page, number) {
    if (number >= page.entry.passages.length) return false;
    byId("passages").querySelectorAll("input")[number].click();
    return undefined;
  }

  startLabelling({
    blank: (entry) => ({
      confirmed: "",
      reference: entry.row.reference,
      passages: entry.passages.map((one) => one.relevant),
    }),
    show,
    record(entry, one) {
      const chosen = entry.passages.filter((_, rank) => one.passages[rank]);
      return {
        ...entry.row,
        confirmed: one.confirmed,
        reference: one.reference.trim(),
        reference_context_ids: chosen.map((own) => own.id).filter(Boolean),
        reference_contexts: chosen.map((own) => own.text),
      };
    },
    keys: (page) => ({
      y: () => decide(page, "yes"),
      n: () => decide(page, "no"),
      u: () => use(page),
      ...Object.fromEntries(Array.from({ length: 9 }, (_, n) => [String(n + 1), () => choose(page, n)])),
    }),
    isText: (element) => element === byId("reference"),
    start(page) {
      byId("reference").addEventListener("input", (event) => {
        page.decision.reference = event.target.value;
        page.keep();
      });
      byId("confirm").addEventListener("click", () => decide(page, "yes"));
      byId("reject").addEventListener("click", () => decide(page, "no"));
      byId("use").addEventListener("click", () => use(page));
    },
  });
})();
