// Light or dark, set before the page is first painted (a plain script, not a module).
(() => {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  let chosen = null;
  try { chosen = localStorage.getItem("theme"); } catch { /* storage may be blocked */ }

  function apply() {
    const now = chosen ?? (dark.matches ? "dark" : "light");
    document.documentElement.dataset.theme = now;
    const button = document.getElementById("theme");
    if (button) button.setAttribute("aria-pressed", String(now === "dark"));
  }

  apply();
  dark.addEventListener("change", apply);
  document.addEventListener("DOMContentLoaded", () => {
    apply();
    document.getElementById("theme").addEventListener("click", () => {
      chosen = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
      try { localStorage.setItem("theme", chosen); } catch { /* then only for this visit */ }
      apply();
    });
  });
})();
