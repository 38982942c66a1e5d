/* The highest of logits, and the sum of their exponentials. */

#pragma once
#include "vectors.h"

/* Of logits [V] the highest, and the sum of e^(logit - highest) */
INLINE float sum_of_exponentials(const float *logits, int64_t words, float *highest) {
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
    return sum(total);
}

/* A word joins the `count` highest, best first, if it is higher than the last; of equal ones the first stay */
INLINE void join_highest(float logit, int64_t word, int64_t count, float *value, int64_t *id) {
    if (!(logit > value[count - 1])) return;
    int64_t place = count - 1;
    for (; place > 0 && logit > value[place - 1]; place--) value[place] = value[place - 1], id[place] = id[place - 1];
    value[place] = logit, id[place] = word;
}

/* So do logits [V] from word `first` on; their ids are counted from `begin` */
INLINE void join_all(const float *row, int64_t words, int64_t first, int64_t begin, int64_t count, float *value,
                     int64_t *id) {
    enum { STRIP = 4 * LANES };
    for (int64_t start = first; start < words; start += STRIP) {
        int64_t end = start + STRIP < words ? start + STRIP : words;
        if (end - start == STRIP) {
            vector most = load(row + start);
            UNROLL for (int j = 1; j < 4; j++) most = larger(most, load(row + start + j * LANES));
            if (!(largest(most) > value[count - 1])) continue;
        }
        for (int64_t i = start; i < end; i++) join_highest(row[i], begin + i, count, value, id);
    }
}

INLINE void none_yet(int64_t count, int64_t first, float *value, int64_t *id) {
    for (int64_t i = 0; i < count; i++) value[i] = -INFINITY, id[i] = first;
}
