/* Drafts that changed because something was confirmed: counted, visited, kept or undone. */

const changedRows = () => state.rows.filter(isChanged).map((row) => row.position);

function showChanges() {
  const changed = changedRows().length;
  $("changes").hidden = !changed;
  $("changes-text").textContent = `${count(changed, "sentence", "sentences")} changed`;
}

/* The next changed row after the one that was visited last, or the one before it. */
let visited = null;

function visitChange(step = 1) {
  const changed = changedRows();
  if (!changed.length) return say("No sentence has changed.");
  const from = state.focus ?? visited ?? (step > 0 ? -1 : state.rows.length);
  const later = step > 0 ? changed.find((position) => position > from) : changed.findLast((position) => position < from);
  visited = later ?? (step > 0 ? changed[0] : changed.at(-1));
  const { element: row, before } = views[visited];
  row.scrollIntoView({ block: "center", behavior: calm() ? "auto" : "smooth" });
  before.querySelector("button")?.focus({ preventScroll: true });
  say(`Row ${visited + 1} has changed.`);
}

async function keepRow(position) {
  receiveRow(await ask("POST", `${rowPath(position)}/keep`), true);
  say(`Row ${position + 1} is as it was.`);
}

async function acceptRow(position) {
  receiveRow(await ask("POST", `${rowPath(position)}/accept`), true);
}

async function undoChanges() {
  const rows = await ask("POST", `${documentPath()}/undo`);
  for (const row of rows) receiveRow(row, true);
  say(`${count(rows.length, "sentence is", "sentences are")} as before.`);
}

async function acceptChanges() {
  for (const position of changedRows()) await acceptRow(position);
  say("All changes accepted.");
}

$("changes-next").addEventListener("click", () => visitChange(1));
$("changes-undo").addEventListener("click", undoChanges);
$("changes-accept").addEventListener("click", acceptChanges);
