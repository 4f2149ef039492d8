// The bars of the ranks, and who waits for whom.
const splitNames = { useful: "useful", late: "waiting", transfer: "transfer", own: "MPI", unsplit: "unknown" };

function startRanks() {
  const ranks = data.ranks, rows = (ranks.labels || []).length;
  const tell = (x, y, event) => {
    const r = Math.floor(y * rows), shown = Object.keys(splitNames).filter(s => ranks[s][r] > 0);
    tip(event, `${rankName(ranks.labels[r])} on ${ranks.hosts[r]}`, [...shown.map(s => `${splitNames[s]} ${seconds(ranks[s][r])}`), `others waited for it ${seconds(ranks.caused[r])}`]);
  };
  hover("bars", tell);
  hover("caused", tell);
}

function startMatrix() {
  const { labels, cells } = data.pairs, n = (labels || []).length;
  const found = new Map((cells || []).map(c => [c.w * n + c.c, c]));
  hover("matrix", (x, y, event) => {
    const culprit = Math.floor(x * n), waiter = Math.floor(y * n), c = found.get(waiter * n + culprit);
    tip(event, `${rankName(labels[waiter])} for ${rankName(labels[culprit])}`, c ? [`waited ${seconds(c.cost)}`, `in ${c.times.toLocaleString("en")} operations`] : ["did not wait"]);
  });
}
