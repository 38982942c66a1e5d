// Translates the lines of standard input with Bergamot, the engine of Firefox, compiled to WebAssembly:
//
//     npm install @browsermt/bergamot-translator
//     node bergamot.cjs node_modules/@browsermt/bergamot-translator FOLDER PRECISION [--scores] [--alone] < TEXT
//
// FOLDER holds model.bin, one or two .spm and, if any, lex*.bin. A line of output for each line of input; with --scores it
// is HTML that has the mean log-probability of the pieces of every word; with --alone each line is a batch of its own. The
// processor's seconds of translating go to standard error.
"use strict";
const fs = require("node:fs");
const path = require("node:path");
const vm = require("node:vm");

const [home, folder, precision, ...flags] = process.argv.slice(2);
const scores = flags.includes("--scores");
const alone = flags.includes("--alone");
const worker = path.join(home, "worker");

// The engine asks its host for products of 8-bit matrices; these are its own.
const PRODUCTS = {
  int8_prepare_a: "int8PrepareAFallback",
  int8_prepare_b: "int8PrepareBFallback",
  int8_prepare_b_from_transposed: "int8PrepareBFromTransposedFallback",
  int8_prepare_b_from_quantized_transposed: "int8PrepareBFromQuantizedTransposedFallback",
  int8_prepare_bias: "int8PrepareBiasFallback",
  int8_multiply_and_add_bias: "int8MultiplyAndAddBiasFallback",
  int8_select_columns_of_b: "int8SelectColumnsOfBFallback",
};

const engine = (global.Module = {
  instantiateWasm(imports, accept) {
    const products = Object.entries(PRODUCTS).map(([name, own]) => [name, (...given) => engine.asm[own](...given)]);
    const code = fs.readFileSync(path.join(worker, "bergamot-translator-worker.wasm"));
    WebAssembly.instantiate(code, { ...imports, wasm_gemm: Object.fromEntries(products) })
      .then(({ instance }) => accept(instance))
      .catch((error) => {
        console.error(error);
        process.exit(3);
      });
    return {};
  },
  onRuntimeInitialized: () => translate(),
});
global.self = { location: { href: `file://${worker}/worker.js` } };
global.importScripts = () => {};

function memory(file, alignment) {
  const bytes = fs.readFileSync(path.join(folder, file));
  const found = new engine.AlignedMemory(bytes.length, alignment);
  found.getByteArrayView().set(bytes);
  return found;
}

function translate() {
  const files = fs.readdirSync(folder).sort();
  const vocabularies = new engine.AlignedMemoryList();
  for (const file of files.filter((name) => name.endsWith(".spm"))) vocabularies.push_back(memory(file, 64));
  const lexicon = files.find((name) => name.startsWith("lex"));
  const settings = {
    "beam-size": 1, normalize: 1.0, "word-penalty": 0, "cpu-threads": 0, "gemm-precision": precision,
    "skip-cost": scores ? "false" : "true", alignment: "soft", quiet: "true", "quiet-translation": "true",
    "max-length-break": 128, "max-length-factor": 2.0, "mini-batch-words": 1024, workspace: 128,
    "ssplit-mode": "sentence",
  };
  const config = Object.entries(settings).map(([key, value]) => `${key}: ${value}\n`).join("");
  const shortlist = lexicon ? memory(lexicon, 64) : null;
  const model = new engine.TranslationModel(config, memory("model.bin", 256), shortlist, vocabularies, null);
  const service = new engine.BlockingService({ cacheSize: 0 });
  const lines = fs.readFileSync(0, "utf8").split("\n").slice(0, -1);
  const option = { alignment: scores, html: scores, qualityScores: scores };
  const start = process.cpuUsage();
  const found = [];
  for (const batch of alone ? lines.map((line) => [line]) : [lines]) {
    const texts = new engine.VectorString();
    const options = new engine.VectorResponseOptions();
    for (const line of batch) {
      texts.push_back(line);
      options.push_back(option);
    }
    const answers = service.translate(model, texts, options);
    for (let i = 0; i < batch.length; i++) found.push(answers.get(i).getTranslatedText());
  }
  console.error(`seconds ${process.cpuUsage(start).user / 1e6}`);
  for (const text of found) console.log(text.replaceAll("\n", " ").trimEnd());
}

vm.runInThisContext(fs.readFileSync(path.join(worker, "bergamot-translator-worker.js"), "utf8"));
