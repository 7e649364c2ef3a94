// One colour for each class while the page is open; a stylesheet variable, so it follows the theme.

const COUNT = 9; // --class-1 … --class-9 in style.css
const given = new Map();

export function colour(label) {
  if (label === "nothing") return "var(--class-none)";
  if (!given.has(label)) {
    const used = [...given.values()];
    const free = Array.from({ length: COUNT }, (_, i) => i).find((i) => !used.includes(i));
    given.set(label, free ?? given.size % COUNT);
  }
  return `var(--class-${given.get(label) + 1})`;
}

/** Keep colours only for classes that exist, so that forgotten ones give theirs back. */
export function keep(labels) {
  for (const label of given.keys()) if (!labels.includes(label)) given.delete(label);
}

/** A renamed class keeps its colour. */
export function renamed(from, to) {
  if (given.has(from) && !given.has(to)) given.set(to, given.get(from));
}
