// Two charts drawn by hand: what is in memory, and how often guesses were right.
import { colour } from "./colours.js";
import { count, element, shape } from "./element.js";

const CELLS = 320; // at most as many squares, each then standing for several samples
const $ = (id) => document.getElementById(id);

function bytes(n) {
  if (n < 1024) return `${n} B`;
  if (n < 1024 ** 2) return `${(n / 1024).toFixed(0)} kB`;
  if (n < 1024 ** 3) return `${(n / 1024 ** 2).toFixed(1)} MB`;
  return `${(n / 1024 ** 3).toFixed(1)} GB`;
}

/** Every remembered sample is a small square in the colour of its class. */
export function memory(classes, { samples, limit, bytes: size }) {
  const room = limit ? ` of ${limit.toLocaleString("en")}` : "";
  $("memory-text").textContent = samples
    ? `${samples.toLocaleString("en")}${room} samples, ${bytes(size ?? 0)}` : "Nothing yet";
  const kept = classes.filter(({ remembered }) => remembered > 0);
  const each = Math.max(1, Math.ceil(samples / CELLS));
  const said = kept.map(({ label, remembered }) => `${label} ${remembered}`).join(", ");
  const tray = element("div", { class: "tray", role: "img", "aria-label": `In memory: ${said || "nothing"}` });
  for (const { label, remembered } of kept) {
    for (let i = 0; i < Math.max(1, Math.round(remembered / each)); i++) {
      const cell = element("i");
      cell.style.setProperty("--class", colour(label));
      tray.append(cell);
    }
  }
  $("memory").replaceChildren(tray);
  $("legend").replaceChildren(...kept.map(({ label, remembered }) => {
    const item = element("li", {}, element("i", { "aria-hidden": "true" }),
      element("span", {}, label), ` ${remembered}`);
    item.style.setProperty("--class", colour(label));
    return item;
  }), ...(each > 1 ? [element("li", { class: "scale" }, `one square is ${count(each, "sample")}`)] : []));
}

const W = 520, H = 190, LEFT = 42, RIGHT = 12, TOP = 10, BOTTOM = 26;

/** A line over the samples taught, from 0 to 100 %. */
export function accuracy({ accuracy: now, window: points = [] } = {}) {
  const known = points.length > 0 && now !== null && now !== undefined;
  $("accuracy-text").textContent = known ? `${Math.round(now * 100)} % lately` : "Not known yet";
  const last = known ? points.at(-1)[0] : 1, first = known ? Math.min(points[0][0], last - 1) : 0;
  const x = (sample) => LEFT + (W - LEFT - RIGHT) * (sample - first) / (last - first);
  const y = (value) => TOP + (H - TOP - BOTTOM) * (1 - value);
  const svg = shape("svg", {
    viewBox: `0 0 ${W} ${H}`, role: "img",
    "aria-label": known
      ? `Accuracy before learning, now ${Math.round(now * 100)} % after ${count(last, "sample")}`
      : "No accuracy yet",
  });
  for (const level of [0, 0.5, 1]) {
    svg.append(
      shape("line", { class: "grid", x1: LEFT, x2: W - RIGHT, y1: y(level), y2: y(level) }),
      shape("text", { class: "axis", x: LEFT - 8, y: y(level) + 4, "text-anchor": "end" },
        `${level * 100} %`));
  }
  if (known) {
    const line = points.map(([sample, value]) => `${x(sample).toFixed(1)} ${y(value).toFixed(1)}`);
    const foot = `L${x(last).toFixed(1)} ${y(0)} L${x(points[0][0]).toFixed(1)} ${y(0)} Z`;
    svg.append(
      shape("path", { class: "area", d: `M${line.join(" L")} ${foot}` }),
      shape("path", { class: "line", d: `M${line.join(" L")}` }),
      shape("circle", { class: "now", cx: x(last), cy: y(points.at(-1)[1]), r: 4.5 }),
      shape("text", { class: "axis", x: x(last), y: H - 6, "text-anchor": "end" },
        `${count(last, "sample")}`),
      shape("text", { class: "axis", x: LEFT, y: H - 6 }, first.toLocaleString("en")));
  }
  $("accuracy").replaceChildren(svg);
}
