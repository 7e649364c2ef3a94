// Are we connected? Follows the server's events, comes back by itself, and holds what it last said.
import * as api from "./api.js";

const FIRST = 500, LONGEST = 15_000, GATHER = 250, SILENCE = 5_000;

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Has it all that is drawn? Something between us and the server may have put in its own answer. */
const isStatus = (data) => Number.isInteger(data?.samples)
  && [data.queue, data.memory, data.rates, data.prequential].every((part) => part && typeof part === "object")
  && [data.rates.learn_per_s, data.rates.predict_per_s].every(Number.isFinite)
  && Array.isArray(data.prequential.window);

class Link extends EventTarget {
  state = "connecting"; // connecting | here | gone | locked
  status = null;
  classes = [];
  retryAt = 0;
  #stream = null;
  #wake = null;
  #waiting = [];
  #refreshing = null;
  #stale = false;
  #heard = 0;

  async follow() {
    // the server tells its status every second; silence may be a connection that died unnoticed
    setInterval(() => {
      if (this.state === "here" && performance.now() - this.#heard > SILENCE) this.refresh();
    }, SILENCE);
    for (let failures = 0; ; failures++) {
      this.#stream = new AbortController();
      let pause = Math.min(FIRST * 2 ** failures, LONGEST) * (0.75 + Math.random() / 2);
      try {
        await this.#load();
        this.#become("here");
        failures = 0;
        pause = FIRST;
        for await (const event of api.events(this.#stream.signal)) this.#hear(event);
      } catch (error) {
        if (error.locked) {
          this.#become("locked");
          await new Promise((resolve) => { this.#wake = resolve; });
          continue;
        }
        if (error.retryAfter) pause = error.retryAfter * 1000;
      }
      this.retryAt = Date.now() + pause;
      this.#become("gone");
      await Promise.race([sleep(pause), new Promise((resolve) => { this.#wake = resolve; })]);
    }
  }

  /** Someone met a closed door: look at once whether the server is still there. */
  lost() {
    if (this.state === "here") this.#stream.abort();
  }

  /** Try again now (a button was pressed, or a token given). */
  again() { this.#wake?.(); }

  /** Resolves when the server is there. */
  here() {
    if (this.state === "here") return Promise.resolve();
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** Ask for status and classes again; many calls in a short time become one. */
  refresh() {
    this.#stale = true;
    this.#refreshing ??= (async () => {
      while (this.#stale && this.state === "here") {
        this.#stale = false;
        await sleep(GATHER);
        try { await this.#load(); } catch (error) { if (error instanceof api.Gone || error.locked) this.lost(); }
      }
      this.#refreshing = null;
    })();
    return this.#refreshing;
  }

  async #load() {
    const [status, classes] = await Promise.all([api.status(), api.classes()]);
    if (!isStatus(status) || !Array.isArray(classes)) throw new api.Gone("the response is not from verse");
    [this.status, this.classes] = [status, classes];
    this.dispatchEvent(new Event("world"));
  }

  #hear({ type, data }) {
    this.#heard = performance.now();
    if (type !== "status" || !isStatus(data)) return void this.refresh();
    const changed = data.samples !== this.status.samples || data.classes !== this.classes.length;
    this.status = data;
    if (changed) this.refresh();
    else this.dispatchEvent(new Event("world"));
  }

  #become(state) {
    if (this.state === state && state === "here") return; // another failure is news: it is told again
    this.state = state;
    this.dispatchEvent(new Event("state"));
    if (state === "here") for (const resolve of this.#waiting.splice(0)) resolve();
  }
}

export const link = new Link();
