/* A step of the pointer to approved translations: `model/pointer.py` defines what is computed here. `pointer.py` beside
   this file calls it. */

#include <stdlib.h>

#include "words.h"

#define TOGETHER 6 /* steps of a sentence that read its keys together: with two vectors each they fill the registers */
#define MOST_HIDDEN 256
#define MOST_FEATURES 32

/* What may be pointed at. Places stand end to end, pair by pair, and every pair is filled up to whole vectors.

   keys [P / LANES, size, LANES] in levels, level [P]: what one is worth, so that keys have length one
   ids, previous, favourite [P] words: there, before it, the model's own wish
   expected [P] the model's log-probability of the word there         inside [P] 1 where it continues a word
   before, same [P] added to a score: always, and where the word before is the one just written
   first [R + 1] of each reader's candidates; of each candidate: start and length of its places, nearness (taken from
   scores), overlap, and own (1: of the reader's document); a place is told as candidate * width + word */
typedef struct {
    int64_t size, width;
    const int8_t *keys;
    const float *level;
    const int32_t *ids, *previous, *favourite;
    const float *expected, *inside, *before, *same;
    const int64_t *first, *start, *length;
    const float *nearness, *overlap, *own;
    float sharpness, selection; /* selection 0: all sentences are chosen */
} Places;

/* Of a step, in this order behind each other: what its places say without the model */
enum { LIKEST, INSIDE, EXPECTED, OVERLAP, OWN_DOCUMENT, NEARNESS, FOLLOWS, BEST_OVERLAP, OF_PLACES };

/* The share's network reads these, in this order */
enum {
    HOW_LIKE, CERTAINTY, HIGHEST, SAID, OWN, AGREES, AGREEING, IN_WORD, EXPECTED_THERE, REFUSED, REFUSED_BEST, WANTED,
    HAS_OF_SOURCE, HAS_MOST, IS_OWN, IS_NEAR, FOLLOWS_ON, FEATURES
};

int64_t pointer_features(void) { return FEATURES; }
int64_t pointer_of_places(void) { return OF_PLACES; }
int64_t pointer_most_hidden(void) { return MOST_HIDDEN; }

INLINE int64_t whole(int64_t count) { return (count + LANES - 1) / LANES * LANES; }

/* LANES levels as numbers */
INLINE vector numbers(const int8_t *from) {
#if defined(__AVX512F__)
    return (vector)_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)from)));
#elif defined(__AVX2__)
    return (vector)_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)from)));
#else
    vector found;
    for (int i = 0; i < LANES; i++) found[i] = from[i];
    return found;
#endif
}

/* Queries [rows, size] times keys [wide, size, LANES] of some levels -> out [rows, wide * LANES], rows `step` apart. Of
   every product the sum is the same whatever is computed beside it. */
INLINE void products(const int rows, const int wide, const float *queries, int64_t size, const int8_t *keys,
                     const float *level, float *out, int64_t step) {
    vector sums[TOGETHER][2];
    UNROLL for (int r = 0; r < rows; r++) sums[r][0] = sums[r][1] = all(0);
    for (int64_t i = 0; i < size; i++)
        UNROLL for (int j = 0; j < wide; j++) {
            const int8_t *from = keys + (j * size + i) * LANES;
            vector some = numbers(from);
            __builtin_prefetch(from + 2 * size * LANES, 0, 2);
            UNROLL for (int r = 0; r < rows; r++) sums[r][j] = fused(all(queries[r * size + i]), some, sums[r][j]);
        }
    UNROLL for (int r = 0; r < rows; r++)
        UNROLL for (int j = 0; j < wide; j++) store(out + r * step + j * LANES, sums[r][j] * load(level + j * LANES));
}

/* Of all `count` places of a pair */
INLINE void of_pair(const int rows, const float *queries, int64_t size, const int8_t *keys, const float *level,
                    int64_t count, float *out, int64_t step) {
    int64_t w = 0;
    for (; w + LANES < count; w += 2 * LANES)
        products(rows, 2, queries, size, keys + w * size, level + w, out + w, step);
    if (w < count) products(rows, 1, queries, size, keys + w * size, level + w, out + w, step);
}

static void similarities(int rows, const float *queries, int64_t size, const int8_t *keys, const float *level,
                         int64_t count, float *out, int64_t step) {
    switch (rows) {
#define CASE(R) \
    case R: of_pair(R, queries, size, keys, level, count, out, step); break;
        CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6)
    }
}

