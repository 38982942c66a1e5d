// @ts-check
/* Which rows of a long document are elements of the page: those on the screen and some around them, the one that holds
   the cursor, and one that somebody is on the way to. The others are empty space of about their height. */

import { element } from "./elements.js";

const ALL = 150; // rows of a document that is on the page as a whole
const AROUND = 900; // px above and below the screen in which rows are elements
const MOST = 90; // rows that are elements because of where they are
const GUESS = 60; // px of a row that has never been drawn

/** The heights of rows, measured where they have been drawn. */
export class RowHeights {
  constructor() {
    /** @type {Map<number, number>} */
    this.known = new Map();
    this.sum = 0;
  }

  /** @param {number} position */
  of(position) {
    return this.known.get(position) ?? this.guess;
  }

  get guess() {
    return this.known.size ? this.sum / this.known.size : GUESS;
  }

  /** @param {number} position @param {number} height */
  set(position, height) {
    this.sum += height - (this.known.get(position) ?? 0);
    this.known.set(position, height);
  }
}

/** Whether all of so many rows are on the page. @param {number} count */
export const fitsOnPage = (count) => count <= ALL;

/** The rows that are to be elements, in their order.
 * @param {number[]} listed rows that are shown at all @param {RowHeights} heights
 * @param {number} top where the screen begins, in px below the first row @param {number} size of the screen
 * @param {Set<number>} pinned rows that are there wherever they are */
export function chooseRows(listed, heights, top, size, pinned) {
  if (fitsOnPage(listed.length)) return listed;
  /** @type {number[]} */
  const chosen = [];
  let near = 0;
  let from = 0;
  for (const position of listed) {
    const to = from + heights.of(position);
    const isNear = to > top - AROUND && from < top + size + AROUND && near < MOST;
    near += isNear ? 1 : 0;
    if (isNear || pinned.has(position)) chosen.push(position);
    from = to;
  }
  return chosen;
}

/** What stands in the table: rows, and the heights of the spaces between them.
 * @param {number[]} listed @param {number[]} chosen @param {RowHeights} heights @returns {({ row: number } | { space: number })[]} */
export function withSpaces(listed, chosen, heights) {
  const wanted = new Set(chosen);
  /** @type {({ row: number } | { space: number })[]} */
  const parts = [];
  let space = 0;
  for (const position of listed) {
    if (!wanted.has(position)) {
      space += heights.of(position);
      continue;
    }
    if (space) parts.push({ space });
    space = 0;
    parts.push({ row: position });
  }
  if (space) parts.push({ space });
  return parts;
}

/** Makes a table have these rows and spaces. Rows that stay are not moved, so that a cursor in one stays, too.
 * @param {HTMLElement} body @param {({ row: number } | { space: number })[]} parts @param {(position: number) => HTMLElement} rowOf */
export function fillTable(body, parts, rowOf) {
  const nodes = parts.map((part) => ("row" in part ? rowOf(part.row) : spacer(part.space)));
  const staying = new Set(nodes);
  for (const node of [...body.children]) if (!staying.has(/** @type {HTMLElement} */ (node))) node.remove();
  let place = body.firstElementChild;
  for (const node of nodes) {
    if (node === place) place = place.nextElementSibling;
    else body.insertBefore(node, place);
  }
}

/** @param {number} height */
function spacer(height) {
  const row = element("tr", { class: "spacer", "aria-hidden": "true" }, element("td", { colspan: 4 }));
  row.style.blockSize = `${Math.round(height)}px`;
  return row;
}
