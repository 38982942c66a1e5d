/* The table: a row for each sentence. Behind every text field lies its text again: it gives the field its height and
   carries the marks of changed words. In the row under the pointer words are elements, which tell where it is; in all
   others text is text, so that a long document stays light. */

const views = []; // of each row: its elements

function buildTable(rows) {
  views.length = 0;
  const { source, target } = state.languages;
  for (const [name, language] of [["source", source], ["target", target]]) {
    $(`${name}-name`).textContent = language.name;
    $(`${name}-name`).dir = language.direction;
  }
  const fragment = document.createDocumentFragment();
  for (const row of rows) {
    const view = buildRow(row);
    views.push(view);
    fragment.append(view.element);
    showRow(row.position);
  }
  $("rows").replaceChildren(fragment);
}

function buildRow(row) {
  const { source, target } = state.languages;
  const label = `Translation of row ${row.position + 1}`;
  const mirror = element("div", { class: "mirror", "aria-hidden": "true" });
  const field = element("textarea", {
    rows: 1, lang: target.code, dir: target.direction, "aria-label": label, spellcheck: true, "data-position": row.position,
  });
  const before = element("div", { class: "before", hidden: true });
  const text = element("td", { class: "source", lang: source.code, dir: source.direction }, row.source);
  const status = element("span", { class: "state-name" });
  const confirm = element("button", { type: "button", class: "confirm", onclick: () => settleRow(row.position) });
  const element_ = element(
    "tr",
    { "data-position": row.position },
    element("th", { scope: "row", class: "number" }, String(row.position + 1)),
    text,
    element("td", { class: "target" }, element("div", { class: "field", lang: target.code, dir: target.direction }, mirror, field), before),
    element("td", { class: "state" }, status, confirm),
  );
  return { element: element_, source: text, mirror, field, before, status, confirm, split: false };
}

/* Makes the words of a row elements. */
function splitWords(position) {
  const view = views[position];
  if (!view || view.split) return;
  view.split = true;
  view.source.replaceChildren(...wordSpans(state.rows[position].source));
  showMirror(position);
}

/* Text as spans of words with the white space between them. */
function wordSpans(text, marked = new Set()) {
  let word = -1;
  return text.split(/(\s+)/).filter(Boolean).map((piece) => {
    if (/^\s+$/.test(piece)) return piece;
    word += 1;
    return element("span", { class: marked.has(word) ? "w new" : "w", "data-word": word }, piece);
  });
}

/* The same text, with marked words as elements only. */
function markedText(text, marked) {
  const pieces = [];
  for (const piece of marked.size ? wordSpans(text, marked) : [text]) {
    const plain = typeof piece === "string" ? piece : piece.className === "w new" ? null : piece.textContent;
    if (plain === null) pieces.push(piece);
    else if (typeof pieces.at(-1) === "string") pieces.push(pieces.pop() + plain);
    else pieces.push(plain);
  }
  return pieces;
}

/* A row as it is now. What somebody is typing is left alone. */
function showRow(position) {
  const row = state.rows[position];
  const view = views[position];
  const typing = document.activeElement === view.field;
  if (!typing && view.field.value !== row.target) view.field.value = row.target;
  view.element.dataset.state = row.state;
  view.element.toggleAttribute("data-changed", isChanged(row));
  view.status.textContent = { empty: "waiting", draft: "draft", edited: "edited", confirmed: "confirmed" }[row.state];
  view.confirm.disabled = !view.field.value.trim();
  view.confirm.textContent = row.state === "confirmed" ? "Reopen" : "Confirm";
  view.confirm.title = row.state === "confirmed" ? "No longer approved: it leaves the memory" : "Confirm (Ctrl+Enter)";
  showMirror(position);
  showBefore(position);
}

function showMirror(position) {
  const row = state.rows[position];
  const { mirror, field, split } = views[position];
  const marked = isChanged(row) && field.value === row.target ? changedWords(row.before, row.target).added : new Set();
  // The last character keeps the height of a line that is still empty.
  mirror.replaceChildren(...(split ? wordSpans : markedText)(field.value, marked), "\u200b");
}

/* What stood in a changed row before, its lost words struck out, and what can be done about it. */
function showBefore(position) {
  const row = state.rows[position];
  const { before } = views[position];
  before.hidden = !isChanged(row);
  if (before.hidden) return before.replaceChildren();
  const { removed } = changedWords(row.before, row.target);
  const words = removed.size ? lostWords(row.before, removed) : ["without the marked words"];
  const { code, direction } = state.languages.target;
  before.replaceChildren(
    element("p", { class: "before-text" }, element("span", { class: "tag" }, "before "), element("span", { lang: code, dir: direction }, ...words)),
    element("button", { type: "button", class: "small", onclick: () => keepRow(position) }, "Keep as it was"),
    element("button", { type: "button", class: "small", onclick: () => acceptRow(position) }, "Accept"),
  );
}

