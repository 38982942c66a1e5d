/* What a step of decoding does to a few rows of numbers, for one processor: `build.py` builds it, `library.py` calls it.

   Sums run over the same terms in the same order whatever else is in a batch: a row comes out the same to the last bit
   alone and among others. Vectors are those of GCC and Clang, as wide as the processor has them. */

#include <math.h>
#include <stdint.h>
#include <string.h>
#ifdef __AVX__
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
#define LANES 16
#define ROWS 12 /* rows of a block: with two vectors each they fill the registers */
#elif defined(__AVX__)
#define LANES 8
#define ROWS 6
#else
#define LANES 4
#define ROWS 6
#endif
#define PANEL (2 * LANES) /* output columns that lie together in packed weights */
#define TALL 96           /* rows of an input that stay in the cache while all weights pass by */
#define WORTH 2000000     /* multiplications from which a second thread pays */
#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 16")

typedef float vector __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef int32_t integers __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

INLINE vector load(const float *from) { return *(const vector *)from; }
INLINE void store(float *to, vector x) { *(vector *)to = x; }
INLINE vector all(float x) { return x - (vector){0}; }
/* b where either is not a number: what is not stays so, if it comes second */
INLINE vector larger(vector a, vector b) {
#if defined(__AVX512F__)
    return (vector)_mm512_max_ps((__m512)a, (__m512)b);
#elif defined(__AVX__)
    return (vector)_mm256_max_ps((__m256)a, (__m256)b);
#else
    integers which = a > b;
    return (vector)(((integers)a & which) | ((integers)b & ~which));
#endif
}

INLINE float sum(vector x) {
#if defined(__AVX512F__)
    return _mm512_reduce_add_ps((__m512)x);
#elif defined(__AVX__)
    __m128 half = _mm_add_ps(_mm256_castps256_ps128((__m256)x), _mm256_extractf128_ps((__m256)x, 1));
    half = _mm_add_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_add_ss(half, _mm_movehdup_ps(half)));
#else
    return (x[0] + x[2]) + (x[1] + x[3]);
#endif
}

INLINE float largest(vector x) {
    float found = x[0];
    UNROLL for (int i = 1; i < LANES; i++) found = x[i] > found ? x[i] : found;
    return found;
}

/* e^x for x <= 0, to about two units in the last place: 2^n e^r with r between -ln(2)/2 and ln(2)/2. */
INLINE vector exponential(vector x) {
    const vector least = all(-87.0f);
    integers tiny = x < least;
    x = larger(least, x);
    vector n = x * 1.44269504f + 12582912.0f; /* rounds to the nearest integer, which the last bits then hold */
    integers power = (integers)n;
    n -= 12582912.0f;
    vector r = x - n * 0.693359375f + n * 2.12194440e-4f;
    vector p = all(1.9875691500e-4f);
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    integers bits = (integers)p + (power << 23);
    return (vector)(bits & ~tiny);
}

int64_t panel_width(void) { return PANEL; }
int64_t lanes(void) { return LANES; }

/* weight [N, K] -> panels [N / PANEL][K][PANEL], filled up with zeros */
void pack(const float *weight, int64_t columns, int64_t inner, float *packed) {
    for (int64_t first = 0; first < columns; first += PANEL, packed += inner * PANEL)
        for (int64_t k = 0; k < inner; k++)
            for (int64_t n = 0; n < PANEL; n++)
                packed[k * PANEL + n] = first + n < columns ? weight[(first + n) * inner + k] : 0.0f;
}

INLINE void put(float *to, vector x, int64_t left) {
    if (left >= LANES) {
        store(to, x);
    } else if (left > 0) {
        for (int64_t i = 0; i < left; i++) to[i] = x[i];
    }
}

INLINE void block(const int rows, const float *x, int64_t inner, const float *panel, const float *bias, float *out,
                  int64_t columns, int64_t left, int rectified) {
    vector sums[ROWS][2];
    UNROLL for (int r = 0; r < rows; r++) sums[r][0] = sums[r][1] = all(0);
    for (int64_t k = 0; k < inner; k++) {
        vector first = load(panel + k * PANEL), second = load(panel + k * PANEL + LANES);
        UNROLL for (int r = 0; r < rows; r++) {
            float factor = x[r * inner + k];
            sums[r][0] += factor * first;
            sums[r][1] += factor * second;
        }
    }
    float biases[PANEL] = {0};
    if (bias) memcpy(biases, bias, sizeof(float) * (left < PANEL ? left : PANEL));
    UNROLL for (int r = 0; r < rows; r++) {
        vector first = sums[r][0] + load(biases), second = sums[r][1] + load(biases + LANES);
        if (rectified) first = larger(all(0), first), second = larger(all(0), second);
        put(out + r * columns, first, left);
        put(out + r * columns + LANES, second, left - LANES);
    }
}

