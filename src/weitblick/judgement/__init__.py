"""Human judgement: a blind form for raters, their answers read back, the sign test and agreement."""

from weitblick.judgement.agreement import Agreement, agreement
from weitblick.judgement.answers import Preference, judge_answers, read_answers
from weitblick.judgement.form import Key, read_key, sample_form
from weitblick.judgement.sign_test import SignTest, sign_test

__all__ = [
    "Agreement",
    "Key",
    "Preference",
    "SignTest",
    "agreement",
    "judge_answers",
    "read_answers",
    "read_key",
    "sample_form",
    "sign_test",
]
