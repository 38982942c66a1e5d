/* The best next words. */

#include "kernels.h"
#include "words.h"

/* The highest of logits [V] and ln sum e^logit */
INLINE float normalise(const float *logits, int64_t words, float *highest) {
    float total = sum_of_exponentials(logits, words, highest);
    return *highest + logf(total);
}

/* logits [M, V] -> highest [M] and normalisers [M] */
void normalisers(const float *logits, int64_t rows, int64_t words, float *highest, float *normaliser, int threads) {
    if (rows * words < WORTH / 8) threads = 1;
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t m = 0; m < rows; m++) normaliser[m] = normalise(logits + m * words, words, highest + m);
}

/* The `count` highest of logits [V] from word `first` on, best first and, of equal ones, the first first */
INLINE void highest_of(const float *row, int64_t words, int64_t first, int64_t count, float *value, int64_t *id) {
    none_yet(count, first, value, id);
    join_all(row, words, first, 0, count, value, id);
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

   never [n]: words that have no part in the distribution; others [o]: words that are not chosen. */
void choose(float *logits, int64_t rows, int64_t words, int64_t first, int64_t count, const int64_t *never, int64_t n,
            const int64_t *others, int64_t o, int64_t end, float *values, int64_t *ids, float *ends, int threads) {
    if (rows * words < WORTH / 8) threads = 1;
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t m = 0; m < rows; m++) {
        float *row = logits + m * words, *value = values + m * count, highest;
        int64_t *id = ids + m * count;
        for (int64_t i = 0; i < n; i++) row[never[i]] = -INFINITY;
        float normaliser = normalise(row, words, &highest);
        for (int64_t i = 0; i < o; i++) row[others[i]] = -INFINITY;
        highest_of(row, words, first, count, value, id);
        for (int64_t i = 0; i < count; i++) value[i] -= normaliser;
        ends[m] = row[end] - normaliser;
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
