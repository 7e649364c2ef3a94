// What can be done with a class besides teaching it: rename, merge, forget.
import * as api from "./api.js";
import { all, frame } from "./classes.js";
import { renamed } from "./colours.js";
import { count, element } from "./element.js";
import { link } from "./link.js";
import { note, sure } from "./messages.js";
import { teacher } from "./teach.js";

const $ = (id) => document.getElementById(id);
let current = null; // { label, wished }

export function menu(label, wished) {
  current = { label, wished };
  const known = all().find((one) => one.label === label);
  $("menu-title").textContent = label;
  $("gallery").replaceChildren(...[...known.thumbnails].sort((a, b) => b - a).map(tile));
  $("gallery-note").textContent = "";
  $("rename-to").value = label;
  const others = link.classes.filter((one) => one.label !== label);
  $("merge-into").replaceChildren(...others.map((one) => element("option", { value: one.label }, one.label)));
  $("merge").hidden = !others.length || !known.taught;
  $("class-menu").showModal();
}

/** A sample's picture, with a button that takes the sample back. */
function tile(seq) {
  const button = element("button", { type: "button", "aria-label": `Remove sample ${seq}`,
    title: "Remove this sample" }, "×");
  const box = element("span", { class: "tile" }, frame(seq), button);
  button.addEventListener("click", async () => {
    button.disabled = true;
    box.setAttribute("aria-busy", "true");
    try {
      await teacher.remove([seq]);
      box.remove();
      $("gallery-note").textContent = "Removed, as if it had never been taught.";
    } catch (error) {
      if (error.locked) dispatchEvent(new CustomEvent("locked", { detail: "learn" }));
      $("gallery-note").textContent = `Not removed: ${error.message}.`;
      button.disabled = false;
    }
    box.removeAttribute("aria-busy");
  });
  return box;
}

/** Ask the server, say what became of it, and show the new state. */
async function change(request, done) {
  $("class-menu").close();
  try {
    await request();
    note(done);
  } catch (error) {
    if (error.locked) dispatchEvent(new CustomEvent("locked", { detail: "learn" }));
    note(`That did not work: ${error.message}`, { bad: true });
  }
  await link.refresh();
}

const untaught = () => !link.classes.some(({ label }) => label === current.label);

function drop() { current.wished.splice(current.wished.indexOf(current.label), 1); }

export function listen() {
  for (const dialog of document.querySelectorAll("dialog")) {
    dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close("no"); });
    dialog.querySelector("[data-close]")?.addEventListener("click", () => dialog.close("no"));
  }
  $("rename").addEventListener("submit", (event) => {
    event.preventDefault();
    const { label } = current, to = $("rename-to").value.trim();
    if (!to || to === label) return $("class-menu").close();
    renamed(label, to);
    if (untaught()) {
      drop();
      current.wished.push(to);
      return change(() => null, `${label} is now ${to}`);
    }
    return change(() => api.rename(label, to), `${label} is now ${to}`);
  });
  $("merge").addEventListener("submit", async (event) => {
    event.preventDefault();
    const { label } = current, into = $("merge-into").value;
    if (await sure(`Merge ${label} into ${into}?`,
      `Everything taught as ${label} becomes ${into}. This cannot be undone.`, "Merge")) {
      change(() => api.merge(label, into), `${label} is now part of ${into}`);
    }
  });
  $("forget").addEventListener("submit", async (event) => {
    event.preventDefault();
    const { label } = current;
    if (untaught()) { drop(); return change(() => null, `${label} is removed`); }
    const { taught } = link.classes.find((one) => one.label === label);
    if (await sure(`Forget ${label}?`,
      `Its ${count(taught, "sample")} and pictures are deleted permanently, and it is never `
      + "predicted again.", "Forget")) change(() => api.forget(label), `${label} is forgotten`);
    return null;
  });
}
