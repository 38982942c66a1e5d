/* Linear layers of 8-bit integers: see sentence/quantized.py. */

#include "kernels.h"

#ifdef __AVX2__
#if defined(__AVX512BW__)
#define FEW 12 /* rows of a block */
#else
#define FEW 4
#endif
#if defined(__AVX512F__) && !defined(__AVX512BW__)
#error "AVX-512 without its instructions for bytes: build with CC='cc -mno-avx512f'"
#endif
#define COLUMNS (2 * LANES) /* of a panel: [K / 4][COLUMNS][4] */
#define INTEGER_TALL 192

/* sums + four products of unsigned inputs and signed weights in each place */
INLINE integers multiply(integers sums, integers inputs, integers weights) {
#if defined(__AVX512VNNI__)
    return (integers)_mm512_dpbusd_epi32((__m512i)sums, (__m512i)inputs, (__m512i)weights);
#elif defined(__AVX512BW__)
    __m512i pairs = _mm512_maddubs_epi16((__m512i)inputs, (__m512i)weights);
    return sums + (integers)_mm512_madd_epi16(pairs, _mm512_set1_epi16(1));
#elif defined(__AVXVNNI__)
    return (integers)_mm256_dpbusd_avx_epi32((__m256i)sums, (__m256i)inputs, (__m256i)weights);
#else
    __m256i pairs = _mm256_maddubs_epi16((__m256i)inputs, (__m256i)weights);
    return sums + (integers)_mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
#endif
}

/* integers [N, K] of a weight -> panels, filled up with zeros; K is a multiple of 4 */
void pack_integers(const int8_t *weight, int64_t columns, int64_t inner, int8_t *packed) {
    for (int64_t first = 0; first < columns; first += COLUMNS, packed += inner * COLUMNS)
        for (int64_t k = 0; k < inner; k++)
            for (int64_t n = 0; n < COLUMNS; n++)
                packed[(k / 4 * COLUMNS + n) * 4 + k % 4] = first + n < columns ? weight[(first + n) * inner + k] : 0;
}

/* LANES numbers, rounded and put around `zero` -> as many bytes */
INLINE void store_bytes(uint8_t *to, vector x, int zero) {
#if defined(__AVX512F__)
    __m512i n = _mm512_add_epi32(_mm512_cvtps_epi32((__m512)x), _mm512_set1_epi32(zero));
    _mm_storeu_si128((__m128i *)to, _mm512_cvtusepi32_epi8(_mm512_max_epi32(n, _mm512_setzero_si512())));
#else
    __m256i n = _mm256_add_epi32(_mm256_cvtps_epi32((__m256)x), _mm256_set1_epi32(zero));
    __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(n), _mm256_extracti128_si256(n, 1));
    _mm_storel_epi64((__m128i *)to, _mm_packus_epi16(words, words));
#endif
}

/* x [M, K] -> bytes [M, K] around `zero`, and what a level is worth in each row; K is a multiple of LANES */
void quantize(const float *x, int64_t rows, int64_t inner, int zero, uint8_t *bytes, float *level) {
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
        for (int64_t k = 0; k < inner; k += LANES) store_bytes(bytes + m * inner + k, load(row + k) * factor, zero);
    }
}

INLINE void integer_block(const int rows, const uint8_t *x, const float *level, int64_t inner, const int8_t *panel,
                          const float *scale, const int32_t *shift, const float *bias, float *out, int64_t columns,
                          int64_t left, int rectified) {
    integers sums[FEW][2];
    UNROLL for (int r = 0; r < rows; r++) sums[r][0] = sums[r][1] = (integers){0};
    for (int64_t k = 0; k < inner; k += 4) {
        integers first = *(const integers *)(panel + k * COLUMNS);
        integers second = *(const integers *)(panel + k * COLUMNS + 4 * LANES);
        /* While several rows keep the processor busy, the next panel comes nearer; one row only reads, and reads on. */
        if (rows > 1)
            for (int i = 0; i < 4 * COLUMNS; i += 64) __builtin_prefetch(panel + (inner + k) * COLUMNS + i, 0, 2);
        UNROLL for (int r = 0; r < rows; r++) {
            int32_t four;
            memcpy(&four, x + r * inner + k, 4);
            integers inputs = four - (integers){0};
            sums[r][0] = multiply(sums[r][0], inputs, first);
            sums[r][1] = multiply(sums[r][1], inputs, second);
        }
    }
    UNROLL for (int r = 0; r < rows; r++) {
        float found[COLUMNS];
        UNROLL for (int j = 0; j < 2; j++) {
            integers exact = sums[r][j] - *(const integers *)(shift + LANES * j);
            vector value = __builtin_convertvector(exact, vector) * (load(scale + LANES * j) * level[r]);
            value += load(bias + LANES * j);
            store(found + LANES * j, rectified ? larger(all(0), value) : value);
        }
        if (left >= COLUMNS) memcpy(out + r * columns, found, sizeof found);
        else memcpy(out + r * columns, found, sizeof(float) * left);
    }
}

