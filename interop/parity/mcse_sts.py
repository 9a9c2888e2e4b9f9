"""The fork of SentEval in MCSE (uds-lsv/MCSE)."""
from sts import run  # noqa: F401

FOLDER, BELOW, PYTHON2 = "MCSE", "SentEval", False
CASES = {"STS of its SentEval": ("sts", [])}
