// @ts-check
/* The API reference, drawn from openapi.json. */

import { $, element } from "./elements.js";

/** A schema as a person reads it. @param {any} schema @param {Record<string, any>} all @returns {string} */
function schemaText(schema, all, depth = 0) {
  if (!schema) return "";
  if (schema.$ref) return schemaText(all[schema.$ref.split("/").at(-1)], all, depth);
  if (schema.anyOf) return schema.anyOf.map((/** @type {any} */ one) => schemaText(one, all, depth)).join(" | ");
  if (schema.enum) return schema.enum.map((/** @type {unknown} */ value) => JSON.stringify(value)).join(" | ");
  if (schema.type === "array") return `[${schemaText(schema.items, all, depth)}, ...]`;
  if (schema.type === "object" && schema.properties && depth < 5) {
    const indent = "  ".repeat(depth + 1);
    const lines = Object.entries(/** @type {Record<string, any>} */ (schema.properties)).map(([name, value]) => {
      const optional = schema.required?.includes(name) ? "" : "?";
      const note = value.description ? `   // ${value.description}` : "";
      return `${indent}${name}${optional}: ${schemaText(value, all, depth + 1)}${note}`;
    });
    return `{\n${lines.join("\n")}\n${"  ".repeat(depth)}}`;
  }
  return schema.format === "binary" ? "file" : schema.type ?? "any";
}

/** One method of one path, folded up. @param {string} path @param {string} method @param {any} value @param {Record<string, any>} all */
function operation(path, method, value, all) {
  const bodies = Object.entries(/** @type {Record<string, any>} */ (value.requestBody?.content ?? {}));
  const answer = Object.entries(/** @type {Record<string, any>} */ (value.responses ?? {})).find(([status]) => status.startsWith("2"));
  const shape = answer?.[1].content?.["application/json"]?.schema;
  const parts = bodies.flatMap(([kind, { schema }]) => [element("h3", {}, `Body (${kind})`), element("pre", {}, schemaText(schema, all))]);
  if (answer && shape && schemaText(shape, all) !== "any") parts.push(element("h3", {}, `Answer ${answer[0]}`), element("pre", {}, schemaText(shape, all)));
  return element(
    "details",
    {},
    element("summary", {}, element("span", { class: "method" }, method.toUpperCase()), element("code", {}, path), element("span", { class: "quiet" }, value.summary ?? "")),
    element("div", { class: "inner" }, value.description ? element("p", {}, value.description) : null, ...parts),
  );
}

async function draw() {
  const described = await (await fetch("/openapi.json")).json();
  const all = described.components?.schemas ?? {};
  /** @type {Map<string, HTMLElement[]>} */
  const groups = new Map();
  for (const [path, methods] of Object.entries(/** @type {Record<string, Record<string, any>>} */ (described.paths))) {
    for (const [method, value] of Object.entries(methods)) {
      const tag = value.tags?.[0] ?? "Other";
      groups.set(tag, [...(groups.get(tag) ?? []), operation(path, method, value, all)]);
    }
  }
  $("reference").replaceChildren(...[...groups].flatMap(([tag, operations]) => [element("h2", {}, tag), ...operations]));
}
const dark = matchMedia("(prefers-color-scheme: dark)").matches;
document.documentElement.dataset.theme = dark ? "dark" : "light";
draw().catch(() => {
  $("reference").textContent = "The server does not answer: the reference cannot be drawn. Reload the page when it is back.";
});
