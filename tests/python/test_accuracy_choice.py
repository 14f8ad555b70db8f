"""The rows that check the clock are those of the rule, whoever likes them or not."""

import pathlib
import subprocess
import sys

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "accuracy"


def test_chosen_rows_follow_the_rule():
    rule = subprocess.run([sys.executable, FOLDER / "choose.py"], capture_output=True, text=True, check=True)
    assert rule.stdout == (FOLDER / "validation.csv").read_text(encoding="utf-8")
