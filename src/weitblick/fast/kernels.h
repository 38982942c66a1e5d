/* What the files of the kernels share: `build.py` compiles them together, `library.py` and `decoder.py` call them. */

#pragma once
#include "vectors.h"

enum { PLAIN, RECTIFIED, SWISH }; /* what is done to the outputs of a linear layer */

/* x W' + b; with `scale`, W is of 8-bit integers (see integers.c), else of float32, and bias may be none */
typedef struct {
    int64_t columns, inner;
    const void *panels;
    const float *bias, *scale;
    const int32_t *shift;
    int64_t zero;
} Linear;

/* x [M, K] -> out [M, N] */
void linear(const float *x, int64_t rows, int64_t inner, const float *packed, const float *bias, int64_t columns,
            float *out, int rectified, int threads);
void linear_integers(const float *x, int64_t rows, int64_t inner, int zero, const int8_t *packed, const float *scale,
                     const int32_t *shift, const float *bias, int64_t columns, uint8_t *bytes, float *level, float *out,
                     int rectified, int threads);
void quantize(const float *x, int64_t rows, int64_t inner, int zero, uint8_t *bytes, float *level);
void linear_bytes(const uint8_t *bytes, const float *level, int64_t rows, int64_t inner, const int8_t *packed,
                  const float *scale, const int32_t *shift, const float *bias, int64_t columns, float *out,
                  int rectified, int threads);
void add_norm(const float *x, const float *change, const float *weight, const float *bias, float epsilon, int64_t rows,
              int64_t size, float *kept, float *out);
void attend(const float *queries, int64_t query_step, const float *keys, const float *values, const int64_t *step,
            const float *bias, int shared, int64_t sentences, int64_t hypotheses, int64_t heads, int64_t size,
            int64_t cells, float *out, int threads);
