// @ts-check
/* Asking the server. Every failure has a message in plain words, and `attempt` shows it. */

import { state, warn } from "./store.js";

export const UNREACHABLE = "the server cannot be reached. Is weitblick serve still running?";

/** The server answered that it will not. `row` is what stands there, when a row was written that has changed. */
export class ServerError extends Error {
  /** @param {number} status @param {string} message @param {import("./store.js").Row | null} row */
  constructor(status, message, row = null) {
    super(message);
    this.status = status;
    this.row = row;
  }

  /** Whether the same request may succeed later. */
  get isPassing() {
    return this.status >= 500 || this.status === 429 || this.status === 408;
  }
}

/** No answer at all. */
export class Unreachable extends Error {
  isPassing = true;

  constructor() {
    super(UNREACHABLE);
  }
}

/** The answer to a request, as the value of its JSON.
 * @param {string} method @param {string} path @param {object} [body]
 * @param {{ signal?: AbortSignal, keepalive?: boolean }} [more]
 * @returns {Promise<any>} */
export async function ask(method, path, body, more = {}) {
  /** @type {RequestInit} */
  const options = { method, ...more };
  if (body instanceof FormData) options.body = body;
  else if (body !== undefined) {
    options.body = JSON.stringify(body);
    options.headers = { "Content-Type": "application/json" };
  }
  let answer;
  let value;
  try {
    answer = await fetch(path, options);
    value = answer.status === 204 ? null : await answer.json().catch(() => undefined);
  } catch (error) {
    if (isAborted(error)) throw error;
    throw new Unreachable();
  }
  if (answer.ok && value !== undefined) return value;
  const message = typeof value?.error === "string" ? value.error : `the server answered ${answer.status}`;
  throw new ServerError(answer.ok ? 502 : answer.status, message, value?.row ?? null);
}

/** @param {unknown} error */
export const isAborted = (error) => error instanceof DOMException && error.name === "AbortError";

/** Why something failed, as a person should read it. @param {unknown} error */
export function reasonOf(error) {
  if (error instanceof ServerError || error instanceof Unreachable) return error.message;
  console.error(error);
  return "this page has made a mistake. Reload it; what you typed is kept";
}

/** Does something that may fail, and says so if it does: "The project was not renamed: the server cannot be reached."
 * Gives whether it succeeded.
 * @param {string} failure what has not happened then @param {() => Promise<unknown>} act */
export async function attempt(failure, act) {
  try {
    await act();
    return true;
  } catch (error) {
    if (!isAborted(error)) warn(`${failure}: ${sentence(reasonOf(error))}`);
    return false;
  }
}

/** @param {string} text */
export const sentence = (text) => (/[.?!]$/.test(text) ? text : `${text}.`);

export const projectPath = () => `/v1/projects/${state.project}`;
export const documentPath = () => `${projectPath()}/documents/${state.document}`;
/** The document that is shown now. Whoever waits for answers about it asks by its `path`, and sees later whether it still
 * `isShown`. */
export function here() {
  const path = documentPath();
  return { path, row: (/** @type {number} */ position) => `${path}/segments/${position}`, isShown: () => path === documentPath() };
}
/** @param {number} position */
export const rowPath = (position) => `${documentPath()}/segments/${position}`;