/* Which of `count` sentences have a weight by sparsemax of their best scores */
static void choose(const float *best, int64_t count, float selection, uint8_t *chosen) {
    float top = -INFINITY, tau = -1.0f, z[count];
    for (int64_t c = 0; c < count; c++) top = best[c] * selection > top ? best[c] * selection : top;
    for (int64_t c = 0; c < count; c++) z[c] = best[c] * selection - top;
    for (;;) { /* Michelot: the support shrinks until it stays */
        float total = 0, entries = 0;
        for (int64_t c = 0; c < count; c++)
            if (z[c] > tau) total += z[c], entries++;
        float raised = (total - 1.0f) / (entries > 0 ? entries : 1.0f);
        if (!(raised > tau)) break;
        tau = raised;
    }
    for (int64_t c = 0; c < count; c++) chosen[c] = selection == 0 || z[c] > tau;
}

/* similar (of candidates, each filled up to whole vectors) -> scores, in its place; the best of each
   candidate [count]; gives the greatest similarity, at least 0 */
static float score(const Places *p, int64_t from, int64_t count, int32_t previous, float *similar, float *best) {
    vector likest = all(0);
    for (int64_t c = 0; c < count; c++) {
        int64_t at = p->start[from + c], length = p->length[from + c];
        vector most = all(-INFINITY);
        for (int64_t w = 0; w < length; w += LANES) {
            vector value = load(similar + w);
            likest = larger(likest, value);
            integers goes_on = *(const integers *)(p->previous + at + w) == previous;
            vector added = load(p->before + at + w) + (vector)(goes_on & *(const integers *)(p->same + at + w));
            value = value * p->sharpness + added - p->nearness[from + c];
            store(similar + w, value);
            for (int64_t i = length; i < w + LANES; i++) similar[i] = -INFINITY;
            most = larger(most, load(similar + w));
        }
        best[c] = largest(most);
        similar += whole(length);
    }
    return largest(likest);
}

/* The `most` best places of chosen candidates, best first: value, candidate and word of each; gives how many */
static int64_t best_places(const Places *p, int64_t from, int64_t count, const float *scores, const float *best,
                           const uint8_t *chosen, int64_t most, float *value, int64_t *candidate, int64_t *word) {
    int64_t found = 0;
    for (int64_t c = 0; c < count; scores += whole(p->length[from + c++])) {
        if (!chosen[c] || (found == most && !(best[c] > value[most - 1]))) continue;
        for (int64_t w = 0; w < p->length[from + c]; w++) {
            if (found == most && !(scores[w] > value[most - 1])) continue;
            int64_t place = found < most ? found++ : most - 1;
            for (; place > 0 && scores[w] > value[place - 1]; place--)
                value[place] = value[place - 1], candidate[place] = candidate[place - 1], word[place] = word[place - 1];
            value[place] = scores[w], candidate[place] = c, word[place] = w;
        }
    }
    return found;
}

/* What one step finds, from the similarities of all places of its reader */
static void one_step(const Places *p, int64_t reader, int32_t previous, float *similar, int64_t most, int64_t *words,
                     float *weights, int64_t *places, float *about) {
    int64_t from = p->first[reader], count = p->first[reader + 1] - from;
    float best[count], value[most];
    uint8_t chosen[count];
    int64_t candidate[most], word[most];
    about[LIKEST] = score(p, from, count, previous, similar, best);
    choose(best, count, p->selection, chosen);
    int64_t found = best_places(p, from, count, similar, best, chosen, most, value, candidate, word);
    float total = 0;
    for (int64_t i = 0; i < found; i++) total += weights[i] = expf(value[i] - value[0]);
    for (int64_t i = 0; i < found; i++) {
        int64_t at = p->start[from + candidate[i]] + word[i];
        weights[i] /= total;
        words[i] = p->ids[at], words[most + i] = p->favourite[at];
        places[i] = candidate[i] * p->width + word[i];
        about[EXPECTED] += weights[i] * p->expected[at];
        about[OVERLAP] += weights[i] * p->overlap[from + candidate[i]];
        about[OWN_DOCUMENT] += weights[i] * p->own[from + candidate[i]];
        about[NEARNESS] += weights[i] * p->nearness[from + candidate[i]];
        if (p->previous[at] == previous) about[FOLLOWS] += weights[i];
        if (i == 0) about[INSIDE] = p->inside[at];
    }
    for (int64_t c = from; c < from + count; c++)
        about[BEST_OVERLAP] = p->overlap[c] > about[BEST_OVERLAP] ? p->overlap[c] : about[BEST_OVERLAP];
}

