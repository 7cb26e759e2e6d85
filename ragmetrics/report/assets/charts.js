// Draws the page's figures with Plotly, in the page's own colours, and links to the next night.
// A figure is JSON in <script type="application/json" data-figure="ID">, drawn into #ID.
// If anything fails, the page stays what it is without scripts: tables of the same numbers.
"use strict";
(() => {
  const root = document.documentElement;
  const config = { displayModeBar: false, responsive: true, doubleClick: false, showTips: false };
  root.classList.replace("plain", "drawing");

  // "var(--name)" stands for a custom property of the style sheet, anywhere in a figure.
  function coloured(value, style) {
    if (typeof value === "string") {
      const name = /^var\((--[\w-]+)\)$/.exec(value);
      return name ? style.getPropertyValue(name[1]).trim() : value;
    }
    if (Array.isArray(value)) return value.map((item) => coloured(item, style));
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, coloured(item, style)]));
  }

  function draw(sources) {
    const style = getComputedStyle(root);
    for (const source of sources) {
      const figure = coloured(JSON.parse(source.textContent), style);
      window.Plotly.react(source.dataset.figure, figure.data, figure.layout, config);
    }
  }

  // nights.js, which each night renews, knows of nights that came after this page.
  function linkNext() {
    const link = document.getElementById("next");
    if (!link || typeof NIGHTS === "undefined") return;
    const night = NIGHTS.find((date) => date > link.dataset.after);
    if (!night) return;
    link.href = `../${night}/index.html`;
    link.textContent = `${night} →`;
    link.hidden = false;
  }

  document.addEventListener("DOMContentLoaded", () => {
    linkNext();
    const sources = [...document.querySelectorAll("script[data-figure]")];
    try {
      draw(sources);
      document.querySelectorAll("details.numbers").forEach((details) => { details.open = false; });
      root.classList.replace("drawing", "drawn");
    } catch (error) {
      root.classList.replace("drawing", "plain");
      return;
    }
    const paper = (on) => () => {
      root.classList.toggle("paper", on);
      draw(sources);
    };
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => draw(sources));
    addEventListener("beforeprint", paper(true));
    addEventListener("afterprint", paper(false));
  });
})();
