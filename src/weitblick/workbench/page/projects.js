// @ts-check
/* Projects: choosing one, its name, its memory and glossary, deleting. */

import { closeDocument, closeEvents, openDocument } from "./documents.js";
import { $, count, element } from "./elements.js";
import { openDialog } from "./dialogs.js";
import { formalityForm } from "./formality.js";
import { personForm } from "./person.js";
import { checkParts } from "./rules.js";
import { ask, attempt, projectPath } from "./server.js";
import { change, languages, say, state } from "./store.js";
import { loadTermMarks } from "./term_marks.js";

const LATEST = "weitblick.project"; // where the browser remembers the project that was open
export const LATEST_DOCUMENT = "weitblick.document."; // and of each project the document

/** @type {unknown[]} */
let drawnChoice = [];
/** @type {typeof state.details} */
let drawnDetails = null;

/** All projects; there is always one, and one of them is chosen. */
export async function loadProjects() {
  let projects = await ask("GET", "/v1/projects");
  if (!projects.length) projects = [await ask("POST", "/v1/projects", { name: "My project" })];
  change((now) => {
    now.projects = projects;
    const has = (/** @type {string | null} */ id) => projects.some((/** @type {{ id: string }} */ one) => one.id === id);
    const remembered = localStorage.getItem(LATEST);
    if (!has(now.project)) now.project = has(remembered) ? remembered : projects[0].id;
  });
}

/** Opening the project that was chosen last: of two that were chosen, the later is opened, whichever answer comes first.
 * @type {Promise<void>} */
let opening = Promise.resolve();

/** Opens a project, and of its documents this one, or the one in the address, or the one
 * that was open last, or the latest. Until that can be shown, what is shown stays open, and can be worked on.
 * @param {string} project @param {string} [document] */
export function openProject(project, document = location.hash.slice(1)) {
  const own = showProject(project, document, () => opening === own);
  opening = own;
  return own;
}

/** @param {string} project @param {string} document @param {() => boolean} isLatest */
async function showProject(project, document, isLatest) {
  const [projects, { documents }] = await Promise.all([ask("GET", "/v1/projects"), ask("GET", `/v1/projects/${project}`)]);
  if (!isLatest()) return;
  localStorage.setItem(LATEST, project);
  const called = (/** @type {string | null} */ name) => documents.find((/** @type {{ id: string }} */ { id }) => id === name);
  const chosen = called(document) ?? called(localStorage.getItem(LATEST_DOCUMENT + project)) ?? documents.at(-1);
  change((now) => {
    Object.assign(now, { projects, project, documents });
    if (chosen) openDocument(chosen.id);
    else closeDocument();
  });
}

/** The project that is open once the one that was chosen last is, which may be on its way. */
export async function chosenProject() {
  /** @type {Promise<void>} */
  let awaited;
  do {
    awaited = opening;
    await awaited.catch(() => {}); // whoever chose it is told; the one before stays open
  } while (awaited !== opening);
  return /** @type {string} */ (state.project);
}

async function addProject() {
  const { id } = await ask("POST", "/v1/projects", { name: `Project ${state.projects.length + 1}` });
  await openProject(id);
  await showDetails();
}

/* ---- the dialog ---- */

/** Of two that were asked for, the later is shown. */
let latestDetails = 0;

/** The dialog of the project that was chosen, also while that is being opened. */
async function showDetails() {
  const own = ++latestDetails;
  const path = `/v1/projects/${await chosenProject()}`;
  const of = (/** @type {string} */ what) => ask("GET", `${path}${what}`);
  const [project, pairs, ignored, rules] = await Promise.all([of(""), of("/pairs"), of("/ignored"), of("/rules")]);
  if (own !== latestDetails || path !== projectPath()) return;
  change((now) => (now.details = { ...project, pairs, ignored, rules }));
  openDialog("project-dialog");
}

/** @param {string} path @param {string} name */
function renameProject(path, name) {
  if (!name.trim()) return say("A project needs a name.");
  return attempt("The project is not renamed", async () => {
    await ask("PUT", path, { name: name.trim() });
    await loadProjects();
    say("Renamed.");
  });
}

/** @param {string} path of the project @param {"memory" | "glossary"} kind @param {File} file */
function importPairs(path, kind, file) {
  const form = new FormData();
  form.append("file", file);
  form.append("kind", kind);
  return attempt(`${file.name} is not imported`, async () => {
    const { pairs } = await ask("POST", `${path}/pairs`, form);
    await showDetails();
    loadTermMarks();
    say(`${count(pairs, "pair", "pairs")} imported.`);
  });
}

/** @param {string} path of the project @param {import("./store.js").Pair} term */
function removeTerm(path, { id, source }) {
  return attempt(`${source} is not removed`, async () => {
    await ask("DELETE", `${path}/pairs/${id}`);
    await showDetails();
    loadTermMarks();
    say(`${source} is no longer a term.`);
  });
}

