// The heat map of ranks × time, and under it the efficiency over the same time.
const heat = { left: 44, right: 8, map: "late", cells: {} };

function unpack(base64) {
  return Uint8Array.from(atob(base64), c => c.charCodeAt(0));
}

// share is a cell of the heat map, or undefined where the rank did not run.
function shareAt(map, row, bin) {
  const value = heat.cells[map][row * data.timeline.bins + bin];
  return value === 255 ? undefined : value / 250;
}

// scale is the share at which the colours end: a round value over the largest.
function heatScale(map) {
  let largest = 0;
  for (const value of heat.cells[map]) if (value !== 255) largest = Math.max(largest, value);
  return [0.1, 0.25, 0.5, 0.75, 1].find(limit => limit * 250 >= largest);
}

function drawHeat(element, width) {
  const t = data.timeline, rows = (t.labels || []).length;
  if (rows === 0 || t.bins === 0) return void canvas(element, width, 30, "No timeline was recorded.");
  const inner = width - heat.left - heat.right;
  const row = Math.min(26, Math.max(1.2, 400 / rows)), height = Math.round(row * rows);
  const root = canvas(element, width, height + 44);
  const picture = paintHeat(rows, t.bins);
  picture.style.cssText = `left:${heat.left}px;top:0;width:${inner}px;height:${height}px`;
  element.appendChild(picture);
  rowAxis(root, heat.left, 0, row, t.labels);
  for (let r = 1; r < rows; r++)
    if (t.hosts[r] !== t.hosts[r - 1] && rows > 4)
      svg(root, "line", { x1: heat.left - 6, x2: heat.left, y1: row * r, y2: row * r, class: "mark" });
  heatLegend(root, width, height + 30);
  if (width > 560) svg(root, "text", { x: heat.left, y: height + 34 }, "ranks, from top to bottom" + (t.hosts.some(h => h !== t.hosts[0]) ? "; a notch begins a node" : ""));

  hover(picture, (x, y, event) => {
    const bin = Math.min(t.bins - 1, Math.max(0, Math.floor(x / inner * t.bins))), r = Math.min(rows - 1, Math.max(0, Math.floor(y / row)));
    const say = (name, map) => name + ": " + (shareAt(map, r, bin) === undefined ? "not running" : percent(shareAt(map, r, bin)));
    tip(event, `${rankName(t.labels[r])} on ${t.hosts[r]}`, [spanOf(bin), say("waiting for late ranks", "late"), say("all of MPI", "mpi")]);
    cursor(bin);
  }, () => cursor());
}

// paintHeat makes a canvas of one pixel per cell; the browser enlarges it.
function paintHeat(rows, bins) {
  const picture = make("canvas");
  picture.width = bins;
  picture.height = rows;
  const context = picture.getContext("2d"), image = context.createImageData(bins, rows);
  const paint = ramp(), limit = heatScale(heat.map);
  for (let i = 0; i < rows * bins; i++) {
    const value = heat.cells[heat.map][i];
    if (value !== 255) image.data.set([...paint(value / 250 / limit), 255], i * 4);
  }
  context.putImageData(image, 0, 0);
  return picture;
}

function heatLegend(root, width, y) {
  const limit = heatScale(heat.map), paint = ramp(), wide = 120, left = width - heat.right - wide - 34;
  for (let i = 0; i < 24; i++)
    svg(root, "rect", { x: left + i * wide / 24, y: y - 6, width: wide / 24 + 0.5, height: 10, fill: rgb(paint(i / 23)) });
  svg(root, "text", { x: left - 6, y: y + 4, "text-anchor": "end" }, "0");
  svg(root, "text", { x: left + wide + 6, y: y + 4 }, percent(limit));
}

const spanOf = bin => `${seconds(bin * data.timeline.bin)} to ${seconds((bin + 1) * data.timeline.bin)}`;

// drawCurve draws efficiency and load balance on the time axis of the heat map.
function drawCurve(element, width) {
  const t = data.timeline;
  if (t.bins === 0) return;
  const inner = width - heat.left - heat.right, top = 14, height = 110, whole = t.bins * t.bin;
  const root = canvas(element, width, top + height + 40);
  for (const y of [0, 0.5, 1]) {
    svg(root, "line", { x1: heat.left, x2: width - heat.right, y1: top + height * (1 - y), y2: top + height * (1 - y), class: "rule" });
    svg(root, "text", { x: heat.left - 8, y: top + height * (1 - y) + 4, "text-anchor": "end" }, percent(y));
  }
  timeAxis(root, heat.left, inner, top + height, whole, 0);
  const x = bin => heat.left + inner * (bin + 0.5) / t.bins, y = share => top + height * (1 - Math.min(share, 1));
  const line = (points, name) => {
    let path = "", pen = "M";
    points.forEach((share, bin) => {
      if (share === null) return void (pen = "M");
      path += pen + x(bin).toFixed(1) + " " + y(share).toFixed(1);
      pen = "L";
    });
    svg(root, "path", { d: path || "M0 0", fill: "none", stroke: `var(--${name})`, "stroke-width": 1.8, "stroke-linejoin": "round" });
  };
  line(t.balance, "caused");
  line(t.efficiency, "useful");
  const names = [["parallel efficiency", "useful"], ["load balance", "caused"]];
  names.forEach(([name, paint], i) => {
    const left = heat.left + i * 150;
    svg(root, "rect", { x: left, y: top + height + 28, width: 14, height: 3, fill: `var(--${paint})` });
    svg(root, "text", { x: left + 20, y: top + height + 34 }, name);
  });
  heat.cursor = svg(root, "line", { y1: 0, y2: top + height, x1: 0, x2: 0, class: "mark", visibility: "hidden" });
  heat.x = x;
  hover(element, (at, _, event) => {
    const bin = Math.floor((at - heat.left) / inner * t.bins);
    if (bin < 0 || bin >= t.bins) return tip();
    const say = share => share === null ? "unknown" : percent(share);
    tip(event, spanOf(bin), ["parallel efficiency " + say(t.efficiency[bin]), "load balance " + say(t.balance[bin])]);
    cursor(bin);
  }, () => cursor());
}

// cursor marks a bin in the curve; without one it goes.
function cursor(bin) {
  if (!heat.cursor) return;
  heat.cursor.setAttribute("visibility", bin === undefined ? "hidden" : "visible");
  if (bin === undefined) return;
  heat.cursor.setAttribute("x1", heat.x(bin));
  heat.cursor.setAttribute("x2", heat.x(bin));
}

function startHeat() {
  heat.cells = { late: unpack(data.timeline.late), mpi: unpack(data.timeline.mpi) };
  for (const button of byId("heat-choice").children)
    button.addEventListener("click", () => {
      heat.map = button.dataset.map;
      for (const other of byId("heat-choice").children) other.classList.toggle("on", other === button);
      redraw(true);
    });
  chart("heat", drawHeat);
  chart("curve", drawCurve);
}
