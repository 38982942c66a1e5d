/* Attention: of a step of decoding, and inside whole sentences. */

#include "kernels.h"

#define HELD (LANES == 16 ? 4 : 8) /* vectors of sums that hide how long a product takes */

typedef float four __attribute__((vector_size(16), aligned(4), may_alias));

/* The sums of four vectors */
INLINE four four_sums(const vector sums[4]) {
#if defined(__AVX__)
    __m256 half[4];
    UNROLL for (int j = 0; j < 4; j++) {
#if defined(__AVX512F__)
        __m512 x = (__m512)sums[j];
        half[j] = _mm256_add_ps(_mm512_castps512_ps256(x), _mm512_castps512_ps256(_mm512_shuffle_f32x4(x, x, 0xee)));
#else
        half[j] = (__m256)sums[j];
#endif
    }
    __m256 quarter = _mm256_hadd_ps(_mm256_hadd_ps(half[0], half[1]), _mm256_hadd_ps(half[2], half[3]));
    return (four)_mm_add_ps(_mm256_castps256_ps128(quarter), _mm256_extractf128_ps(quarter, 1));
#else
    return (four){sum(sums[0]), sum(sums[1]), sum(sums[2]), sum(sums[3])};
#endif
}

INLINE vector join(const four parts[LANES / 4]) {
#if defined(__AVX512F__)
    __m512 x = _mm512_castps128_ps512((__m128)parts[0]);
    x = _mm512_insertf32x4(x, (__m128)parts[1], 1);
    return (vector)_mm512_insertf32x4(_mm512_insertf32x4(x, (__m128)parts[2], 2), (__m128)parts[3], 3);
#elif defined(__AVX__)
    return (vector)_mm256_set_m128((__m128)parts[1], (__m128)parts[0]);
#else
    return parts[0];
#endif
}

/* What a query reads: `count` cells, of which keys and values, `size` numbers, stand at seen[c] * step; `next` are keys
   that are read soon. Where cells are `far`, outside the caches, memory is asked in time for what comes next. */
typedef struct {
    const float *keys, *values, *next;
    int64_t step, size, count;
    const int32_t *seen;
} Cells;

#define CACHE_LINE 16 /* numbers */

/* The scores of four cells from `c` on, -inf behind the last. Always four are computed, so that each comes out the same
   whichever others are seen. */
INLINE four four_scores(const int far, const float *query, const Cells *cells, int64_t c) {
    int64_t places[4], size = cells->size;
    vector sums[4];
    UNROLL for (int j = 0; j < 4; j++) places[j] = cells->seen[c + j < cells->count ? c + j : c] * cells->step;
    if (far)
        UNROLL for (int j = 0; j < 4; j++)
            for (int64_t i = 0; i < size; i += CACHE_LINE) __builtin_prefetch(cells->values + places[j] + i);
    UNROLL for (int j = 0; j < 4; j++) sums[j] = load(query) * load(cells->keys + places[j]);
    for (int64_t i = LANES; i < size; i += LANES) {
        vector own = load(query + i);
        UNROLL for (int j = 0; j < 4; j++) sums[j] += own * load(cells->keys + places[j] + i);
    }
    four found = four_sums(sums);
    UNROLL for (int j = 1; j < 4; j++) found[j] = c + j < cells->count ? found[j] : -INFINITY;
    return found;
}

/* Scores of all cells, in whole vectors (what is stored in parts and loaded as a whole has to be waited for), filled up
   with -inf; gives the highest. */
INLINE float score(const int far, const float *query, const Cells *cells, float *scores) {
    const float none = -INFINITY, scale = 1.0f / sqrtf((float)cells->size);
    vector highest = all(none);
    for (int64_t c = 0; c < cells->count; c += LANES) {
        four parts[LANES / 4];
        UNROLL for (int j = 0; j < LANES / 4; j++)
            parts[j] = c + 4 * j < cells->count ? four_scores(far, query, cells, c + 4 * j)
                                                : (four){none, none, none, none};
        vector found = join(parts) * scale;
        store(scores + c, found);
        highest = larger(found, highest);
    }
    return largest(highest);
}

/* From number `i` on, `width` vectors of the sum of weighted values, times `share` */
INLINE void some_values(const int far, const int width, const Cells *cells, int64_t i, const float *weights, float share,
                        float *to) {
    vector sums[HELD];
    UNROLL for (int j = 0; j < width; j++) sums[j] = all(0);
    for (int64_t c = 0; c < cells->count; c++) {
        int64_t place = cells->seen[c] * cells->step + i;
        if (far)
            for (int j = 0; j < width * LANES; j += CACHE_LINE) __builtin_prefetch(cells->next + place + j);
        UNROLL for (int j = 0; j < width; j++) sums[j] += weights[c] * load(cells->values + place + j * LANES);
    }
    UNROLL for (int j = 0; j < width; j++) store(to + i + j * LANES, sums[j] * share);
}

