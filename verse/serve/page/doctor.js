// Was it taught well? What each class lacks, which are confused, which samples contradict the rest.
import * as api from "./api.js";
import { frame } from "./classes.js";
import { colour } from "./colours.js";
import { count, element } from "./element.js";
import { note } from "./messages.js";
import { teacher } from "./teach.js";

const $ = (id) => document.getElementById(id);
const percent = (share) => `${Math.round(share * 100)} %`;

function advice({ label, samples, accuracy, advice: text }) {
  const known = accuracy === null ? "" : `, ${percent(accuracy)} recognised`;
  const row = element("li", { "data-enough": String(text === "enough") },
    element("i", { "aria-hidden": "true" }), element("strong", {}, String(label)),
    element("span", { class: "advice" }, text), element("span", {}, count(samples, "sample") + known));
  row.style.setProperty("--class", colour(label));
  return row;
}

function suspect({ label, looks_like: like, seq }) {
  const row = element("li", {}, ...(seq === null ? [] : [frame(seq)]),
    element("span", {}, "taught as ", element("strong", {}, String(label)), ", looks like ",
      element("strong", {}, String(like))));
  if (seq === null) return row;
  const undo = element("button", { class: "plain", type: "button" }, "Undo");
  undo.addEventListener("click", async () => {
    undo.disabled = true;
    try {
      await teacher.remove([seq]);
      await check();
    } catch (error) {
      if (error.locked) dispatchEvent(new CustomEvent("locked", { detail: "learn" }));
      else note(`Not undone: ${error.message}`, { bad: true });
      undo.disabled = error.status === 409;
    }
  });
  row.append(undo);
  return row;
}

async function check() {
  $("check").disabled = true;
  try {
    const { classes, confused, suspects } = await api.report();
    $("advice").replaceChildren(...classes.map(advice));
    $("confused").replaceChildren(...confused.map(({ label, taken_for: other, share }) =>
      element("li", {}, `${percent(share)} of ${label} is confused with ${other}.`)));
    $("suspects-title").hidden = !suspects.length;
    $("suspects").replaceChildren(...suspects.map(suspect));
    $("check").textContent = "Check again";
  } catch (error) {
    if (error.locked) dispatchEvent(new CustomEvent("locked", { detail: "predict" }));
    else note(`That did not work: ${error.message}`, { bad: true });
  }
  $("check").disabled = false;
}

export function listen() { $("check").addEventListener("click", check); }
