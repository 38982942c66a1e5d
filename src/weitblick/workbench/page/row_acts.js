// @ts-check
/* What is done to a row besides typing, or to several rows at once: reviewing, copying the source, clearing, and going
   back and forth by steps. Rows are chosen by their numbers; what is done then is done to all of them, as one step. */

import { confirmRow, focusRow, replaceText, settleRow } from "./editing.js";
import { $, count } from "./elements.js";
import { isListed } from "./find.js";
import { person } from "./person.js";
import { drafts, shown, tab, takeRows } from "./saving.js";
import { ask, attempt, here } from "./server.js";
import { change, isApproved, say, state, warn } from "./store.js";

/** @typedef {"confirm" | "reopen" | "review" | "copy" | "clear"} Act */
/** @typedef {{ id: number, kind: string, writer: string | null, rows: number, first: number | null }} Step */

const DONE = { confirm: "confirmed", reopen: "open again", review: "reviewed", copy: "the same as the source now", clear: "empty now" };
const NAMES = /** @type {Record<string, string>} */ ({
  type: "typing",
  alternative: "another translation",
  copy: "copying the source",
  clear: "clearing",
  confirm: "confirming",
  reopen: "reopening",
  review: "reviewing",
  keep: "keeping a sentence as it was",
  undo: "undoing changes",
  replace: "a replacement",
  comment: "a comment",
  import: "reading a review",
  format: "placing formatting",
});

const who = () => ({ writer: tab, writer_edit: ++drafts.number, person: person() });

/** What a key or a button does: to the rows that are chosen, or to the one under the cursor. @param {Act} act */
export function actOn(act) {
  if (state.chosen.size) return actOnChosen(act);
  const position = state.focus;
  if (position === null || !state.rows[position]) return say("Go to a row first, or choose several by their numbers.");
  actOnRow(act, position);
}

/** @param {Act} act @param {number} position */
export function actOnRow(act, position) {
  const row = shown(state.rows[position]);
  if (act === "copy" || act === "clear") {
    if (!replaceText(position, act === "copy" ? row.source : "", act)) return;
    return say(`Row ${position + 1} is ${DONE[act]}. Ctrl+Z brings back what was there.`);
  }
  if (act === "reopen" ? !isApproved(row) : row.state === DONE[act]) return say(`Row ${position + 1} is ${act === "reopen" ? "open" : DONE[act]} already.`);
  if (act === "reopen") return settleRow(position);
  confirmRow(position, false, act === "review" ? "reviewed" : "confirmed");
}

/** Whether what looks wrong in the chosen rows has been asked already, and of which rows. */
let asked = "";

/** @param {Act} act */
export function actOnChosen(act) {
  const positions = [...state.chosen].filter((position) => state.rows[position]).sort((a, b) => a - b);
  const key = `${act} ${positions}`;
  return attempt("Nothing was done", async () => {
    const place = here();
    await drafts.retry();
    if (!place.isShown()) return say("Nothing was done: another document is shown by now.");
    const rows = positions.map((position) => ({ position, version: state.rows[position].version }));
    const answer = await ask("POST", `${place.path}/rows`, { act, rows, ask: asked !== key, ...who() });
    takeRows([...answer.rows, ...answer.left], place.path);
    if (!place.isShown()) return;
    const held = new Set(answer.findings.map((/** @type {{ position: number }} */ one) => one.position));
    asked = held.size ? key : "";
    change((now) => (now.chosen = held));
    const parts = [`${count(answer.rows.length, "row is", "rows are")} ${DONE[act]}.`];
    if (answer.left.length) parts.push(`${count(answer.left.length, "row", "rows")} changed meanwhile and ${answer.left.length === 1 ? "is" : "are"} left.`);
    if (held.size) {
      asked = `${act} ${[...held].sort((a, b) => a - b)}`;
      parts.push(`In ${count(held.size, "row", "rows")} something looks wrong: they are still chosen, and the same again does it all the same.`);
    }
    (held.size ? warn : say)(parts.join(" "));
  });
}

/* ---- choosing rows ---- */

/** The row from which a range is chosen. */
let from = 0;

/** Chooses a row, or all from the one before to this. @param {number} position @param {boolean} range */
export function choose(position, range) {
  change((now) => {
    const next = new Set(now.chosen);
    if (!range || !next.size) {
      from = position;
      if (next.has(position)) next.delete(position);
      else next.add(position);
    } else {
      for (let at = Math.min(from, position); at <= Math.max(from, position); at++) if (isListed(at)) next.add(at);
    }
    now.chosen = next;
  });
}

/** Chooses the row under the cursor, or makes the range longer, by keys. @param {number} position @param {1 | -1} step */
export function chooseOn(position, step) {
  if (!state.chosen.size) choose(position, false);
  let next = position + step;
  while (state.rows[next] && !isListed(next)) next += step;
  if (!state.rows[next]) return;
  choose(next, true);
  focusRow(next);
}

export function chooseAll() {
  change((now) => (now.chosen = new Set(now.rows.map((row) => row.position).filter(isListed))));
}

export function chooseNone() {
  change((now) => (now.chosen = new Set()));
}

/** The bar that says how many rows are chosen, and what can be done with them. */
export function drawChosen() {
  const { size } = state.chosen;
  $("chosen").hidden = !size;
  $("chosen-text").textContent = `${count(size, "row", "rows")} chosen`;
}

/* ---- back and forth ---- */

/** A step of another window that somebody was asked about. */
let foreign = -1;

/** Takes the latest step back, or does it again. @param {"undo" | "redo"} direction */
export function go(direction) {
  return attempt(direction === "undo" ? "Nothing was undone" : "Nothing was done again", async () => {
    const place = here();
    await drafts.retry();
    /** @type {Step | null} */
    const step = (await ask("GET", `${place.path}/steps`))[direction];
    if (!step) return say(`There is nothing to ${direction}.`);
    const what = `${NAMES[step.kind] ?? step.kind}, ${step.rows === 1 ? `row ${(step.first ?? 0) + 1}` : count(step.rows, "row", "rows")}`;
    if (step.writer !== null && step.writer !== tab && foreign !== step.id) {
      foreign = step.id;
      return warn(`The latest step is not of this window: ${what}. The same key again ${direction === "undo" ? "takes it back" : "does it again"}.`);
    }
    const { rows, left } = await ask("POST", `${place.path}/steps/${direction}`, { step: step.id, ...who() });
    takeRows([...rows, ...left], place.path);
    if (place.isShown() && rows.length && step.first !== null && state.rows[step.first]) focusRow(step.first);
    const kept = left.length ? ` ${count(left.length, "row has", "rows have")} changed since and ${left.length === 1 ? "is" : "are"} left.` : "";
    say(`${direction === "undo" ? "Taken back" : "Done again"}: ${what}.${kept}`);
  });
}

export function setUpRowActs() {
  for (const act of /** @type {Act[]} */ (["confirm", "review", "reopen", "copy", "clear"])) {
    $(`chosen-${act}`).addEventListener("click", () => actOnChosen(act));
  }
  $("chosen-all").addEventListener("click", chooseAll);
  $("chosen-none").addEventListener("click", chooseNone);
  $("undo-button").addEventListener("click", () => go("undo"));
  $("redo-button").addEventListener("click", () => go("redo"));
}