INLINE void read_values(const int far, const Cells *cells, const float *weights, float share, float *to) {
    int64_t i = 0, size = cells->size;
    for (; size - i >= HELD * LANES; i += HELD * LANES) some_values(far, HELD, cells, i, weights, share, to);
    for (; size - i >= 4 * LANES; i += 4 * LANES) some_values(far, 4, cells, i, weights, share, to);
    for (; size - i >= 2 * LANES; i += 2 * LANES) some_values(far, 2, cells, i, weights, share, to);
    if (i < size) some_values(far, 1, cells, i, weights, share, to);
}

INLINE void attend_head(const int far, const float *query, const Cells *cells, float *weights, float *to) {
    float highest = score(far, query, cells, weights);
    vector total = all(0);
    for (int64_t c = 0; c < cells->count; c += LANES) {
        vector part = exponential(load(weights + c) - highest);
        store(weights + c, part);
        total += part;
    }
    read_values(far, cells, weights, 1.0f / sum(total), to);
}

/* One position of K hypotheses of each of S sentences, over C cells of its sentence.

   queries: rows `query_step` apart; keys and values of sentence s, cell c, head h at s * step[0] + c * step[1] + h *
   step[2]; bias [S, K, C] or, if `shared`, [S, C], or none: not 0 at cells that are not seen; out [S * K, H * size]. */
void attend(const float *queries, int64_t query_step, const float *keys, const float *values, const int64_t *step,
            const float *bias, int shared, int64_t sentences, int64_t hypotheses, int64_t heads, int64_t size,
            int64_t cells, float *out, int threads) {
    if (sentences * hypotheses * heads * size * cells < WORTH) threads = 1;
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t s = 0; s < sentences; s++) {
        float weights[cells + LANES];
        int32_t seen[cells];
        int64_t count = 0;
        for (int64_t k = 0; k < hypotheses; k++) {
            int64_t row = s * hypotheses + k;
            const float *mask = bias ? bias + (shared ? s : row) * cells : 0;
            if (k == 0 || (mask && !shared)) {
                count = 0;
                for (int64_t c = 0; c < cells; c++)
                    if (!mask || mask[c] == 0) seen[count++] = (int32_t)c;
            }
            for (int64_t h = 0; h < heads; h++) {
                int64_t begin = s * step[0] + h * step[2];
                int64_t next = h + 1 < heads ? begin + step[2] : (s + 1 < sentences ? s + 1 : s) * step[0];
                Cells own = {keys + begin, values + begin, keys + next, step[1], size, count, seen};
                attend_head(1, queries + row * query_step + h * size, &own, weights, out + (row * heads + h) * size);
            }
        }
    }
}

/* One sentence of `words` words; room for keys and values of a head, [words, 2, size], which all of its queries read */
static void attend_sentence(const float *projected, int64_t words, int64_t heads, int64_t size, int causal, float *room,
                            float *out) {
    int64_t d = heads * size;
    float weights[words + LANES];
    int32_t seen[words];
    for (int64_t i = 0; i < words; i++) seen[i] = (int32_t)i;
    for (int64_t h = 0; h < heads; h++) {
        for (int64_t i = 0; i < words; i++)
            for (int part = 0; part < 2; part++)
                memcpy(room + (2 * i + part) * size, projected + i * 3 * d + (part + 1) * d + h * size,
                       sizeof(float) * size);
        for (int64_t i = 0; i < words; i++) {
            Cells own = {room, room + size, room, 2 * size, size, causal ? i + 1 : words, seen};
            attend_head(0, projected + i * 3 * d + h * size, &own, weights, out + i * d + h * size);
        }
    }
}

/* Every word of S sentences reads those of its sentence or, if `causal`, those up to itself: projected [T, 3d] are
   queries, keys and values of all words, sentence s begins at starts[s], the last one ends at starts[S]; room for 2 *
   size numbers of each word -> out [T, d] */
void attend_sentences(const float *projected, const int64_t *starts, int64_t sentences, int64_t heads, int64_t size,
                      int causal, float *room, float *out, int threads) {
    if (starts[sentences] * heads * size < WORTH / 16) threads = 1;
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(dynamic)
    for (int64_t s = 0; s < sentences; s++)
        attend_sentence(projected + starts[s] * 3 * heads * size, starts[s + 1] - starts[s], heads, size, causal,
                        room + starts[s] * 2 * size, out + starts[s] * heads * size);
}
