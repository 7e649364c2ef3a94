// Joins the parts: what the server says, what the camera shows, what is being taught.
import * as api from "./api.js";
import { camera, TROUBLE } from "./camera.js";
import * as chart from "./chart.js";
import * as classes from "./classes.js";
import { colour } from "./colours.js";
import * as doctor from "./doctor.js";
import { count, element } from "./element.js";
import { link } from "./link.js";
import * as menu from "./menu.js";
import { note } from "./messages.js";
import * as correct from "./correct.js";
import { ask } from "./predict.js";
import { recorder } from "./record.js";
import { teacher } from "./teach.js";
import * as upload from "./upload.js";

const $ = (id) => document.getElementById(id);

// ---- the server ------------------------------------------------------------------------------

function drawWorld() {
  const { status } = link;
  classes.draw();
  drawUndo();
  for (const panel of document.querySelectorAll(".panel")) panel.hidden = !status.samples;
  chart.memory(link.classes, status.memory);
  chart.accuracy(status.prequential);
  const auth = status.auth ?? {};
  $("key").hidden = !(auth.learn || auth.predict);
  const facts = {
    taught: count(status.samples, "sample"), learner: status.learner, backbone: status.backbone,
    queue: `${status.queue.length} of ${status.queue.limit}`,
    learning: `${status.rates.learn_per_s.toFixed(1)}/s`,
    answering: `${status.rates.predict_per_s.toFixed(1)}/s`, version: status.version,
  };
  $("facts").replaceChildren(...Object.entries(facts).filter(([, value]) => value != null)
    .map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, String(value)))));
}

function drawLink() {
  const words = { connecting: "connecting", here: "connected", gone: "disconnected", locked: "locked" };
  $("link").dataset.state = link.state;
  $("link").lastChild.textContent = words[link.state];
  document.body.classList.toggle("stale", link.state !== "here");
  $("gone").hidden = link.state !== "gone";
  if (link.state === "gone") countDown();
  if (link.state === "locked") askToken("predict");
}

/** Say when the next attempt is, for as long as the server is away. */
function countDown() {
  if (link.state !== "gone") return;
  const left = Math.max(0, Math.ceil((link.retryAt - Date.now()) / 1000));
  $("gone").firstElementChild.textContent = "The server cannot be reached. Nothing you taught is lost. "
    + (left ? `Trying again in ${count(left, "second")}.` : "Trying now.");
  clearTimeout(countDown.timer);
  countDown.timer = setTimeout(countDown, 500);
}

function askToken(what) {
  if ($("token").open) return;
  $("token-text").textContent = what === "learn"
    ? "You need this server's token to teach, undo and forget."
    : "You need this server's token to use it.";
  $("token-value").value = "";
  $("token").showModal();
}

function useToken() {
  api.token.value = $("token-value").value.trim();
  link.again();
}

// ---- the camera ------------------------------------------------------------------------------

function drawCamera() {
  const { state } = camera;
  $("stage").dataset.state = camera.showing ? state : "off";
  $("photo").hidden = state !== "photo";
  $("note").hidden = camera.showing;
  $("flip").hidden = !(state === "live" && camera.several);
  $("stop").textContent = state === "photo" ? "Close the photo" : "Stop";
  if (camera.showing) return;
  const [title, text] = TROUBLE[state];
  $("note").querySelector("h2").textContent = title;
  $("note").querySelector("p").textContent = text;
  $("start").hidden = state === "insecure" || state === "starting";
  $("start").textContent = state === "off" ? "Start the camera" : "Start again";
}

// ---- teaching --------------------------------------------------------------------------------

function drawHold() {
  const { held, waiting } = teacher;
  classes.mark(held?.label ?? null);
  $("stage").classList.toggle("teaching", held !== null);
  classes.mark(recorder.label, "recorded");
  $("badge").hidden = held === null && waiting === null && recorder.label === null;
  if (held) $("stage").style.setProperty("--class", colour(held.label));
  const words = [];
  if (recorder.label !== null && recorder.before) words.push(`Recording ${recorder.label} in ${recorder.before} s`);
  if (held) words.push(`Teaching ${held.label}: ${held.taught}`);
  if (recorder.label !== null && !recorder.before) words.push(`${recorder.left} s left`);
  if (held?.skipped) words.push(`${held.skipped} skipped`);
  if (waiting === "full") words.push("the server is busy, waiting");
  if (waiting === "gone") words.push("one frame is waiting for the server");
  $("badge").textContent = words.join(" · ");
}

function afterHold({ detail: hold }) {
  drawHold();
  if (!hold.taught) return;
  const knew = hold.taught > 1 ? `, ${hold.right} predicted correctly before` : "";
  note(`${count(hold.taught, "frame")} of ${hold.label} taught${knew}.`, {
    action: hold.seqs.length > 1 ? [`Undo all ${hold.seqs.length}`, () => takeBack(hold.seqs)] : null,
  });
}

