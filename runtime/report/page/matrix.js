// The matrix of who waits for whom.
function drawMatrix(element, width) {
  const { labels, cells } = data.pairs, n = (labels || []).length;
  if (n === 0 || !cells) return void canvas(element, width, 30, "Nobody waited for anybody in what was recorded.");
  const left = 44, top = 22, side = Math.min(width - left - 4, 620), size = Math.min(side / n, 64), square = size * n;
  const root = canvas(element, width, top + square + 6), paint = ramp();
  const most = Math.max(...cells.map(c => c.cost));
  const line = i => { svg(root, "line", { x1: left, x2: left + square, y1: top + i * size, y2: top + i * size, class: "rule" }); svg(root, "line", { x1: left + i * size, x2: left + i * size, y1: top, y2: top + square, class: "rule" }); };
  const step = every(size, 26);
  for (let i = 0; i < n; i += step) line(i);
  line(n);
  rowAxis(root, left, top, size, labels);
  for (let i = 0; i < n; i += step)
    svg(root, "text", { x: left + size * (i + 0.5), y: top - 7, "text-anchor": "middle" }, labels[i].split("–")[0]);
  const found = new Map();
  for (const c of cells) {
    found.set(c.w * n + c.c, c);
    // The square root shows small costs beside a large one.
    if (c.cost > 0) svg(root, "rect", { x: left + c.c * size + 0.5, y: top + c.w * size + 0.5, width: Math.max(1, size - 1), height: Math.max(1, size - 1), fill: rgb(paint(0.12 + 0.88 * Math.sqrt(c.cost / most))) });
  }
  hover(element, (x, y, event) => {
    const culprit = Math.floor((x - left) / size), waiter = Math.floor((y - top) / size);
    if (culprit < 0 || culprit >= n || waiter < 0 || waiter >= n) return tip();
    const c = found.get(waiter * n + culprit);
    tip(event, `${rankName(labels[waiter])} for ${rankName(labels[culprit])}`, c ? [`waited ${seconds(c.cost)}`, `in ${c.times.toLocaleString("en")} operations`] : ["did not wait"]);
  });
}
