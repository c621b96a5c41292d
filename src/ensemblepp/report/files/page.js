"use strict";
// ------------------------------------------------------------------------------------------------ sorting of tables
const NUMBER = /^[-+]?[\d,]*\.?\d+(e[-+]?\d+)?$/i;

function key(row, column) {
  // a cell may stand for several columns
  let end = 0;
  const cell = [...row.cells].find(({ colSpan }) => (end += colSpan) > column);
  const text = cell.dataset.by ?? cell.textContent.trim();
  return NUMBER.test(text) ? Number(text.replaceAll(",", "")) : text.toLowerCase();
}

function compare(a, b) {
  if (typeof a === typeof b) return typeof a === "number" ? a - b : a.localeCompare(b, "en");
  return typeof a === "number" ? -1 : 1; // numbers before dashes and words
}

for (const button of document.querySelectorAll(".sortable th button")) {
  button.addEventListener("click", () => {
    const head = button.closest("th");
    const descending = head.getAttribute("aria-sort") === "ascending";
    const body = head.closest("table").tBodies[0];
    for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", descending ? "descending" : "ascending");
    const rows = [...body.rows].map((row) => [key(row, head.cellIndex), row]);
    rows.sort(([a], [b]) => (descending ? compare(b, a) : compare(a, b)));
    body.append(...rows.map(([, row]) => row));
  });
}

// ---------------------------------------------------------------------------------------------------------- search
const words = document.getElementById("words");
const found = document.getElementById("found");
const findable = [...document.querySelectorAll("[data-find]")].map((element) => {
  const text = element.matches("tr") ? element.textContent : (element.querySelector(".caption")?.textContent ?? "");
  return [element, `${element.dataset.find} ${text}`.toLowerCase().replace(/\s+/g, " ")];
});

// "figure 2" is not in "figure 21"; "figure 8c" is a panel of what is drawn as figure 8
function matches(wanted) {
  const pattern = (text) => new RegExp(text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&") + (/\d$/.test(text) ? "(?!\\d)" : ""));
  const hits = (text) => findable.filter(([, content]) => pattern(text).test(content)).map(([element]) => element);
  const whole = hits(wanted);
  return whole.length || !/^(figure|table) \d+[a-z]$/.test(wanted) ? whole : hits(wanted.slice(0, -1));
}

function search() {
  const wanted = words.value.trim().toLowerCase().replace(/\s+/g, " ").replace(/\bfig\.? /, "figure ");
  const hits = new Set(wanted ? matches(wanted) : findable.map(([element]) => element));
  for (const [element] of findable) {
    const within = [...hits].some((hit) => hit.contains(element) || element.contains(hit));
    element.hidden = !within;
  }
  found.textContent = wanted ? `${hits.size} found` : "";
}
words.addEventListener("input", search);
document.getElementById("search").addEventListener("submit", (event) => {
  event.preventDefault();
  const first = [...document.querySelectorAll("[data-find]")].find((element) => !element.hidden);
  first?.scrollIntoView();
});
// a jump within the page leads to what a search may have hidden
addEventListener("hashchange", () => {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target?.closest("[hidden]")) return;
  words.value = "";
  search();
  target.scrollIntoView();
});

// on paper nothing can be unfolded
addEventListener("beforeprint", () => {
  for (const folded of document.querySelectorAll("details:not(.explore)")) folded.open = true;
});

// ---------------------------------------------------------------------------------------------------------- curves
const STUDIES = JSON.parse(document.getElementById("curves").textContent);

function make(name, properties = {}, ...children) {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
}

function toggle(text, checked, change) {
  const box = make("input", { type: "checkbox", checked });
  box.addEventListener("change", () => change(box.checked));
  return make("label", {}, box, ` ${text}`);
}

function reading(value) {
  return value == null ? "-" : value.toLocaleString("en", { maximumSignificantDigits: 4 });
}

