// @ts-check
/* What looks wrong in a row. It is looked for while somebody is in the row, asked when the row is confirmed, and never
   repaired here. The server has the rules. */

import { focusRow } from "./editing.js";
import { $, count, element } from "./elements.js";
import { drafts, shown } from "./saving.js";
import { ask, attempt, documentPath, here, projectPath, rowPath } from "./server.js";
import { change, isApproved, languages, say, state, warn } from "./store.js";

/** @typedef {import("./store.js").Finding} Finding */

const MOST_LISTED = 200;
/** @type {Finding[]} */
const NOTHING = [];

/** What is known of the text that a row has now. @param {number} position */
export function knownOf(position) {
  const known = state.findings.get(position);
  return known && state.rows[position] && known.target === shown(state.rows[position]).target ? known : undefined;
}

/** Findings that wait for an answer in a row. @param {number} position @returns {Finding[]} */
export function askedOf(position) {
  const known = knownOf(position);
  return known?.asked && !isApproved(shown(state.rows[position])) ? known.found : NOTHING;
}

/** Looks for what is wrong in the text of a row, so that it is known when the row is confirmed. Where that fails, the
 * server looks again when it is asked to confirm. @param {number} position */
export async function lookAt(position) {
  const row = state.rows[position];
  if (!row) return;
  const { target } = shown(row);
  if (isApproved(shown(row)) || !target.trim() || knownOf(position)) return;
  const path = rowPath(position);
  try {
    const found = await ask("POST", `${documentPath()}/findings`, { position, target });
    if (path === rowPath(position) && !knownOf(position)) remember(position, target, found, false);
  } catch {
    // It is asked again with the confirmation.
  }
}

/** @param {number} position @param {string} target @param {Finding[]} found @param {boolean} asked */
function remember(position, target, found, asked) {
  change((now) => {
    now.findings.set(position, { target, found, asked });
  });
}

/** Asks whether a row is right although something looks wrong. Gives whether there was something to ask.
 * @param {number} position */
export function askFirst(position) {
  const known = knownOf(position);
  if (!known || known.asked || !known.found.length) return false;
  remember(position, known.target, known.found, true);
  warn(question(position, known.found));
  return true;
}

/** The server has found something and not confirmed a row. Whoever has gone on to the next row and not typed there is
 * brought back. @param {number} position @param {string} target @param {Finding[]} found */
export function cameBack(position, target, found) {
  remember(position, target, found, true);
  warn(question(position, found));
  const { focus } = state;
  if (focus === position || (focus !== null && drafts.of(rowPath(focus)))) return;
  focusRow(position);
}

/** @param {number} position @param {Finding[]} found */
function question(position, found) {
  const first = `${found[0].words}: ${found[0].message}`;
  return `Row ${position + 1}: ${found.length === 1 ? first : `${count(found.length, "thing looks", "things look")} wrong`}. Ctrl+Enter again confirms it as it is.`;
}

/** What each place shows. @type {WeakMap<HTMLElement, Finding[]>} */
const drawn = new WeakMap();

/** Under the field of a row: what was found in it. @param {HTMLElement} place @param {number} position */
export function drawFindings(place, position) {
  const found = askedOf(position);
  if (drawn.get(place) === found) return; // a button that is being pressed stays the same button
  drawn.set(place, found);
  place.hidden = !found.length;
  place.replaceChildren(...found.map((finding) => line(finding, position)));
}

/** @param {Finding} finding @param {number} position */
function line(finding, position) {
  const { code, direction } = languages().target;
  const button = (/** @type {string} */ name, /** @type {string} */ title, /** @type {() => void} */ act) =>
    element("button", { type: "button", class: "small", title, onclick: act }, name);
  return element(
    "p",
    { class: "finding" },
    element("span", { class: "tag" }, `${finding.rule} `),
    element("span", { class: "finding-words", lang: code, dir: direction }, finding.words),
    ` ${finding.message} `,
    button("Ignore here", "This is right in this row", () => ignore(finding, position, false)),
    button("Ignore rule", `Never look for ${finding.rule} in this project`, () => ignore(finding, position, true)),
  );
}

/** @param {Finding} finding @param {number} position @param {boolean} everywhere */
function ignore({ rule, words }, position, everywhere) {
  const body = everywhere ? { rule } : { rule, words, document: state.document, position };
  const place = here();
  return attempt("It is not ignored", async () => {
    await ask("POST", `${projectPath()}/ignored`, body);
    if (!place.isShown()) return;
    change((now) => {
      for (const [at, known] of now.findings) {
        const found = known.found.filter((one) => one.rule !== rule || (!everywhere && (at !== position || one.words !== words)));
        if (found.length !== known.found.length) now.findings.set(at, { ...known, found });
      }
    });
    say(everywhere ? `${rule}: not looked for in this project any more. Under Project it can be.` : "Ignored in this row.");
    focusRow(position);
  });
}

/* ---- before a document is exported ---- */

/** Lists in the dialog what looks wrong in the whole document. */
export async function listFindings() {
  const place = $("export-findings");
  const { path, isShown } = here();
  place.replaceChildren(element("p", { class: "quiet" }, "Looking for what may be wrong …"));
  const done = await attempt("The document is not checked", async () => {
    /** @type {Finding[]} */
    const found = await ask("GET", `${path}/findings`);
    const rows = new Set(found.map(({ position }) => position)).size;
    const title = found.length ? `${count(found.length, "finding", "findings")} in ${count(rows, "row", "rows")}` : "Nothing looks wrong";
    place.replaceChildren(element("h3", {}, title), element("ul", { class: "finding-list" }, ...found.slice(0, MOST_LISTED).map((one) => listed(one, isShown))));
    if (found.length > MOST_LISTED) place.append(element("p", { class: "quiet" }, `and ${found.length - MOST_LISTED} more`));
  });
  if (!done) place.replaceChildren();
}

/** @param {Finding} finding @param {() => boolean} isShown whether its document still is */
function listed(finding, isShown) {
  const visit = () => {
    /** @type {HTMLDialogElement} */ ($("export-dialog")).close();
    if (!isShown()) return say("Another document is shown by now.");
    focusRow(finding.position);
    say(`${finding.words}: ${finding.message}`);
  };
  return element(
    "li",
    {},
    element("button", { type: "button", class: "place-link", onclick: visit }, `Row ${finding.position + 1}`),
    element("span", { class: "tag" }, ` ${finding.rule} `),
    element("span", { class: "finding-words" }, finding.words),
    ` ${finding.message}`,
  );
}
