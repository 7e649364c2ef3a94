// Short notes at the edge of the page, and the questions that need an answer.
import { element } from "./element.js";

const SHOWN = 6_000;
const $ = (id) => document.getElementById(id);

/** A note that goes by itself; `action` is [text, function] for a button in it. */
export function note(text, { action = null, bad = false } = {}) {
  const box = element("div", { class: bad ? "toast bad" : "toast" }, element("span", {}, text));
  const remove = () => box.remove();
  if (action) {
    const button = element("button", { type: "button" }, action[0]);
    button.addEventListener("click", () => { remove(); action[1](); });
    box.append(button);
  }
  const timer = setTimeout(remove, SHOWN);
  // whoever reads it or is about to press its button has time
  box.addEventListener("pointerenter", () => clearTimeout(timer));
  box.addEventListener("focusin", () => clearTimeout(timer));
  box.addEventListener("pointerleave", () => setTimeout(remove, SHOWN / 2));
  box.addEventListener("focusout", () => setTimeout(remove, SHOWN / 2));
  while ($("toasts").children.length > 2) $("toasts").firstChild.remove();
  $("toasts").append(box);
}

/** Open a dialog; resolves to the value of the button that closed it. */
export function open(dialog) {
  dialog.returnValue = "no";
  if (!dialog.open) dialog.showModal();
  return new Promise((resolve) =>
    dialog.addEventListener("close", () => resolve(dialog.returnValue), { once: true }));
}

/** Ask before something that cannot be taken back. */
export async function sure(title, text, yes) {
  $("confirm-title").textContent = title;
  $("confirm-text").textContent = text;
  $("confirm-yes").textContent = yes;
  return (await open($("confirm"))) === "yes";
}
