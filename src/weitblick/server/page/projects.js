/* Projects and documents: choosing, adding, exporting, importing, deleting. */

async function loadProjects() {
  state.projects = await ask("GET", "/v1/projects");
  if (!state.projects.length) state.projects = [await ask("POST", "/v1/projects", { name: "My project" })];
  const wanted = localStorage.getItem("weitblick.project");
  const chosen = state.projects.find(({ id }) => id === state.project) ?? state.projects.find(({ id }) => id === wanted) ?? state.projects[0];
  state.project = chosen.id;
  $("project-select").replaceChildren(
    ...state.projects.map(({ id, name }) => element("option", { value: id, selected: id === state.project }, name)),
    element("option", { value: "" }, "New project …"),
  );
}

async function openProject(project) {
  state.project = project;
  localStorage.setItem("weitblick.project", project);
  await loadProjects();
  const { documents } = await ask("GET", projectPath());
  $("document-label").hidden = !documents.length;
  $("document-select").replaceChildren(...documents.map(({ id, name }) => element("option", { value: id }, name)));
  const wanted = location.hash.slice(1);
  const chosen = documents.find(({ id }) => id === wanted) ?? documents.at(-1);
  if (chosen) await openDocument(chosen.id);
  else closeDocument();
}

let events = null;

async function openDocument(identity) {
  events?.close();
  incoming.clear();
  state.loading = true;
  left = null;
  state.document = identity;
  history.replaceState(null, "", `#${identity}`);
  $("document-select").value = identity;
  events = new EventSource(`${documentPath()}/events`);
  // Whoever connects, for the first time or again, takes the document as it is; from then on there are news.
  events.addEventListener("hello", () => loadDocument(identity));
  events.addEventListener("segment", (event) => expectRow(JSON.parse(event.data)));
  events.addEventListener("progress", (event) => showProgress(JSON.parse(event.data)));
  events.addEventListener("improving", (event) => showImproving(JSON.parse(event.data)));
}

async function loadDocument(identity) {
  if (state.document !== identity) return;
  state.loading = true;
  const found = await ask("GET", documentPath()).catch((error) => say(`The document cannot be opened: ${error.message}`));
  if (state.document !== identity) return;
  state.loading = false;
  if (!found) return;
  const fresh = state.rows.document !== identity || state.rows.length !== found.rows.length;
  state.rows = Object.assign(found.rows, { document: identity });
  for (const row of state.rows) {
    const edit = unsent.edits[rowPath(row.position)];
    if (edit) Object.assign(row, edit);
  }
  $("welcome").hidden = true;
  $("sheet").hidden = $("export-button").hidden = $("panel").hidden = false;
  $("title").textContent = found.name;
  document.title = `${found.name} · Weitblick`;
  if (fresh) {
    buildTable(state.rows);
    invite();
    $("consistency-count").hidden = true;
  } else state.rows.forEach((row) => showRow(row.position));
  showCounts();
  showIncoming();
  unsent.retry();
}

function closeDocument() {
  events?.close();
  state.document = null;
  state.rows = [];
  left = null;
  $("back-line").hidden = true;
  history.replaceState(null, "", location.pathname);
  document.title = "Weitblick workbench";
  $("welcome").hidden = false;
  $("sheet").hidden = $("export-button").hidden = $("panel").hidden = true;
}

function showProgress({ done, total }) {
  if (done >= total) say("The document is translated.");
}

/* What is open to be seen to counts, as the bar has it. Whoever is in a dialog is told nothing of this. */
function showImproving({ done, total }) {
  showIncoming();
  const changed = changedRows().length;
  if (done >= total) refreshConsistency();
  if (document.querySelector("dialog[open]") || (done < total && !changed)) return;
  say(changed ? `${count(changed, "sentence", "sentences")} changed.` : "No other sentence changed.");
}

/* ---- adding ---- */

/* Whether it is there. */
async function addDocument(body, name) {
  say(`Reading ${name} …`);
  try {
    const added = await ask("POST", `${projectPath()}/documents`, body);
    location.hash = added.id;
    await openProject(state.project);
    say(`${added.name}: ${count(added.rows.length, "sentence", "sentences")}.`);
    return true;
  } catch (error) {
    say(error.message);
    return false;
  }
}

function addFile(file) {
  const form = new FormData();
  form.append("file", file);
  return addDocument(form, file.name);
}

$("file-input").addEventListener("change", (event) => {
  const [file] = event.target.files;
  if (file) addFile(file);
  event.target.value = "";
});
$("paste-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const text = $("paste-text").value;
  if (!text.trim()) return say("There is no text yet.");
  const name = `${text.trim().slice(0, 300).split(/\s+/).slice(0, 5).join(" ").slice(0, 60)}.txt`;
  if (await addDocument({ text, name }, "the text")) $("paste-text").value = "";
});
/* Files only: words are dragged from place to place as anywhere else. */
for (const kind of ["dragenter", "dragover", "dragleave", "drop"]) {
  document.addEventListener(kind, (event) => {
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    document.body.toggleAttribute("data-dragging", kind === "dragenter" || kind === "dragover");
  });
}
document.addEventListener("drop", async (event) => {
  for (const file of event.dataTransfer.files) await addFile(file);
});

let left = null; // the document from which another one is added

$("add-button").addEventListener("click", () => {
  const shown = state.document ?? left;
  const name = $("title").textContent;
  closeDocument();
  left = shown;
  $("back-line").hidden = !left;
  $("back-button").textContent = `Back to ${name}`;
  $("file-input").focus();
});
$("back-button").addEventListener("click", goBack);