INLINE void some_rows(int rows, const float *x, int64_t inner, const float *panel, const float *bias, float *out,
                      int64_t columns, int64_t left, int rectified) {
    switch (rows) {
#define CASE(R) \
    case R: block(R, x, inner, panel, bias, out, columns, left, rectified); break;
        CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6)
#if ROWS > 6
        CASE(7) CASE(8) CASE(9) CASE(10) CASE(11) CASE(12)
#endif
    }
}

/* x [M, K], packed weights of N columns, bias [N] or none -> out [M, N] */
void linear(const float *x, int64_t rows, int64_t inner, const float *packed, const float *bias, int64_t columns,
            float *out, int rectified, int threads) {
    int64_t panels = (columns + PANEL - 1) / PANEL;
    if (rows * inner * columns < WORTH) threads = 1;
    for (int64_t top = 0; top < rows; top += TALL) {
        int64_t tall = rows - top < TALL ? rows - top : TALL;
        int64_t blocks = (tall + ROWS - 1) / ROWS;
#pragma omp parallel for num_threads(threads) if (threads > 1)
        for (int64_t p = 0; p < panels; p++)
            for (int64_t b = 0; b < blocks; b++) {
                int64_t start = top + tall * b / blocks, end = top + tall * (b + 1) / blocks; /* blocks of like size */
                some_rows((int)(end - start), x + start * inner, inner, packed + p * inner * PANEL,
                          bias ? bias + p * PANEL : 0, out + start * columns + p * PANEL, columns, columns - p * PANEL,
                          rectified);
            }
    }
}

/* LayerNorm of x + change [M, d] (change may be none); with `kept`, x + change is put there */
void add_norm(const float *x, const float *change, const float *weight, const float *bias, float epsilon, int64_t rows,
              int64_t size, float *kept, float *out) {
    for (int64_t m = 0; m < rows; m++) {
        const float *row = x + m * size, *more = change ? change + m * size : 0;
        float *to = out + m * size, *before = kept ? kept + m * size : to;
        vector total = all(0);
        for (int64_t i = 0; i < size; i += LANES) {
            vector value = load(row + i);
            if (more) value += load(more + i);
            store(before + i, value);
            total += value;
        }
        float mean = sum(total) / size;
        vector squares = all(0);
        for (int64_t i = 0; i < size; i += LANES) {
            vector apart = load(before + i) - mean;
            squares += apart * apart;
        }
        float scale = 1.0f / sqrtf(sum(squares) / size + epsilon);
        for (int64_t i = 0; i < size; i += LANES)
            store(to + i, (load(before + i) - mean) * scale * load(weight + i) + load(bias + i));
    }
}

INLINE float product(const float *a, const float *b, int64_t size) {
    vector total = load(a) * load(b);
    for (int64_t i = LANES; i < size; i += LANES) total += load(a + i) * load(b + i);
    return sum(total);
}

/* One position of K hypotheses of each of S sentences, over C cells of its sentence.

   queries: rows `query_step` apart; keys and values of sentence s, cell c, head h at s * step[0] + c * step[1] + h *
   step[2]; bias [S, K, C] or, if `shared`, [S, C], or none: not 0 at cells that are not seen; out [S * K, H * size]. */
