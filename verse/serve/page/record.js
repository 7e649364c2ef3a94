// Hands-free teaching: a moment to get ready, then some seconds of live frames.
import { press } from "./classes.js";
import { teacher } from "./teach.js";

const READY = 2, SECONDS = 5;

class Recorder extends EventTarget {
  label = null; // the class being recorded
  left = 0; // seconds until it ends; more than SECONDS: until it begins
  #timer = null;

  /** Seconds until it begins, 0 once it has. */
  get before() { return Math.max(0, this.left - SECONDS); }

  /** Record a class; the same again stops. */
  toggle(label) {
    const same = this.label === label;
    this.stop();
    if (same) return;
    [this.label, this.left] = [label, READY + SECONDS];
    this.#timer = setInterval(() => this.#tick(), 1_000);
    this.#tell();
  }

  stop() {
    clearInterval(this.#timer);
    if (this.label !== null && teacher.held?.label === this.label) teacher.release();
    this.label = null;
    this.#tell();
  }

  #tick() {
    this.left--;
    if (this.left === SECONDS) press(this.label);
    // whoever presses another button meanwhile, or has no camera, is not recording any more
    if (this.left <= 0 || (this.left <= SECONDS && teacher.held?.label !== this.label)) this.stop();
    else this.#tell();
  }

  #tell() { this.dispatchEvent(new Event("change")); }
}

export const recorder = new Recorder();
