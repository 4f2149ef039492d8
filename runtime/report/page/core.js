"use strict";
// The pictures of the page. They draw what the block "data" holds, and put
// names from it into the page as text only.
const data = JSON.parse(document.getElementById("data").textContent);
const byId = id => document.getElementById(id);

// make gives a new element, svg a new one of a picture.
function make(tag, text, className) {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (className) element.className = className;
  return element;
}

function svg(parent, tag, attributes, text) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const name in attributes) element.setAttribute(name, attributes[name]);
  if (text !== undefined) element.textContent = text;
  parent.appendChild(element);
  return element;
}

const colour = name => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();

// Units as in the text report.
function seconds(t) {
  const size = Math.abs(t);
  if (size < 5e-10) return "0 s";
  if (size >= 7200) return digits(t / 3600) + " h";
  if (size >= 600) return digits(t / 60) + " min";
  for (const [unit, name] of [[1, "s"], [1e-3, "ms"], [1e-6, "µs"]])
    if (size >= unit * 0.9995) return digits(t / unit) + " " + name;
  return digits(t / 1e-9) + " ns";
}

function digits(x) {
  const size = Math.abs(x);
  if (size >= 1e15) return x.toPrecision(3);
  if (size >= 99.95) return Math.round(x).toLocaleString("en");
  return x.toFixed(size >= 9.995 ? 1 : 2);
}

function percent(share) {
  const size = Math.abs(share * 100);
  return size < 0.005 ? "0%" : (share * 100).toFixed(size >= 9.95 ? 0 : size >= 0.095 ? 1 : 2) + "%";
}

// A row may be one rank, or several: "3", "8–15".
const rankName = label => (label.includes("–") ? "ranks " : "rank ") + label;

// tip shows a heading and lines beside the pointer; without a heading it goes.
function tip(event, heading, lines) {
  const box = byId("tip");
  box.hidden = !heading;
  if (!heading) return;
  box.replaceChildren(make("b", heading), ...lines.map(line => make("div", line)));
  const x = event.clientX + 14, y = event.clientY + 16;
  box.style.left = Math.max(4, Math.min(x, innerWidth - box.offsetWidth - 8)) + "px";
  box.style.top = (y + box.offsetHeight > innerHeight ? event.clientY - box.offsetHeight - 10 : y) + "px";
}

// hover calls found(x, y, event) for the pointer's place in a chart, in the
// chart's own coordinates, and left() when it goes. On a touch screen a touch
// is enough.
function hover(element, found, left) {
  const at = event => {
    const box = element.getBoundingClientRect();
    found(event.clientX - box.left, event.clientY - box.top, event);
  };
  element.addEventListener("pointermove", at);
  element.addEventListener("pointerdown", at);
  element.addEventListener("pointerleave", () => { tip(); if (left) left(); });
}

// A chart is drawn at the start, and again when its width or the theme changes.
const charts = [];
function chart(id, draw) {
  charts.push({ element: byId(id), draw, width: 0 });
}

function redraw(all) {
  for (const c of charts) {
    const width = Math.floor(c.element.clientWidth);
    if (width === 0 || (!all && width === c.width)) continue;
    c.width = width;
    c.element.replaceChildren();
    c.draw(c.element, width);
  }
}

// canvas begins a picture of a size, and says so in words when it is empty.
function canvas(element, width, height, empty) {
  const root = svg(element, "svg", { viewBox: `0 0 ${width} ${height}`, height });
  if (empty) svg(root, "text", { x: 0, y: 18, class: "empty" }, empty);
  return root;
}