/* The words of a text that are gone, struck out, each with a word of its surroundings; the rest of the text is left out. */
function lostWords(text, removed) {
  const words = text.split(/\s+/).filter(Boolean);
  const isNear = (index) => [-1, 0, 1].some((step) => removed.has(index + step));
  return words.flatMap((word, index) => {
    if (!isNear(index)) return !index || isNear(index - 1) ? ["… "] : [];
    return [removed.has(index) ? element("del", {}, word) : word, " "];
  });
}

/* Rows that the model has just made, shown together with the next picture of the page. */
const incoming = new Map();
let nextPicture = 0;

function expectRow(row) {
  incoming.set(row.position, row);
  if (!state.loading) nextPicture ||= requestAnimationFrame(showIncoming);
}

function showIncoming() {
  cancelAnimationFrame(nextPicture);
  nextPicture = 0;
  if (state.loading) return;
  const rows = [...incoming.values()];
  incoming.clear();
  if (rows.length) takeRows(rows);
}

/* Rows that came from the server because of us: nothing older may follow them. */
function receiveRows(rows) {
  for (const { position } of rows) incoming.delete(position);
  takeRows(rows, true);
}

function takeRows(rows, own = false) {
  steadily(() => {
    for (const row of rows) takeRow(row, own);
    showCounts();
  });
}

/* Changes the page without moving the text that somebody looks at: the row under the cursor, if it is in view, or else
   the first one that is. Whoever is on the way to a row is left to get there. */
let arrival = 0; // when the page will have scrolled to where it was told to

function steadily(change) {
  if (performance.now() < arrival) return change();
  const covered = $("changes").hidden ? document.querySelector(".bar") : $("changes");
  const top = Math.max(0, covered.getBoundingClientRect().bottom);
  const inView = (element) => element && element.getBoundingClientRect().bottom > top && element.getBoundingClientRect().top < innerHeight;
  const focused = views[state.focus]?.element;
  const fixed = inView(focused) ? focused : document.elementFromPoint($("table").getBoundingClientRect().left + 4, top + 12)?.closest("#rows tr");
  const before = fixed?.getBoundingClientRect().top;
  change();
  const moved = fixed ? fixed.getBoundingClientRect().top - before : 0;
  if (moved) scrollBy({ top: moved, behavior: "instant" });
}

function takeRow(row, own) {
  if (!state.rows[row.position]) return;
  if (!own && unsent.edits[rowPath(row.position)]) return; // older than what is on its way to the server
  const view = views[row.position];
  const typing = document.activeElement === view.field && view.field.value !== state.rows[row.position].target;
  if (typing && !own) return;
  if (own && view.field.value !== row.target && document.activeElement === view.field) row = { ...row, target: view.field.value, state: "edited" };
  state.rows[row.position] = row;
  if (document.activeElement === view.field && !own) view.field.value = row.target;
  showRow(row.position);
}

function showCounts() {
  const rows = state.rows;
  const of = (name) => rows.filter((row) => row.state === name).length;
  const waiting = of("empty");
  const parts = [count(rows.length, "row", "rows"), `${of("confirmed")} confirmed`, `${of("edited")} edited`];
  if (waiting) parts.push(`${waiting} waiting for translation`);
  $("counts").textContent = parts.join(" · ");
  $("progress").hidden = !waiting;
  $("progress").value = rows.length ? 1 - waiting / rows.length : 1;
  showChanges();
}

/* Which words of two texts the other does not have in their place, as sets of indices: the longest common subsequence. */
function changedWords(before, after) {
  const a = before.split(/\s+/).filter(Boolean);
  const b = after.split(/\s+/).filter(Boolean);
  const table = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      table[i][j] = a[i] === b[j] ? table[i + 1][j + 1] + 1 : Math.max(table[i + 1][j], table[i][j + 1]);
    }
  }
  const removed = new Set();
  const added = new Set();
  let i = 0;
  let j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) [i, j] = [i + 1, j + 1];
    else if (j >= b.length || (i < a.length && table[i + 1][j] >= table[i][j + 1])) removed.add(i++);
    else added.add(j++);
  }
  return { removed, added };
}
