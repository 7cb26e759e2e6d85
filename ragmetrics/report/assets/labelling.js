// The labelling page: one question on a screen. Texts of logs are only ever set as text.
// The browser keeps the decisions by the page's key, where it allows a file to keep something.
"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const { key, entries } = JSON.parse(byId("data").textContent);
  const kept = `ragmetrics-labels-${key}`;
  let at = 0;
  let saved = true; // whether the decisions were downloaded
  const decisions = entries.map((entry) => ({
    confirmed: "",
    reference: entry.row.reference,
    passages: entry.passages.map((one) => one.relevant),
  }));

  function restore() {
    try {
      const known = JSON.parse(localStorage.getItem(kept) ?? "null");
      if (Array.isArray(known) && known.length === decisions.length) known.forEach((one, n) => Object.assign(decisions[n], one));
    } catch { /* the browser keeps nothing: the decisions last as long as the page */ }
  }

  function keep() {
    saved = false;
    try {
      localStorage.setItem(kept, JSON.stringify(decisions));
    } catch { /* as above */ }
  }

  function passage(one, number) {
    const item = document.createElement("li");
    const label = document.createElement("label");
    const box = document.createElement("input");
    box.type = "checkbox";
    box.checked = decisions[at].passages[number];
    box.addEventListener("change", () => choose(number, box.checked));
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

  function show() {
    const entry = entries[at];
    byId("question").textContent = entry.row.user_input;
    byId("reason").textContent = `${entry.reason}:`;
    byId("why").textContent = entry.row.why;
    byId("facts").textContent = `Asked ${entry.asked} times, last on ${entry.night}`;
    byId("reference").value = decisions[at].reference;
    byId("response").textContent = entry.row.response;
    byId("logged").hidden = !entry.row.response;
    byId("passages").replaceChildren(...entry.passages.map(passage));
    byId("none").hidden = entry.passages.length > 0;
    byId("previous").disabled = at === 0;
    byId("next").disabled = at === entries.length - 1;
    byId("message").textContent = "";
    progress();
  }

  function progress() {
    const count = (word) => decisions.filter((one) => one.confirmed === word).length;
    const state = { yes: "confirmed", no: "not added", "": "open" }[decisions[at].confirmed];
    byId("progress").textContent =
      `Question ${at + 1} of ${entries.length} (${state}): ${count("yes")} confirmed, ${count("no")} not added`;
  }

  function choose(number, chosen) {
    decisions[at].passages[number] = chosen;
    keep();
  }

  function go(step) {
    const next = at + step;
    if (next < 0 || next >= entries.length) return;
    at = next;
    show();
    byId("question").focus();
  }

  function decide(word) {
    const one = decisions[at];
    if (word === "yes" && !one.reference.trim() && !one.passages.includes(true)) {
      byId("message").textContent = "Write the right answer, or choose a passage that it needs.";
      return;
    }
    one.confirmed = word;
    keep();
    if (at === entries.length - 1) show();
    go(1);
  }

  function row(entry, number) {
    const one = decisions[number];
    const chosen = entry.passages.filter((_, rank) => one.passages[rank]);
    return {
      ...entry.row,
      confirmed: one.confirmed,
      reference: one.reference.trim(),
      reference_context_ids: chosen.map((own) => own.id).filter(Boolean),
      reference_contexts: chosen.map((own) => own.text),
    };
  }

  function download() {
    const lines = entries.map((entry, number) => `${JSON.stringify(row(entry, number))}\n`);
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob(lines, { type: "application/jsonl" }));
    link.download = "suggestions.jsonl";
    link.click();
    URL.revokeObjectURL(link.href);
    saved = true;
  }

  const KEYS = {
    y: () => decide("yes"),
    n: () => decide("no"),
    u: () => use(),
    d: download,
    ArrowLeft: () => go(-1),
    ArrowRight: () => go(1),
  };

  function use() {
    if (byId("logged").hidden) return;
    byId("reference").value = entries[at].row.response;
    decisions[at].reference = entries[at].row.response;
    keep();
  }

  function onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target === byId("reference")) {
      if (event.key === "Escape") byId("question").focus();
      return;
    }
    const number = Number(event.key) - 1;
    if (number >= 0 && number < entries[at].passages.length) {
      byId("passages").querySelectorAll("input")[number].click();
    } else if (KEYS[event.key]) {
      event.preventDefault();
      KEYS[event.key]();
    }
  }

  if (!entries.length) return;
  restore();
  document.querySelector("main").hidden = false;
  byId("reference").addEventListener("input", (event) => {
    decisions[at].reference = event.target.value;
    keep();
  });
  for (const [id, act] of Object.entries({
    previous: () => go(-1),
    next: () => go(1),
    confirm: () => decide("yes"),
    reject: () => decide("no"),
    use,
    download,
  })) byId(id).addEventListener("click", act);
  document.addEventListener("keydown", onKey);
  addEventListener("beforeunload", (event) => {
    if (!saved) event.preventDefault();
  });
  show();
})();
