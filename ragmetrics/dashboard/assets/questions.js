// The page of all questions: search, filters, a small chart and the nights of each question.
// The questions come from questions.js. The address has the reader's choice, #segment=...&state=fell,
// so it can be saved and sent. Without the questions the page stays as it is without scripts.
"use strict";
(() => {
  const STEP = 50;
  const FILTERS = ["q", "segment", "metric", "min", "max", "from", "to", "state", "build"];
  const ORDER = ["firing", "fell", "back", ""];
  const SVG = "http://www.w3.org/2000/svg";
  const byId = (id) => document.getElementById(id);
  let data;
  let listed = [];
  let shown = STEP;

  const folded = (text) => text.normalize("NFKC").toLowerCase();
  const limit = (text) => (text.trim() === "" || Number.isNaN(Number(text)) ? null : Number(text));
  const known = (values) => (values ?? []).filter((value) => value !== null);
  const plural = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;

  // As `short` of ragmetrics/text/numbers.py: two significant digits.
  function figure(value) {
    if (value === undefined || value === null) return "–";
    const size = Math.abs(value);
    const digits = size >= 100 ? 0 : size >= 0.001 && size < 0.1 ? 3 : 2;
    return value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits }).replace("-", "−");
  }

  function element(name, text = "", kind = "") {
    const made = document.createElement(name);
    made.textContent = text;
    if (kind) made.className = kind;
    return made;
  }

  // The choice of the address. A metric that is not in the list is no choice; a segment, a night or a
  // build that is not there finds nothing.
  function chosen() {
    const told = new URLSearchParams(location.hash.slice(1));
    const state = Object.fromEntries(FILTERS.map((name) => [name, told.get(name) ?? ""]));
    if (metricOf(state) < 0) state.metric = "";
    return state;
  }

  // The number of the chosen metric: the options are in the order of the data.
  const options = () => [...byId("f-metric").options].slice(1);
  const metricOf = (state) => options().findIndex((option) => option.value === state.metric);
  const leadOf = (question, state) => (state.metric ? metricOf(state) : question.lead);

  const isFallen = (question, metric) => ["firing", "fell"].includes(question.state[metric]);

  // Whether a score is in the range: the newest one, or with a range of nights any of those nights.
  function hasScore(question, state, places) {
    const [low, high] = [limit(state.min), limit(state.max)];
    if (low === null && high === null && !state.metric) return true;
    const columns = state.metric ? [question.values[metricOf(state)]] : question.values;
    const isIn = (value) => value !== null && value !== undefined && (low === null || value >= low) && (high === null || value <= high);
    return columns.some((column) => (state.from || state.to ? places.some((place) => isIn(column[place])) : isIn(known(column).at(-1))));
  }

  function matches(question, state) {
    const isOf = ([night, , build]) => (!state.from || data.nights[night][0] >= state.from)
      && (!state.to || data.nights[night][0] <= state.to)
      && (!state.build || data.builds[build] === state.build);
    const places = question.asked.flatMap((asked, place) => (isOf(asked) ? [place] : []));
    if (!places.length || !hasScore(question, state, places)) return false;
    if (state.state && question.state[leadOf(question, state)] !== state.state) return false;
    if (state.segment && !question.tags.some(([tag, value]) => `${tag}=${value}` === state.segment)) return false;
    return folded(state.q).split(/\s+/).every((word) => !word || folded(question.text).includes(word));
  }

  // For a chosen metric: what fires or fell first, the furthest fallen first, then the worst score.
  function inOrder(questions, state) {
    if (!state.metric) return questions;
    const metric = metricOf(state);
    const sign = "lower" in options()[metric].dataset ? -1 : 1;
    const now = (question) => known(question.values[metric]).at(-1);
    const key = (question) => [
      ORDER.indexOf(question.state[metric]),
      isFallen(question, metric) ? sign * (now(question) - question.usual[metric]) : 0,
      sign * now(question),
    ];
    const compare = (a, b) => a.map((value, at) => value - b[at]).find((difference) => difference) ?? 0;
    return questions.map((question) => [key(question), question]).sort(([a], [b]) => compare(a, b)).map(([, question]) => question);
  }

  // As `sparkline` of ragmetrics/dashboard/svg.py.
  function chart(values, isMarked) {
    const some = known(values);
    const drawn = document.createElementNS(SVG, "svg");
    for (const [name, value] of [["class", "spark"], ["viewBox", "0 0 120 34"], ["aria-hidden", "true"], ["focusable", "false"], ["preserveAspectRatio", "none"]]) drawn.setAttribute(name, value);
    const middle = (Math.min(...some) + Math.max(...some)) / 2;
    const span = Math.max(Math.max(...some) - Math.min(...some), 0.05);
    const x = (at) => Math.round(4 + (at / Math.max(1, values.length - 1)) * 112);
    const y = (value) => Math.round(30 - ((value - middle) / span + 0.5) * 26);
    const path = document.createElementNS(SVG, "path");
    path.setAttribute("d", values.map((value, at) => (value === null ? "" : `${at && values[at - 1] !== null ? "L" : "M"}${x(at)} ${y(value)}`)).join(""));
    drawn.append(path);
    if (isMarked && values.at(-1) !== null) {
      const dot = document.createElementNS(SVG, "circle");
      for (const [name, value] of [["cx", x(values.length - 1)], ["cy", y(values.at(-1))], ["r", 3]]) dot.setAttribute(name, value);
      drawn.append(dot);
    }
    return drawn;
  }

  function linked(text, address, name = "bdi") {
    const words = element(name, text);
    if (!address) return words;
    const link = element("a");
    link.href = address;
    link.append(words);
    return link;
  }

  const address = ([night, row]) => (row ? `${data.nights[night][0]}/rows.html#row=${encodeURIComponent(row)}` : "");

  function nightsOf(question, metric) {
    const cell = element("td", "", "history");
    const values = question.values[metric] ?? [];
    if (known(values).length) cell.append(chart(values, isFallen(question, metric)));
    const nights = element("details");
    const list = element("ul");
    question.asked.forEach((asked, place) => {
      const item = element("li");
      item.append(linked(data.nights[asked[0]][0], address(asked), "span"), " ", element("span", figure(values[place]), "value"));
      list.prepend(item);
    });
    nights.append(element("summary", plural(question.asked.length, "night")), list);
    cell.append(nights);
    return cell;
  }

  function line(question, state) {
    const metric = leadOf(question, state);
    const row = element("tr");
    const head = element("th");
    head.scope = "row";
    const newest = question.asked.findLast(([, key]) => key);
    const about = element("span", "", "small");
    about.append(options()[metric]?.text ?? "", " ");
    for (const [tag, value] of question.tags.slice(0, 6)) about.append(element("bdi", `${tag}=${value}`, "tag"), " ");
    if (/^https?:\/\//.test(question.trace)) {
      const trace = linked("trace", question.trace, "span");
      trace.rel = "noreferrer noopener";
      about.append(trace);
    }
    head.append(linked(question.text || "(empty question)", newest && address(newest)), about);
    const badge = element("td");
    const template = document.querySelector(`template[data-state="${question.state[metric]}"]`);
    if (template) badge.append(template.content.cloneNode(true));
    const values = [known(question.values[metric]).at(-1), question.usual[metric]];
    row.append(head, element("td", figure(values[0]), "num value"), element("td", figure(values[1]), "num"), badge, nightsOf(question, metric));
    return row;
  }

  function list(state) {
    document.querySelector(".asked tbody").replaceChildren(...listed.slice(0, shown).map((question) => line(question, state)));
    const more = Math.min(STEP, listed.length - shown);
    byId("more").hidden = more <= 0;
    byId("more").textContent = `Show ${more} more`;
  }

  // A choice of the address that the list lacks is added to it.
  function offer(field, value) {
    if (field.options && ![...field.options].some((option) => option.value === value)) {
      field.append(new Option(value.slice(0, 100), value));
    }
  }

  function show() {
    const state = chosen();
    for (const name of FILTERS) {
      const field = byId(`f-${name}`);
      offer(field, state[name]);
      if (field !== document.activeElement || field.tagName === "SELECT") field.value = state[name];
    }
    listed = inOrder(data.questions.filter((question) => matches(question, state)), state);
    const all = plural(data.questions.length, "question");
    byId("told").textContent = listed.length === data.questions.length ? `All ${all}.` : `${listed.length.toLocaleString("en")} of ${all}.`;
    const set = Object.values(state).filter((value) => value !== "").length;
    byId("filters").querySelector("summary").textContent = `Filters${set ? ` (${set} set)` : ""}`;
    list(state);
  }

  function filter() {
    const state = FILTERS.map((name) => [name, byId(`f-${name}`).value]).filter(([, value]) => value !== "");
    shown = STEP;
    history.replaceState(null, "", `#${new URLSearchParams(state)}`);
    show();
  }

  document.addEventListener("DOMContentLoaded", () => {
    data = globalThis.QUESTIONS;
    if (!data?.questions.length) return;
    byId("rest")?.remove();
    byId("browser").hidden = false;
    byId("filters").open = matchMedia("(min-width: 641px)").matches;
    let waiting;
    byId("find").addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(filter, 120);
    });
    byId("find").addEventListener("submit", (event) => event.preventDefault());
    byId("find").addEventListener("reset", () => setTimeout(filter));
    byId("more").addEventListener("click", () => {
      shown += STEP;
      list(chosen());
    });
    addEventListener("hashchange", show);
    show();
  });
})();
