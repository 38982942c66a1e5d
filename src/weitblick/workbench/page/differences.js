// @ts-check
/* Which words two texts do not share, and texts as elements of words. */

import { element } from "./elements.js";

/** Which words of two texts the other does not have in their place, as sets of indices: the longest common subsequence.
 * @param {string} before @param {string} after */
export function changedWords(before, after) {
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

/** Text as pieces: words with their index, white space with none. @param {string} text */
export function pieces(text) {
  let word = -1;
  return text.split(/(\s+)/).filter(Boolean).map((piece) => (/^\s+$/.test(piece) ? { piece, word: null } : { piece, word: ++word }));
}

/** Text as spans of words with the white space between them. @param {string} text */
export const wordSpans = (text) =>
  pieces(text).map(({ piece, word }) => (word === null ? piece : element("span", { class: "w" }, piece)));

/** A text in which the words stand out that another does not have. @param {string} other @param {string} text */
export function withNewWords(other, text) {
  const { added } = changedWords(other, text);
  return pieces(text).map(({ piece, word }) => (word !== null && added.has(word) ? element("b", {}, piece) : piece));
}

/** The words of a text that another has lost, struck out, each with its neighbours; the rest of the text is left out.
 * @param {string} text @param {string} other */
export function lostWords(text, other) {
  const { removed } = changedWords(text, other);
  if (!removed.size) return ["without the marked words"];
  const words = text.split(/\s+/).filter(Boolean);
  const isNear = (/** @type {number} */ index) => [-1, 0, 1].some((step) => removed.has(index + step));
  return words.flatMap((word, index) => {
    if (!isNear(index)) return !index || isNear(index - 1) ? ["… "] : [];
    return [removed.has(index) ? element("del", {}, word) : word, " "];
  });
}
