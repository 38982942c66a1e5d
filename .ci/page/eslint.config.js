// The scripts of the workbench and of the report: modules for a browser, without globals of their own.
import js from "@eslint/js";
import globals from "globals";

export default [
  js.configs.recommended,
  {
    files: ["**/*.js"],
    languageOptions: { ecmaVersion: 2024, sourceType: "module", globals: globals.browser },
    rules: {
      eqeqeq: "error",
      "no-var": "error",
      "prefer-const": "error",
      "no-undef": "error",
      "no-unused-vars": "error",
      "no-implicit-globals": "error",
      "no-eval": "error",
      "no-implied-eval": "error",
      "no-new-func": "error",
      "no-restricted-properties": [
        "error",
        { property: "innerHTML", message: "Texts become text nodes: see elements.js." },
        { property: "outerHTML", message: "Texts become text nodes: see elements.js." },
        { property: "insertAdjacentHTML", message: "Texts become text nodes: see elements.js." },
      ],
    },
  },
];
