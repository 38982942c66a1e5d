// @ts-check
/* What the translated file looks like. A page of it is shown in a frame that runs no scripts and can do nothing here;
   subtitles are listed with their times and how fast they have to be read. */

import { openDialog } from "./dialogs.js";
import { $, element } from "./elements.js";
import { sendTyped } from "./editing.js";
import { drafts } from "./saving.js";
import { ask, attempt, documentPath } from "./server.js";
import { languages, say, state } from "./store.js";

/**
 * @typedef {{ begins: number, ends: number, text: string, speed: number | null, too_fast: boolean, too_long: boolean }} Cue
 * @typedef {{ kind: "page" | "subtitles" | "none", notes: string[], reason: string, address: string | null, cues: Cue[] }} Preview
 */

/** Of two previews that were asked for, the later is shown. */
let latest = 0;

/** Opens the preview of the document, as it stands. */
export function openPreview() {
  if (!state.document) return;
  const name = state.documents.find(({ id }) => id === state.document)?.name ?? "";
  const path = `${documentPath()}/preview`;
  const own = ++latest;
  $("preview-title").textContent = `Preview of ${name}`;
  $("preview-body").replaceChildren(element("p", { class: "quiet" }, "The preview is being made …"));
  openDialog("preview-dialog");
  return attempt("There is no preview", async () => {
    sendTyped();
    await drafts.retry();
    /** @type {Preview} */
    const found = await ask("POST", path);
    if (own !== latest) return;
    $("preview-body").replaceChildren(...found.notes.map((note) => element("p", { class: "quiet" }, note)), shown(found, name));
  }).then((done) => {
    if (!done && own === latest) $("preview-body").replaceChildren();
  });
}

/** @param {Preview} found @param {string} name */
function shown({ kind, address, reason, cues }, name) {
  if (kind === "page") return element("iframe", { class: "preview-page", sandbox: "", src: address, title: `${name}, translated` });
  return kind === "subtitles" ? table(cues) : element("p", {}, reason);
}

/** @param {Cue[]} cues */
function table(cues) {
  const { code, direction } = languages().target;
  const head = ["Time", "Text", "Characters a second"].map((name) => element("th", { scope: "col" }, name));
  const line = (/** @type {Cue} */ { begins, ends, text, speed, too_fast: fast, too_long: long }) => {
    const remarks = [fast ? "too fast" : "", long ? "long line" : ""].filter(Boolean).join(", ");
    return element(
      "tr",
      { class: remarks ? "cue-hard" : "" },
      element("td", { class: "cue-time" }, `${clock(begins)} – ${clock(ends)}`),
      element("td", { class: "cue-text", lang: code, dir: direction }, text),
      element("td", { class: "cue-speed" }, speed === null ? "–" : speed.toFixed(1), ...(remarks ? [" ", element("b", {}, remarks)] : [])),
    );
  };
  return element("div", { class: "cues", tabindex: 0, role: "region", "aria-label": "Subtitles" }, element("table", {}, element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...cues.map(line))));
}

/** Seconds as people read them. @param {number} seconds */
function clock(seconds) {
  const rest = Math.abs(seconds);
  const two = (/** @type {number} */ number) => String(Math.floor(number)).padStart(2, "0");
  const hours = rest >= 3600 ? `${Math.floor(rest / 3600)}:` : "";
  return `${seconds < 0 ? "-" : ""}${hours}${two((rest / 60) % 60)}:${(rest % 60).toFixed(1).padStart(4, "0")}`;
}

export function setUpPreviews() {
  $("preview-button").addEventListener("click", openPreview);
  $("preview-dialog").addEventListener("close", () => {
    latest += 1;
    $("preview-body").replaceChildren(); // and whatever it has loaded
    say("");
  });
}
