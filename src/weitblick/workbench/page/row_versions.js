// @ts-check
/* What a row has been: its draft, what was edited, what a review has changed, as differences with who and when. */

import { openDialog } from "./dialogs.js";
import { focusRow, sendTyped } from "./editing.js";
import { $, element } from "./elements.js";
import { byWhom } from "./person.js";
import { sendRow } from "./saving.js";
import { ask, attempt, here } from "./server.js";
import { languages, say, state } from "./store.js";

/**
 * @typedef {{ kind: "equal" | "added" | "removed", text: string }} Part
 * @typedef {object} Version
 * @property {string} kind
 * @property {string} text
 * @property {import("./store.js").RowState} state
 * @property {string | null} person
 * @property {number | null} time
 * @property {number | null} because
 * @property {Part[]} difference
 */

const KINDS = /** @type {Record<string, string>} */ ({
  draft: "draft",
  model: "changed by the model",
  type: "edited",
  alternative: "another translation taken",
  copy: "source copied",
  clear: "cleared",
  confirm: "confirmed",
  reopen: "opened again",
  review: "reviewed",
  keep: "kept as it was",
  undo: "taken back",
  replace: "words replaced",
  import: "changed in a review",
  format: "formatting placed",
});

/** The row that the dialog is about. */
let about = { position: 0, place: here() };
/** Of several that were asked for the last one is shown. */
let latest = 0;

const againstDraft = () => /** @type {HTMLInputElement} */ ($("versions-draft"));

/** Opens the dialog about a row. @param {number | null} position */
export function openVersions(position) {
  if (position === null || !state.rows[position]) return say("Go to a row first.");
  about = { position, place: here() };
  $("versions-title").textContent = `Changes of row ${position + 1}`;
  $("versions-list").replaceChildren();
  openDialog("versions-dialog");
  show();
}

function show() {
  const { position, place } = about;
  const own = ++latest;
  return attempt("What this row has been cannot be shown", async () => {
    sendTyped();
    if (place.isShown()) await sendRow(position);
    /** @type {Version[]} */
    const versions = await ask("GET", `${place.row(position)}/versions?against=${againstDraft().checked ? "draft" : "before"}`);
    if (own !== latest) return;
    const nothing = element("li", {}, "This row has no translation yet.");
    $("versions-list").replaceChildren(...(versions.length ? versions.map(line) : [nothing]));
  });
}

/** @param {Version} version @param {number} index */
function line({ kind, state: now, text, person, time, because, difference }, index) {
  const { code, direction } = languages().target;
  const reason = because === null ? "" : ` because of row ${because + 1}`;
  const isSame = index > 0 && difference.every((part) => part.kind === "equal");
  const parts = difference.map((part) => (part.kind === "equal" ? part.text : element(part.kind === "added" ? "ins" : "del", {}, part.text)));
  const said = isSame ? element("p", { class: "quiet" }, "the same text") : element("p", { class: "version-text", lang: code, dir: direction }, ...(index ? parts : [text]));
  return element(
    "li",
    { "data-kind": kind },
    element("p", { class: "version-head" }, element("b", {}, `${KINDS[kind] ?? kind}${reason}`), ` ${byWhom(person, time)}`, ...(now === "edited" || now === KINDS[kind] || now === "draft" ? [] : [` · ${now}`])),
    said,
  );
}

export function setUpVersions() {
  againstDraft().addEventListener("change", show);
  $("versions-dialog").addEventListener("close", () => {
    latest += 1;
    if (about.place.isShown() && !$("sheet").hidden) focusRow(about.position);
  });
}
