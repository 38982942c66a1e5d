/* Vectors of GCC and Clang, as wide as the processor has them, and what all kernels do with them.

   Sums run over the same terms in the same order whatever else is in a batch: a row comes out the same to the last bit
   alone and among others. */

#pragma once
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
/* The first `count` of LANES numbers, and zeros */
INLINE vector load_some(const float *from, int64_t count) {
#if defined(__AVX512F__)
    return (vector)_mm512_maskz_loadu_ps((__mmask16)((1u << count) - 1), from);
#else
    float some[LANES] = {0};
    for (int64_t i = 0; i < count; i++) some[i] = from[i];
    return load(some);
#endif
}
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

/* a b + c, rounded once where the processor can: for sums that two functions must round alike, whatever a compiler makes
   of them */
INLINE vector fused(vector a, vector b, vector c) {
#if defined(__AVX512F__)
    return (vector)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__FMA__)
    return (vector)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
    return a * b + c;
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
#if defined(__AVX512F__)
    return _mm512_reduce_max_ps((__m512)x);
#else
    float found = x[0];
    UNROLL for (int i = 1; i < LANES; i++) found = x[i] > found ? x[i] : found;
    return found;
#endif
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

INLINE float product(const float *a, const float *b, int64_t size) {
    vector total = load(a) * load(b);
    for (int64_t i = LANES; i < size; i += LANES) total += load(a + i) * load(b + i);
    return sum(total);
}

