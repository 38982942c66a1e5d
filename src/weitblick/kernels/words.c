/* The best next words. */

#include "kernels.h"

/* The highest of logits [V] and ln sum e^logit */
INLINE float normalise(const float *logits, int64_t words, float *highest) {
    vector most = all(-INFINITY);
    int64_t whole = words - words % LANES;
    for (int64_t i = 0; i < whole; i += LANES) most = larger(most, load(logits + i));
    float top = largest(most);
    for (int64_t i = whole; i < words; i++) top = logits[i] > top ? logits[i] : top;
    vector total = all(0);
    for (int64_t i = 0; i < whole; i += LANES) total += exponential(load(logits + i) - top);
    if (whole < words) {
        float rest[LANES];
        for (int64_t i = 0; i < LANES; i++) rest[i] = whole + i < words ? logits[whole + i] : -INFINITY;
        total += exponential(load(rest) - top);
    }
    *highest = top;
    return top + logf(sum(total));
}

/* logits [M, V] -> highest [M] and normalisers [M] */
void normalisers(const float *logits, int64_t rows, int64_t words, float *highest, float *normaliser, int threads) {
    if (rows * words < WORTH / 8) threads = 1;
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t m = 0; m < rows; m++) normaliser[m] = normalise(logits + m * words, words, highest + m);
}

/* The `count` highest of logits [V] from word `first` on, best first and, of equal ones, the first first */
INLINE void highest_of(const float *row, int64_t words, int64_t first, int64_t count, float *value, int64_t *id) {
    enum { STRIP = 4 * LANES };
    for (int64_t i = 0; i < count; i++) value[i] = -INFINITY, id[i] = first;
    for (int64_t start = first; start < words; start += STRIP) {
        int64_t end = start + STRIP < words ? start + STRIP : words;
        if (end - start == STRIP) {
            vector most = load(row + start);
            UNROLL for (int j = 1; j < 4; j++) most = larger(most, load(row + start + j * LANES));
            if (!(largest(most) > value[count - 1])) continue;
        }
        for (int64_t i = start; i < end; i++) {
            if (!(row[i] > value[count - 1])) continue;
            int64_t place = count - 1;
            for (; place > 0 && row[i] > value[place - 1]; place--)
                value[place] = value[place - 1], id[place] = id[place - 1];
            value[place] = row[i], id[place] = i;
        }
    }
}

/* The same of logits [M, V]: values [M, count], ids [M, count] */
void best(const float *logits, int64_t rows, int64_t words, int64_t first, int64_t count, float *values, int64_t *ids,
          int threads) {
    if (rows * words < WORTH / 4) threads = 1;
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t m = 0; m < rows; m++)
        highest_of(logits + m * words, words, first, count, values + m * count, ids + m * count);
}

/* Log-probabilities [M, count] of the best words of logits [M, V], which are overwritten; and those of the word `end`.

   never [n]: words that have no part in the distribution; others [o]: words that are not chosen. With states [M, d] the
   logits are approximate: those of the words chosen, and of `end`, are computed anew, of weight [V, d] and bias [V]. */
void choose(float *logits, int64_t rows, int64_t words, int64_t first, int64_t count, const int64_t *never, int64_t n,
            const int64_t *others, int64_t o, int64_t end, const float *states, int64_t size, const float *weight,
            const float *bias, float *values, int64_t *ids, float *ends, int threads) {
    if (rows * words < WORTH / 8) threads = 1;
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t m = 0; m < rows; m++) {
        float *row = logits + m * words, *value = values + m * count, highest;
        int64_t *id = ids + m * count;
        for (int64_t i = 0; i < n; i++) row[never[i]] = -INFINITY;
        float normaliser = normalise(row, words, &highest);
        for (int64_t i = 0; i < o; i++) row[others[i]] = -INFINITY;
        highest_of(row, words, first, count, value, id);
        const float *state = states ? states + m * size : 0;
        for (int64_t i = 0; i < count; i++) {
            if (state && value[i] > -INFINITY) value[i] = product(state, weight + id[i] * size, size) + bias[id[i]];
            value[i] -= normaliser;
        }
        ends[m] = (state ? product(state, weight + end * size, size) + bias[end] : row[end]) - normaliser;
    }
}

/* scores [M, n] of words ids [M, n] after states [M, d], of weight [V, d] and bias [V] */
void scores(const float *states, int64_t rows, int64_t size, const float *weight, const float *bias, const int64_t *ids,
            int64_t count, float *out) {
    for (int64_t m = 0; m < rows; m++)
        for (int64_t i = 0; i < count; i++) {
            int64_t id = ids[m * count + i];
            out[m * count + i] = product(states + m * size, weight + id * size, size) + bias[id];
        }
}
