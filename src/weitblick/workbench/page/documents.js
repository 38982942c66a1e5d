// @ts-check
/* Documents: opening one and hearing its news, adding others, drawing its head. */

import { forgetAlternatives, showAlternatives } from "./alternatives.js";
import { changedRows, drawChanges } from "./changes.js";
import { refreshConsistency } from "./consistency.js";
import { $, count } from "./elements.js";
import { resume } from "./editing.js";
import { forgetWord } from "./explain.js";
import { forgetFind } from "./find.js";
import { drawChosen } from "./row_acts.js";
import { drawRows } from "./rows.js";
import { LATEST_DOCUMENT, chosenProject, openProject } from "./projects.js";
import { drafts, recover, shown, tab, takeRows } from "./saving.js";
import { ask, attempt, documentPath } from "./server.js";
import { change, isApproved, isChanged, say, state, tell, warn } from "./store.js";
import { loadTags } from "./tags.js";
import { loadTermMarks } from "./term_marks.js";
import { drawTerm } from "./terms.js";
import { hear, hearAll } from "./typists.js";

/** @typedef {import("./store.js").Row} Row */

/** @type {EventSource | null} */
let events = null;
/** News that wait for the next picture of the page, or for the document. @type {Map<number, Row>} */
const news = new Map();
let picture = 0;

/** @param {string} identity */
export function openDocument(identity) {
  closeEvents();
  forgetFind();
  change((now) => {
    now.document = identity;
    now.chosen = new Set();
    now.compared = null;
    now.tags = new Map();
    now.terms = new Map();
    now.placed = null;
    now.term = null;
    now.corrected = [];
    now.left = null;
    now.loading = true;
    now.focus = now.visited = now.pointed = null;
    now.typists = new Map();
  });
  history.replaceState(null, "", `#${identity}`);
  localStorage.setItem(LATEST_DOCUMENT + state.project, identity);
  events = new EventSource(`${documentPath()}/events?writer=${tab}`);
  const listen = (/** @type {string} */ kind, /** @type {(data: any) => void} */ act) =>
    events?.addEventListener(kind, (event) => state.document === identity && act(JSON.parse(event.data)));
  // Whoever connects, for the first time or again, takes the document as it is; from then on there are news.
  listen("hello", () => loadDocument(identity));
  listen("segment", expectRow);
  listen("typing", hear);
  listen("refused", tellRefused);
  listen("progress", ({ done, total }) => done >= total && tell("The document is translated."));
  listen("improving", tellImproving);
  events.onerror = () => warn("The server cannot be reached. What you type is kept here until it is back.");
}

/** @param {string} identity */
function loadDocument(identity) {
  change((now) => (now.loading = true));
  return attempt("The document cannot be opened", async () => {
    const found = await ask("GET", documentPath());
    if (state.document !== identity) return;
    const isNew = state.rowsOf !== identity;
    if (isNew) {
      forgetAlternatives();
      forgetWord();
    }
    change((now) => {
      const isSame = now.rowsOf === identity && now.rows.length === found.rows.length;
      now.rows = isSame ? found.rows.map((/** @type {Row} */ row, /** @type {number} */ at) => newer(now.rows[at], row)) : found.rows;
      if (!isSame) {
        now.consistency = { terms: null, failure: "" };
        now.findings = new Map();
      }
      now.rowsOf = identity;
      now.loading = false;
      if (/cannot be reached/.test(now.status)) now.status = "";
    });
    takeNews();
    hearAll(found.typing);
    if (isNew) resume();
    if (isNew) loadTags(identity);
    if (isNew) loadTermMarks();
    await drafts.retry();
    await recover();
  });
}

/** @param {Row} known @param {Row} row */
const newer = (known, row) => (row.version > known.version ? row : known);

export function closeDocument() {
  closeEvents();
  change((now) => {
    now.document = now.left = null;
    now.loading = false;
    now.focus = now.visited = now.pointed = null;
  });
  history.replaceState(null, "", location.pathname);
}

export function closeEvents() {
  events?.close();
  events = null;
  news.clear();
}

/** Rows that the model has just made are shown together, with the next picture of the page. @param {Row} row */
function expectRow(row) {
  tellOthersWork(row);
  news.set(row.position, row);
  if (!state.loading) picture ||= requestAnimationFrame(takeNews);
}

function takeNews() {
  cancelAnimationFrame(picture);
  picture = 0;
  if (state.loading) return;
  const rows = [...news.values()];
  news.clear();
  if (rows.length) takeRows(rows, documentPath());
  const under = rows.find((row) => row.position === state.focus);
  if (under && isChanged(shown(under))) showAlternatives(under.position);
}

/** Says when another window writes the row that holds the cursor, or opens a confirmed one. @param {Row} row */
function tellOthersWork(row) {
  const known = state.rows[row.position];
  if (!known || row.written <= known.written || row.writer === tab || row.writer === null) return;
  if (isApproved(known) && !isApproved(row)) warn(`Row ${row.position + 1} was opened again in another window.`);
  else if (state.focus === row.position && !state.typists.has(row.position)) warn(`Row ${row.position + 1} was written in another window.`);
}

