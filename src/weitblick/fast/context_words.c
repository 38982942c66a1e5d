/* Softmax over all words of a document, in one pass over these for all queries that read it.

   Words come in tiles that stay in the cache while the queries pass by. What a query has read so far is scaled down when
   a tile brings a higher score, so that no score is kept. Tiles begin where they begin in the document, and what a
   query reads of one depends on nothing but itself: it comes out the same to the last bit alone and among others. */

#include "context.h"
#include <stdlib.h>

#define TILE 128 /* words: keys and values of a head, and the weights of a block, stay in the cache */
#define BLOCK 8  /* queries that share what is loaded of a tile */
#define MANY 4   /* queries from which it pays to turn keys into columns */
/* Words this far below the best so far have no weight: 65,000 of them would have less than 1e-6 together. */
#define FAR 25.0f

/* Words of a document from `begin` on, and where keys and values of all their heads lie */
typedef struct {
    int64_t begin, words;
    const float *keys[TILE], *values[TILE];
} Tile;

/* The same of one head: keys as panels [TILE / LANES][word_size][LANES], values [TILE][size] */
typedef struct {
    float *keys, *values;
} Turned;

/* A head of a query: how far it has come. It sees all words but those from `from` to `to`. */
typedef struct {
    const float *query;
    float *out;
    int64_t from, to;
    float highest, total;
} Query;

/* Rows of a square of LANES become its columns: halves of it change places, then halves of these, and so on */
INLINE void turn_square(vector rows[LANES]) {
#if defined(__AVX512F__)
    const __m512i place = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    UNROLL for (int half = LANES / 2; half; half /= 2) {
        __m512i by = _mm512_set1_epi32(half), other = _mm512_set1_epi32(LANES);
        __mmask16 second = _mm512_test_epi32_mask(place, by);
        __m512i upper = _mm512_mask_add_epi32(place, second, place, _mm512_sub_epi32(other, by));
        __m512i lower = _mm512_mask_add_epi32(_mm512_add_epi32(place, by), second, place, other);
        UNROLL for (int i = 0; i < LANES; i++) {
            if (i & half) continue;
            __m512 a = (__m512)rows[i], b = (__m512)rows[i + half];
            rows[i] = (vector)_mm512_permutex2var_ps(a, upper, b);
            rows[i + half] = (vector)_mm512_permutex2var_ps(a, lower, b);
        }
    }
#else
    for (int i = 0; i < LANES; i++)
        for (int j = 0; j < i; j++) {
            float kept = rows[i][j];
            rows[i][j] = rows[j][i], rows[j][i] = kept;
        }
#endif
}

/* Numbers `first` to `first + size` of LANES rows become columns */
INLINE void turn(const float *const *rows, int64_t first, int64_t size, float *panel) {
    for (int64_t i = 0; i < size; i += LANES) {
        int64_t some = size - i < LANES ? size - i : LANES;
        vector square[LANES];
        UNROLL for (int w = 0; w < LANES; w++) square[w] = load_some(rows[w] + first + i, some);
        turn_square(square);
        UNROLL for (int w = 0; w < LANES; w++) if (w < some) store(panel + (i + w) * LANES, square[w]);
    }
}

/* Scores [LANES] of the words of a panel for some queries. A product's terms are added as `any_product` adds them: every
   LANES-th, then halves of these sums, halves of those, and so on; so a score is the same whoever computes it. */
INLINE void score_panel(const float *panel, const int count, const Query *query, int64_t size, float **to) {
    const int levels = LANES == 16 ? 4 : LANES == 8 ? 3 : 2;
    vector waiting[5][BLOCK]; /* sums of 1, 2, 4, ... lanes */
    UNROLL for (int n = 0; n < LANES; n++) {
        int lane = 0, level = 0;
        UNROLL for (int bit = 0; bit < levels; bit++) lane |= (n >> bit & 1) << (levels - 1 - bit);
        vector sums[BLOCK];
        UNROLL for (int q = 0; q < count; q++) sums[q] = all(0);
        for (int64_t i = lane; i < size; i += LANES) {
            vector keys = load(panel + i * LANES);
            UNROLL for (int q = 0; q < count; q++) sums[q] = fused(all(query[q].query[i]), keys, sums[q]);
        }
        UNROLL for (; n >> level & 1; level++) {
            UNROLL for (int q = 0; q < count; q++) sums[q] = waiting[level][q] + sums[q];
        }
        UNROLL for (int q = 0; q < count; q++) waiting[level][q] = sums[q];
    }
    UNROLL for (int q = 0; q < count; q++) store(to[q], waiting[levels][q]);
}

