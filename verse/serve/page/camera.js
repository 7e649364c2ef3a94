// Where frames come from: the camera, or one photo put in its place.

const SIDE = 256; // pixels of the square that is sent; the server looks at the centre square too
const GRID = 16; // cells per side of the thumbnail that tells whether anything changed

/** Why there is no picture, in words that say what to do. */
export const TROUBLE = {
  off: ["Show it something",
    "Pictures go only to your server."],
  starting: ["Starting the camera…", "Your browser may ask for permission."],
  insecure: ["The camera needs https",
    "Browsers allow the camera only on pages from https or localhost. Start the server with "
    + "--tls-cert and --tls-key, or open this page on the machine itself. Photos and uploads work "
    + "without it."],
  refused: ["The camera was refused",
    "Allow it for this page in the browser’s site settings (next to the address), then start again."],
  missing: ["No camera found", "Plug one in and start again, or work with photos and folders."],
  busy: ["The camera is busy", "Another program is using it. Close that program, then start again."],
  ended: ["The camera stopped", "It was unplugged, or another program is using it."],
};

function trouble(error) {
  if (error.name === "NotAllowedError" || error.name === "SecurityError") return "refused";
  if (error.name === "NotFoundError" || error.name === "OverconstrainedError") return "missing";
  return "busy";
}

class Camera extends EventTarget {
  state = "off"; // a key of TROUBLE, or live, or photo
  several = false;
  #video; #photo; #stream = null; #facing = "environment"; #wasLive = false;
  #square = Object.assign(document.createElement("canvas"), { width: SIDE, height: SIDE });
  #small = Object.assign(document.createElement("canvas"), { width: GRID, height: GRID });

  attach(video, photo) {
    this.#video = video;
    this.#photo = photo;
    if (!window.isSecureContext || !navigator.mediaDevices) this.#become("insecure");
  }

  /** There is something to look at. */
  get showing() { return this.state === "live" || this.state === "photo"; }

  async start() {
    if (!window.isSecureContext || !navigator.mediaDevices) return this.#become("insecure");
    this.#release();
    this.#become("starting");
    try {
      const stream = await navigator.mediaDevices.getUserMedia({
        audio: false,
        video: { facingMode: { ideal: this.#facing }, width: { ideal: 960 }, height: { ideal: 720 } },
      });
      this.#stream = stream;
      const [track] = stream.getVideoTracks();
      track.addEventListener("ended", () => this.#stream === stream && this.stop("ended"));
      this.#video.srcObject = stream;
      this.#video.classList.toggle("mirror", track.getSettings().facingMode === "user");
      await this.#video.play();
      const devices = await navigator.mediaDevices.enumerateDevices();
      this.several = devices.filter((device) => device.kind === "videoinput").length > 1;
      this.#become("live");
    } catch (error) {
      this.#release();
      this.#become(trouble(error));
    }
  }

  stop(state = "off") {
    this.#release();
    this.#become(state);
  }

  /** Close the photo, and go on as before it; or stop the camera. */
  close() { return this.state === "photo" && this.#wasLive ? this.start() : this.stop(); }

  flip() {
    this.#facing = this.#facing === "environment" ? "user" : "environment";
    return this.start();
  }

  /** Look at one photo instead of the live picture. */
  async show(file) {
    if (this.state !== "photo") this.#wasLive = this.state === "live";
    this.#release();
    this.#photo.src = URL.createObjectURL(file);
    try { await this.#photo.decode(); } catch { return this.#wasLive ? this.start() : this.stop(), false; }
    this.#become("photo");
    return true;
  }

  /** Resolves when there is a picture that was not seen before, true; or false if there is none. */
  next() {
    if (this.state !== "live") return Promise.resolve(this.state === "photo");
    return new Promise((resolve) => {
      // a camera that stalls must not hold up whoever waits
      const late = setTimeout(() => resolve(false), 1_000);
      const arrived = () => { clearTimeout(late); resolve(this.state === "live"); };
      if (this.#video.requestVideoFrameCallback) this.#video.requestVideoFrameCallback(arrived);
      else requestAnimationFrame(arrived);
    });
  }

  /** The centre square of the picture as a JPEG, with the few grey cells that `change` compares. */
  async grab() {
    const source = this.state === "photo" ? this.#photo : this.#video;
    const width = source.videoWidth || source.naturalWidth;
    const height = source.videoHeight || source.naturalHeight;
    const side = Math.min(width, height);
    this.#square.getContext("2d").drawImage(
      source, (width - side) / 2, (height - side) / 2, side, side, 0, 0, SIDE, SIDE);
    const cells = this.#cells();
    const blob = await new Promise((resolve) => this.#square.toBlob(resolve, "image/jpeg", 0.92));
    return { blob, cells };
  }

  #cells() {
    const context = this.#small.getContext("2d", { willReadFrequently: true });
    context.imageSmoothingQuality = "high";
    context.drawImage(this.#square, 0, 0, GRID, GRID);
    const { data } = context.getImageData(0, 0, GRID, GRID);
    return Float32Array.from({ length: GRID * GRID },
      (_, i) => 0.3 * data[4 * i] + 0.59 * data[4 * i + 1] + 0.11 * data[4 * i + 2]);
  }

  #release() {
    for (const track of this.#stream?.getTracks() ?? []) track.stop();
    this.#stream = null;
    this.#video.srcObject = null;
    if (this.#photo.src.startsWith("blob:")) URL.revokeObjectURL(this.#photo.src);
    this.#photo.removeAttribute("src");
  }

  #become(state) {
    this.state = state;
    this.dispatchEvent(new Event("state"));
  }
}

/** Mean difference of two frames in grey levels (0 to 255). */
export function change(a, b) {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += Math.abs(a[i] - b[i]);
  return sum / a.length;
}

export const camera = new Camera();
