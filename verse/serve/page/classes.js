// The list of classes: a button to hold for each, its latest frames, its counts, its menu.
import * as api from "./api.js";
import { camera } from "./camera.js";
import { colour, keep } from "./colours.js";
import { count, element } from "./element.js";
import { link } from "./link.js";
import { menu } from "./menu.js";
import { note } from "./messages.js";
import { answers } from "./predict.js";
import { recorder } from "./record.js";
import { teacher } from "./teach.js";

const THUMBNAILS = 4;
const TOUCH = 160; // ms: a finger that moves on before this is scrolling, not teaching
const $ = (id) => document.getElementById(id);

const keys = matchMedia("(hover: hover)"); // a phone has no number keys
const rows = new Map(); // label → its row
const WISHED = "verse-wished";
const wished = recall(); // added by name, not taught yet
const pictures = new Map(); // seq → promise of an object URL

function recall() {
  try {
    const kept = JSON.parse(sessionStorage.getItem(WISHED));
    return Array.isArray(kept) ? kept.filter((label) => typeof label === "string") : [];
  } catch { return []; }
}

function remember() { // for a reload of this tab
  try { sessionStorage.setItem(WISHED, JSON.stringify(wished)); } catch { /* storage is blocked */ }
}

/** Every class there is or was just named, in the order of the number keys. */
export function all() {
  const taught = link.classes.map(({ label }) => label);
  return [...link.classes, ...wished.filter((label) => !taught.includes(label))
    .map((label) => ({ label, taught: 0, remembered: 0, thumbnails: [] }))];
}

/** Offer a button for a class that has nothing yet. */
export function add(name) {
  const label = name.trim();
  if (!label) return;
  if (!all().some((known) => known.label === label)) wished.push(label);
  draw();
  rows.get(label).querySelector(".hold").focus();
}

export function picture(seq) {
  if (!pictures.has(seq)) {
    pictures.set(seq, api.thumbnail(seq).then((blob) => URL.createObjectURL(blob)));
    pictures.get(seq).catch(() => pictures.delete(seq)); // asked for again next time
  }
  return pictures.get(seq);
}

/** An image that shows a sample as soon as it has come. */
export function frame(seq) {
  const image = element("img", { alt: "", width: 44, height: 44, "data-seq": seq });
  picture(seq).then((url) => { image.src = url; }, () => image.remove());
  return image;
}

/** May this page teach? Asks for the token if one is needed. */
export function allowed() {
  if (!link.status?.auth?.learn || api.token.value) return true;
  dispatchEvent(new CustomEvent("locked", { detail: "learn" }));
  return false;
}

export function press(label) {
  if (!camera.showing) note("Start the camera first, or drop an image on this page.");
  else if (allowed()) teacher.hold(label, answers.fresh);
}

function holdable(button, label) {
  let timer = null, since = 0;
  const begin = () => { since = performance.now(); press(label); };
  const end = () => {
    clearTimeout(timer);
    timer = null;
    if (teacher.held?.label === label) teacher.release();
  };
  button.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    button.setPointerCapture(event.pointerId);
    since = Infinity;
    if (event.pointerType === "touch") timer = setTimeout(begin, TOUCH);
    else begin();
  });
  button.addEventListener("pointerup", (event) => {
    // a short tap is one frame
    if (timer && event.pointerType === "touch" && since === Infinity) begin();
    end();
  });
  for (const type of ["pointercancel", "lostpointercapture", "blur"]) button.addEventListener(type, end);
  // once teaching, a trembling finger must not turn into scrolling
  button.addEventListener("touchmove", (event) => {
    if (teacher.held?.label === label && event.cancelable) event.preventDefault();
  }, { passive: false });
  button.addEventListener("contextmenu", (event) => event.preventDefault());
  button.addEventListener("keydown", (event) => {
    if (event.key !== " " && event.key !== "Enter") return;
    event.preventDefault();
    if (!event.repeat) begin();
  });
  button.addEventListener("keyup", (event) => {
    if (event.key === " " || event.key === "Enter") end();
  });
  // a screen reader's or switch's activation comes without pointer or key: one frame
  button.addEventListener("click", (event) => {
    if (event.detail === 0 && event.pointerType === "") { begin(); end(); }
  });
}

function build(label) {
  const hold = element("button", { class: "hold", type: "button" },
    element("kbd", { "aria-hidden": "true" }), element("span", { class: "name" }, label),
    element("span", { class: "thumbs", "aria-hidden": "true" }),
    element("span", { class: "counts" }));
  const more = element("button", { class: "more", type: "button", "aria-label": `Menu of ${label}`,
    "aria-haspopup": "dialog" }, "⋯");
  const record = element("button", { class: "record", type: "button",
    "aria-label": `Record ${label} for 5 seconds`, title: "Record for 5 seconds, hands free" }, "5 s");
  const row = element("li", { "data-label": label }, hold, record, more);
  record.addEventListener("click", () => recorder.toggle(label));
  holdable(hold, label);
  more.addEventListener("click", () => menu(label, wished));
  return row;
}

function update(row, { label, taught, thumbnails }, position) {
  const [kbd, , thumbs, counts] = row.firstChild.children;
  row.style.setProperty("--class", colour(label));
  kbd.textContent = position < 9 ? position + 1 : position === 9 ? 0 : "";
  counts.textContent = taught ? taught.toLocaleString("en") : "new";
  row.firstChild.setAttribute("aria-label",
    `Teach ${label}, ${count(taught, "sample")} so far. Hold to teach from the camera.`);
  const wanted = [...thumbnails].sort((a, b) => b - a).slice(0, THUMBNAILS);
  const shown = [...thumbs.children].map((image) => Number(image.dataset.seq));
  if (wanted.join() !== shown.join()) {
    thumbs.replaceChildren(...wanted.map((seq) =>
      thumbs.querySelector(`[data-seq="${seq}"]`) ?? frame(seq)));
  }
}

export function draw() {
  const classes = all();
  for (const known of link.classes) {
    if (wished.includes(known.label)) wished.splice(wished.indexOf(known.label), 1);
  }
  remember();
  const labels = classes.map(({ label }) => label);
  keep(labels);
  for (const [label, row] of rows) {
    if (!labels.includes(label)) { row.remove(); rows.delete(label); }
  }
  classes.forEach((known, i) => {
    if (!rows.has(known.label)) rows.set(known.label, build(known.label));
    const row = rows.get(known.label);
    update(row, known, i);
    if ($("classes").children[i] !== row) $("classes").insertBefore(row, $("classes").children[i] ?? null);
  });
  const offered = labels.includes("nothing");
  $("nothing").hidden = offered;
  $("nothing-hint").hidden = offered || !labels.length;
  $("hint").textContent = labels.length
    ? `Hold a button${keys.matches ? ", or its number key," : ""} and move the object slowly. If `
      + "nothing moves, one frame per second is learned."
    : "Name the first object, then hold its button while the camera sees it.";
  forgetPictures(classes);
}

/** Give back the memory of thumbnails that are no longer listed. */
function forgetPictures(classes) {
  const listed = new Set(classes.flatMap(({ thumbnails }) => thumbnails));
  for (const [seq, url] of pictures) {
    if (listed.has(seq)) continue;
    pictures.delete(seq);
    url.then((address) => URL.revokeObjectURL(address), () => null);
  }
}

/** Show which button is held, also when a key holds it, or which class is recorded. */
export function mark(label, how = "held") {
  for (const [name, row] of rows) row.classList.toggle(how, name === label);
}
