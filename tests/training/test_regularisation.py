import torch

from weitblick.model.batch import pack_source
from weitblick.training.update import repeated


def test_words_of_some_other_sentence_are_repeated_ones():
    everything = pack_source(
        [[5, 6, 9], [5, 7], [5, 6], [5, 8, 8], [5], [6, 7, 8]], [0, 0, 0, 0, 0, 1], [0, 1, 2, 3, 4, 0]
    )
    # 5 stands in all sentences, 9 and both 8s in one; 6 of the first document in two; the second has but one sentence
    marked = repeated(everything, everything)
    assert torch.equal(everything.tokens[marked], torch.tensor([6, 6]))


def test_current_sentences_may_be_part_of_their_document():
    everything = pack_source([[5, 6], [6], [7], [8], [9]], [0] * 5, range(5))
    current = pack_source([[6], [7]], [0, 0], [1, 2])
    assert repeated(current, everything).tolist() == [True, False, False, False]
