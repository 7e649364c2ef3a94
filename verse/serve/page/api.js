// The server's interface, one function for each request.

/** The server cannot be reached, or (`answered`) says it cannot do it now: worth trying again. */
export class Gone extends Error {
  constructor(message, { answered = false, retryAfter = null } = {}) {
    super(message);
    this.answered = answered;
    this.retryAfter = retryAfter;
  }
}

/** The server answered with a refusal; `status` says which. */
export class Refusal extends Error {
  constructor(status, message, retryAfter = null) {
    super(message);
    this.status = status;
    this.retryAfter = retryAfter;
  }

  get locked() { return this.status === 401 || this.status === 403; }
}

const NOT_READY = new Set([502, 503, 504]);
const TOKEN = "verse-token";
const LONGEST_EVENT = 2 ** 20; // characters

export const token = {
  get value() {
    try { return sessionStorage.getItem(TOKEN) ?? ""; } catch { return token.kept; }
  },
  set value(text) {
    token.kept = text;
    try { sessionStorage.setItem(TOKEN, text); } catch { /* kept in memory only */ }
  },
  kept: "",
};

function seconds(response) {
  const after = Number(response.headers.get("Retry-After"));
  return Number.isFinite(after) && after > 0 ? Math.min(after, 60) : null;
}

/** What the server says is wrong, whichever of the usual shapes its JSON has. */
async function reason(response) {
  try {
    const { detail, message, error } = await response.json();
    const said = detail ?? message ?? error;
    if (typeof said === "string") return said;
    if (Array.isArray(said) && said[0]?.msg) return said[0].msg;
  } catch { /* not JSON */ }
  return `the server answered ${response.status}`;
}

async function request(method, path, { body, headers = {}, signal, timeout = 20_000 } = {}) {
  const given = new Headers(headers);
  if (token.value) given.set("Authorization", `Bearer ${token.value}`);
  let response;
  try {
    response = await fetch(new URL(path, document.baseURI), {
      method, body, headers: given, cache: "no-store",
      signal: signal ?? AbortSignal.timeout(timeout),
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Gone("the server cannot be reached");
  }
  if (response.ok) return response;
  const said = await reason(response);
  if (NOT_READY.has(response.status)) throw new Gone(said, { answered: true, retryAfter: seconds(response) });
  throw new Refusal(response.status, said, seconds(response));
}

const json = async (...call) => {
  const response = await request(...call);
  try { return await response.json(); } catch { throw new Gone("the response is incomplete"); }
};
const label = (text) => `v1/classes/${encodeURIComponent(text)}`;
const asJson = (value) => ({
  body: JSON.stringify(value), headers: { "Content-Type": "application/json" },
});

function form(image, fields = {}) {
  const data = new FormData();
  if (image) data.set("image", image, image.name ?? "frame.jpg");
  for (const [name, value] of Object.entries(fields)) data.set(name, value);
  return data;
}

export const status = () => json("GET", "v1/status", { timeout: 8_000 });
export const classes = () => json("GET", "v1/classes", { timeout: 8_000 });
export const predict = (image) => json("POST", "v1/predict", { body: form(image) });
/** Teach an image; with `frame`, what the server called it when asked, nothing is uploaded again. */
export const learn = ({ blob, frame }, name, key) => json("POST", "v1/learn", {
  body: frame ? form(null, { label: name, frame }) : form(blob, { label: name }),
  headers: { "Idempotency-Key": key },
});
export const undo = (seqs) => json("POST", "v1/undo", asJson({ seqs }));
export const report = () => json("GET", "v1/report", { timeout: 60_000 });
export const backup = async () => (await request("POST", "v1/backup", { timeout: 120_000 })).blob();
export const forget = (name) => request("DELETE", label(name));
export const rename = (name, to) => request("POST", `${label(name)}/rename`, asJson({ to }));
export const merge = (name, into) => request("POST", `${label(name)}/merge`, asJson({ into }));
export const thumbnail = async (seq) =>
  (await request("GET", `v1/samples/${seq}/thumbnail`)).blob();

/** Server-sent events by fetch, because EventSource cannot carry a token. */
export async function* events(signal) {
  const response = await request("GET", "v1/events", { signal });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      text = (text + value).replaceAll("\r\n", "\n");
      if (text.length > LONGEST_EVENT) throw new Error("an event without an end");
      for (let end; (end = text.indexOf("\n\n")) >= 0; text = text.slice(end + 2)) {
        const event = parse(text.slice(0, end));
        if (event) yield event;
      }
    }
  } catch (error) {
    if (signal.aborted) return;
    throw new Gone(String(error));
  }
}

function parse(block) {
  let type = "message";
  const data = [];
  for (const line of block.split("\n")) {
    if (line.startsWith("event:")) type = line.slice(6).trim();
    else if (line.startsWith("data:")) data.push(line.slice(5).trimStart());
  }
  if (!data.length) return null;
  try { return { type, data: JSON.parse(data.join("\n")) }; } catch { return { type, data: null }; }
}
