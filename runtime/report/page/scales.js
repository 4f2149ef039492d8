// ramp gives the colour of a share between 0 and 1 as [red, green, blue].
function ramp() {
  const stops = [0, 1, 2, 3, 4].map(i => colour("heat" + i).match(/\w\w/g).map(x => parseInt(x, 16)));
  return share => {
    const at = Math.min(Math.max(share, 0), 1) * 4, i = Math.min(Math.floor(at), 3);
    return stops[i].map((from, c) => Math.round(from + (stops[i + 1][c] - from) * (at - i)));
  };
}

const rgb = c => `rgb(${c.join()})`;

// round up to 1, 2, 2.5, 5 or 10 times a power of ten.
function ceiling(x) {
  const power = 10 ** Math.floor(Math.log10(x));
  return [1, 2, 2.5, 5, 10].find(step => step * power >= x * 0.9999) * power;
}

// ticks are round values from 0 to largest, about as many as asked for.
function ticks(largest, about) {
  if (!(largest > 0)) return [0];
  const step = ceiling(largest / about), all = [];
  for (let i = 0; i * step <= largest * 1.0001; i++) all.push(i * step);
  return all;
}

// timeUnit is the unit in which the marks of a time axis are round.
function timeUnit(largest) {
  if (largest >= 7200) return [3600, "h"];
  if (largest >= 600) return [60, "min"];
  return [[1, "s"], [1e-3, "ms"], [1e-6, "µs"]].find(([unit]) => largest >= unit) || [1e-9, "ns"];
}

// timeAxis draws round times below a picture, and lines up into it.
function timeAxis(root, left, width, y, largest, above) {
  const [unit, name] = timeUnit(largest);
  for (const t of ticks(largest / unit, Math.max(2, Math.floor(width / 110)))) {
    const x = left + (largest > 0 ? width * t * unit / largest : 0);
    if (above) svg(root, "line", { x1: x, x2: x, y1: y - above, y2: y, class: "rule" });
    svg(root, "text", { x, y: y + 15, "text-anchor": t === 0 ? "start" : "middle" }, +t.toPrecision(4) + " " + name);
  }
}

// rowAxis labels the rows of a picture, as many as there is room for.
function rowAxis(root, left, top, row, labels) {
  for (let r = 0; r < labels.length; r += every(row, 15))
    svg(root, "text", { x: left - 8, y: top + row * (r + 0.5) + 4, "text-anchor": "end" }, labels[r].split("–")[0]);
}

// every says which rows get a label that needs some room: each 2nd, 4th, 8th...
function every(row, room) {
  return 2 ** Math.max(0, Math.ceil(Math.log2(room / row)));
}