/* What `quantize` made of x [M, K]; scale (of levels), shift (zero times the sum of its weights) and bias of every column,
   filled up to whole panels -> out [M, N] */
void linear_bytes(const uint8_t *bytes, const float *level, int64_t rows, int64_t inner, const int8_t *packed,
                  const float *scale, const int32_t *shift, const float *bias, int64_t columns, float *out,
                  int rectified, int threads) {
    int64_t panels = (columns + COLUMNS - 1) / COLUMNS;
    if (rows * inner * columns < 4 * WORTH) threads = 1;
    for (int64_t top = 0; top < rows; top += INTEGER_TALL) {
        int64_t tall = rows - top < INTEGER_TALL ? rows - top : INTEGER_TALL, blocks = (tall + FEW - 1) / FEW;
#pragma omp parallel for num_threads(threads) if (threads > 1)
        for (int64_t p = 0; p < panels; p++)
            for (int64_t b = 0; b < blocks; b++) {
                int64_t r = top + tall * b / blocks, end = top + tall * (b + 1) / blocks; /* blocks of like size */
                int64_t c = p * COLUMNS, left = columns - c;
                const int8_t *panel = packed + c * inner;
#define INTEGER_CASE(R) \
    case R: integer_block(R, bytes + r * inner, level + r, inner, panel, scale + c, shift + c, bias + c, \
                          out + r * columns + c, columns, left, rectified); break;
                switch (end - r) {
                    INTEGER_CASE(1) INTEGER_CASE(2) INTEGER_CASE(3) INTEGER_CASE(4)
#if FEW > 4
                    INTEGER_CASE(5) INTEGER_CASE(6) INTEGER_CASE(7) INTEGER_CASE(8)
                    INTEGER_CASE(9) INTEGER_CASE(10) INTEGER_CASE(11) INTEGER_CASE(12)
#endif
                }
            }
    }
}

/* The same of x itself; bytes [M, K] and level [M] are room */
void linear_integers(const float *x, int64_t rows, int64_t inner, int zero, const int8_t *packed, const float *scale,
                     const int32_t *shift, const float *bias, int64_t columns, uint8_t *bytes, float *level, float *out,
                     int rectified, int threads) {
    quantize(x, rows, inner, zero, bytes, level);
    linear_bytes(bytes, level, rows, inner, packed, scale, shift, bias, columns, out, rectified, threads);
}

int64_t integer_columns(void) { return COLUMNS; }
#else
int64_t integer_columns(void) { return 0; } /* no 8-bit kernels for this processor */
void pack_integers(const int8_t *weight, int64_t columns, int64_t inner, int8_t *packed) {}
void quantize(const float *x, int64_t rows, int64_t inner, int zero, uint8_t *bytes, float *level) {}
void linear_bytes(const uint8_t *bytes, const float *level, int64_t rows, int64_t inner, const int8_t *packed,
                  const float *scale, const int32_t *shift, const float *bias, int64_t columns, float *out,
                  int rectified, int threads) {}
void linear_integers(const float *x, int64_t rows, int64_t inner, int zero, const int8_t *packed, const float *scale,
                     const int32_t *shift, const float *bias, int64_t columns, uint8_t *bytes, float *level, float *out,
                     int rectified, int threads) {}
#endif
