"""The models: plain PyTorch that can be read in one sitting. The way of a batch through it:

1. `batch`: the tokens of many sentences lie end to end; a `Layout` says where sentences begin, of which document each
   is and where it stands there.
2. `sentence_model`, `transformer` (of `layers`), `rnnsearch`: encoder and decoder turn tokens into states, every
   sentence on its own. A `DecodeCache` remembers what a step of beam search needs of the steps before.
3. `context`, `context_module`: what the sentences of a document offer to each other, projected once into a bank.
   `context_attention` projects, `attention_definition` is what attention computes (with `sparsemax`), and
   `plain_attention` applies it to a batch. `context_layer` mixes what was read into the states; `han` and `zhang` (with
   `context_window`) are two baselines that read otherwise.
4. `document_model` puts 2 and 3 together: read behind or inside the encoder, or the decoder.
5. `output`, `modifiers`, `loss`: states become the distribution of the next word, which modifiers change: context
   decides between words, a pointer adds what was said before, a shortlist restricts.

Packed tokens and layouts come in; distributions of words, and what was read, go out. Whatever is marked `@definition`
(`dispatch`) may be computed by a faster double of `weitblick.fast`, which this package does not know. It imports
`common` and `text`.
"""
