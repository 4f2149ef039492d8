// The heat maps of ranks × time, and under them the efficiency over the same time.
const spanOf = bin => `${seconds(bin * data.timeline.bin)} to ${seconds((bin + 1) * data.timeline.bin)}`;

// levels reads the shares of a map out of its picture, which has a pixel for each: its grey
// level over 250 is the share of the map's limit; where the rank did not run it is transparent.
function levels(map) {
  const { labels, bins } = data.timeline, canvas = make("canvas");
  canvas.width = bins;
  canvas.height = labels.length;
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.drawImage(map.querySelector("image"), 0, 0, bins, labels.length);
  const pixels = context.getImageData(0, 0, bins, labels.length).data;
  return (row, bin) => {
    const at = 4 * (row * bins + bin);
    return pixels[at + 3] ? percent(pixels[at] / 250 * map.dataset.limit) : "not running";
  };
}

function startHeat() {
  const t = data.timeline, rows = (t.labels || []).length;
  const binAt = x => Math.floor(x * t.bins);
  const share = {};
  hover("heat", (x, y, event) => {
    const bin = binAt(x), row = Math.floor(y * rows);
    for (const map of byId("heat").querySelectorAll(".map")) share[map.dataset.map] ||= levels(map);
    tip(event, `${rankName(t.labels[row])} on ${t.hosts[row]}`, [spanOf(bin), "waiting for late ranks: " + share.late(row, bin), "all of MPI: " + share.mpi(row, bin)]);
    cursor(bin);
  }, cursor);
  hover("curve", (x, y, event) => {
    const bin = binAt(x), say = share => share === null ? "unknown" : percent(share);
    tip(event, spanOf(bin), ["parallel efficiency " + say(t.efficiency[bin]), "load balance " + say(t.balance[bin])]);
    cursor(bin);
  }, cursor);
  for (const button of byId("heat-choice").children)
    button.addEventListener("click", () => {
      for (const other of byId("heat-choice").children) other.classList.toggle("on", other === button);
      for (const map of byId("heat").querySelectorAll(".map")) map.hidden = map.dataset.map !== button.dataset.map;
    });
}

// cursor marks a bin in the curve; without one it goes.
function cursor(bin) {
  for (const picture of byId("curve").querySelectorAll(".picture")) {
    const [x0, , x1] = picture.dataset.area.split(" ").map(Number), line = picture.querySelector(".cursor");
    line.hidden = bin === undefined;
    line.style.left = 100 * (x0 + (x1 - x0) * (bin + 0.5) / data.timeline.bins) + "%";
  }
}