/** @param {"document" | "project"} what @param {string} name @param {string} path */
function deleteForGood(what, name, path) {
  if (!confirm(`Delete the ${what} ${name} for good? Its text, translations and edits cannot be brought back.`)) return;
  return attempt(`The ${what} is not deleted`, async () => {
    await ask("DELETE", path);
    closeEvents();
    /** @type {HTMLDialogElement} */ ($("project-dialog")).close();
    change((now) => {
      if (path === projectPath()) now.project = null;
    });
    await loadProjects();
    await openProject(/** @type {string} */ (state.project));
    say(`The ${what} is deleted.`);
  });
}

export function setUpProjects() {
  $("project-select").addEventListener("change", async (event) => {
    const { value } = /** @type {HTMLSelectElement} */ (event.target);
    await attempt("The project cannot be opened", () => (value ? openProject(value) : addProject()));
    change(() => (drawnChoice = [])); // what the select shows is what is open
  });
  $("project-button").addEventListener("click", () => attempt("The project cannot be shown", showDetails));
}

/* ---- drawing ---- */

export function drawProjects() {
  const choice = [state.projects, state.project, state.documents, state.document];
  if (choice.some((value, index) => value !== drawnChoice[index])) {
    drawnChoice = choice;
    $("project-select").replaceChildren(
      ...state.projects.map(({ id, name }) => element("option", { value: id, selected: id === state.project }, name)),
      element("option", { value: "" }, "New project …"),
    );
    $("document-label").hidden = !state.documents.length;
    $("document-select").replaceChildren(
      ...state.documents.map(({ id, name }) => element("option", { value: id, selected: id === state.document }, name)),
    );
  }
  if (state.details && state.details !== drawnDetails) {
    drawnDetails = state.details;
    $("project-body").replaceChildren(...detailParts(state.details));
  }
}

/** @param {import("./store.js").ProjectDetails} project */
function detailParts(project) {
  const { id, name, confirmed, documents, pairs } = project;
  const path = `/v1/projects/${id}`;
  const open = documents.find((one) => one.id === state.document);
  const terms = pairs.filter(({ kind }) => kind === "term");
  const field = /** @type {HTMLInputElement} */ (element("input", { id: "project-name", value: name, maxlength: 200 }));
  const rename = element("form", { class: "name-form" }, element("label", { for: "project-name" }, "Name"), field, element("button", { class: "tool" }, "Rename"));
  rename.addEventListener("submit", (event) => {
    event.preventDefault();
    renameProject(path, field.value);
  });
  const memory = `a memory of ${count(pairs.length - terms.length, "approved sentence", "approved sentences")} and ${count(terms.length, "term", "terms")}`;
  const users = documents.length === 1 ? "1 document uses" : `${documents.length} documents share`;
  const remove = (/** @type {string} */ text, /** @type {() => void} */ act) => element("button", { type: "button", class: "tool danger", onclick: act }, text);
  return [
    rename,
    personForm(),
    formalityForm(project),
    element("p", { class: "quiet" }, documents.length ? `${users} ${memory}.` : `No document yet, ${memory}.`),
    importing(path, "memory", "Memory", "approved translations: TMX, TSV or JSONL"),
    importing(path, "glossary", "Glossary", "terms in two columns: TSV or CSV"),
    ...(terms.length ? [element("ul", { class: "glossary", "aria-label": "Terms", tabindex: 0 }, ...terms.map((term) => termRow(path, term)))] : []),
    ...checkParts(project, showDetails),
    ...(confirmed ? [element("p", {}, element("a", { href: `${path}/export/tmx`, download: "" }, "Export everything confirmed as TMX"))] : []),
    element(
      "p",
      { class: "dangers" },
      open ? remove("Delete this document", () => deleteForGood("document", open.name, `${path}/documents/${open.id}`)) : null,
      remove("Delete the project", () => deleteForGood("project", name, path)),
    ),
  ];
}

/** @param {string} path of the project @param {"memory" | "glossary"} kind @param {string} title @param {string} what */
function importing(path, kind, title, what) {
  const input = /** @type {HTMLInputElement} */ (element("input", { type: "file", class: "visually-hidden", id: `import-${kind}` }));
  input.addEventListener("change", () => input.files?.[0] && importPairs(path, kind, input.files[0]));
  return element("div", { class: "import" }, element("span", {}, title, element("span", { class: "quiet" }, what)), element("label", { class: "tool", for: `import-${kind}` }, `Import ${title.toLowerCase()} …`), input);
}

/** @param {string} path of the project @param {import("./store.js").Pair} term */
function termRow(path, term) {
  const { source, target } = languages();
  return element(
    "li",
    {},
    element("span", { lang: source.code }, term.source),
    element("span", { lang: target.code }, term.target),
    element("button", { type: "button", class: "small", onclick: () => removeTerm(path, term) }, "Remove", element("span", { class: "visually-hidden" }, ` ${term.source}`)),
  );
}
