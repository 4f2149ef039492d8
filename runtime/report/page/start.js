// What happens when the page opens.
const root = document.documentElement;
const prefersDark = matchMedia("(prefers-color-scheme: dark)");
const setTheme = name => { root.dataset.theme = name; };

startHeat();
startRanks();
startMatrix();
startArrivals();
document.querySelectorAll(".table").forEach(startTable);
byId("theme").addEventListener("click", () => setTheme(root.dataset.theme === "dark" ? "light" : "dark"));
prefersDark.addEventListener("change", () => setTheme(prefersDark.matches ? "dark" : "light"));
addEventListener("scroll", () => tip(), { passive: true });
setTheme(prefersDark.matches ? "dark" : "light");
