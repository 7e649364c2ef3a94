// The answer is right, or wrong, or about something new: one tap teaches the frame on the screen.
import { allowed } from "./classes.js";
import { element } from "./element.js";
import { link } from "./link.js";
import { answers } from "./predict.js";
import { teacher } from "./teach.js";

const $ = (id) => document.getElementById(id);
let named = null; // the frame that waits for its name, however long that takes to type

function draw() {
  const { current } = answers;
  $("verdict").hidden = !current || named !== null;
  if (!current) return;
  $("yes").disabled = !current.known;
  $("name-it").className = current.known ? "plain" : "solid";
}

function teach(label, shot = answers.current) {
  if (shot && allowed()) teacher.correct(label, shot);
}

/** It is what it says. */
export function confirm() {
  if (answers.current?.known) teach(answers.current.label);
}

/** Keep the frame on the screen, and ask for its name. */
export function name() {
  if (!answers.current || named || !allowed()) return;
  named = answers.current;
  $("known").replaceChildren(...link.classes.map(({ label }) => element("option", { value: label })));
  $("naming-frame").src = URL.createObjectURL(named.blob);
  $("new-name").value = "";
  $("naming").hidden = false;
  draw();
  $("new-name").focus();
}

function close() {
  URL.revokeObjectURL($("naming-frame").src);
  $("naming-frame").removeAttribute("src");
  $("naming").hidden = true;
  named = null;
  draw();
}

export function listen() {
  answers.addEventListener("change", draw);
  $("yes").addEventListener("click", confirm);
  $("name-it").addEventListener("click", name);
  $("naming-cancel").addEventListener("click", close);
  $("naming").addEventListener("keydown", (event) => { if (event.key === "Escape") close(); });
  $("naming").addEventListener("submit", (event) => {
    event.preventDefault();
    const label = $("new-name").value.trim();
    if (label) teach(label, named);
    close();
  });
  $("bars").addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button) teach(button.dataset.is);
  });
}
