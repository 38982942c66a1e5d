/* The explanation that is shown, and its attention, unpacked sentence by sentence when it is first asked for. The report
   has one explanation, the workbench another one for each row that is looked at. */

export let data = null;
export let encoder = true;
export let querySide = "source";
export let hasAttention = false;
export let influences = [];
export let influenceAt = new Map();

export function useExplanation(value) {
  data = value;
  encoder = data.model.integration === "encoder";
  querySide = encoder ? "source" : "target";
  hasAttention = data.sentences.some((sentence) => sentence.attention);
  for (const sentence of data.sentences) {
    sentence.target_without ??= sentence.target;
    sentence.context_words ??= sentence.source;
  }
  influences = data.influence;
  influenceAt = new Map(influences.map((entry, rank) => [`${entry.sentence}.${entry.word}`, { ...entry, rank }]));
  unpacked.clear();
}

/* The words of a sentence as one string, as the reader sees them. */
export function plainText(side) {
  const glued = new Set(side.glued);
  return side.text.map((word, index) => (index && !glued.has(index) ? " " : "") + word).join("");
}

/* Target words that read a source word, heaviest first, as [index, weight]. */
function readersOf(sentence, source) {
  const readers = [];
  data.sentences[sentence].alignment.forEach((words, target) => {
    for (const [index, weight] of words) if (index === source) readers.push([target, weight]);
  });
  return readers.sort((a, b) => b[1] - a[1]);
}

/* The words of the other side that belong to this one, heaviest first, as [index, weight]. */
export function alignedWith(side, sentence, word) {
  return side === "target" ? data.sentences[sentence].alignment[word] ?? [] : readersOf(sentence, word);
}

class Attention {
  /* The buffer is laid out as weitblick/explanation/attention.py says. */
  constructor(buffer, queries, heads) {
    let position = 0;
    const take = (kind, count) => {
      const array = new kind(buffer, position, count);
      position += array.byteLength;
      return array;
    };
    const rows = queries * heads;
    const counts = take(Uint32Array, rows);
    this.heads = heads;
    this.attended = take(Uint32Array, rows);
    this.first = Attention.starts(counts);
    const entries = this.first[rows];
    this.sentences = take(Uint32Array, entries);
    this.firstLevel = Attention.starts(take(Uint32Array, entries));
    this.rest = take(Uint16Array, rows);
    this.masses = take(Uint16Array, entries);
    this.peaks = take(Uint16Array, entries);
    this.levels = take(Uint8Array, this.firstLevel[entries]);
  }

  static starts(counts) {
    const starts = new Uint32Array(counts.length + 1);
    for (let index = 0; index < counts.length; index++) starts[index + 1] = starts[index] + counts[index];
    return starts;
  }

  row(query, head) {
    const index = query * this.heads + head;
    const entries = [];
    for (let entry = this.first[index]; entry < this.first[index + 1]; entry++) {
      const levels = this.levels.subarray(this.firstLevel[entry], this.firstLevel[entry + 1]);
      const scale = this.peaks[entry] / 65535 / 255;
      entries.push({
        sentence: this.sentences[entry],
        mass: this.masses[entry] / 65535,
        words: Array.from(levels, (level) => level * scale),
      });
    }
    return { entries, attended: this.attended[index], rest: this.rest[index] / 65535 };
  }

  /* Masses are averaged over heads, word weights by the mass that each head gives to their sentence. */
  average(query) {
    const sums = new Map();
    let attended = 0;
    let rest = 0;
    for (let head = 0; head < this.heads; head++) {
      const row = this.row(query, head);
      attended += row.attended / this.heads;
      rest += row.rest / this.heads;
      for (const { sentence, mass, words } of row.entries) {
        const sum = sums.get(sentence) ?? { sentence, mass: 0, words: words.map(() => 0) };
        sum.mass += mass;
        words.forEach((weight, word) => (sum.words[word] += mass * weight));
        sums.set(sentence, sum);
      }
    }
    const entries = Array.from(sums.values(), ({ sentence, mass, words }) => ({
      sentence,
      mass: mass / this.heads,
      words: words.map((weight) => (mass ? weight / mass : 0)),
    }));
    entries.sort((a, b) => b.mass - a.mass || a.sentence - b.sentence);
    return { entries, attended, rest };
  }
}

const unpacked = new Map();

/* A promise of the attention of one sentence, or of null where it attends to nothing. */
export function attentionOf(sentence) {
  if (!unpacked.has(sentence)) unpacked.set(sentence, unpack(sentence));
  return unpacked.get(sentence);
}

async function unpack(sentence) {
  const packed = data.sentences[sentence].attention;
  if (!packed) return null;
  const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const buffer = await new Response(stream).arrayBuffer();
  return new Attention(buffer, data.sentences[sentence][querySide].text.length, data.model.heads);
}
