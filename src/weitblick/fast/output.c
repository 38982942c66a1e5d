/* The best next words straight from the output layer: logits are made and read strip by strip, while they are in the
   cache, and never lie in memory all together. */

#include "kernels.h"
#include "words.h"

#define WIDE 512 /* words of a strip, whole panels */

/* What is wanted: the `count` best words of each of M rows but for the first `first`, and what `end` has. Words `never`
   have no part in the distribution, `others` are not chosen. Words `asked` [M, asks] are told as well. With `weight`
   [V, d] the layer is approximate: words that are chosen or asked for, and `end`, are scored anew. */
typedef struct {
    int64_t rows, first, count, end;
    const int64_t *never, *others;
    int64_t nevers, others_count;
    const int64_t *asked;
    int64_t asks;
    const float *weight, *bias;
} Wish;

/* Room, and what is found. Every part of the strips has its logits [M, WIDE], values and ids [M, count]; of every strip
   and row there are the highest logit and the sum of exponentials: a normaliser is the same however many parts. */
typedef struct {
    uint8_t *bytes;
    float *level, *logits, *part_values;
    int64_t *part_ids;
    float *highest, *sums; /* [strips, M] */
    float *values, *ends, *asked; /* log-probabilities; of those asked for [M, asks] */
    int64_t *ids;
} Found;

static void hide(float *row, const int64_t *words, int64_t count, int64_t begin, int64_t wide) {
    for (int64_t i = 0; i < count; i++)
        if (words[i] >= begin && words[i] < begin + wide) row[words[i] - begin] = -INFINITY;
}

static void one_strip(const Linear *layer, const float *x, const Wish *wish, const Found *found, int64_t part,
                      int64_t strip) {
    int64_t begin = strip * WIDE, inner = layer->inner, rows = wish->rows, count = wish->count;
    int64_t wide = layer->columns - begin < WIDE ? layer->columns - begin : WIDE;
    int64_t first = wish->first > begin ? wish->first - begin : 0;
    float *logits = found->logits + part * rows * WIDE;
    if (layer->scale)
        linear_bytes(found->bytes, found->level, rows, inner, (const int8_t *)layer->panels + begin * inner,
                     layer->scale + begin, layer->shift + begin, layer->bias + begin, wide, logits, 0, 1);
    else
        linear(x, rows, inner, (const float *)layer->panels + begin * inner, layer->bias + begin, wide, logits, 0, 1);
    for (int64_t m = 0; m < rows; m++) {
        float *row = logits + m * wide, *sum = found->sums + strip * rows + m;
        float *highest = found->highest + strip * rows + m;
        hide(row, wish->never, wish->nevers, begin, wide);
        if (wish->end >= begin && wish->end < begin + wide) found->ends[m] = row[wish->end - begin];
        for (int64_t i = m * wish->asks; i < (m + 1) * wish->asks; i++)
            if (wish->asked[i] >= begin && wish->asked[i] < begin + wide) found->asked[i] = row[wish->asked[i] - begin];
        *sum = sum_of_exponentials(row, wide, highest);
        if (*highest == -INFINITY) *sum = 0;
        hide(row, wish->others, wish->others_count, begin, wide);
        int64_t place = (part * rows + m) * count;
        join_all(row, wide, first, begin, count, found->part_values + place, found->part_ids + place);
    }
}

INLINE float scored_anew(const Wish *wish, const float *state, int64_t word, int64_t d) {
    return product(state, wish->weight + word * d, d) + wish->bias[word];
}

/* The parts of row m together */
static void finish(const Linear *layer, const float *x, const Wish *wish, const Found *found, int64_t parts, int64_t m) {
    int64_t strips = (layer->columns + WIDE - 1) / WIDE, rows = wish->rows, count = wish->count, d = layer->inner;
    float *value = found->values + m * count, top = -INFINITY, total = 0;
    int64_t *id = found->ids + m * count;
    for (int64_t s = 0; s < strips; s++) {
        float highest = found->highest[s * rows + m];
        top = highest > top || highest != highest ? highest : top;
    }
    for (int64_t s = 0; s < strips; s++) {
        float sum = found->sums[s * rows + m];
        if (sum != 0) total += sum * expf(found->highest[s * rows + m] - top);
    }
    float normaliser = top + logf(total);
    none_yet(count, wish->first, value, id);
    for (int64_t p = 0; p < parts; p++)
        for (int64_t i = 0, at = (p * rows + m) * count; i < count; i++)
            join_highest(found->part_values[at + i], found->part_ids[at + i], count, value, id);
    for (int64_t i = 0; i < count; i++) {
        if (wish->weight && value[i] > -INFINITY) value[i] = scored_anew(wish, x + m * d, id[i], d);
        value[i] -= normaliser;
    }
    for (int64_t i = m * wish->asks; i < (m + 1) * wish->asks; i++) {
        if (wish->weight) found->asked[i] = scored_anew(wish, x + m * d, wish->asked[i], d);
        found->asked[i] -= normaliser;
    }
    if (wish->weight) found->ends[m] = scored_anew(wish, x + m * d, wish->end, d);
    found->ends[m] -= normaliser;
}

int64_t strip_width(void) { return WIDE; }

/* x [M, d]; `parts` of the strips have room, and are shared out among threads */
void choose_of_layer(const Linear *layer, const float *x, const Wish *wish, const Found *found, int64_t parts) {
    int64_t strips = (layer->columns + WIDE - 1) / WIDE, rows = wish->rows;
    if (layer->scale) quantize(x, rows, layer->inner, (int)layer->zero, found->bytes, found->level);
    for (int64_t i = 0; i < parts * rows; i++)
        none_yet(wish->count, wish->first, found->part_values + i * wish->count, found->part_ids + i * wish->count);
#pragma omp parallel for num_threads((int)parts) if (parts > 1)
    for (int64_t p = 0; p < parts; p++)
        for (int64_t s = strips * p / parts; s < strips * (p + 1) / parts; s++)
            one_strip(layer, x, wish, found, p, s);
    for (int64_t m = 0; m < rows; m++) finish(layer, x, wish, found, parts, m);
}
