/* Context attention of a step of decoding: few queries, each over the sentences of its own document, read where
   projections left them. Words of sentences without weight are not touched. */

#include "kernels.h"
#include <stdlib.h>

enum { SOFT, SPARSE }; /* how weights are normalised */

/* Sentences with words of all documents, those of a document together and in order, D documents.

   first [D + 1]: of each document; of each sentence its position in the document, its row among sentence keys, its
   first word and how many it has; keys of a head have `size` numbers and features of order behind them */
typedef struct {
    int64_t heads, size, sentence_size, word_size, online, sentence_kind, word_kind;
    const int64_t *first, *position, *row, *start, *words;
    const float *sentence_keys, *word_keys, *values;
} Sentences;

INLINE vector load_some(const float *from, int64_t count) {
#if defined(__AVX512F__)
    return (vector)_mm512_maskz_loadu_ps((__mmask16)((1u << count) - 1), from);
#else
    float some[LANES] = {0};
    for (int64_t i = 0; i < count; i++) some[i] = from[i];
    return load(some);
#endif
}

INLINE float any_product(const float *a, const float *b, int64_t size) {
    vector total = all(0);
    int64_t i = 0;
    for (; i + LANES <= size; i += LANES) total += load(a + i) * load(b + i);
    if (i < size) total += load_some(a + i, size - i) * load_some(b + i, size - i);
    return sum(total);
}

/* Scores [count] become weights, times `share`; behind them there is room for LANES more. */
static void normalise(float *scores, int64_t count, int kind, float share) {
    float highest = -INFINITY;
    for (int64_t i = 0; i < count; i++) highest = scores[i] > highest ? scores[i] : highest;
    for (int64_t i = count; i < count + LANES; i++) scores[i] = -INFINITY;
    if (kind == SOFT) {
        vector total = all(0);
        for (int64_t i = 0; i < count; i += LANES) {
            vector part = exponential(load(scores + i) - highest);
            store(scores + i, part);
            total += part;
        }
        share /= sum(total);
        for (int64_t i = 0; i < count; i++) scores[i] *= share;
        return;
    }
    /* What is more than 1 below the highest has no weight; of the rest, those above a threshold that only rises. */
    float threshold = -1.0f;
    for (;;) {
        float total = 0;
        int64_t above = 0;
        for (int64_t i = 0; i < count; i++)
            if (scores[i] - highest > threshold) total += scores[i] - highest, above++;
        float raised = (total - 1.0f) / (float)above;
        if (!(raised > threshold)) break;
        threshold = raised;
    }
    for (int64_t i = 0; i < count; i++) {
        float weight = scores[i] - highest - threshold;
        scores[i] = weight > 0 ? weight * share : 0;
    }
}

/* to [size] += the sum of rows, `step` apart, by their weights */
INLINE void add(const float *weights, const float *values, int64_t count, int64_t step, int64_t size, float *to) {
    int64_t i = 0;
    for (; i + 2 * LANES <= size; i += 2 * LANES) {
        vector one = load(to + i), two = load(to + i + LANES);
        for (int64_t w = 0; w < count; w++) {
            one += weights[w] * load(values + w * step + i);
            two += weights[w] * load(values + w * step + i + LANES);
        }
        store(to + i, one);
        store(to + i + LANES, two);
    }
    for (; i < size; i += LANES) {
        vector one = load(to + i);
        for (int64_t w = 0; w < count; w++) one += weights[w] * load(values + w * step + i);
        store(to + i, one);
    }
}

/* Scores of the words of sentence s */
INLINE void score_words(const Sentences *from, int64_t s, int64_t head, const float *query, float scale, float *scores) {
    int64_t step = from->heads * from->word_size;
    const float *keys = from->word_keys + from->start[s] * step + head * from->word_size;
    for (int64_t w = 0; w < from->words[s]; w++) scores[w] = any_product(query, keys + w * step, from->word_size) * scale;
}

