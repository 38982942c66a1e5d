/* What the page knows, in one place. */

const state = {
  languages: null,
  projects: [],
  project: null,
  document: null,
  rows: [], // as the server sends them: position, source, target, state, before, cause
  focus: null, // the row under the cursor
  loading: false, // whether the document is on its way: news of it wait until it is here
};

/* The one status line. A dialog lies over it, and says it itself. */
function say(text) {
  $("announcement").textContent = text;
  const dialog = document.querySelector("dialog[open] .dialog-status");
  if (dialog) dialog.textContent = text;
}

const isChanged = (row) => row.before !== null && row.before !== undefined;
