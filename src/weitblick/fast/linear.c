/* Linear layers and norms in float32. */

#include "kernels.h"

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

