"""Human judgement: a blind form for raters, their answers read back, the sign test and agreement."""

from weitblick.evaluation.judge.agreement import Agreement, agreement
from weitblick.evaluation.judge.answers import Verdict, judge_answers, read_answers
from weitblick.evaluation.judge.form import Key, read_key, sample_form
from weitblick.evaluation.judge.sign_test import SignTest, sign_test

__all__ = [
    "Agreement",
    "Key",
    "SignTest",
    "Verdict",
    "agreement",
    "judge_answers",
    "read_answers",
    "read_key",
    "sample_form",
    "sign_test",
]