/* To the document that was left, if one was. */
function goBack() {
  if (left) openDocument(left);
}

/* ---- choosing ---- */

$("project-select").addEventListener("change", async (event) => {
  if (event.target.value) return openProject(event.target.value);
  const { id } = await ask("POST", "/v1/projects", { name: `Project ${state.projects.length + 1}` });
  await openProject(id);
  showProject();
});
$("document-select").addEventListener("change", (event) => openDocument(event.target.value));

/* ---- exporting ---- */

/* Kind, name, what it is, and what is still missing for it. */
const EXPORTS = [
  ["file", "Translated file", "the file as it came, with the translation in place of its text", () => state.rows.some((row) => row.state === "empty") && "not all rows are translated yet"],
  ["xliff", "XLIFF", "every row and its state, for other translation tools", () => false],
  ["tmx", "TMX", "the confirmed rows, as a translation memory", () => !state.rows.some((row) => row.state === "confirmed") && "no row is confirmed yet"],
  ["jsonl", "JSONL", "every row and its state, for the commands of weitblick", () => false],
];
$("export-button").addEventListener("click", () => {
  const link = ([kind, name, what, missing]) => {
    const reason = missing();
    const named = reason ? element("span", {}, name) : element("a", { href: `${documentPath()}/export/${kind}`, download: "" }, name);
    return element("li", {}, named, element("span", { class: "quiet" }, reason ? `${what}: ${reason}` : what));
  };
  $("export-links").replaceChildren(...EXPORTS.map(link));
  showDialog("export-dialog");
});

function showDialog(name) {
  const status = $(name).querySelector(".dialog-status");
  if (status) status.textContent = "";
  $(name).showModal();
}

/* ---- the project: name, memory, deleting ---- */

async function showProject() {
  const [project, pairs] = await Promise.all([ask("GET", projectPath()), ask("GET", `${projectPath()}/pairs`)]);
  const terms = pairs.filter(({ kind }) => kind === "term");
  const name = element("input", { id: "project-name", value: project.name, maxlength: 200 });
  const rename = element("form", { class: "name-form" }, element("label", { for: "project-name" }, "Name"), name, element("button", { class: "tool" }, "Rename"));
  rename.addEventListener("submit", (event) => {
    event.preventDefault();
    renameProject(name.value);
  });
  const remove = (text, act) => element("button", { type: "button", class: "tool danger", onclick: act }, text);
  const [documents, verb] = project.documents.length === 1 ? ["1 document", "uses"] : [`${project.documents.length} documents`, "share"];
  const memory = `a memory of ${count(pairs.length - terms.length, "approved sentence", "approved sentences")} and ${count(terms.length, "term", "terms")}`;
  $("project-body").replaceChildren(
    rename,
    element("p", { class: "quiet" }, project.documents.length ? `${documents} ${verb} ${memory}.` : `No document yet, ${memory}.`),
    importing("memory", "Memory", "approved translations: TMX, TSV or JSONL"),
    importing("glossary", "Glossary", "terms in two columns: TSV or CSV"),
    ...(terms.length ? [element("ul", { class: "glossary", "aria-label": "Terms", tabindex: 0 }, ...terms.map(termRow))] : []),
    project.confirmed ? element("p", {}, element("a", { href: `${projectPath()}/export/tmx`, download: "" }, "Export everything confirmed as TMX")) : "",
    element(
      "p",
      { class: "dangers" },
      state.document ? remove("Delete this document", () => deleteFor("document", documentPath())) : null,
      remove("Delete the project", () => deleteFor("project", projectPath())),
    ),
  );
  if (!$("project-dialog").open) showDialog("project-dialog");
}

function importing(kind, title, what) {
  const input = element("input", { type: "file", class: "visually-hidden", id: `import-${kind}`, onchange: () => input.files[0] && importPairs(kind, input.files[0]) });
  return element("div", { class: "import" }, element("span", {}, title, element("span", { class: "quiet" }, what)), element("label", { class: "tool", for: `import-${kind}` }, `Import ${title.toLowerCase()} …`), input);
}

function termRow({ id, source, target }) {
  const forget = async () => {
    await ask("DELETE", `${projectPath()}/pairs/${id}`);
    await showProject();
    say(`${source} is no longer a term.`);
  };
  return element(
    "li",
    {},
    element("span", { lang: state.languages.source.code }, source),
    element("span", { lang: state.languages.target.code }, target),
    element("button", { type: "button", class: "small", onclick: forget }, "Remove", element("span", { class: "visually-hidden" }, ` ${source}`)),
  );
}
$("project-button").addEventListener("click", showProject);

async function renameProject(name) {
  if (!name.trim()) return;
  await ask("PUT", projectPath(), { name: name.trim() });
  await loadProjects();
  say("Renamed.");
}

async function importPairs(kind, file) {
  const form = new FormData();
  form.append("file", file);
  form.append("kind", kind);
  try {
    const { pairs } = await ask("POST", `${projectPath()}/pairs`, form);
    await showProject();
    say(`${count(pairs, "pair", "pairs")} imported.`);
  } catch (error) {
    say(error.message);
  }
}

async function deleteFor(what, path) {
  if (!confirm(`Delete this ${what} for good? Its text, translations and edits cannot be brought back.`)) return;
  events?.close();
  await ask("DELETE", path);
  $("project-dialog").close();
  if (what === "project") state.project = null;
  await loadProjects();
  await openProject(state.project);
  say(`The ${what} is deleted.`);
}
