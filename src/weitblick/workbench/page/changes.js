// @ts-check
/* Drafts that changed because something was confirmed: counted, visited, kept or undone. */

import { focusRow } from "./editing.js";
import { $, count } from "./elements.js";
import { reveal } from "./find.js";
import { calm } from "./panel.js";
import { bringRow, travel, viewOf } from "./rows.js";
import { person } from "./person.js";
import { shown, tab, takeRows } from "./saving.js";
import { ServerError, ask, attempt, here } from "./server.js";
import { change, isChanged, say, state } from "./store.js";

const TRAVEL = 800; // ms that scrolling to a row may take

export const changedRows = () => state.rows.filter((row) => isChanged(shown(row)));

export function drawChanges() {
  const changed = changedRows().length;
  $("changes").hidden = !changed;
  $("changes-text").textContent = `${count(changed, "sentence", "sentences")} changed`;
}

/** Goes to the next changed row after the one that was visited last, or to the one before it. @param {1 | -1} step */
export function visitChange(step) {
  const changed = changedRows().map((row) => row.position);
  if (!changed.length) return say("No sentence has changed.");
  const from = state.focus ?? state.visited ?? (step > 0 ? -1 : state.rows.length);
  const later = step > 0 ? changed.find((position) => position > from) : changed.findLast((position) => position < from);
  const visited = later ?? (step > 0 ? changed[0] : changed[changed.length - 1]);
  change((now) => {
    now.visited = visited;
  });
  reveal(visited);
  travel(TRAVEL);
  bringRow(visited)?.element.scrollIntoView({ block: "center", behavior: calm() ? "auto" : "smooth" });
  firstButton(visited)?.focus({ preventScroll: true });
  say(`Row ${visited + 1} has changed.`);
}

/** @param {number} position @returns {HTMLElement | null | undefined} */
const firstButton = (position) => viewOf(position)?.extra.querySelector("button");

/** Makes a changed row again what it was. @param {number} position */
export const keepBefore = (position) => settle(position, "keep", `Row ${position + 1} is as it was.`);

/** Leaves a changed row as it is now. @param {number} position */
export const acceptChange = (position) => settle(position, "accept", `Row ${position + 1}: change accepted.`);

/** Whoever was at the buttons of a row, which go with its change, is at the next one then, or in the row's field.
 * @param {number} position @param {"keep" | "accept"} how @param {string} done */
function settle(position, how, done) {
  const wasHere = viewOf(position)?.extra.contains(document.activeElement);
  const place = here();
  return attempt(`Row ${position + 1} is not settled`, async () => {
    await overSeen(place.path, () => ask("POST", `${place.row(position)}/${how}`, { version: state.rows[position].version, writer: tab, person: person() }));
    say(done);
    if (!wasHere || !place.isShown()) return;
    if (changedRows().length) visitChange(1);
    else focusRow(position);
  });
}

/** Writes rows that were seen. Shows what the server has, also when that is something newer.
 * @param {string} path of their document @param {() => Promise<any>} write */
async function overSeen(path, write) {
  try {
    const row = await write();
    takeRows([row], path);
  } catch (error) {
    if (error instanceof ServerError && error.row) takeRows([error.row], path);
    throw error;
  }
}

/** For the changed row that was visited last, if it is still open. @param {(position: number) => unknown} settling */
export function settleVisited(settling) {
  const { visited } = state;
  if (visited === null || !state.rows[visited] || !isChanged(state.rows[visited])) return say("Go to a changed sentence first, with n.");
  firstButton(visited)?.focus({ preventScroll: true });
  settling(visited);
}

const seen = () => ({ rows: changedRows().map(({ position, version }) => ({ position, version })), writer: tab, person: person() });

/** All changed rows at once, in one step of the server. @param {"undo" | "accept"} how */
export function settleAll(how) {
  return attempt(how === "undo" ? "The changes are not undone" : "The changes are not accepted", async () => {
    const { path } = here();
    const { rows, left } = await ask("POST", `${path}/${how}`, seen());
    takeRows([...rows, ...left], path);
    const done = how === "undo" ? `${count(rows.length, "sentence is", "sentences are")} as before.` : "All changes accepted.";
    say(left.length ? `${done} ${count(left.length, "sentence has", "sentences have")} changed again meanwhile and ${left.length === 1 ? "is" : "are"} left.` : done);
  });
}

export function setUpChanges() {
  $("changes-next").addEventListener("click", () => visitChange(1));
  $("changes-undo").addEventListener("click", () => settleAll("undo"));
  $("changes-accept").addEventListener("click", () => settleAll("accept"));
}