/* Products [TILE] of a query and keys become weights beside what it has read so far; 0: none of them counts. Compiled
   once, so that it rounds alike for all. */
static __attribute__((noinline)) int weigh(const Tile *tile, Query *query, int64_t size, float *scores) {
    float scale = 1.0f / sqrtf((float)size);
    int64_t end = (tile->words + LANES - 1) / LANES * LANES;
    int64_t from = query->from - tile->begin, to = query->to - tile->begin;
    for (int64_t w = from < 0 ? 0 : from; w < to && w < end; w++) scores[w] = -INFINITY;
    for (int64_t w = tile->words; w < end; w++) scores[w] = -INFINITY;
    vector most = all(-INFINITY), total = all(0);
    for (int64_t w = 0; w < end; w += LANES) most = larger(most, load(scores + w));
    float highest = largest(most) * scale;
    int counts = !(highest <= query->highest - FAR);
    if (counts && !(highest <= query->highest)) {
        float factor = exponential(all(query->highest - highest))[0];
        for (int64_t i = 0; i < size; i += LANES) store(query->out + i, load(query->out + i) * factor);
        query->total *= factor;
        query->highest = highest;
    }
    for (int64_t w = 0; w < end; w += LANES) {
        vector below = load(scores + w) * scale - query->highest, weight = all(0);
        if (counts) weight = (vector)((integers)exponential(below) & ~(integers)(below <= -FAR));
        store(scores + w, weight);
        total += weight;
    }
    query->total += sum(total);
    return counts;
}

/* Some queries of one head read a tile */
INLINE void read_turned(const Tile *tile, const Turned *turned, const int count, Query *query, int64_t key_size,
                        int64_t size) {
    float weights[BLOCK][TILE], *to[BLOCK];
    int counts = 0;
    for (int64_t w = 0; w < tile->words; w += LANES) {
        UNROLL for (int q = 0; q < count; q++) to[q] = weights[q] + w;
        score_panel(turned->keys + w * key_size, count, query, key_size, to);
    }
    for (int q = 0; q < count; q++) counts |= weigh(tile, query + q, size, weights[q]);
    for (int64_t i = 0; counts && i < size; i += LANES) {
        vector sums[BLOCK];
        UNROLL for (int q = 0; q < count; q++) sums[q] = load(query[q].out + i);
        for (int64_t w = 0; w < tile->words; w++) {
            vector value = load(turned->values + w * size + i);
            UNROLL for (int q = 0; q < count; q++) sums[q] = fused(all(weights[q][w]), value, sums[q]);
        }
        UNROLL for (int q = 0; q < count; q++) store(query[q].out + i, sums[q]);
    }
}

/* All queries [heads][count] read a tile, which is turned for them; turned [heads]: room for that */
static void read_together(const Tile *tile, int64_t heads, int64_t count, Query *query, int online, int64_t key_size,
                          int64_t size, Turned *turned) {
    for (int64_t w = 0; w < tile->words; w += LANES) /* all heads of a word lie side by side and are fetched once */
        for (int64_t h = 0; h < heads; h++) turn(tile->keys + w, h * key_size, key_size, turned[h].keys + w * key_size);
    for (int64_t w = 0; w < tile->words; w++)
        for (int64_t h = 0; h < heads; h++)
            for (int64_t i = 0; i < size; i += LANES)
                store(turned[h].values + w * size + i, load(tile->values[w] + h * size + i));
    for (int64_t h = 0; h < heads; h++)
        for (int64_t q = 0, some; q < count; q += some) {
            Query *own = query + h * count + q;
            some = count - q >= BLOCK ? BLOCK : 1;
            if (online && own[some - 1].from <= tile->begin) continue; /* nor does any before it see the tile */
            if (some == BLOCK) read_turned(tile, turned + h, BLOCK, own, key_size, size);
            else read_turned(tile, turned + h, 1, own, key_size, size);
        }
}

