// What happens when the page opens.
const root = document.documentElement;
const prefersDark = matchMedia("(prefers-color-scheme: dark)");

function setTheme(name) {
  root.dataset.theme = name;
  redraw(true);
}

startHeat();
chart("bars", drawBars);
chart("matrix", drawMatrix);
startArrivals();
document.querySelectorAll(".table").forEach(startTable);
byId("theme").addEventListener("click", () => setTheme(root.dataset.theme === "dark" ? "light" : "dark"));
prefersDark.addEventListener("change", () => setTheme(prefersDark.matches ? "dark" : "light"));
addEventListener("resize", () => redraw(false));
addEventListener("scroll", () => tip(), { passive: true });
setTheme(prefersDark.matches ? "dark" : "light");
