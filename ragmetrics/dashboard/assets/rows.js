// The page of a night's rows: text search, filters, one row at a time, and a CSV of the rows shown.
// The rows come from rows-1.js and so on. The address has the reader's choice, #metric=...&row=ID,
// so it can be shared. Without the rows the page stays as it is without scripts.
"use strict";
(() => {
  const STEP = 50;
  const FILTERS = ["q", "metric", "min", "max", "tag", "kind", "sort"];
  const FORMULA = /(?:^|(?<=[;\t\r\n]))(?=[=+\-@\uff1d\uff0b\uff0d\uff20])|^(?=[\t\r\n])/g;
  const byId = (id) => document.getElementById(id);
  const inert = document.createElement("template");
  const title = document.title;
  let rows = [];
  let missing = 0;
  let opened = ""; // the key of the row that is open
  let found = [];
  let shown = STEP;

  const narrow = () => matchMedia("(max-width: 640px)").matches;

  // The reader's choice, which is read from the address and written there. A tag or a kind that is not
  // in the list finds the rows that have it, or nothing; it never finds all rows.
  function chosen() {
    const said = new URLSearchParams(location.hash.slice(1));
    const state = Object.fromEntries([...FILTERS, "row"].map((name) => [name, said.get(name) ?? ""]));
    for (const name of ["metric", "sort"]) {
      const known = [...byId(`f-${name}`).options].some((option) => option.value === state[name]);
      if (!known) state[name] = "";
    }
    return state;
  }

  function address(state) {
    const said = new URLSearchParams(Object.entries(state).filter(([, value]) => value !== ""));
    return `#${said}`;
  }

  const limit = (text) => (text.trim() === "" || Number.isNaN(Number(text)) ? null : Number(text));
  const options = () => [...byId("f-metric").options].filter((option) => option.value);
  const isLower = (metric) => options().some((option) => option.value === metric && "lower" in option.dataset);

  // The metric by which a row fell: the chosen one, else the one that needs a reader most.
  const fell = (row, state) => row.why.find((why) => why.kind === "fell" && (!state.metric || why.metric === state.metric))?.metric;

  // The metric by which a row is listed: the scores now and before are of this metric.
  const measure = (row, state) => state.metric || fell(row, state) || row.why.find((why) => why.metric)?.metric || "";
  const score = (row, state) => row.scores[measure(row, state)];
  const before = (row, state) => row.before[measure(row, state)];

  // How much worse a row is than before; 0 where that is not known.
  function depth(row, state) {
    const change = before(row, state) - score(row, state) || 0;
    return isLower(measure(row, state)) ? -change : change;
  }

  // The words of a row's article; the contexts of earlier nights are not searched.
  function words(row) {
    if (row.words === undefined) {
      inert.innerHTML = row.html;
      const texts = [...inert.content.querySelectorAll(".text")].filter((one) => !one.closest(".then"));
      row.words = folded([row.id, row.question, ...texts.map((one) => one.textContent)].join("\n"));
    }
    return row.words;
  }

  const folded = (text) => text.normalize("NFKC").toLowerCase();

  function matches(row, state) {
    const [low, high] = [limit(state.min), limit(state.max)];
    const values = state.metric ? [row.scores[state.metric]] : Object.values(row.scores);
    const inRange = (value) => value !== undefined && (low === null || value >= low) && (high === null || value <= high);
    if ((low !== null || high !== null) && !values.some(inRange)) return false;
    const told = (why) => (!state.kind || why.kind === state.kind) && (!why.metric || !state.metric || why.metric === state.metric);
    if (state.kind && !row.why.some(told)) return false;
    if (state.tag && !row.tags.some(([tag, value]) => `${tag}=${value}` === state.tag)) return false;
    return folded(state.q).split(/\s+/).every((word) => !word || words(row).includes(word));
  }

  function inOrder(some, state) {
    const badness = (row) => {
      const value = score(row, state);
      return value === undefined ? Infinity : isLower(measure(row, state)) ? -value : value;
    };
    const worst = (a, b) => badness(a) - badness(b) || 0;
    const orders = {
      "": (a, b) => depth(b, state) - depth(a, state) || worst(a, b),
      worst,
      best: (a, b) => (score(a, state) === undefined) - (score(b, state) === undefined) || badness(b) - badness(a) || 0,
      question: (a, b) => a.question.localeCompare(b.question),
    };
    return [...some].sort(orders[state.sort]);
  }

  const figure = (value) => (value === undefined || value === null ? "–" : value.toFixed(2).replace("-", "−"));
  const plural = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;

  function element(name, text = "", kind = "") {
    const made = document.createElement(name);
    made.textContent = text;
    if (kind) made.className = kind;
    return made;
  }

  // Pages show the display name of a metric; the CSV has its name in the settings, for machines.
  const displayName = (metric) => options().find((option) => option.value === metric)?.text ?? metric;

  function chip(tag, value) {
    const chip = element("span", "", "tag");
    chip.append(element("bdi", tag, "of"), " ", element("bdi", value));
    return chip;
  }

  // `1.00 → 0.20`, with the metric where none is chosen.
  function scores(row, state) {
    const cell = element("td", "", "num");
    if (before(row, state) !== undefined) cell.append(element("span", `${figure(before(row, state))} → `, "before"));
    cell.append(element("span", figure(score(row, state)), "value"));
    if (!state.metric && measure(row, state)) cell.append(element("span", displayName(measure(row, state)), "small"));
    return cell;
  }

  function line(row, state) {
    const line = element("tr");
    const head = element("th");
    head.scope = "row";
    const link = element("a");
    link.href = address({ ...state, row: row.key });
    link.dataset.key = row.key;
    link.append(element("bdi", row.question.slice(0, 300) || "(empty question)"));
    head.append(link);
    const tags = element("td");
    if (row.why.some((why) => why.kind === "lost")) tags.append(element("span", "lost a passage", "tag alarm"), " ");
    for (const [tag, value] of row.tags.slice(0, 4)) tags.append(chip(tag, value), " ");
    line.append(head, tags, scores(row, state));
    return line;
  }

  function list(state) {
    byId("measure").textContent = state.metric ? displayName(state.metric) : "Score";
    byId("found").querySelector("tbody").replaceChildren(...found.slice(0, shown).map((row) => line(row, state)));
    const more = Math.min(STEP, found.length - shown);
    byId("more").hidden = more <= 0;
    byId("more").textContent = `Show ${more} more`;
  }

  function tell(state) {
    const all = found.length === rows.length;
    const what = all ? `All ${plural(rows.length, "kept question")}.` : `${found.length.toLocaleString("en")} of ${plural(rows.length, "kept question")}.`;
    const lost = missing ? ` ${plural(missing, "file")} of questions could not be loaded.` : "";
    const gone = state.row && !rows.some((row) => row.key === state.row)
      ? ` Question ${state.row.slice(0, 200)} is not kept here; if the night has it, it is in the Parquet.` : "";
    byId("told").textContent = what + lost + gone;
  }

  // The metric that the reader came from, on top of the scores and beside the question.
  function lead(article, metric) {
    const scores = [...article.querySelectorAll("tbody[data-metric]")].find((one) => one.dataset.metric === metric);
    if (!scores) return;
    article.querySelector(".scores thead").after(scores);
    article.querySelector(".score").replaceChildren(
      element("span", displayName(metric), "small"), scores.querySelector("td .value").cloneNode(true));
  }

  function open(row, state) {
    inert.innerHTML = row.html;
    byId("article").replaceChildren(inert.content.cloneNode(true));
    const article = byId("article").firstElementChild;
    lead(article, state.metric);
    for (const term of article.querySelectorAll("a.term")) {
      term.title = options().find((option) => option.text === term.textContent)?.title ?? "";
    }
    const place = found.indexOf(row);
    link("back", state, "", `← ${plural(found.length, "question")} found`);
    link("prev", state, place > 0 ? found[place - 1].key : null);
    link("after", state, place >= 0 ? found[place + 1]?.key ?? null : null);
    document.title = `${row.question.slice(0, 80)} · ${title}`;
    article.focus({ preventScroll: true });
    scrollTo(0, 0);
  }

  function link(id, state, key, text) {
    byId(id).hidden = key === null;
    byId(id).href = address({ ...state, row: key ?? "" });
    if (text) byId(id).textContent = text;
  }

  // A choice of the address that the list lacks is added to it.
  function offer(field, value) {
    if (field.options && ![...field.options].some((option) => option.value === value)) {
      field.append(new Option(value.slice(0, 100), value));
    }
  }

  // Shows the choice of the address; `last` is the row that was open before.
  function show(last = "") {
    const state = chosen();
    for (const name of FILTERS) {
      const field = byId(`f-${name}`);
      offer(field, state[name]);
      if (field !== document.activeElement || field.tagName === "SELECT") field.value = state[name];
    }
    found = inOrder(rows.filter((row) => matches(row, state)), state);
    const row = rows.find((one) => one.key === state.row);
    for (const id of ["find", "found", "told"]) byId(id).hidden = Boolean(row);
    byId("opened").hidden = !row;
    tell(state);
    if (row) {
      open(row, state);
      return;
    }
    document.title = title;
    if (last) shown = Math.max(shown, found.findIndex((one) => one.key === last) + 1);
    list(state);
    if (last) [...document.querySelectorAll("#found a")].find((one) => one.dataset.key === last)?.focus();
  }

  function follow() {
    const last = opened;
    opened = chosen().row;
    show(opened ? "" : last);
  }

  function filter() {
    const state = Object.fromEntries(FILTERS.map((name) => [name, byId(`f-${name}`).value]));
    shown = STEP;
    history.replaceState(null, "", address(state));
    opened = "";
    show();
  }

  // As in ragmetrics/cli/export.py: a spreadsheet runs a cell that begins with one of these signs.
  function cell(value) {
    const text = typeof value === "string" ? value.replaceAll(FORMULA, "'") : String(value ?? "");
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  }

  function csv() {
    const { night } = byId("browser").dataset;
    const metrics = options();
    const head = ["night", "id", "kept_as", "question", ...metrics.map((one) => one.dataset.name), "fell_in", "before", "tags", "index_build", "language", "timestamp"];
    const state = chosen();
    const names = Object.fromEntries(metrics.map((one) => [one.value, one.dataset.name]));
    const lines = found.map((row) => [row, fell(row, state)]).map(([row, metric]) => [
      night, row.id, [...new Set(row.why.map((why) => why.kind))].join(" "), row.question,
      ...metrics.map((one) => row.scores[one.value]), names[metric], row.before[metric],
      JSON.stringify(Object.fromEntries(row.tags)), row.build, row.language, row.at,
    ]);
    return [head, ...lines].map((line) => `${line.map(cell).join(",")}\r\n`).join("");
  }

  function download() {
    const { dataset, night } = byId("browser").dataset;
    const url = URL.createObjectURL(new Blob([csv()], { type: "text/csv;charset=utf-8" }));
    const saved = element("a");
    saved.href = url;
    saved.download = `${dataset}-${night}-rows.csv`;
    saved.click();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
  }

  document.addEventListener("DOMContentLoaded", () => {
    const pages = [...(globalThis.ROWS ?? [])].sort((a, b) => a.page - b.page);
    rows = pages.flatMap((page) => page.rows);
    // The signs of markup come as characters that need no escape: see pages/rows.py.
    for (const row of rows) row.html = row.html.replace(/[\x82-\x84]/g, (sign) => "<>&"[sign.charCodeAt(0) - 0x82]);
    if (!rows.length) return;
    missing = Number(byId("browser").dataset.files) - pages.length;
    byId("worst").remove();
    byId("browser").hidden = false;
    byId("filters").open = !narrow();
    const { fell } = byId("browser").dataset;
    if (!location.hash && fell) history.replaceState(null, "", address({ metric: fell }));
    let waiting;
    byId("find").addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(filter, 120);
    });
    byId("find").addEventListener("submit", (event) => event.preventDefault());
    byId("find").addEventListener("reset", () => setTimeout(filter));
    byId("csv").addEventListener("click", download);
    byId("more").addEventListener("click", () => {
      shown += STEP;
      list(chosen());
    });
    addEventListener("hashchange", follow);
    addEventListener("keydown", (event) => {
      if (event.key === "Escape" && opened) byId("back").click();
    });
    follow();
  });
})();
