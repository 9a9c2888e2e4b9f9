"""The fork of SentEval in SimCSE (princeton-nlp/SimCSE), which also correlates all pairs of a task together."""
from sts import run  # noqa: F401

FOLDER, BELOW, PYTHON2 = "SimCSE", "SentEval", False
CASES = {"STS of its SentEval": ("sts", [])}
