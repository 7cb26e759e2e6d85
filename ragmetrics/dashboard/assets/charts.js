// Draws the page's figures with Plotly in the page's colours, shows one tag at a time, and links to
// the next night.
// A figure is JSON in <script type="application/json" data-figure="ID">, drawn into #ID.
// If anything fails, the page stays as it is without scripts: tables of the same numbers.
"use strict";
(() => {
  const root = document.documentElement;
  const { plotly } = document.currentScript.dataset;
  const config = { displayModeBar: false, responsive: true, doubleClick: false, showTips: false };
  root.classList.replace("plain", "drawing");

  // What all figures share: readers cannot move anything, and the background is the page's.
  const axis = { fixedrange: true, zeroline: false, tickfont: { color: "var(--ink-2)", size: 11 } };
  const xaxis = { ...axis, showgrid: false, linecolor: "var(--line)", showline: true };
  const yaxis = { ...axis, gridcolor: "var(--line)" };
  const ground = {
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: "var(--sans)", size: 11, color: "var(--ink-2)" },
    showlegend: false,
    dragmode: false,
    hovermode: "closest",
    hoverlabel: {
      bgcolor: "var(--surface)",
      bordercolor: "var(--ink-3)",
      font: { family: "var(--sans)", color: "var(--ink)", size: 12 },
    },
  };

  const framed = (layout) => ({
    ...ground,
    ...layout,
    xaxis: { ...xaxis, ...layout.xaxis },
    yaxis: { ...yaxis, ...layout.yaxis },
  });

  // Anywhere in a figure, "var(--name)" is a custom property of the style sheet.
  function coloured(value, style) {
    if (typeof value === "string") {
      const name = /^var\((--[\w-]+)\)$/.exec(value);
      return name ? style.getPropertyValue(name[1]).trim() : value;
    }
    if (Array.isArray(value)) return value.map((item) => coloured(item, style));
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, coloured(item, style)]));
  }

  function draw(source, style) {
    const { data, layout } = JSON.parse(source.textContent);
    const [drawn, frame] = coloured([data, framed(layout)], style);
    const place = document.getElementById(source.dataset.figure);
    place.querySelector(":scope > .chart")?.remove();
    window.Plotly.react(place, drawn, frame, config);
  }

  const loaded = () =>
    new Promise((resume) => {
      if (document.readyState === "complete") resume();
      else addEventListener("load", resume);
    });

  // Plotly has five megabytes and loads for a second or two, so the page opens without it.
  const fetchPlotly = () =>
    new Promise((resume, reject) => {
      const script = document.createElement("script");
      script.onload = resume;
      script.onerror = reject;
      script.src = plotly;
      document.head.append(script);
    });

  function drawAll(sources) {
    const style = getComputedStyle(root);
    for (const source of sources) if (!source.closest("details:not([open], .numbers)")) draw(source, style);
  }

  // A folded figure has no width yet: it is drawn when its part is opened.
  function drawWhenOpen(source) {
    const folded = source.closest("details:not([open], .numbers)");
    if (!folded) return false;
    folded.addEventListener("toggle", () => drawWhenOpen(source) || draw(source, getComputedStyle(root)), { once: true });
    return true;
  }

  // One figure at a time, so that the page stays usable between two of them.
  async function drawInTurn(sources) {
    const style = getComputedStyle(root);
    for (const source of sources) {
      if (drawWhenOpen(source)) continue;
      draw(source, style);
      await new Promise((resume) => setTimeout(resume));
    }
  }

  // Each night writes nights.js, so it lists the nights after this page too.
  function linkNext() {
    const link = document.getElementById("next");
    if (!link || typeof NIGHTS === "undefined") return;
    const night = NIGHTS.find((date) => date > link.dataset.after);
    if (!night) return;
    link.href = `../${night}/index.html`;
    link.textContent = `${night} →`;
    link.hidden = false;
  }

  // Without scripts the page shows all tags. An address that ends in #tag-NAME chooses one.
  function chooseTags() {
    const choice = document.querySelector(".choose");
    if (!choice) return;
    const tables = [...document.querySelectorAll(".heat")];
    const buttons = [...choice.querySelectorAll("button")];
    const show = (id) => {
      for (const table of tables) table.hidden = id !== "" && table.id !== id;
      for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset.shows === id));
    };
    const follow = () => {
      const id = decodeURIComponent(location.hash.slice(1));
      if (!tables.some((table) => table.id === id)) return false;
      show(id);
      document.getElementById(id).scrollIntoView();
      return true;
    };
    for (const button of buttons) button.addEventListener("click", () => show(button.dataset.shows));
    addEventListener("hashchange", follow);
    choice.hidden = false;
    if (!follow()) show(tables[0].id);
  }

  // On a telephone the cells of a row stand below each other, each with the head of its column.
  function labelCells() {
    for (const table of document.querySelectorAll(".scroll > table")) {
      const heads = [...(table.tHead?.rows[0].cells ?? [])].map((head) => head.textContent);
      if (heads.length < 3) continue;
      table.classList.add("labelled");
      for (const { cells } of [...table.tBodies].flatMap((body) => [...body.rows])) {
        [...cells].forEach((cell, at) => {
          if (!/^[–\s]*$/.test(cell.textContent)) cell.dataset.label = heads[at] ?? "";
        });
      }
    }
  }

  document.addEventListener("DOMContentLoaded", async () => {
    linkNext();
    labelCells();
    chooseTags();
    const sources = [...document.querySelectorAll("script[data-figure]")];
    try {
      if (sources.length) {
        await loaded();
        await fetchPlotly();
        await drawInTurn(sources);
      }
      document.querySelectorAll("details.numbers").forEach((details) => { details.open = false; });
      root.classList.replace("drawing", "drawn");
    } catch (error) {
      root.classList.replace("drawing", "plain");
      return;
    }
    const paper = (on) => () => {
      root.classList.toggle("paper", on);
      drawAll(sources);
    };
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawAll(sources));
    addEventListener("beforeprint", paper(true));
    addEventListener("afterprint", paper(false));
  });
})();
