// @ts-check
/* Tags and placeholders: small marks in both columns. Placeholders that a translation lacks are offered, in the order of
   the source; formatting goes where its words go, and is marked as automatic. */

import { $, count, element } from "./elements.js";
import { drawFormats, placedMarks } from "./formats.js";
import { highlight } from "./highlights.js";
import { shown } from "./saving.js";
import { ask, attempt, documentPath, isAborted, rowPath } from "./server.js";
import { change, isApproved, say, state } from "./store.js";
import { tellIfHeld } from "./typists.js";

/** @typedef {import("./store.js").Mark} Mark */
/** @typedef {{ overlay: HTMLElement, missing: HTMLElement, chips: HTMLElement, formats: HTMLElement }} TagParts */

const PATIENCE = 300; // ms that the cursor rests in a row before it is asked where its formatting goes

/** @returns {TagParts} */
export const buildTags = () => ({
  overlay: element("div", { class: "tag-marks", "aria-hidden": "true", hidden: true }),
  missing: element("p", { class: "missing", hidden: true }),
  chips: element("p", { class: "row-formats", hidden: true }),
  formats: element("span", { class: "badge", hidden: true }),
});

/** Asks what is no language in the sources of the document. @param {string} identity */
export function loadTags(identity) {
  return attempt("Tags are not shown", async () => {
    const { rows } = await ask("GET", `${documentPath()}/tags`);
    if (state.document !== identity) return;
    change((now) => (now.tags = new Map(Object.entries(rows).map(([position, marks]) => [Number(position), inUnits(marks, now.rows[Number(position)].source)]))));
  });
}

/* The server counts characters, a browser the units of UTF-16, of which an emoji is two. */

/** How many characters so many units of a text are. @param {string} text @param {number} units */
export const characters = (text, units) => [...text.slice(0, units)].length;

/** How many units so many characters of a text are. @param {string} text @param {number} count */
export const codeUnits = (text, count) => [...text].slice(0, count).join("").length;

/** Marks of the server as the browser counts. @param {Mark[]} marks @param {string} text @returns {Mark[]} */
const inUnits = (marks, text) => marks.map((mark) => ({ ...mark, start: codeUnits(text, mark.start), end: codeUnits(text, mark.end) }));

/** The words of a row's source that have formatting of their own, in its order. @param {number} position */
export function formatsOf(position) {
  const formats = (state.tags.get(position) ?? []).filter(({ kind }) => kind === "format");
  return formats.map(({ start, end }) => state.rows[position].source.slice(start, end));
}

/** Placeholders of a source in a translation: where they stand, and which are missing. @param {Mark[]} marks @param {string} target */
function found(marks, target) {
  /** @type {Mark[]} */
  const there = [];
  /** @type {string[]} */
  const missing = [];
  for (const { kind, text } of marks) {
    if (kind !== "placeholder") continue;
    let at = target.indexOf(text);
    const isTaken = () => there.some((mark) => at < mark.end && mark.start < at + text.length);
    while (at >= 0 && isTaken()) at = target.indexOf(text, at + 1);
    if (at < 0) missing.push(text);
    else there.push({ kind, text, start: at, end: at + text.length, automatic: false });
  }
  return { there, missing };
}

/** @param {TagParts} parts @param {HTMLElement} source @param {import("./store.js").Row} row */
export function drawTags({ overlay, missing, chips, formats }, source, row) {
  const marks = state.tags.get(row.position);
  if (!marks) return;
  for (const kind of /** @type {const} */ (["placeholder", "format"])) {
    highlight(`weitblick-${kind}`, row.position, source, marks.filter((mark) => mark.kind === kind));
  }
  const now = found(marks, row.target);
  const known = state.placed?.position === row.position && state.placed.target === row.target ? state.placed.marks.filter(({ kind, automatic }) => kind === "format" && automatic) : [];
  const placed = [...known, ...placedMarks(row)];
  drawOverlay(overlay, row.target, [...now.there, ...placed]);
  const lacks = row.target.trim() && !isApproved(row) ? now.missing : [];
  missing.hidden = !lacks.length;
  if (missing.dataset.shows !== lacks.join("\n")) {
    missing.dataset.shows = lacks.join("\n");
    missing.replaceChildren(...(lacks.length ? [element("span", { class: "tag" }, "missing "), ...lacks.map((text) => chip(text, row.position))] : []));
  }
  drawFormats(chips, row);
  const tags = marks.filter(({ kind }) => kind === "format").length;
  const byHand = row.placed.length;
  formats.hidden = !tags;
  formats.textContent = byHand ? `${count(tags, "tag", "tags")}, ${byHand === tags ? "placed" : `${byHand} placed`}` : `${count(tags, "tag", "tags")} auto`;
  formats.title = `Formatting of the source. ${byHand < tags ? "What nobody has placed by hand (Alt+B) goes where its words go." : "All of it is placed by hand."}`;
}

/** @param {string} text @param {number} position */
const chip = (text, position) =>
  element("button", { type: "button", class: "small", title: "Insert (Alt+I)", onclick: () => insert(position, text) }, text.slice(0, 40));

/** The text once more behind its field, with marks. @param {HTMLElement} overlay @param {string} text @param {Mark[]} marks */
function drawOverlay(overlay, text, marks) {
  overlay.hidden = !marks.length;
  const edges = [...new Set([0, text.length, ...marks.flatMap(({ start, end }) => [start, end])])].sort((a, b) => a - b);
  const kinds = (/** @type {number} */ from, /** @type {number} */ to) =>
    marks.filter(({ start, end }) => start <= from && to <= end).map(({ kind, automatic }) => (kind === "format" && !automatic ? "is-format is-placed" : `is-${kind}`));
  overlay.replaceChildren(...edges.slice(1).map((edge, index) => element("span", { class: kinds(edges[index], edge).join(" "), "data-text": text.slice(edges[index], edge) })));
}

/** Puts a text where the cursor is. @param {number} position @param {string} text */
export function insert(position, text) {
  const field = /** @type {HTMLTextAreaElement | null} */ ($("rows").querySelector(`textarea[data-position="${position}"]`));
  if (!field || tellIfHeld(position)) return;
  field.focus({ preventScroll: true });
  document.execCommand("insertText", false, text);
  say(`${text} inserted.`);
}

/** Inserts the next placeholder of the source that the translation lacks. */
export function insertNext() {
  const position = state.focus;
  if (position === null || !state.rows[position]) return say("Go to a row first.");
  const [next] = found(state.tags.get(position) ?? [], shown(state.rows[position]).target).missing;
  if (next === undefined) return say("Nothing of the source is missing.");
  insert(position, next);
}

let asking = new AbortController();
let timer = 0;

/** Looks where the formatting of a row goes, while the cursor rests in it. @param {number} position */
export function placeTags(position) {
  asking.abort();
  clearTimeout(timer);
  if (!state.tags.get(position)?.some(({ kind }) => kind === "format")) return;
  asking = new AbortController();
  const { signal } = asking;
  const path = rowPath(position);
  timer = setTimeout(async () => {
    if (path !== rowPath(position) || !state.rows[position]) return;
    const { target } = shown(state.rows[position]);
    try {
      const { target: marks } = await ask("POST", `${path}/tags`, { target }, { signal });
      if (path === rowPath(position)) change((now) => (now.placed = { position, target, marks: inUnits(marks, target) }));
    } catch (error) {
      if (!isAborted(error)) say("Where the formatting goes could not be looked up.");
    }
  }, PATIENCE);
}
