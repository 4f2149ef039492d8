"use strict";
// What the page tells of its pictures. They are drawn already; the block "data" holds
// their figures, and names from it get into the page as text only.
const data = JSON.parse(document.getElementById("data").textContent);
const byId = id => document.getElementById(id);

function make(tag, text, className) {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (className) element.className = className;
  return element;
}

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

// hover calls found(x, y, event) for the pointer's place in a figure, in shares of
// what its axes span, and left() when it is not there. On a touch screen a touch is enough.
function hover(id, found, left) {
  const gone = () => { tip(); if (left) left(); };
  for (const picture of byId(id).querySelectorAll(".picture")) {
    const [x0, y0, x1, y1] = picture.dataset.area.split(" ").map(Number);
    const at = event => {
      const box = picture.getBoundingClientRect();
      const x = ((event.clientX - box.left) / box.width - x0) / (x1 - x0), y = ((event.clientY - box.top) / box.height - y0) / (y1 - y0);
      if (x >= 0 && x < 1 && y >= 0 && y < 1) found(x, y, event); else gone();
    };
    picture.addEventListener("pointermove", at);
    picture.addEventListener("pointerdown", at);
    picture.addEventListener("pointerleave", gone);
  }
}
