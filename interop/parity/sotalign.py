"""SOTAlign (ExplainableML/SOTAlign): KLOT, value and gradient."""
import torch

from ours import Names, Result

FOLDER, PYTHON2 = "SOTAlign", False
CASES = {"KLOT": ("klot", [])}


def run(ours, case):
    from src.klot import KLOT

    scores = ours["param/scores"].requires_grad_()
    loss = KLOT(epsilon_student=0.05, epsilon_teacher=0.1, n_iter=300)(scores, ours["input/targets"])
    loss.backward()
    return Result(None, {"loss": loss.item()}, {"K_student": (scores.grad, ours["grad/scores"])})
