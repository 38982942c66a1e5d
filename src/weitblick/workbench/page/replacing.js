// @ts-check
/* Replacing in translations: seen before it is done, done as one step, and taken back as one. */

import { lostWords, withNewWords } from "./differences.js";
import { openDialog } from "./dialogs.js";
import { $, count, element } from "./elements.js";
import { selectedWords } from "./find.js";
import { person } from "./person.js";
import { drafts, tab, takeRows } from "./saving.js";
import { ask, attempt, here } from "./server.js";
import { change, languages, say, state } from "./store.js";

/** @typedef {{ position: number, version: number, state: string, before: string, after: string, hits: number }} Replacement */

const PAUSE = 300; // ms after the last key until it is looked what would change
const MOST_LISTED = 100;

let timer = 0;
let looks = 0; // counts them: an answer that comes late is not shown
/** The document that the dialog was opened for. */
let place = here();
/** What is shown, and can be done. @type {Replacement[]} */
let previewed = [];

/** @param {string} id */
const input = (id) => /** @type {HTMLInputElement} */ ($(id));

const asked = () => ({
  text: input("replace-text").value,
  replacement: input("replace-by").value,
  expression: input("replace-expression").checked,
  cased: input("replace-cased").checked,
  confirmed: input("replace-confirmed").checked,
});

/** Opens the dialog: for the words that are selected, or those that were looked for. */
export function openReplacing() {
  const words = selectedWords();
  place = here();
  if (words) input("replace-text").value = words;
  else if (state.found && input("find-text").value) {
    input("replace-text").value = input("find-text").value;
    input("replace-expression").checked = input("find-expression").checked;
  }
  input("replace-confirmed").checked = false;
  openDialog("replace-dialog");
  input(input("replace-text").value ? "replace-by" : "replace-text").focus();
  preview();
}

/** Shows what would change. */
async function preview() {
  clearTimeout(timer);
  const number = ++looks;
  const body = asked();
  list([], "");
  if (!body.text) return;
  const positions = state.found ? [...state.found] : null;
  await attempt("It cannot be replaced", async () => {
    await drafts.retry();
    const { rows, hits, confirmed } = await ask("POST", `${place.path}/replace/preview`, { ...body, positions });
    if (number !== looks) return;
    change((now) => (now.status = ""));
    const where = positions ? " of those that are shown" : "";
    const left = confirmed && !body.confirmed ? ` ${count(confirmed, "confirmed row is", "confirmed rows are")} left as ${confirmed === 1 ? "it is" : "they are"}.` : "";
    list(rows, `${count(hits, "hit", "hits")} in ${count(rows.length, "row", "rows")}${where}.${left}`);
  });
}

/** @param {Replacement[]} rows @param {string} title */
function list(rows, title) {
  previewed = rows;
  const { code, direction } = languages().target;
  const apply = /** @type {HTMLButtonElement} */ ($("replace-apply"));
  apply.disabled = !rows.length;
  apply.textContent = rows.length ? `Replace in ${count(rows.length, "row", "rows")}` : "Replace";
  $("replace-hits").textContent = title;
  const line = (/** @type {Replacement} */ { position, before, after }) =>
    element(
      "li",
      {},
      element("span", { class: "tag" }, `Row ${position + 1} `),
      element("span", { lang: code, dir: direction, class: "quiet" }, ...lostWords(before, after)),
      element("span", { lang: code, dir: direction, class: "replaced" }, ...withNewWords(before, after)),
    );
  const more = rows.length > MOST_LISTED ? [element("li", { class: "quiet" }, `and ${rows.length - MOST_LISTED} more`)] : [];
  $("replace-rows").replaceChildren(...rows.slice(0, MOST_LISTED).map(line), ...more);
  $("replace-rows").hidden = !rows.length;
}

function apply() {
  if (!previewed.length) return;
  return attempt("Nothing was replaced", async () => {
    const seen = previewed.map(({ position, version }) => ({ position, version }));
    const { path } = place;
    const { rows, left } = await ask("POST", `${path}/replace`, { ...asked(), rows: seen, writer: tab, person: person() });
    takeRows([...rows, ...left], path);
    /** @type {HTMLDialogElement} */ ($("replace-dialog")).close();
    const kept = left.length ? ` ${count(left.length, "row", "rows")} changed meanwhile and ${left.length === 1 ? "is" : "are"} left.` : "";
    say(`Replaced in ${count(rows.length, "row", "rows")}.${kept} Ctrl+Z, or Undo, takes it back.`);
  });
}

export function setUpReplacing() {
  const form = $("replace-form");
  form.addEventListener("input", (event) => {
    clearTimeout(timer);
    const typed = event.target === $("replace-text") || event.target === $("replace-by");
    /** @type {HTMLButtonElement} */ ($("replace-apply")).disabled = true; // what is shown is not what would be done
    timer = setTimeout(preview, typed ? PAUSE : 0);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (/** @type {HTMLButtonElement} */ ($("replace-apply")).disabled) preview();
    else apply();
  });
  $("replace-button").addEventListener("click", openReplacing);
}
