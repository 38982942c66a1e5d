// @ts-check
/* The start: how the page is drawn, the keys that work everywhere, and what is asked for first. */

import { drawAlternatives } from "./alternatives.js";
import { acceptChange, keepBefore, setUpChanges, settleVisited, visitChange } from "./changes.js";
import { openComment, setUpComments } from "./comments.js";
import { drawCompletion, setUpCompletion, switchCompletion } from "./completion.js";
import { openConcordance, setUpConcordance } from "./concordance.js";
import { drawConsistency, showConsistency } from "./consistency.js";
import { drawStatus, openHelp, setUpDialogs } from "./dialogs.js";
import { drawDocument, goBack, setUpDocuments } from "./documents.js";
import { drawDomain, setUpDomain } from "./domain.js";
import { setUpEditing } from "./editing.js";
import { $ } from "./elements.js";
import { drawWord, setUpExplaining } from "./explain.js";
import { placeNext, placeNone } from "./formats.js";
import { openFind, openGoTo, setUpFind } from "./find.js";
import { setUpPanel, setUpTabs, setUpTheme } from "./panel.js";
import { openPreview, setUpPreviews } from "./previews.js";
import { drawProjects, loadProjects, openProject, setUpProjects } from "./projects.js";
import { openReplacing, setUpReplacing } from "./replacing.js";
import { setUpReviews } from "./reviews.js";
import { actOn, chooseNone, go, setUpRowActs } from "./row_acts.js";
import { openVersions, setUpVersions } from "./row_versions.js";
import { isLong, setUpRows } from "./rows.js";
import { setUpSaving } from "./saving.js";
import { drawSeen, setUpSeen } from "./seen.js";
import { ask, attempt } from "./server.js";
import { setUpStatistics } from "./statistics.js";
import { change, drawWith, state } from "./store.js";
import { insertNext } from "./tags.js";
import { insertNextTerm } from "./term_marks.js";
import { openTerm, setUpTerms } from "./terms.js";

const THEME = "weitblick.theme"; // where the browser remembers the colours

/** Draws the page as it should be now. Each part compares with what it has drawn, and touches only what differs. */
function render() {
  drawWelcome();
  drawProjects();
  drawDocument();
  drawCompletion();
  drawSeen();
  drawDomain();
  drawAlternatives();
  drawWord();
  drawConsistency();
  drawStatus();
}

function drawWelcome() {
  const { languages, fileKinds } = state;
  $("languages").textContent = languages ? `This server translates ${languages.source.name} into ${languages.target.name}.` : "";
  $("file-kinds").textContent = fileKinds.join("  ");
  $("file-input").setAttribute("accept", fileKinds.join(","));
  if (languages) $("paste-text").setAttribute("lang", languages.source.code);
}

/** What keys with Alt do. @type {Record<string, () => void>} */
const ALT = {
  KeyT: openTerm,
  KeyR: () => actOn("review"),
  KeyC: () => openComment(state.focus),
  KeyP: switchCompletion,
  KeyI: insertNext,
  KeyB: placeNext,
  KeyG: insertNextTerm,
  KeyV: openPreview,
  KeyH: () => openVersions(state.focus),
  KeyM: () => change((now) => (now.compared = now.compared === now.focus ? null : now.focus)),
};

/** What a key with Ctrl or Alt does wherever the cursor is. @param {KeyboardEvent} event */
function commandOf(event) {
  if (event.altKey && !event.ctrlKey && event.shiftKey) return event.code === "KeyB" ? placeNone : null;
  if (event.altKey && !event.ctrlKey) return ALT[event.code] ?? null;
  if (!event.ctrlKey && !event.metaKey) return null;
  const key = event.key.toLowerCase();
  if (key === "f" && (event.shiftKey || isLong())) return openFind; // the browser would not find rows that are no elements
  if (key === "k" && !event.shiftKey) return openConcordance;
  if (key === "g" && !event.shiftKey) return openGoTo;
  return key === "h" && !event.shiftKey ? openReplacing : null;
}

/** @param {KeyboardEvent} event */
function actOnKey(event) {
  const inDialog = document.querySelector("dialog[open]") !== null;
  if (event.key === "Escape" && !inDialog && state.chosen.size && !$("sheet").hidden) return chooseNone();
  if (event.key === "Escape" && !inDialog) return goBack();
  const command = commandOf(event);
  if (command && !inDialog && !$("sheet").hidden) {
    event.preventDefault();
    return command();
  }
  const writing = event.target instanceof Element && /^(TEXTAREA|INPUT|SELECT)$/.test(event.target.tagName);
  if (writing || inDialog || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "n") visitChange(1);
  else if (event.key === "p") visitChange(-1);
  else if (event.key === "k") settleVisited(keepBefore);
  else if (event.key === "a") settleVisited(acceptChange);
  else if (event.key === "u") go("undo");
  else if (event.key === "r") go("redo");
  else if (event.key === "?") openHelp();
}

async function start() {
  const [languages, { supportedFilesFormat }] = await Promise.all([ask("GET", "/v1/languages"), ask("GET", "/frontend/settings")]);
  change((now) => Object.assign(now, { languages, fileKinds: supportedFilesFormat }));
  await loadProjects();
  await openProject(/** @type {string} */ (state.project));
}

/* The panel begins where the bar ends, on however many lines that is. */
const bar = /** @type {HTMLElement} */ (document.querySelector(".bar"));
new ResizeObserver(() => document.documentElement.style.setProperty("--bar", `${bar.offsetHeight}px`)).observe(bar);

drawWith(render);
setUpPanel();
setUpTabs(["row", "consistency"], (/** @type {string} */ name) => name === "consistency" && showConsistency());
setUpTheme({
  get theme() {
    return localStorage.getItem(THEME) ?? undefined;
  },
  set theme(value) {
    localStorage.setItem(THEME, value ?? "");
  },
});
setUpSaving();
setUpDialogs();
setUpProjects();
setUpDocuments();
setUpChanges();
setUpRows();
setUpSeen();
setUpDomain();
setUpEditing();
setUpCompletion();
setUpConcordance();
setUpFind();
setUpReplacing();
setUpRowActs();
setUpComments();
setUpReviews();
setUpPreviews();
setUpVersions();
setUpStatistics();
setUpTerms();
setUpExplaining();
document.addEventListener("keydown", actOnKey);
attempt("The workbench cannot start", start);
