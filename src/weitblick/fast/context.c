/* Context attention of a step of decoding: few queries, each over the sentences of its own document, read where
   projections left them. Words of sentences without weight are not touched. Softmax over all
   words is in context_words.c. */

#include "context.h"
#include <stdlib.h>

/* Scores [count] become weights, times `share`; behind them there is room for LANES more. */
static void normalise(float *scores, int64_t count, int kind, float share) {
    vector best = all(-INFINITY);
    for (int64_t i = count; i < count + LANES; i++) scores[i] = -INFINITY;
    for (int64_t i = 0; i < count; i += LANES) best = larger(load(scores + i), best);
    float highest = largest(best);
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
    const float *keys = from->word_keys[s] + head * from->word_size;
    for (int64_t w = 0; w < from->words[s]; w++) scores[w] = any_product(query, keys + w * step, from->word_size) * scale;
}

/* Adds the values of sentence s by the weights of its words */
INLINE void add_words(const Sentences *from, int64_t s, int64_t head, const float *weights, float *to) {
    add(weights, from->values[s] + head * from->size, from->words[s], from->heads * from->size, from->size, to);
}

/* Heads `least` to `most` of some queries of one document: over the sentences that each sees, then over the words of
   those with weight. rows [count]: which queries; room: `each` numbers for each head of each query, and once more. */
static void read_sentences(const Sentences *from, int64_t begin, int64_t end, const int64_t *rows, int64_t count,
                           const int64_t *position, int64_t least, int64_t most, const float *sentence_queries,
                           const float *word_queries, float scale, float *room, int64_t each, float *out,
                           float *support) {
    int64_t heads = most - least, size = from->sentence_size, filled[count];
    float *inside = room + count * heads * each;
    memset(filled, 0, sizeof(filled));
    for (int64_t s = begin; s < end; s++)
        for (int64_t q = 0; q < count; q++) {
            if (!is_seen(from, s, position[rows[q]])) continue;
            const float *query = sentence_queries + (rows[q] * from->heads + least) * size;
            const float *key = from->sentence_keys[s] + least * size;
            for (int64_t h = 0; h < heads; h++)
                room[(q * heads + h) * each + filled[q]] = any_product(query + h * size, key + h * size, size) * scale;
            filled[q]++;
        }
    for (int64_t q = 0; q < count; q++)
        for (int64_t h = 0; filled[q] && h < heads; h++) {
            int64_t at = rows[q] * from->heads + least + h;
            float *alpha = room + (q * heads + h) * each;
            normalise(alpha, filled[q], (int)from->sentence_kind, 1);
            for (int64_t s = begin; s < end; s++) {
                if (!is_seen(from, s, position[rows[q]]) || !(*alpha++ > 0)) continue;
                support[at]++;
                score_words(from, s, least + h, word_queries + at * from->word_size, scale, inside);
                normalise(inside, from->words[s], (int)from->word_kind, alpha[-1]);
                add_words(from, s, least + h, inside, out + at * from->size);
            }
        }
}

/* Heads `least` to `most` of some queries of one document over all words that each sees, by sparsemax. Word by word
   with all heads, so that a long document streams through the cache once for all of them. rows [count]: which queries;
   room: `each` numbers for each head of each query. */