void attend(const float *queries, int64_t query_step, const float *keys, const float *values, const int64_t *step,
            const float *bias, int shared, int64_t sentences, int64_t hypotheses, int64_t heads, int64_t size,
            int64_t cells, float *out, int threads) {
    float scale = 1.0f / sqrtf((float)size);
    if (sentences * hypotheses * heads * size * cells < WORTH) threads = 1;
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t s = 0; s < sentences; s++) {
        float weights[cells + LANES];
        int32_t seen[cells];
        for (int64_t k = 0; k < hypotheses; k++) {
            int64_t row = s * hypotheses + k, count = 0;
            const float *mask = bias ? bias + (shared ? s : row) * cells : 0;
            for (int64_t c = 0; c < cells; c++)
                if (!mask || mask[c] == 0) seen[count++] = (int32_t)c;
            for (int64_t h = 0; h < heads; h++) {
                const float *query = queries + row * query_step + h * size;
                const float *key = keys + s * step[0] + h * step[2], *value = values + s * step[0] + h * step[2];
                float highest = -INFINITY;
                vector total = all(0);
                for (int64_t c = 0; c < count; c++) {
                    weights[c] = product(query, key + seen[c] * step[1], size) * scale;
                    highest = weights[c] > highest ? weights[c] : highest;
                }
                for (int64_t c = count; c < count + LANES; c++) weights[c] = -INFINITY;
                for (int64_t c = 0; c < count; c += LANES) {
                    vector part = exponential(load(weights + c) - highest);
                    store(weights + c, part);
                    total += part;
                }
                float *to = out + (row * heads + h) * size;
                float share = 1.0f / sum(total);
                for (int64_t i = 0; i < size; i += 4 * LANES) {
                    /* at most four vectors of a head at a time stay in registers */
                    vector sums[4] = {all(0), all(0), all(0), all(0)};
                    int64_t left = (size - i) / LANES;
                    if (left >= 4) {
                        for (int64_t c = 0; c < count; c++) {
                            const float *from = value + seen[c] * step[1] + i;
                            UNROLL for (int j = 0; j < 4; j++) sums[j] += weights[c] * load(from + j * LANES);
                        }
                        UNROLL for (int j = 0; j < 4; j++) store(to + i + j * LANES, sums[j] * share);
                    } else {
                        for (int64_t j = 0; j < left; j++) {
                            vector one = all(0);
                            for (int64_t c = 0; c < count; c++)
                                one += weights[c] * load(value + seen[c] * step[1] + i + j * LANES);
                            store(to + i + j * LANES, one * share);
                        }
                    }
                }
            }
        }
    }
}

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

/* The `count` highest of logits [M, V] from word `first` on, best first and, of equal ones, the first first:
   values [M, count], ids [M, count] */
void best(const float *logits, int64_t rows, int64_t words, int64_t first, int64_t count, float *values, int64_t *ids,
          int threads) {
    enum { STRIP = 4 * LANES };
    if (rows * words < WORTH / 4) threads = 1;
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t m = 0; m < rows; m++) {
        const float *row = logits + m * words;
        float *value = values + m * count;
        int64_t *id = ids + m * count;
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

/* Linear layers of 8-bit integers: see sentence/quantized.py. */

#ifdef __AVX2__
#define FEW 4    /* rows of a block */
#define COLUMNS 16 /* of a panel: [K / 4][COLUMNS][4] */
#define INTEGER_TALL 192

INLINE __m256i multiply(__m256i sums, __m256i inputs, __m256i weights) {
#if defined(__AVX512VNNI__) && defined(__AVX512VL__)
    return _mm256_dpbusd_epi32(sums, inputs, weights);
#else
    __m256i pairs = _mm256_maddubs_epi16(inputs, weights);
    return _mm256_add_epi32(sums, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
#endif
}

/* integers [N, K] of a weight -> panels, filled up with zeros; K is a multiple of 4 */
void pack_integers(const int8_t *weight, int64_t columns, int64_t inner, int8_t *packed) {
    for (int64_t first = 0; first < columns; first += COLUMNS, packed += inner * COLUMNS)
        for (int64_t k = 0; k < inner; k++)
            for (int64_t n = 0; n < COLUMNS; n++)
                packed[(k / 4 * COLUMNS + n) * 4 + k % 4] = first + n < columns ? weight[(first + n) * inner + k] : 0;
}

/* x [M, K] -> bytes [M, K] around `zero`, and what a level is worth in each row; K is a multiple of LANES */
static void quantize(const float *x, int64_t rows, int64_t inner, int zero, uint8_t *bytes, float *level) {
    for (int64_t m = 0; m < rows; m++) {
        const float *row = x + m * inner;
        vector most = all(1e-30f), nothing = all(0);
        for (int64_t k = 0; k < inner; k += LANES) {
            vector value = load(row + k);
            nothing += value * 0; /* unless a value is not finite */
            most = larger(most, zero ? larger(value, -value) : value);
        }
        float top = largest(most), factor = (255 - zero) / top;
        level[m] = top / (255 - zero) + sum(nothing);
        for (int64_t k = 0; k < inner; k += 8) {
            __m256i n = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(row + k), _mm256_set1_ps(factor)));
            n = _mm256_add_epi32(n, _mm256_set1_epi32(zero));
            __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(n), _mm256_extracti128_si256(n, 1));
            _mm_storel_epi64((__m128i *)(bytes + m * inner + k), _mm_packus_epi16(words, words));
        }
    }
}