function explore(place, study) {
  const state = { panel: 0, logX: false, logY: false, seeds: false, shown: new Map() };
  const drawn = make("div", { tabIndex: 0 });
  drawn.setAttribute("role", "slider");
  const legend = make("fieldset", {}, make("legend", { className: "unseen", textContent: "Agents" }));
  const settings = make("fieldset", {}, make("legend", { className: "unseen", textContent: "Axes and seeds" }));
  const choice = make("select", {}, ...study.panels.map((panel, at) => make("option", { value: at, textContent: panel.title })));
  choice.addEventListener("change", () => { state.panel = Number(choice.value); list(); draw(); });
  settings.append(make("label", {}, "environment ", choice));
  settings.append(toggle("log rounds", false, (on) => { state.logX = on; draw(); }));
  settings.append(toggle("log regret", false, (on) => { state.logY = on; draw(); }));
  if (study.shown.length) settings.append(toggle("single seeds", false, (on) => { state.seeds = on; draw(); }));
  const few = study.shown.length < study.seeds && study.shown.length ? `, of which ${study.shown.length} can be shown singly` : "";
  const kept = () => study.panels[state.panel].time.length;
  const note = make("p", { className: "note" });
  place.append(settings, drawn, legend, note);
  let chart = null;
  let values = [];

  function list() {
    legend.querySelectorAll("div").forEach((row) => row.remove());
    values = study.panels[state.panel].curves.map((curve) => {
      const label = toggle("", state.shown.get(curve.label) ?? true, (on) => { state.shown.set(curve.label, on); draw(); });
      const swatch = make("span", { className: "swatch" });
      swatch.style.borderTopColor = curve.colour;
      if (curve.dash.length) swatch.style.borderTopStyle = "dashed";
      label.append(swatch, curve.label);
      const value = make("span", { className: "values" });
      legend.append(make("div", {}, label, value));
      return value;
    });
    note.textContent = `Mean and 95 % interval over ${study.seeds} seeds${few}; ${kept()} of ${study.stored} stored points in time. ` +
      "Arrow keys move the reading.";
  }

  function read(at) {
    const { time, curves } = study.panels[state.panel];
    const words = curves.map(({ mean, low, high }) =>
      `${reading(mean[at])}${low[at] == null ? "" : ` [${reading(low[at])}, ${reading(high[at])}]`}`);
    values.forEach((value, one) => { value.textContent = words[one]; });
    drawn.setAttribute("aria-valuemin", time[0]);
    drawn.setAttribute("aria-valuemax", time.at(-1));
    drawn.setAttribute("aria-valuenow", time[at]);
    const shown = curves.map(({ label }, one) => [label, words[one]]).filter(([label]) => state.shown.get(label) ?? true);
    drawn.setAttribute("aria-valuetext", `round ${time[at]}: ${shown.map((pair) => pair.join(" ")).join(", ")}`);
  }

  function draw() {
    const { title, time, curves } = study.panels[state.panel];
    drawn.setAttribute("aria-label", `regret by round, ${title}`);
    // a logarithm has no place for zero
    const placed = (numbers) => (state.logY ? numbers.map((value) => (value > 0 ? value : null)) : numbers);
    const data = [time];
    const series = [{ label: "round" }];
    const bands = [];
    const add = (numbers, line) => { data.push(placed(numbers)); series.push({ points: { show: false }, spanGaps: true, ...line }); };
    for (const curve of curves) {
      if (!(state.shown.get(curve.label) ?? true)) continue;
      if (state.seeds) for (const one of curve.seeds) add(one, { stroke: `${curve.colour}66`, width: 0.7 });
      add(curve.high, { width: 0 });
      add(curve.low, { width: 0 });
      bands.push({ series: [data.length - 2, data.length - 1], fill: `${curve.colour}2e` });
      add(curve.mean, { stroke: curve.colour, width: 2, dash: curve.dash });
    }
    // as the figures: nothing below zero, and intervals no further than twice what is seen, or a third of it on a logarithm
    const seen = curves.filter(({ label }) => state.shown.get(label) ?? true)
      .flatMap((curve) => [curve.mean, ...(state.seeds ? curve.seeds : [])]).flat().filter((value) => value > 0);
    const linear = (_, low, high) => [0, Math.min(high, 2 * Math.max(1e-9, ...seen)) || 1];
    const log = (_, low, high) => uPlot.rangeLog(Math.max(low ?? 1, Math.min(...seen) / 3 || 1), high ?? 10, 10, true);
    const width = Math.max(280, drawn.clientWidth);
    const grid = { stroke: "#e4e4e4", width: 1 };
    chart?.destroy();
    chart = new uPlot({
      width,
      height: Math.min(420, Math.max(260, width * 0.5)),
      scales: { x: { time: false, distr: state.logX ? 3 : 1 }, y: { distr: state.logY ? 3 : 1, range: state.logY ? log : linear } },
      axes: [{ label: "round", grid }, { label: "cumulative regret", grid, size: 60 }],
      series, bands,
      legend: { show: false },
      cursor: { drag: { x: true, y: true } },
      hooks: { setCursor: [({ cursor }) => read(cursor.idx ?? time.length - 1)] },
    }, data, drawn);
    read(time.length - 1);
  }

  drawn.addEventListener("keydown", (event) => {
    const { time } = study.panels[state.panel];
    const last = time.length - 1;
    const at = chart.cursor.idx ?? last;
    const next = { ArrowRight: at + 1, ArrowUp: at + 1, ArrowLeft: at - 1, ArrowDown: at - 1, Home: 0, End: last }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    chart.setCursor({ left: chart.valToPos(time[Math.min(last, Math.max(0, next))], "x"), top: 1 });
  });
  addEventListener("resize", () => place.closest("details").open && draw());
  list();
  draw();
}

for (const details of document.querySelectorAll(".explore")) {
  details.addEventListener("toggle", () => {
    const place = details.querySelector(".drawn");
    if (details.open && !place.hasChildNodes()) explore(place, STUDIES[details.dataset.study]);
  });
}
