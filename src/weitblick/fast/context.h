/* What documents offer to context attention: see context.c, and context_words.c for softmax over all words. */

#pragma once
#include "kernels.h"

enum { SOFT, SPARSE }; /* how weights are normalised */

/* Sentences with words of all documents, those of a document together and in order, D documents.

   first [D + 1]: of each document; of each sentence its position in the document, how many words it has, and where its
   keys and values begin: rows of all heads. A key of a head has `size` numbers and, behind them, features of order. */
typedef struct {
    int64_t heads, size, sentence_size, word_size, online, sentence_kind, word_kind;
    const int64_t *first, *position, *words;
    const float *const *sentence_keys, *const *word_keys, *const *values;
} Sentences;

INLINE float any_product(const float *a, const float *b, int64_t size) {
    vector total = all(0);
    int64_t i = 0;
    for (; i + LANES <= size; i += LANES) total = fused(load(a + i), load(b + i), total);
    if (i < size) total = fused(load_some(a + i, size - i), load_some(b + i, size - i), total);
    return sum(total);
}

INLINE int is_seen(const Sentences *from, int64_t s, int64_t position) {
    return from->online ? from->position[s] < position : from->position[s] != position;
}

/* Heads `least` to `most` of some queries of one document over all words that each sees, by softmax. rows [count]:
   which queries, in the order of their positions; out is zeros before; support: all sentences that a query sees. Not 0:
   memory ran out. */
int read_words_softly(const Sentences *from, int64_t document, const int64_t *rows, int64_t count,
                      const int64_t *position, int64_t least, int64_t most, const float *queries, float *out,
                      float *support);