INLINE void integer_block(const int rows, const uint8_t *x, const float *level, int64_t inner, const int8_t *panel,
                          const float *scale, const int32_t *shift, const float *bias, float *out, int64_t columns,
                          int64_t left, int rectified) {
    __m256i sums[FEW][2];
    UNROLL for (int r = 0; r < rows; r++) sums[r][0] = sums[r][1] = _mm256_setzero_si256();
    for (int64_t k = 0; k < inner; k += 4) {
        __m256i first = _mm256_loadu_si256((const __m256i *)(panel + k * COLUMNS));
        __m256i second = _mm256_loadu_si256((const __m256i *)(panel + k * COLUMNS + 32));
        UNROLL for (int r = 0; r < rows; r++) {
            int32_t four;
            memcpy(&four, x + r * inner + k, 4);
            __m256i inputs = _mm256_set1_epi32(four);
            sums[r][0] = multiply(sums[r][0], inputs, first);
            sums[r][1] = multiply(sums[r][1], inputs, second);
        }
    }
    UNROLL for (int r = 0; r < rows; r++) {
        float found[COLUMNS];
        UNROLL for (int j = 0; j < 2; j++) {
            __m256i exact = _mm256_sub_epi32(sums[r][j], _mm256_loadu_si256((const __m256i *)(shift + 8 * j)));
            __m256 factor = _mm256_mul_ps(_mm256_loadu_ps(scale + 8 * j), _mm256_set1_ps(level[r]));
            __m256 value = _mm256_fmadd_ps(_mm256_cvtepi32_ps(exact), factor, _mm256_loadu_ps(bias + 8 * j));
            if (rectified) value = _mm256_max_ps(_mm256_setzero_ps(), value);
            _mm256_storeu_ps(found + 8 * j, value);
        }
        memcpy(out + r * columns, found, sizeof(float) * (left < COLUMNS ? left : COLUMNS));
    }
}

/* x [M, K]; scale (of levels), shift (zero times the sum of its weights) and bias of every column, filled up to whole
   panels; bytes [M, K] and level [M] are room -> out [M, N] */
void linear_integers(const float *x, int64_t rows, int64_t inner, int zero, const int8_t *packed, const float *scale,
                     const int32_t *shift, const float *bias, int64_t columns, uint8_t *bytes, float *level, float *out,
                     int rectified, int threads) {
    int64_t panels = (columns + COLUMNS - 1) / COLUMNS;
    quantize(x, rows, inner, zero, bytes, level);
    if (rows * inner * columns < WORTH) threads = 1;
    for (int64_t top = 0; top < rows; top += INTEGER_TALL) {
        int64_t end = top + INTEGER_TALL < rows ? top + INTEGER_TALL : rows;
#pragma omp parallel for num_threads(threads) if (threads > 1)
        for (int64_t p = 0; p < panels; p++)
            for (int64_t r = top; r < end; r += FEW) {
                int64_t c = p * COLUMNS, left = columns - c;
                const int8_t *panel = packed + c * inner;
#define INTEGER_CASE(R) \
    case R: integer_block(R, bytes + r * inner, level + r, inner, panel, scale + c, shift + c, bias + c, \
                          out + r * columns + c, columns, left, rectified); break;
                switch (end - r < FEW ? end - r : FEW) {
                    INTEGER_CASE(1) INTEGER_CASE(2) INTEGER_CASE(3) INTEGER_CASE(4)
                }
            }
    }
}

int64_t integer_columns(void) { return COLUMNS; }
#else
int64_t integer_columns(void) { return 0; } /* no 8-bit kernels for this processor */
void pack_integers(const int8_t *weight, int64_t columns, int64_t inner, int8_t *packed) {}
void linear_integers(const float *x, int64_t rows, int64_t inner, int zero, const int8_t *packed, const float *scale,
                     const int32_t *shift, const float *bias, int64_t columns, uint8_t *bytes, float *level, float *out,
                     int rectified, int threads) {}
#endif