INLINE const float *values_of(const Sentences *from, int64_t s, int64_t head) {
    return from->values + (from->start[s] * from->heads + head) * from->size;
}

/* One head of one query: the sum of what is read is added to `to`; how many sentences have weight. */
static int64_t read_sentences(const Sentences *from, const int64_t *seen, int64_t count, int64_t head,
                              const float *sentence_query, const float *word_query, float scale, float *room,
                              float *to) {
    float *alpha = room, *inside = room + count + LANES;
    int64_t step = from->heads * from->sentence_size, support = 0;
    const float *keys = from->sentence_keys + head * from->sentence_size;
    for (int64_t j = 0; j < count; j++)
        alpha[j] = any_product(sentence_query, keys + from->row[seen[j]] * step, from->sentence_size) * scale;
    normalise(alpha, count, (int)from->sentence_kind, 1);
    for (int64_t j = 0; j < count; j++) {
        if (!(alpha[j] > 0)) continue;
        int64_t s = seen[j], words = from->words[s];
        support++;
        score_words(from, s, head, word_query, scale, inside);
        normalise(inside, words, (int)from->word_kind, alpha[j]);
        add(inside, values_of(from, s, head), words, from->heads * from->size, from->size, to);
    }
    return support;
}

static int64_t read_words(const Sentences *from, const int64_t *seen, int64_t count, int64_t head, const float *query,
                          float scale, float *room, float *to) {
    int64_t words = 0, support = 0;
    for (int64_t j = 0; j < count; j++) {
        score_words(from, seen[j], head, query, scale, room + words);
        words += from->words[seen[j]];
    }
    normalise(room, words, (int)from->word_kind, 1);
    words = 0;
    for (int64_t j = 0; j < count; j++) {
        int64_t s = seen[j], found = 0;
        for (int64_t w = 0; w < from->words[s]; w++) found |= room[words + w] > 0;
        if (found) add(room + words, values_of(from, s, head), from->words[s], from->heads * from->size, from->size, to);
        support += found;
        words += from->words[s];
    }
    return support;
}

/* N queries; document [N] of each, or less than 0, and position [N] of its sentence; sentence_queries [N, H *
   sentence_size] or none: attention over all words at once; word_queries [N, H * word_size] -> out [N, H * size] and
   support [N], the mean number of sentences with weight. */
void read_context(const Sentences *from, int64_t queries, const int64_t *document, const int64_t *position,
                  const float *sentence_queries, const float *word_queries, float *out, float *support, int threads) {
    float scale = 1.0f / sqrtf((float)from->size);
    int64_t width = from->heads * from->size;
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(dynamic, 4)
    for (int64_t n = 0; n < queries; n++) {
        float *to = out + n * width;
        memset(to, 0, (size_t)width * sizeof(float));
        support[n] = 0;
        if (document[n] < 0) continue;
        int64_t begin = from->first[document[n]], end = from->first[document[n] + 1], count = 0, words = 0;
        int64_t *seen = malloc((size_t)(end - begin + 1) * sizeof(int64_t));
        for (int64_t s = begin; s < end; s++) {
            if (from->online ? from->position[s] >= position[n] : from->position[s] == position[n]) continue;
            seen[count++] = s;
            words += from->words[s];
        }
        float *room = malloc((size_t)(count + words + 2 * LANES) * sizeof(float));
        for (int64_t h = 0; count && h < from->heads; h++) {
            const float *word_query = word_queries + (n * from->heads + h) * from->word_size;
            float *part = to + h * from->size;
            int64_t found;
            if (sentence_queries) {
                const float *sentence_query = sentence_queries + (n * from->heads + h) * from->sentence_size;
                found = read_sentences(from, seen, count, h, sentence_query, word_query, scale, room, part);
            } else
                found = read_words(from, seen, count, h, word_query, scale, room, part);
            support[n] += (float)found;
        }
        support[n] /= (float)from->heads;
        free(room);
        free(seen);
    }
}
