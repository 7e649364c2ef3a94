// What the answer looks like: the words, and one bar for each class, always in the classes' order.
import { colour } from "./colours.js";
import { element } from "./element.js";
import { link } from "./link.js";

const SETTLED = 700; // ms an answer must last before it is read aloud
const UNUSUAL = 0.5; // half way to unknown (1): what is taught seldom looks so
const narrow = matchMedia("(max-width: 860px)");
const $ = (id) => document.getElementById(id);

let spoken = null;
let steady = { text: null, since: 0 };

function words(p) {
  if (p >= 0.98) return "sure";
  if (p >= 0.9) return "quite sure";
  if (p >= 0.7) return "fairly sure";
  if (p >= 0.4) return "maybe";
  return "only a guess";
}

export function show({ label, nearest, known, novelty, confidence, probabilities }) {
  const answer = $("answer");
  const usual = known && novelty < UNUSUAL;
  answer.dataset.sure = !known ? "new" : usual && confidence >= 0.7 ? "yes" : "no";
  answer.style.setProperty("--class", known ? colour(label) : "var(--class-none)");
  $("seen").textContent = known ? label : "something new";
  const sure = usual ? words(confidence) : known ? "maybe, or something new" : "";
  $("sure").textContent = usual
    ? `${sure}, ${Math.round(confidence * 100)} %` : sure || `nearest: ${nearest}`;
  bars(probabilities, usual);
  speak(known ? `I see ${label}` : "I see something new", sure && `, ${sure}`);
}

/** The likeliest in the order of the classes: a bar keeps its place while the answer changes. */
function bars(shares, usual) {
  const place = new Map(link.classes.map(({ label }, i) => [label, i]));
  const rows = shares.slice(0, narrow.matches ? 4 : 6) // the likeliest come first
    .sort((a, b) => (place.get(a.label) ?? Infinity) - (place.get(b.label) ?? Infinity));
  const list = $("bars");
  while (list.children.length > rows.length) list.lastChild.remove();
  while (list.children.length < rows.length) {
    list.append(element("li", {}, element("button", { type: "button" },
      element("span", { class: "name" }), element("i", {}), element("span", { class: "percent" }))));
  }
  rows.forEach(({ label, p }, i) => {
    const button = list.children[i].firstChild, [name, bar, percent] = button.children;
    button.dataset.is = label;
    button.title = `It is ${label}: teach this frame`;
    name.textContent = label;
    // of what may be new the shares say nothing: they only compare what was taught
    percent.textContent = usual ? `${Math.round(p * 100)} %` : "";
    bar.style.setProperty("--p", usual ? p.toFixed(4) : "0");
    bar.style.setProperty("--class", colour(label));
  });
}

/** For a screen reader: only an answer that lasts, and only when it is another one. */
function speak(text, more) {
  const now = performance.now();
  if (steady.text !== text) steady = { text, since: now };
  if (spoken === text || now - steady.since < SETTLED) return;
  spoken = text;
  $("say").textContent = text + more;
}

export function blank(text) {
  $("answer").dataset.sure = "none";
  $("seen").textContent = "";
  $("sure").textContent = text;
  $("bars").replaceChildren();
}