/* Steps that follow each other and have the same reader (-1: none) -> whether memory ran out */
static int some_steps(const Places *p, int rows, const float *queries, int64_t reader, const int64_t *previous,
                      int64_t most, int64_t *words, float *weights, int64_t *places, float *about) {
    memset(words, 0, sizeof(*words) * rows * 2 * most);
    memset(weights, 0, sizeof(*weights) * rows * most);
    memset(places, 0, sizeof(*places) * rows * most);
    memset(about, 0, sizeof(*about) * rows * OF_PLACES);
    if (reader < 0 || p->first[reader] == p->first[reader + 1]) return 0;
    int64_t room = 0, size = p->size;
    for (int64_t c = p->first[reader]; c < p->first[reader + 1]; c++) room += whole(p->length[c]);
    float *similar = malloc(sizeof(float) * room * rows), *own = malloc(sizeof(float) * rows * size);
    if (!similar || !own) {
        free(own), free(similar);
        return 1;
    }
    for (int r = 0; r < rows; r++) {
        float length = sqrtf(product(queries + r * size, queries + r * size, size));
        length = length > 1e-12f ? length : 1e-12f;
        for (int64_t i = 0; i < size; i++) own[r * size + i] = queries[r * size + i] / length;
    }
    float *to = similar;
    for (int64_t c = p->first[reader]; c < p->first[reader + 1]; to += whole(p->length[c++]))
        similarities(rows, own, size, p->keys + p->start[c] * size, p->level + p->start[c], p->length[c], to, room);
    for (int r = 0; r < rows; r++)
        one_step(p, reader, (int32_t)previous[r], similar + r * room, most, words + r * 2 * most, weights + r * most,
                 places + r * most, about + r * OF_PLACES);
    free(own), free(similar);
    return 0;
}

/* Queries [T, size] of any length, readers [T], previous [T] the words just written -> the `most` best places of each
   step: words [T, 2, most] there and the model's wishes there, weights [T, most], places [T, most]; about [T,
   OF_PLACES]. What is missing is 0. Not 0: memory ran out. */
int find_places(const Places *p, const float *queries, const int64_t *readers, const int64_t *previous, int64_t steps,
                int64_t most, int64_t *words, float *weights, int64_t *places, float *about, int threads) {
    int64_t *begin = malloc(sizeof(int64_t) * (steps + 1)), groups = 0;
    int failed = 0;
    if (!begin) return 1;
    for (int64_t t = 0; t < steps; t++)
        if (t == 0 || readers[t] != readers[t - 1] || t - begin[groups - 1] == TOGETHER) begin[groups++] = t;
    begin[groups] = steps;
#pragma omp parallel for schedule(dynamic) num_threads(threads) if (threads > 1 && groups > 3) reduction(| : failed)
    for (int64_t g = 0; g < groups; g++) {
        int64_t t = begin[g];
        failed |= some_steps(p, (int)(begin[g + 1] - t), queries + t * p->size, readers[t], previous + t, most,
                             words + t * 2 * most, weights + t * most, places + t * most, about + t * OF_PLACES);
    }
    free(begin);
    return failed;
}

INLINE float at_least(float x, float least) { return x > least ? x : least; }

/* words, own [2, most]: those of places and the wishes there, and the model's log-probabilities of them; highest: that
   of its best word */
static void features(int64_t most, const int64_t *words, const float *weights, const float *about, const float *own,
                     float highest, float *out) {
    const int64_t *wishes = words + most;
    const float *wanted = own + most;
    int64_t best = 0;
    float said[most], refused = 0, of_best = 0;
    memset(out, 0, sizeof(float) * FEATURES);
    for (int64_t i = 0; i < most; i++) {
        said[i] = 0;
        for (int64_t j = 0; j < most; j++) said[i] += words[j] == words[i] ? weights[j] : 0.0f;
        if (said[i] > said[best]) best = i;
    }
    for (int64_t i = 0; i < most; i++) {
        float again = wishes[i] != words[i] && wanted[i] >= highest - 1e-4f ? weights[i] : 0.0f;
        refused += again;
        of_best += words[i] == words[best] ? again : 0.0f;
        out[CERTAINTY] += weights[i] > 0 ? weights[i] * logf(at_least(said[i], 1e-9f)) : 0.0f;
        out[AGREEING] += own[i] >= highest - 1e-4f ? weights[i] : 0.0f;
        out[WANTED] += weights[i] * at_least(wanted[i], -20.0f) / 5.0f;
    }
    out[HOW_LIKE] = about[LIKEST];
    out[HIGHEST] = highest / 3.0f;
    out[SAID] = said[best];
    out[OWN] = at_least(own[best], -20.0f) / 5.0f;
    out[AGREES] = own[best] >= highest - 1e-4f;
    out[IN_WORD] = about[INSIDE];
    out[EXPECTED_THERE] = at_least(about[EXPECTED], -20.0f) / 5.0f;
    out[REFUSED] = refused;
    out[REFUSED_BEST] = of_best / at_least(said[best], 1e-6f);
    out[HAS_OF_SOURCE] = about[OVERLAP];
    out[HAS_MOST] = about[BEST_OVERLAP];
    out[IS_OWN] = about[OWN_DOCUMENT];
    out[IS_NEAR] = about[NEARNESS];
    out[FOLLOWS_ON] = about[FOLLOWS];
}

