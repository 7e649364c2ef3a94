// Teaching: holding a button, images from disk, and taking it back. One request at a time.
import * as api from "./api.js";
import { camera, change } from "./camera.js";
import { link, sleep } from "./link.js";

const SAME = 2.0; // grey levels: below this, two frames are nearly equal
const STILL = 1_000; // ms: of a still scene one frame in this time is taught
const LARGEST = 640; // pixels of the short side of an uploaded image; the server needs far fewer
const UNDOABLE = 100; // the server keeps as many for undo

/** A key that names one sample for ever, also where crypto.randomUUID is missing (plain http). */
function freshKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** A picture from disk, upright and no larger than needed; as it is if the browser cannot read it. */
async function shrink(file) {
  let bitmap;
  try {
    bitmap = await createImageBitmap(file, { imageOrientation: "from-image" });
  } catch { return file; }
  const scale = LARGEST / Math.min(bitmap.width, bitmap.height);
  if (scale >= 1 && /^image\/(jpeg|png)$/.test(file.type)) return file;
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(1, Math.round(bitmap.width * Math.min(scale, 1)));
  canvas.height = Math.max(1, Math.round(bitmap.height * Math.min(scale, 1)));
  canvas.getContext("2d").drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  bitmap.close();
  return new Promise((resolve) => canvas.toBlob((blob) => resolve(blob ?? file), "image/jpeg", 0.92));
}

class Teacher extends EventTarget {
  held = null; // the hold under way: { label, taught, skipped, right, seqs }
  waiting = null; // why the present request waits: "full" | "gone"
  batch = null; // images from disk under way: { items, next, done, failed }
  undoable = []; // { seq, label }, newest last
  undoing = 0; // samples that are being taken back now
  #turn = Promise.resolve();
  #gone = new Set(); // numbers that were taken back, or can no longer be

  /**
   * Teach from live frames until `release`, first the one on the screen. A frame nearly equal to
   * the one before is skipped, but not for longer than a second.
   */
  async hold(label, first = null) {
    if (this.held) this.release();
    const hold = { label, taught: 0, skipped: 0, right: 0, seqs: [] };
    this.held = hold;
    this.#tell("hold");
    let before = null, last = 0;
    while (this.held === hold && camera.showing) {
      if (!first && !(await camera.next())) continue;
      if (this.held !== hold && hold.taught) break;
      const shot = first ?? await camera.grab();
      first = null;
      const still = before && change(before, shot.cells) < SAME;
      if (still && (camera.state === "photo" || performance.now() - last < STILL)) {
        hold.skipped++;
        this.#tell("hold");
        if (camera.state === "photo") break;
        continue;
      }
      [before, last] = [shot.cells, performance.now()];
      const answer = await this.#deliver(shot, label, () => true);
      if (!answer) break;
      hold.taught++;
      hold.right += answer.prequential?.correct === true;
      hold.seqs.push(answer.seq);
      this.#tell("hold");
    }
    if (this.held === hold) this.held = null;
    this.dispatchEvent(new CustomEvent("held", { detail: hold }));
  }

  release() {
    this.held = null;
    this.#tell("hold");
  }

  /** Teach the one frame that was asked about. */
  async correct(label, shot) {
    const answer = await this.#deliver(shot, label, () => true);
    if (answer) this.dispatchEvent(new CustomEvent("corrected", { detail: answer }));
  }

  /** Teach images from disk, in this order: [{ file, label }]. */
  async images(items) {
    if (this.batch) {
      this.batch.items.push(...items);
      return;
    }
    const batch = { items, next: 0, done: 0, failed: 0 };
    this.batch = batch;
    while (this.batch === batch && batch.next < batch.items.length) {
      this.#tell("batch");
      const { file, label } = batch.items[batch.next++];
      const answer = await this.#deliver({ blob: await shrink(file) }, label, () => this.batch === batch);
      batch[answer ? "done" : "failed"]++;
    }
    if (this.batch === batch) this.batch = null;
    this.#tell("batch");
    this.dispatchEvent(new CustomEvent("batched", { detail: batch }));
  }

  /** Leave out the images that have not been sent. */
  cancel() { this.batch = null; }

  /** The last sample that can be taken back, also one that was taught before this page came. */
  get last() {
    const told = link.status?.last;
    return this.undoable.at(-1) ?? (told && !this.#gone.has(told.seq) ? told : null);
  }

  /** Take back these samples, or the last one. Resolves to how many were taken back. */
  async undo(seqs = this.last ? [this.last.seq] : []) {
    if (this.undoing || !seqs.length) return 0;
    try { return await this.remove(seqs); } catch (error) { this.#trouble(error); }
    return 0;
  }

  /** Take back these samples in one request; an error says why that cannot be. */
  async remove(seqs) {
    this.undoing += seqs.length;
    this.#tell("undo"); // shown at once: learning everything after them again takes a moment
    try {
      const { undone } = await api.undo(seqs);
      this.#forget(seqs);
      return undone.length;
    } catch (error) {
      if (error.status === 409) this.#forget(seqs); // too late, for good
      throw error;
    } finally {
      this.undoing -= seqs.length;
      this.#tell("undo");
      link.refresh();
    }
  }

  #forget(seqs) {
    this.undoable = this.undoable.filter((sample) => !seqs.includes(sample.seq));
    for (const seq of seqs) this.#gone.add(seq);
  }

  /** Send one sample and wait until the server has it, however long that takes. */
  #deliver({ blob, frame }, label, wanted) {
    const key = freshKey(); // the same for every attempt, so a lost answer is never learned twice
    const result = this.#turn.then(() => this.#attempts({ blob, frame }, label, key, wanted));
    this.#turn = result.catch(() => null);
    return result;
  }

  async #attempts(shot, label, key, wanted) {
    for (let failures = 0; wanted(); failures++) {
      await link.here();
      try {
        const answer = await api.learn(shot, label, key);
        this.#wait(null);
        this.undoable = [...this.undoable, { seq: answer.seq, label }].slice(-UNDOABLE);
        this.dispatchEvent(new CustomEvent("learned", { detail: answer }));
        link.refresh();
        return answer;
      } catch (error) {
        if (error instanceof api.Gone) {
          this.#wait("gone");
          if (!error.answered) link.lost();
          await sleep((error.retryAfter ?? Math.min(0.3 * 2 ** failures, 8)) * 1000);
        } else if (error.status === 429) {
          this.#wait("full");
          await sleep((error.retryAfter ?? 1) * 1000);
        } else if (error.status === 404 && shot.frame) {
          shot.frame = null; // it is not kept any longer: send the picture itself
        } else {
          this.#wait(null);
          if (error.locked) this.cancel(); // every other image would be refused too
          this.#trouble(error);
          return null;
        }
      }
    }
    return null;
  }

  #wait(why) {
    if (this.waiting === why) return;
    this.waiting = why;
    this.#tell("hold");
  }

  #trouble(error) { this.dispatchEvent(new CustomEvent("trouble", { detail: error })); }
  #tell(type) { this.dispatchEvent(new Event(type)); }
}

export const teacher = new Teacher();