static void read_words(const Sentences *from, int64_t begin, int64_t end, const int64_t *rows, int64_t count,
                       const int64_t *position, int64_t least, int64_t most, const float *queries, float scale,
                       float *room, int64_t each, float *out, float *support) {
    int64_t heads = most - least, filled[count], size = from->size;
    memset(filled, 0, sizeof(filled));
    for (int64_t s = begin; s < end; s++)
        for (int64_t q = 0; q < count; q++) {
            if (!is_seen(from, s, position[rows[q]])) continue;
            const float *query = queries + (rows[q] * from->heads + least) * from->word_size;
            const float *key = from->word_keys[s] + least * from->word_size;
            for (int64_t w = 0; w < from->words[s]; w++, key += from->heads * from->word_size)
                for (int64_t h = 0; h < heads; h++)
                    room[(q * heads + h) * each + filled[q] + w] =
                        any_product(query + h * from->word_size, key + h * from->word_size, from->word_size) * scale;
            filled[q] += from->words[s];
        }
    for (int64_t q = 0; q < count; q++) {
        for (int64_t h = 0; filled[q] && h < heads; h++)
            normalise(room + (q * heads + h) * each, filled[q], (int)from->word_kind, 1);
        filled[q] = 0;
    }
    for (int64_t s = begin; s < end; s++)
        for (int64_t q = 0; q < count; q++) {
            if (!is_seen(from, s, position[rows[q]])) continue;
            float *to = out + (rows[q] * from->heads + least) * size;
            const float *value = from->values[s] + least * size;
            int64_t found[heads];
            memset(found, 0, sizeof(found));
            for (int64_t w = 0; w < from->words[s]; w++, value += from->heads * size)
                for (int64_t h = 0; h < heads; h++) {
                    float weight = room[(q * heads + h) * each + filled[q] + w];
                    if (!(weight > 0)) continue;
                    found[h] = 1;
                    for (int64_t i = h * size; i < (h + 1) * size; i += LANES)
                        store(to + i, load(to + i) + weight * load(value + i));
                }
            for (int64_t h = 0; h < heads; h++) support[rows[q] * from->heads + least + h] += (float)found[h];
            filled[q] += from->words[s];
        }
}

/* Queries in groups of the same document: rows of group g stand from group[g] to group[g + 1] in `rows`, and read
   document [g], or none if that is less than 0; position [N] of each query's sentence; sentence_queries [N, H *
   sentence_size] or none: attention over all words at once; word_queries [N, H * word_size] -> out [N, H * size] and
   support [N, H], the sentences with weight. Not 0: memory ran out. */
int read_context(const Sentences *from, int64_t groups, const int64_t *group, const int64_t *rows,
                 const int64_t *document, const int64_t *position, const float *sentence_queries,
                 const float *word_queries, float *out, float *support, int threads) {
    int failed = 0;
    float scale = 1.0f / sqrtf((float)from->size);
    int64_t shares = threads < 1 ? 1 : threads > from->heads ? from->heads : threads; /* heads are shared out, too */
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(dynamic, 1) reduction(| : failed)
    for (int64_t unit = 0; unit < groups * shares; unit++) {
        int64_t g = unit / shares, count = group[g + 1] - group[g];
        int64_t least = unit % shares * from->heads / shares, most = (unit % shares + 1) * from->heads / shares;
        const int64_t *own = rows + group[g];
        for (int64_t q = 0; q < count; q++) {
            int64_t at = own[q] * from->heads + least;
            memset(out + at * from->size, 0, (size_t)((most - least) * from->size) * sizeof(float));
            memset(support + at, 0, (size_t)(most - least) * sizeof(float));
        }
        if (document[g] < 0) continue;
        if (!sentence_queries && from->word_kind == SOFT) {
            failed |= read_words_softly(from, document[g], own, count, position, least, most, word_queries, out,
                                        support);
            continue;
        }
        int64_t begin = from->first[document[g]], end = from->first[document[g] + 1], words = 0, longest = 0;
        for (int64_t s = begin; s < end; s++) {
            words += from->words[s];
            longest = from->words[s] > longest ? from->words[s] : longest;
        }
        int64_t each = (sentence_queries ? end - begin : words) + LANES;
        float *room = malloc((size_t)(count * (most - least) * each + longest + LANES) * sizeof(float));
        if (!room) {
            failed = 1;
            continue;
        }
        if (sentence_queries)
            read_sentences(from, begin, end, own, count, position, least, most, sentence_queries, word_queries, scale,
                           room, each, out, support);
        else
            read_words(from, begin, end, own, count, position, least, most, word_queries, scale, room, each, out,
                       support);
        free(room);
    }
    return failed;
}