/** Another window had older text for a row, which did not go over what is there. @param {{ position: number, writer: string }} refused */
function tellRefused({ position, writer }) {
  if (writer !== tab) warn(`Row ${position + 1}: another window wants to write it, too. What stands here was left as it is.`);
}

/** Whether drafts that are being improved have changed rows, which may have been settled since. */
let hasChanged = false;

/** What is open to be seen to counts, as the bar has it. Whoever is in a dialog is told nothing of this.
 * @param {{ done: number, total: number }} how */
function tellImproving({ done, total }) {
  takeNews();
  const changed = changedRows().length;
  const settled = hasChanged && !changed;
  hasChanged = done < total && (hasChanged || changed > 0);
  if (done >= total) refreshConsistency();
  if (document.querySelector("dialog[open]") || settled || (done < total && !changed)) return;
  tell(changed ? `${count(changed, "sentence", "sentences")} changed.` : "No other sentence changed.");
}

/* ---- adding ---- */

/** Adds a document to the project that was chosen, also while that is being opened, and shows it.
 * @param {object} body @param {string} name @param {Promise<string>} chosen the project */
function addDocument(body, name, chosen = chosenProject()) {
  say(`Reading ${name} …`);
  return attempt(`${name} is not added`, async () => {
    const project = await chosen;
    const added = await ask("POST", `/v1/projects/${project}/documents`, body);
    await openProject(project, added.id);
    say(`${added.name}: ${count(added.rows.length, "sentence", "sentences")}.`);
    if (added.notes.length) warn(added.notes.join(" "));
  });
}

/** @param {File} file @param {Promise<string>} [chosen] the project */
function addFile(file, chosen) {
  const form = new FormData();
  form.append("file", file);
  return addDocument(form, file.name, chosen);
}

async function addPasted() {
  const field = /** @type {HTMLTextAreaElement} */ ($("paste-text"));
  const text = field.value;
  if (!text.trim()) return say("There is no text yet.");
  const name = `${text.trim().slice(0, 300).split(/\s+/).slice(0, 5).join(" ").slice(0, 60)}.txt`;
  if (await addDocument({ text, name }, "The text")) field.value = "";
}

/** Shows where a document is added; the one that is shown can be gone back to. */
function leaveForAnother() {
  const left = state.document ? { id: state.document, name: documentName() } : state.left;
  closeDocument();
  change((now) => (now.left = left));
  $("file-input").focus();
}

/** To the document that was left, if one was. */
export function goBack() {
  if (state.left) openDocument(state.left.id);
}

const documentName = () => state.documents.find(({ id }) => id === state.document)?.name ?? "";

/** Files only: words are dragged from place to place as anywhere else. @param {DragEvent} event */
const bringsFiles = (event) => event.dataTransfer?.types.includes("Files") ?? false;

export function setUpDocuments() {
  $("document-select").addEventListener("change", (event) => openDocument(/** @type {HTMLSelectElement} */ (event.target).value));
  $("file-input").addEventListener("change", (event) => {
    const input = /** @type {HTMLInputElement} */ (event.target);
    const file = input.files?.[0];
    if (file) addFile(file);
    input.value = "";
  });
  $("paste-form").addEventListener("submit", (event) => {
    event.preventDefault();
    addPasted();
  });
  for (const kind of /** @type {const} */ (["dragenter", "dragover", "dragleave", "drop"])) {
    document.addEventListener(kind, (event) => {
      if (!bringsFiles(event)) return;
      event.preventDefault();
      document.body.toggleAttribute("data-dragging", kind === "dragenter" || kind === "dragover");
    });
  }
  document.addEventListener("drop", async (event) => {
    const [files, chosen] = [[...(event.dataTransfer?.files ?? [])], chosenProject()];
    for (const file of files) await addFile(file, chosen);
  });
  $("add-button").addEventListener("click", leaveForAnother);
  $("back-button").addEventListener("click", goBack);
}

/* ---- drawing ---- */

/** The document, or where one is added. */
export function drawDocument() {
  const isShown = state.document !== null && state.rowsOf === state.document;
  $("welcome").hidden = state.document !== null || state.project === null;
  $("sheet").hidden = $("export-button").hidden = $("preview-button").hidden = $("panel").hidden = !isShown;
  $("back-line").hidden = !state.left;
  $("back-button").textContent = state.left ? `Back to ${state.left.name}` : "";
  document.title = isShown ? `${documentName()} · Weitblick` : "Weitblick workbench";
  if (isShown) drawRows(drawHead);
}

function drawHead() {
  const rows = state.rows.map(shown);
  const of = (/** @type {string} */ name) => rows.filter((row) => row.state === name).length;
  const waiting = of("empty");
  const parts = [count(rows.length, "row", "rows"), `${of("confirmed")} confirmed`, `${of("edited")} edited`];
  if (of("reviewed")) parts.splice(2, 0, `${of("reviewed")} reviewed`);
  if (waiting) parts.push(`${waiting} waiting for translation`);
  $("title").textContent = documentName();
  $("counts").textContent = parts.join(" · ");
  $("progress").hidden = !waiting;
  /** @type {HTMLProgressElement} */ ($("progress")).value = rows.length ? 1 - waiting / rows.length : 1;
  drawChanges();
  drawChosen();
  drawTerm();
}