function afterCorrection({ detail: { seq, label } }) {
  note(`This is ${label}: taught.`, { action: ["Undo", () => takeBack([seq])] });
}

function drawUndo() {
  const { undoing, last } = teacher;
  $("undo").disabled = !last || undoing > 0;
  $("undo").setAttribute("aria-busy", undoing > 0);
  $("undo").textContent = undoing ? `Undoing ${undoing}…` : last?.label ? `Undo last (${last.label})` : "Undo last";
}

async function takeBack(seqs) {
  const taken = await teacher.undo(seqs);
  if (taken) note(`${count(taken, "sample")} undone.`);
}

function drawBatch() {
  const { batch } = teacher;
  $("progress").hidden = !batch;
  if (!batch) return;
  $("meter").max = batch.items.length;
  $("meter").value = batch.done + batch.failed;
  $("progress-text").textContent = `${batch.done + batch.failed} of ${batch.items.length}`;
}

function afterBatch({ detail: batch }) {
  const failed = batch.failed ? `, ${batch.failed} not` : "";
  note(`${count(batch.done, "image")} taught${failed}.`, { bad: batch.failed > 0 });
}

function trouble({ detail: error }) {
  if (error.locked) askToken("learn");
  else note(error instanceof api.Gone ? "The server cannot be reached." : `Refused: ${error.message}`, { bad: true });
}

/** Everything taught, as one file. */
async function download() {
  if (!classes.allowed()) return;
  $("backup").disabled = true;
  try {
    const url = URL.createObjectURL(await api.backup());
    element("a", { href: url, download: "verse-backup.zip" }).click();
    setTimeout(() => URL.revokeObjectURL(url), 60_000);
  } catch (error) { trouble({ detail: error }); }
  $("backup").disabled = false;
}

// ---- keys ------------------------------------------------------------------------------------

const typing = (target) => target.closest?.("input, select, textarea, dialog");
let heldKey = null;

function keyDown(event) {
  if (typing(event.target)) return;
  if ((event.ctrlKey || event.metaKey) && event.key === "z" && !event.shiftKey) {
    event.preventDefault();
    takeBack();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  if (event.key === "y") return void correct.confirm();
  if (event.key === "n") {
    event.preventDefault(); // or the letter lands in the field
    return void correct.name();
  }
  if (event.key === "Escape") return void recorder.stop();
  if (!/^\d$/.test(event.key)) return;
  const known = classes.all()[(Number(event.key) + 9) % 10];
  if (!known) return;
  heldKey = event.key;
  classes.press(known.label);
}

function letGo(event) {
  if (heldKey === null || (event.type === "keyup" && event.key !== heldKey)) return;
  heldKey = null;
  teacher.release();
}

// ---- start -----------------------------------------------------------------------------------

link.addEventListener("world", drawWorld);
link.addEventListener("state", drawLink);
camera.addEventListener("state", drawCamera);
teacher.addEventListener("hold", drawHold);
recorder.addEventListener("change", drawHold);
teacher.addEventListener("held", afterHold);
teacher.addEventListener("corrected", afterCorrection);
teacher.addEventListener("batch", drawBatch);
teacher.addEventListener("batched", afterBatch);
teacher.addEventListener("trouble", trouble);
for (const type of ["learned", "undo"]) teacher.addEventListener(type, drawUndo);
addEventListener("locked", ({ detail }) => askToken(detail));
addEventListener("keydown", keyDown);
addEventListener("keyup", letGo);
addEventListener("blur", letGo);
addEventListener("online", () => link.again());
document.addEventListener("visibilitychange", () => { if (document.hidden) teacher.release(); });

$("start").addEventListener("click", () => camera.start());
$("stop").addEventListener("click", () => camera.close());
$("flip").addEventListener("click", () => camera.flip());
$("undo").addEventListener("click", () => takeBack());
$("again").addEventListener("click", () => link.again());
$("cancel").addEventListener("click", () => teacher.cancel());
$("help").addEventListener("click", () => $("helping").showModal());
$("backup").addEventListener("click", download);
$("key").addEventListener("click", () => askToken("learn"));
$("nothing").addEventListener("click", () => classes.add("nothing"));
$("token").querySelector("form").addEventListener("submit", useToken);
$("add").addEventListener("submit", (event) => {
  event.preventDefault();
  classes.add($("name").value);
  $("name").value = "";
});

menu.listen();
correct.listen();
doctor.listen();
upload.listen();
camera.attach($("video"), $("photo"));
drawCamera();
chart.accuracy();
link.follow();
ask();
// permission given before: no need to press the button again
navigator.permissions?.query({ name: "camera" }).then(
  ({ state }) => { if (state === "granted" && camera.state === "off") camera.start(); }, () => null);
