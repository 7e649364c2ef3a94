// The live answer: one question at a time, as fast as the server replies.
import * as api from "./api.js";
import { camera } from "./camera.js";
import { colour } from "./colours.js";
import { element } from "./element.js";
import { link, sleep } from "./link.js";

const SHOWN = 5; // bars
const SETTLED = 700; // ms an answer must last before it is read aloud
const $ = (id) => document.getElementById(id);

let rate = 0; // answers per second, smoothed
let spoken = null;
let steady = { label: null, since: 0 };

export async function ask() {
  for (;;) {
    await link.here();
    if (!camera.showing || document.hidden) { clear(); await sleep(100); continue; }
    if (!link.status?.classes) { empty(); await sleep(300); continue; }
    if (!(await camera.next())) continue;
    const began = performance.now();
    try {
      const { blob } = await camera.grab();
      const answer = await api.predict(blob);
      if (camera.showing) show(answer);
      const now = 1000 / (performance.now() - began);
      rate = rate ? 0.8 * rate + 0.2 * now : now;
      $("rate").textContent = `${rate < 9.95 ? rate.toFixed(1) : Math.round(rate)}/s`;
      if (camera.state === "photo") await sleep(500);
    } catch (error) {
      if (error instanceof api.Gone && !error.answered) link.lost();
      if (error.locked) dispatchEvent(new CustomEvent("locked", { detail: "predict" }));
      await sleep((error.retryAfter ?? 1) * 1000);
    }
  }
}

function words(p) {
  if (p >= 0.9) return "quite sure";
  if (p >= 0.7) return "fairly sure";
  if (p >= 0.4) return "maybe";
  return "only a guess";
}

function show({ label, confidence, probabilities }) {
  if (label === null) return empty();
  const answer = $("answer");
  answer.dataset.sure = confidence >= 0.7 ? "yes" : "no";
  answer.style.setProperty("--class", colour(label));
  $("seen").textContent = label;
  $("sure").textContent = `${words(confidence)}, ${Math.round(confidence * 100)} %`;
  bars(probabilities.slice(0, SHOWN));
  speak(label, confidence);
}

/** Bars keep their place in the document and only change, so nothing flickers. */
function bars(rows) {
  const list = $("bars");
  while (list.children.length > rows.length) list.lastChild.remove();
  while (list.children.length < rows.length) {
    list.append(element("li", {}, element("span", { class: "name" }), element("i", {}),
      element("span", { class: "percent" })));
  }
  rows.forEach(({ label, p }, i) => {
    const [name, bar, percent] = list.children[i].children;
    name.textContent = label;
    percent.textContent = `${Math.round(p * 100)} %`;
    bar.style.setProperty("--p", p.toFixed(4));
    bar.style.setProperty("--class", colour(label));
  });
}

/** For a screen reader: only an answer that lasts, and only when it is another one. */
function speak(label, confidence) {
  const now = performance.now();
  if (steady.label !== label) steady = { label, since: now };
  if (spoken === label || now - steady.since < SETTLED) return;
  spoken = label;
  $("say").textContent = `I see ${label}, ${words(confidence)}`;
}

function blank(text) {
  $("answer").dataset.sure = "none";
  $("seen").textContent = "";
  $("sure").textContent = text;
  $("bars").replaceChildren();
  $("rate").textContent = "";
  rate = 0;
}

const empty = () => blank("Nothing is taught yet. Add a class, then hold its button.");
const clear = () => blank(camera.showing ? "" : "Here it says what it sees.");
