// What the labelling pages share: one entry on a screen, and a file to download. Texts of logs are
// only ever set as text. The browser keeps the decisions by the page's key, where it allows a file to
// keep something.
"use strict";
const byId = (id) => document.getElementById(id);

// `blank(entry)` is the decision on an entry that nobody has seen, `show(page)` fills the screen,
// `record(entry, decision)` is a line of the file, `keys` are actions by key; `isText` says whether
// an element takes what is typed.
function startLabelling({ blank, show, record, keys, isText, start }) {
  const { key, entries, file } = JSON.parse(byId("data").textContent);
  const kept = `ragmetrics-labels-${key}`;
  const decisions = entries.map(blank);
  let at = 0;
  let saved = true; // whether the decisions were downloaded

  const page = {
    entries,
    decisions,
    get entry() { return entries[at]; },
    get decision() { return decisions[at]; },
    get number() { return at + 1; },
    get isLast() { return at === entries.length - 1; },
    keep,
    go,
    refresh,
  };

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

  function refresh() {
    byId("previous").disabled = at === 0;
    byId("next").disabled = at === entries.length - 1;
    byId("message").textContent = "";
    show(page);
  }

  function go(step) {
    const next = at + step;
    if (next < 0 || next >= entries.length) return;
    at = next;
    refresh();
    byId("question").focus();
  }

  function download() {
    const lines = entries.map((entry, number) => `${JSON.stringify(record(entry, decisions[number]))}\n`);
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob(lines, { type: "application/jsonl" }));
    link.download = file;
    link.click();
    URL.revokeObjectURL(link.href);
    saved = true;
  }

  const actions = { d: download, ArrowLeft: () => go(-1), ArrowRight: () => go(1), ...keys(page) };

  function onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (isText(event.target)) {
      if (event.key === "Escape") byId("question").focus();
      return;
    }
    const act = actions[event.key];
    if (act && act() !== false) event.preventDefault();
  }

  if (!entries.length) return;
  restore();
  document.querySelector("main").hidden = false;
  byId("download").addEventListener("click", download);
  byId("previous").addEventListener("click", () => go(-1));
  byId("next").addEventListener("click", () => go(1));
  document.addEventListener("keydown", onKey);
  addEventListener("beforeunload", (event) => {
    if (!saved) event.preventDefault();
  });
  start(page);
  refresh();
}
