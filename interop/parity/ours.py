"""What the Go program wrote, and how what a published module computes is compared with it."""
import dataclasses

import torch
from safetensors import safe_open

SCORES, LOSS, GRADIENT = 1e-5, 1e-5, 1e-4  # bounds; the gradient's is a share of the largest element of a parameter


class Ours(dict):
    """Tensors of the file by name, read when they are asked for."""

    def __init__(self, path):
        self.file = safe_open(path, "pt")
        super().__init__((k, None) for k in self.file.keys())
        self.recalls = dict(x.split("=") for x in self.file.metadata().get("recalls", "").split())
        self.read = set()

    def __getitem__(self, name):
        self.read.add(name)
        return self.file.get_tensor(name)

    def part(self, prefix):
        return [k[len(prefix) :] for k in self if k.startswith(prefix)]


@dataclasses.dataclass
class Result:
    """What a published module computed. Gradients are by the published names."""

    scores: torch.Tensor | None = None
    losses: dict = dataclasses.field(default_factory=dict)  # by the name of the tensor here
    gradients: dict = dataclasses.field(default_factory=dict)  # published name -> (theirs, ours)
    recalls: dict = dataclasses.field(default_factory=dict)
    left_out: dict = dataclasses.field(default_factory=dict)  # our names that have no counterpart, with the reason


class Names:
    """Published names of parameters and ours. Ours is a name, a name and a function of its tensor, or a number where there
    is no such parameter here."""

    def __init__(self, ours, table):
        self.ours, self.table = ours, {k: v if isinstance(v, tuple) else (v, lambda x: x) for k, v in table.items()}

    def give(self, module):
        """Copies our parameters into a module, all of it."""
        state = dict(module.named_parameters()) | dict(module.named_buffers())
        for name, p in state.items():
            if name.endswith("num_batches_tracked"):
                continue
            if name not in self.table:
                raise KeyError(f"{name} {tuple(p.shape)} has no name here")
            ours, of = self.table[name]
            with torch.no_grad():
                if not isinstance(ours, str):
                    p.fill_(ours)
                    continue
                value = of(self.ours["param/" + ours])
                if value.shape != p.shape:
                    raise ValueError(f"{name} {tuple(p.shape)} is {ours} {tuple(value.shape)} here")
                p.copy_(value)
        return module

    def gradients(self, module):
        """(theirs, ours) by the published name, of parameters that training moves."""
        out = {}
        for name, p in module.named_parameters():
            ours, of = self.table[name]
            if p.grad is not None and f"grad/{ours}" in self.ours:
                out[name] = p.grad, of(self.ours["grad/" + ours])
        return out


def largest(x):
    return x.abs().max().item() if x.numel() else 0.0


def measure(ours, r):
    """Returns the figures of a comparison, and what misses a bound."""
    figures, missed = {}, []
    if r.scores is not None:
        figures["scores"] = largest(r.scores.double() - ours["scores"].double())
        if not figures["scores"] <= SCORES:
            missed.append(f"scores differ by {figures['scores']:.1e}")
    for name, value in r.losses.items():
        have = ours[name].item()
        d = abs(value - have) / max(abs(value), 1e-12)
        figures["loss"] = max(figures.get("loss", 0), d)
        if not d <= LOSS:
            missed.append(f"{name} is {have}, published {value}")
    most = max((largest(a) for a, _ in r.gradients.values()), default=0)
    for name, (theirs, have) in r.gradients.items():
        d = largest(theirs.double() - have.double()) / max(largest(theirs), 1e-5 * most, 1e-30)
        figures["gradients"] = max(figures.get("gradients", 0), d)
        if not d <= GRADIENT:
            missed.append(f"gradient of {name} differs by {d:.1e} of {largest(theirs):.1e}")
    for name, value in r.recalls.items():
        if f"{value:.1f}" != ours.recalls[name]:
            missed.append(f"{name} is {ours.recalls[name]}, published {value:.1f}")
    if r.recalls:
        figures["recalls"] = "equal" if all(f"{v:.1f}" == ours.recalls[k] for k, v in r.recalls.items()) else "differ"
    figures["parameters"] = len(r.gradients)
    if r.gradients:
        compared = {k[5:] for k in ours.read if k.startswith("grad/")}
        for name in set(ours.part("grad/")) - compared - set(r.left_out):
            missed.append(f"{name} has no counterpart")
    return figures, missed
