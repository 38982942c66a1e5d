/* Attention of a step of decoding. */

#include "kernels.h"

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

