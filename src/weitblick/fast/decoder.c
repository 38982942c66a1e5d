/* One step of a Transformer's decoder, all layers in one call: see decoder.py, which has the same structures. */

#include "kernels.h"

typedef struct {
    const float *weight, *bias;
    double epsilon;
} Norm;

typedef struct {
    Linear input, output;               /* self-attention: queries, keys and values; what it found */
    Linear query, read;                 /* attention to the source */
    Linear widen, narrow;               /* feed-forward */
    Norm attention, source, feed_forward;
} Layer;

typedef struct {
    int64_t count, size, heads, inner; /* layers, d, heads, the widest inside of a layer */
    int64_t norms_before, activation;
    const Layer *layers;
    const Norm *last;    /* behind the layers, or none */
    const float *table;  /* [V, d] embeddings */
    double scale;        /* of embeddings */
} Decoder;

/* Pasts [S, room, cell] hold the keys and values, 2d numbers, of `cells` cells, of which this step adds the last K. */
typedef struct {
    int64_t sentences, hypotheses, cells, room, cell, words;
    const int64_t *tokens;          /* [S * K] */
    const float *position;          /* [d] */
    float *const *pasts;            /* of each layer */
    const float *past_bias;         /* [S, K, cells] or none */
    const float *const *keys, *const *values; /* [S, H, words, d / H] of the source, for each layer */
    const float *memory_bias;       /* [S, words] */
    float *attended, *final;        /* [S * K, d] */
    float *space;                   /* `space_needed` numbers */
} Step;

int64_t space_needed(const Decoder *decoder, int64_t rows) {
    int64_t numbers = 7 * decoder->size + decoder->inner + 1; /* and the 8-bit inputs of a layer */
    return rows * (numbers + (decoder->inner + 3) / 4);
}

static void swish(float *x, int64_t count) {
    for (int64_t i = 0; i < count; i += LANES) {
        vector value = load(x + i), small = exponential(larger(value, -value) * -1.0f); /* e^-|x| */
        vector positive = 1.0f / (1.0f + small);
        integers below = value < all(0);
        vector share = (vector)(((integers)(small * positive) & below) | ((integers)positive & ~below));
        store(x + i, value * share);
    }
}

typedef struct {
    uint8_t *bytes;
    float *level;
    int threads;
} Means;

static void apply(const Linear *layer, const float *x, int64_t rows, float *out, int activation, const Means *means) {
    int rectified = activation == RECTIFIED;
    if (layer->scale)
        linear_integers(x, rows, layer->inner, (int)layer->zero, layer->panels, layer->scale, layer->shift, layer->bias,
                        layer->columns, means->bytes, means->level, out, rectified, means->threads);
    else
        linear(x, rows, layer->inner, layer->panels, layer->bias, layer->columns, out, rectified, means->threads);
    if (activation == SWISH) swish(out, rows * layer->columns);
}

static void norm(const Norm *norm, const float *x, const float *change, int64_t rows, int64_t size, float *kept,
                 float *out) {
    add_norm(x, change, norm->weight, norm->bias, (float)norm->epsilon, rows, size, kept, out);
}

/* Adds a sub-layer's change to x, and gives what the next sub-layer reads: with norms before sub-layers its norm `next`
   of the sum (none: the sum), else the sum, normalised by the norm `own` of this one. */
static const float *leave(const Decoder *decoder, const Norm *own, const Norm *next, float *x, const float *change,
                          int64_t rows, float *room) {
    int64_t d = decoder->size;
    if (!decoder->norms_before) {
        norm(own, x, change, rows, d, 0, x);
        return x;
    }
    if (next) {
        norm(next, x, change, rows, d, x, room);
        return room;
    }
    for (int64_t i = 0; i < rows * d; i += LANES) store(x + i, load(x + i) + load(change + i));
    return x;
}

