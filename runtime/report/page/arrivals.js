// The order of arrival at one of the worst operations.
let shownOperation = 0;

function drawArrivals(element, width) {
  const o = (data.operations || [])[shownOperation];
  if (!o || !o.at) return void canvas(element, width, 30, "No operation was matched on all its ranks.");
  const n = o.at.length, left = 44, top = 26, inner = width - left - 60, half = o.complete ? n : n / 2;
  const row = Math.min(22, Math.max(5.5, 380 / n)), gap = o.complete ? 0 : 16;
  const root = canvas(element, width, top + n * row + gap + 26), bottom = top + n * row + gap;
  const last = Math.max(...o.at, 1e-12), x = t => left + inner * Math.max(0, t) / last, y = k => top + k * row + (k < half ? 0 : gap);
  timeAxis(root, left, inner, bottom, last, bottom - top);
  svg(root, "line", { x1: x(last), x2: x(last), y1: top - 6, y2: bottom, class: "mark" });
  svg(root, "text", { x: left, y: 12 }, `after the first to arrive, which was ${seconds(o.begin)} into the run`);
  if (gap) svg(root, "text", { x: left, y: y(half) - 4 }, "… those between are not kept …");
  for (let k = 0; k < n; k++) {
    svg(root, "rect", { x: x(o.at[k]), y: y(k) + row * 0.2, width: Math.max(0, x(last) - x(o.at[k])), height: row * 0.6, rx: 1.5, fill: "var(--late)", opacity: 0.55 });
    svg(root, "circle", { cx: x(o.at[k]), cy: y(k) + row / 2, r: Math.min(4.5, row * 0.42), fill: k === n - 1 ? "var(--late)" : "var(--accent)" });
    if (row > 11 || k === 0) svg(root, "text", { x: left - 10, y: y(k) + row / 2 + 4, "text-anchor": "end" }, o.ranks[k]);
  }
  svg(root, "text", { x: x(last) + 9, y: y(n - 1) + row / 2 + 4, class: "strong" }, "rank " + o.ranks[n - 1]);
  hover(element, (_, at, event) => {
    let k = -1;
    for (let i = 0; i < n; i++) if (at >= y(i) && at < y(i) + row) k = i;
    if (k < 0) return tip();
    tip(event, "rank " + o.ranks[k], [`arrived after ${seconds(o.at[k])}` + (o.error ? ` (±${seconds(o.error)})` : ""), `waited ${seconds(last - o.at[k])}`]);
  });
}

function startArrivals() {
  (data.operations || []).forEach((o, i) => {
    const button = make("button");
    button.type = "button";
    button.append(make("b", o.name), make("span", seconds(o.spread)), make("small", `${o.where}, at ${seconds(o.begin)}`));
    button.classList.toggle("on", i === 0);
    button.addEventListener("click", () => {
      shownOperation = i;
      [...byId("operations").children].forEach((other, j) => other.classList.toggle("on", i === j));
      redraw(true);
    });
    byId("operations").append(button);
  });
  chart("arrivals", drawArrivals);
}