INLINE vector hyperbolic_tangent(vector x) {
    integers sign = (integers)x & (int32_t)0x80000000;
    vector size = (vector)((integers)x & 0x7fffffff);
    vector power = exponential(size * -2.0f);
    return (vector)((integers)((1.0f - power) / (1.0f + power)) | sign);
}

/* x [inner] -> out [columns] = tanh(x W' + b), whole vectors of it; turned: W' [inner, columns], filled up */
static void layer(const float *x, int64_t inner, const float *turned, const float *bias, int64_t columns, float *out) {
    for (int64_t c = 0; c < columns; c += LANES) {
        vector total = load(bias + c);
        for (int64_t i = 0; i < inner; i++) total += x[i] * load(turned + i * columns + c);
        store(out + c, hyperbolic_tangent(total));
    }
}

/* The network that decides on the share: FEATURES -> hidden -> hidden -> 1, weights as PyTorch has them */
typedef struct {
    int64_t hidden;
    const float *weight[3], *bias[3];
} Network;

/* As above, and own [T, 2, most], highest [T] -> share [T]; features [T, FEATURES] are kept for whoever asks */
void decide_share(const Network *network, int64_t steps, int64_t most, const int64_t *words, const float *weights,
                  const float *about, const float *own, const float *highest, float *kept, float *share) {
    int64_t hidden = network->hidden, columns = whole(hidden);
    float room[(FEATURES + hidden + 5) * columns];
    float *first = room, *second = first + FEATURES * columns, *biases = second + hidden * columns,
          *out = biases + 2 * columns;
    memset(room, 0, sizeof(room));
    for (int64_t c = 0; c < hidden; c++) {
        for (int64_t i = 0; i < FEATURES; i++) first[i * columns + c] = network->weight[0][c * FEATURES + i];
        for (int64_t i = 0; i < hidden; i++) second[i * columns + c] = network->weight[1][c * hidden + i];
        biases[c] = network->bias[0][c], biases[columns + c] = network->bias[1][c];
    }
    for (int64_t t = 0; t < steps; t++) {
        float *own_features = kept + t * FEATURES;
        features(most, words + t * 2 * most, weights + t * most, about + t * OF_PLACES, own + t * 2 * most, highest[t],
                 own_features);
        layer(own_features, FEATURES, first, biases, columns, out);
        layer(out, hidden, second, biases + columns, columns, out + columns);
        float decision = network->bias[2][0];
        for (int64_t i = 0; i < hidden; i++) decision += out[columns + i] * network->weight[2][i];
        share[t] = weights[t * most] > 0 ? 1.0f / (1.0f + expf(-decision)) : 0.0f;
    }
}

/* The best words of (1 - share) softmax + share * weights of words. Of each row: values and best, log-probabilities of
   the `kept` best of the model, of which the first `wanted` that are not below `barred` count; words, `step` apart, with
   weights and the model's own log-probabilities, rows of n, those below `barred` left out -> log-probabilities and ids [N, count] of the best, best first, and of the word
   `ending` that of the model in `end` [N] becomes that of the mixture */
void mix(int64_t rows, const float *values, const int64_t *best, int64_t kept, int64_t wanted, const float *share,
         const int64_t *words, int64_t step, const float *weights, const float *own, int64_t n, int64_t barred,
         int64_t ending, int64_t count, float *found, int64_t *ids, float *end) {
    for (int64_t m = 0; m < rows; m++) {
        const float *weight = weights + m * n;
        const int64_t *word = words + m * step;
        float *value = found + m * count, of_pointer = share[m], ends = 0, left = log1pf(-of_pointer);
        int64_t *id = ids + m * count;
        none_yet(count, barred, value, id);
        for (int64_t i = 0, counted = 0; i < kept && counted < wanted; i++) {
            int64_t which = best[m * kept + i], known = 0;
            if (which < barred) continue;
            counted++;
            for (int64_t j = 0; j < n; j++) known |= word[j] == which;
            if (!known) join_highest(values[m * kept + i] + left, which, count, value, id);
        }
        for (int64_t i = 0; i < n; i++) {
            int64_t which = word[i], known = 0;
            float said = 0;
            for (int64_t j = 0; j < i; j++) known |= word[j] == which;
            if (known) continue;
            for (int64_t j = i; j < n; j++) said += word[j] == which ? weight[j] : 0.0f;
            if (which == ending) ends = of_pointer * said;
            if (which < barred) continue;
            float both = logf((1 - of_pointer) * expf(own[m * n + i]) + of_pointer * said);
            join_highest(both, which, count, value, id);
        }
        end[m] = logf((1 - of_pointer) * expf(end[m]) + ends);
    }
}
