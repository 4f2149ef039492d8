// The order of arrival at one of the worst operations: a list with a bar in each line.
function showArrivals(o) {
  const last = Math.max(...o.at, 1e-12), half = o.complete ? -1 : o.at.length / 2;
  byId("arrivals").replaceChildren(make("p", `after the first to arrive, which was ${seconds(o.begin)} into the run` + (o.error ? ` (times ±${seconds(o.error)})` : ""), "quiet"));
  o.at.forEach((at, i) => {
    if (i === half) byId("arrivals").append(make("p", "… those between are not kept …", "quiet"));
    const row = make("div", undefined, "arrival"), track = make("span", undefined, "track"), bar = make("i");
    bar.style.marginLeft = 100 * Math.max(0, at) / last + "%";
    track.append(bar);
    row.append(make("b", "rank " + o.ranks[i]), track, make("span", "+" + seconds(at)));
    row.title = `rank ${o.ranks[i]} waited ${seconds(last - at)}`;
    if (i === o.at.length - 1) row.classList.add("strong");
    byId("arrivals").append(row);
  });
}

function startArrivals() {
  const operations = (data.operations || []).filter(o => o.at);
  if (operations.length === 0) return byId("arrivals").append(make("p", "No operation was matched on all its ranks.", "quiet"));
  operations.forEach((o, i) => {
    const button = make("button");
    button.type = "button";
    button.append(make("b", o.name), make("span", seconds(o.spread)), make("small", `${o.where}, at ${seconds(o.begin)}`));
    button.classList.toggle("on", i === 0);
    button.addEventListener("click", () => {
      [...byId("operations").children].forEach((other, j) => other.classList.toggle("on", i === j));
      showArrivals(o);
    });
    byId("operations").append(button);
  });
  showArrivals(operations[0]);
}
