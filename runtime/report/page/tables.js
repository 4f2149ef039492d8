// Tables are sorted by a click on a heading, and searched through their field.
function startTable(section) {
  const body = section.querySelector("tbody"), headings = [...section.querySelectorAll("th")];
  headings.forEach((heading, column) => heading.firstChild.addEventListener("click", () => {
    // Numbers begin with the largest, names with A.
    const first = heading.classList.contains("number") ? "descending" : "ascending";
    const order = heading.getAttribute("aria-sort") === first ? (first === "ascending" ? "descending" : "ascending") : first;
    headings.forEach(h => h.removeAttribute("aria-sort"));
    heading.setAttribute("aria-sort", order);
    const sign = order === "ascending" ? 1 : -1, key = row => row.cells[column].dataset.sort;
    const numeric = [...body.rows].every(row => key(row) !== "" && isFinite(key(row)));
    const compare = numeric ? (a, b) => key(a) - key(b) : (a, b) => key(a).localeCompare(key(b));
    body.append(...[...body.rows].sort((a, b) => sign * compare(a, b)));
  }));
  section.querySelector("input").addEventListener("input", event => {
    const words = event.target.value.toLowerCase().split(/\s+/);
    for (const row of body.rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every(word => text.includes(word));
    }
  });
}
