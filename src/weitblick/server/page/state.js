/* What the page knows, in one place. */

const state = {
  languages: null,
  projects: [],
  project: null,
  document: null,
  rows: [], // as the server sends them: position, source, target, state, before, cause
  focus: null, // the row under the cursor
};

/* The one status line. */
function say(text) {
  $("announcement").textContent = text;
}

const isChanged = (row) => row.before !== null && row.before !== undefined;
