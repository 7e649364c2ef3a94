// The live answer: one question at a time, as fast as the server replies.
import { blank, show } from "./answer.js";
import * as api from "./api.js";
import { camera } from "./camera.js";
import { link, sleep } from "./link.js";
import { teacher } from "./teach.js";

const FRESH = 1_000; // ms: an older answer may be about what was there before
const $ = (id) => document.getElementById(id);

let rate = 0; // answers per second, smoothed
let answered = null; // the answer on the screen, with its frame

class Answers extends EventTarget {
  /** The frame that the answer on the screen is about, and the answer; null without one. */
  get current() { return answered; }

  /** The same, if it was asked about just now. */
  get fresh() { return answered && performance.now() - answered.at < FRESH ? answered : null; }

  set(value) {
    answered = value;
    this.dispatchEvent(new Event("change"));
  }
}

export const answers = new Answers();

export async function ask() {
  camera.addEventListener("state", () => answers.set(null));
  for (;;) {
    await link.here();
    if (!camera.showing || document.hidden) { clear(); await sleep(100); continue; }
    if (!link.status?.classes) { empty(); await sleep(300); continue; }
    if (!(await camera.next())) continue;
    const at = performance.now();
    try {
      const { state } = camera, shot = await camera.grab();
      const answer = await api.predict(shot.blob);
      if (camera.state === state && camera.showing) take({ ...answer, ...shot, at });
      const now = 1000 / (performance.now() - at);
      rate = rate ? 0.8 * rate + 0.2 * now : now;
      $("rate").textContent = `${rate < 9.95 ? rate.toFixed(1) : Math.round(rate)}/s`;
      if (camera.state === "photo") await Promise.race([sleep(500), lesson()]);
    } catch (error) {
      if (error instanceof api.Gone && !error.answered) link.lost();
      if (error.locked) dispatchEvent(new CustomEvent("locked", { detail: "predict" }));
      await sleep((error.retryAfter ?? 1) * 1000);
    }
  }
}

function take(answer) {
  if (answer.nearest === null) return empty();
  show(answer);
  answers.set(answer);
}

/** Resolves when something was learned: a photo is asked about again at once. */
const lesson = () => new Promise((resolve) =>
  teacher.addEventListener("learned", resolve, { once: true }));

function nothing(text) {
  blank(text);
  if (answered) answers.set(null);
  $("rate").textContent = "";
  rate = 0;
}

const empty = () => nothing("Nothing has been taught yet. Add a class, then hold its button.");
const clear = () => nothing(camera.showing ? "" : "The answer appears here.");
