// The bars of the ranks: on the left where the time of each went, on the right
// how long others waited for it.
const splits = ["useful", "late", "transfer", "own", "unsplit"];
const splitNames = { useful: "useful", late: "waiting", transfer: "transfer", own: "MPI", unsplit: "unknown" };

function drawBars(element, width) {
  const ranks = data.ranks, rows = (ranks.labels || []).length;
  if (rows === 0) return void canvas(element, width, 30, "No rank was recorded.");
  const left = 44, top = 8, gap = 46, inner = width - left - gap - 8, own = Math.round(inner * 0.68), other = inner - own;
  const row = Math.min(24, Math.max(1.6, 420 / rows)), thick = row > 6 ? row - Math.min(4, row * 0.2) : row + 0.3, height = row * rows;
  const root = canvas(element, width, top + height + 24);
  const whole = Math.max(...ranks.labels.map((_, r) => splits.reduce((sum, s) => sum + Math.max(0, ranks[s][r]), 0)));
  const most = Math.max(...ranks.caused);
  rowAxis(root, left, top, row, ranks.labels);
  timeAxis(root, left, own, top + height, whole, height);
  if (most > 0) timeAxis(root, left + own + gap, other, top + height, most, height);
  for (let r = 0; r < rows; r++) {
    let x = left;
    for (const s of splits) {
      const wide = whole > 0 ? own * Math.max(0, ranks[s][r]) / whole : 0;
      if (wide > 0) svg(root, "rect", { x: x.toFixed(2), y: (top + r * row).toFixed(2), width: wide.toFixed(2), height: thick.toFixed(2), fill: `var(--${s})` });
      x += wide;
    }
    if (ranks.caused[r] > 0)
      svg(root, "rect", { x: left + own + gap, y: (top + r * row).toFixed(2), width: (other * ranks.caused[r] / most).toFixed(2), height: thick.toFixed(2), fill: "var(--caused)" });
  }
  hover(element, (x, y, event) => {
    const r = Math.floor((y - top) / row);
    if (r < 0 || r >= rows || x < left) return tip();
    const shown = splits.filter(s => ranks[s][r] > 0).map(s => `${splitNames[s]} ${seconds(ranks[s][r])}`);
    tip(event, `${rankName(ranks.labels[r])} on ${ranks.hosts[r]}`, [...shown, `others waited for it ${seconds(ranks.caused[r])}`]);
  });
}