/* Few queries [heads][count] read a tile where it lies, word by word with all heads */
static void read_apart(const Tile *tile, int64_t heads, int64_t count, Query *query, int64_t key_size, int64_t size) {
    float weights[heads * count][TILE];
    for (int64_t w = 0; w < tile->words; w++) {
        for (int64_t i = 0; i < heads * size; i += 16) __builtin_prefetch(tile->values[w] + i);
        for (int64_t q = 0; q < heads * count; q++)
            weights[q][w] = any_product(query[q].query, tile->keys[w] + q / count * key_size, key_size);
    }
    for (int64_t q = 0; q < heads * count; q++) {
        if (!weigh(tile, query + q, size, weights[q])) continue;
        for (int64_t i = 0; i < size; i += LANES) {
            vector total = load(query[q].out + i);
            for (int64_t w = 0; w < tile->words; w++)
                total = fused(all(weights[q][w]), load(tile->values[w] + q / count * size + i), total);
            store(query[q].out + i, total);
        }
    }
}

/* The next words of a document, from word *word of sentence *s on; of all heads from `least` on */
static void advance(const Sentences *from, int64_t least, int64_t *s, int64_t *word, int64_t end, Tile *tile) {
    tile->begin += tile->words;
    for (tile->words = 0; tile->words < TILE && *s < end; tile->words++) {
        tile->keys[tile->words] = from->word_keys[*s] + (*word * from->heads + least) * from->word_size;
        tile->values[tile->words] = from->values[*s] + (*word * from->heads + least) * from->size;
        if (++*word == from->words[*s]) *word = 0, ++*s;
    }
    for (int64_t w = tile->words; w % LANES; w++) tile->keys[w] = tile->keys[w - 1]; /* any: nobody sees it */
}

/* Of sentences `begin` to `end`, the first that does not stand before a position */
static int64_t first_from(const Sentences *from, int64_t begin, int64_t end, int64_t position) {
    while (begin < end) {
        int64_t middle = (begin + end) / 2;
        if (from->position[middle] < position) begin = middle + 1;
        else end = middle;
    }
    return begin;
}

int read_words_softly(const Sentences *from, int64_t document, const int64_t *rows, int64_t count,
                      const int64_t *position, int64_t least, int64_t most, const float *queries, float *out,
                      float *support) {
    int64_t begin = from->first[document], end = from->first[document + 1], heads = most - least;
    int64_t key_size = from->word_size, size = from->size;
    int64_t *start = malloc((size_t)(end - begin + 1) * sizeof(int64_t)); /* of each sentence among all words */
    Query *query = malloc((size_t)(heads * count) * sizeof(Query));
    float *room = count < MANY ? NULL : malloc((size_t)(heads * TILE * (key_size + size)) * sizeof(float));
    if (!start || !query || (count >= MANY && !room)) {
        free(query), free(start), free(room);
        return 1;
    }
    start[0] = 0;
    for (int64_t s = begin; s < end; s++) start[s - begin + 1] = start[s - begin] + from->words[s];
    Turned turned[heads];
    for (int64_t h = 0; h < heads; h++) {
        if (room) turned[h] = (Turned){room + h * TILE * key_size, room + (heads * key_size + h * size) * TILE};
        for (int64_t q = 0; q < count; q++) {
            int64_t at = rows[q] * from->heads + least + h, own = position[rows[q]];
            int64_t hidden = first_from(from, begin, end, own);
            int64_t again = from->online ? end : first_from(from, hidden, end, own + 1);
            query[h * count + q] = (Query){queries + at * key_size, out + at * size,
                                           start[hidden - begin], start[again - begin], -INFINITY, 0};
            support[at] = (float)(end - begin - (again - hidden));
        }
    }
    Tile tile = {0, 0};
    int64_t seen = from->online ? query[count - 1].from : start[end - begin]; /* words, by the last query */
    for (int64_t s = begin, word = 0; tile.begin + tile.words < seen;) {
        advance(from, least, &s, &word, end, &tile);
        if (room) read_together(&tile, heads, count, query, (int)from->online, key_size, size, turned);
        else read_apart(&tile, heads, count, query, key_size, size);
    }
    for (int64_t q = 0; q < heads * count; q++)
        for (int64_t i = 0; query[q].total > 0 && i < size; i++) query[q].out[i] /= query[q].total;
    free(query), free(start), free(room);
    return 0;
}
