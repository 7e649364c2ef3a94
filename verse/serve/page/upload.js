// Images and folders from disk, chosen or dropped. A folder's name is the label.
import { camera } from "./camera.js";
import { all } from "./classes.js";
import { count, element } from "./element.js";
import { note, open } from "./messages.js";
import { teacher } from "./teach.js";

const IMAGE = /\.(jpe?g|png|webp|gif|bmp|avif|heic|heif|tiff?)$/i;
const $ = (id) => document.getElementById(id);

const isImage = (file) => file.type.startsWith("image/") || (!file.type && IMAGE.test(file.name));

/**
 * The label of a path inside what was chosen: the folder below the chosen one, or the chosen one
 * itself when images lie in it directly; null for a loose image.
 */
export function labelOf(path) {
  const folders = path.split("/").filter(Boolean).slice(0, -1);
  return folders[1] ?? folders[0] ?? null;
}

/** All files below a dropped entry, each with its path. */
async function* walk(entry, path = "") {
  if (entry.isFile) {
    const file = await new Promise((resolve, reject) => entry.file(resolve, reject));
    yield { file, path: path + entry.name };
    return;
  }
  const reader = entry.createReader();
  for (;;) { // a reader gives a hundred entries at a time
    const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (!some.length) return;
    for (const child of some) yield* walk(child, `${path}${entry.name}/`);
  }
}

/** Ask for the label of each group, then teach. `onto` is the class that images were dropped on. */
async function offer(found, onto = null) {
  const images = found.filter(({ file }) => isImage(file));
  if (!images.length) return note("There are no images among these files.", { bad: true });
  images.sort((a, b) => a.path.localeCompare(b.path, "en", { numeric: true }));
  const groups = new Map();
  for (const { file, path } of images) {
    const label = labelOf(path) ?? onto ?? "";
    if (!groups.has(label)) groups.set(label, []);
    groups.get(label).push(file);
  }
  if (groups.size === 1 && onto !== null && groups.has(onto)) {
    return teacher.images(images.map(({ file }) => ({ file, label: onto })));
  }
  return choose(groups, images);
}

async function choose(groups, images) {
  $("import-title").textContent = `Teach from ${count(images.length, "image")}`;
  $("import-ask").hidden = images.length > 1;
  $("known").replaceChildren(...all().map(({ label }) => element("option", { value: label })));
  const fields = [...groups].map(([label, files], i) => {
    const input = element("input", { id: `group-${i}`, list: "known", required: true,
      maxlength: 100, placeholder: "Its name", autocomplete: "off" });
    input.value = label;
    return { input, files };
  });
  $("groups").replaceChildren(...fields.map(({ input, files }) => element("li", {},
    element("label", { for: input.id }, count(files.length, "image")), input)));
  const answer = await open($("import"));
  if (answer === "ask") return camera.show(images[0].file);
  if (answer !== "yes") return null;
  return teacher.images(fields.flatMap(({ input, files }) =>
    files.map((file) => ({ file, label: input.value.trim() }))));
}

function chosen(input) {
  const found = [...input.files].map((file) => ({ file, path: file.webkitRelativePath || file.name }));
  input.value = ""; // the same choice again must count as a change
  return found;
}

export function listen() {
  $("pick-images").addEventListener("click", () => $("images").click());
  $("pick-folder").addEventListener("click", () => $("folder").click());
  $("import-ask").addEventListener("click", () => $("import").close("ask"));
  $("ask").addEventListener("click", () => $("shot").click());
  for (const id of ["images", "folder"]) {
    $(id).addEventListener("change", (event) => offer(chosen(event.target)));
  }
  $("shot").addEventListener("change", async (event) => {
    const [photo] = chosen(event.target);
    if (photo && !(await camera.show(photo.file))) note("This browser cannot show that file.", { bad: true });
  });

  let depth = 0; // dragenter and dragleave come for every element on the way
  const carries = (event) => event.dataTransfer?.types.includes("Files");
  addEventListener("dragenter", (event) => {
    if (carries(event)) { depth++; $("veil").hidden = false; }
  });
  addEventListener("dragleave", (event) => {
    if (carries(event) && --depth <= 0) { depth = 0; $("veil").hidden = true; }
  });
  addEventListener("dragover", (event) => { if (carries(event)) event.preventDefault(); });
  addEventListener("drop", async (event) => {
    if (!carries(event)) return;
    event.preventDefault();
    depth = 0;
    $("veil").hidden = true;
    const onto = event.target.closest?.("[data-label]")?.dataset.label ?? null;
    // entries must be taken before the first await; afterwards the list is empty
    const entries = [...event.dataTransfer.items].map((item) => item.webkitGetAsEntry()).filter(Boolean);
    const found = entries.length ? [] : [...event.dataTransfer.files].map((file) => ({ file, path: file.name }));
    try {
      for (const entry of entries) for await (const one of walk(entry)) found.push(one);
    } catch { return note("Some of these files cannot be read.", { bad: true }); }
    return offer(found, onto);
  });
}