static void append(const float *projected, const Step *step, int64_t sentences, int64_t d, float *past) {
    int64_t each = step->hypotheses;
    for (int64_t s = 0; s < sentences; s++)
        for (int64_t k = 0; k < each; k++)
            memcpy(past + (s * step->room + step->cells - each + k) * step->cell,
                   projected + (s * each + k) * 3 * d + d, sizeof(float) * 2 * d);
}

/* The sentences from `first` to `end`, which have nothing to do with the others */
static void some_sentences(const Decoder *decoder, const Step *step, int64_t first, int64_t end, int threads) {
    int64_t d = decoder->size, heads = decoder->heads, width = d / heads, sentences = end - first;
    int64_t each = step->hypotheses, begin = first * each, rows = sentences * each;
    float *x = step->space + space_needed(decoder, begin);
    float *projected = x + rows * d, *found = projected + rows * 3 * d, *change = found + rows * d;
    float *room = change + rows * d, *wide = room + rows * d, *level = wide + rows * decoder->inner;
    Means means = {(uint8_t *)(level + rows), level, threads};
    const int64_t past_step[3] = {step->room * step->cell, step->cell, width};
    const int64_t memory_step[3] = {step->words * d, width, step->words * width};
    const float *past_bias = step->past_bias ? step->past_bias + begin * step->cells : 0;
    const float *memory_bias = step->memory_bias + first * step->words;

    for (int64_t m = 0; m < rows; m++)
        for (int64_t i = 0; i < d; i += LANES)
            store(x + m * d + i, load(decoder->table + step->tokens[begin + m] * d + i) * (float)decoder->scale +
                                     load(step->position + i));
    const float *entered = x;
    if (decoder->norms_before) {
        norm(&decoder->layers[0].attention, x, 0, rows, d, 0, room);
        entered = room;
    }
    for (int64_t l = 0; l < decoder->count; l++) {
        const Layer *layer = decoder->layers + l;
        int last = l + 1 == decoder->count;
        float *past = step->pasts[l] + first * past_step[0];
        apply(&layer->input, entered, rows, projected, PLAIN, &means);
        append(projected, step, sentences, d, past);
        attend(projected, 3 * d, past, past + d, past_step, past_bias, 0, sentences, each, heads, width, step->cells,
               found, threads);
        apply(&layer->output, found, rows, change, PLAIN, &means);
        entered = leave(decoder, &layer->attention, &layer->source, x, change, rows, room);

        apply(&layer->query, entered, rows, projected, PLAIN, &means);
        attend(projected, d, step->keys[l] + first * memory_step[0], step->values[l] + first * memory_step[0],
               memory_step, memory_bias, 1, sentences, each, heads, width, step->words, found, threads);
        apply(&layer->read, found, rows, change, PLAIN, &means);
        entered = leave(decoder, &layer->source, &layer->feed_forward, x, change, rows, room);
        if (last) memcpy(step->attended + begin * d, entered, sizeof(float) * rows * d);

        apply(&layer->widen, entered, rows, wide, (int)decoder->activation, &means);
        apply(&layer->narrow, wide, rows, change, PLAIN, &means);
        const Norm *next = last ? decoder->last : &layer[1].attention;
        entered = leave(decoder, &layer->feed_forward, next, x, change, rows, room);
    }
    memcpy(step->final + begin * d, entered, sizeof(float) * rows * d);
}

void decoder_step(const Decoder *decoder, const Step *step, int threads) {
    /* Each thread has its own sentences, from the first layer to the last: threads that share products wait for each
       other some forty times a step. They do so only where there are fewer sentences than threads. */
    int64_t parts = step->sentences >= threads ? threads : 1;
#pragma omp parallel for num_threads((int)parts) if (parts > 1)
    for (int64_t p = 0; p < parts; p++)
        some_sentences(decoder, step, step->sentences * p / parts, step->sentences * (p + 1) / parts,
                       parts > 1 ? 1 : threads);
}
