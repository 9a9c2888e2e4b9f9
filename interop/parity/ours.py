"""What the Go program wrote, and how what a published module computes is compared with it."""
import dataclasses
import typing

import torch
from safetensors import safe_open

SCORES, LOSS, GRADIENT = 1e-5, 1e-5, 1e-4  # bounds; the gradient's is a share of the largest element of a parameter
METRIC = ["objective.itc.score=gssf", "objective.gssf.form=block_diag"]  # settings of a metric, which starts as the identity


class Ours(dict):
    """Tensors of the file by name, read when they are asked for."""

    def __init__(self, path, dtype=torch.float32):
        self.dtype, self.file = dtype, safe_open(path, "pt")
        super().__init__((k, None) for k in self.file.keys())
        self.settings = self.file.metadata() or {}
        self.recalls = dict(x.split("=") for x in self.settings.get("recalls", "").split())
        self.read = set()

    def __getitem__(self, name):
        self.read.add(name)
        x = self.file.get_tensor(name)
        return x.to(self.dtype) if x.is_floating_point() else x

    def part(self, prefix):
        return [k[len(prefix) :] for k in self if k.startswith(prefix)]


@dataclasses.dataclass
class Result:
    """What a published module computed. Gradients are by the published names."""

    scores: torch.Tensor | None = None
    losses: dict = dataclasses.field(default_factory=dict)  # by the name of the tensor here
    gradients: dict = dataclasses.field(default_factory=dict)  # published name -> (theirs, ours)
    evaluate: typing.Callable | None = None  # the published evaluation of a matrix of scores
    undecided: torch.Tensor | None = None  # scores that rounding decides, which are not compared
    recalls: dict = dataclasses.field(default_factory=dict)  # of an evaluation of something else
    others: dict = dataclasses.field(default_factory=dict)  # further tensors that are compared as scores are, by the name here


class Names:
    """Published names of parameters and ours. Ours is a name, names and a function of their tensors, or a number where there
    is no such parameter here."""

    def __init__(self, ours, table):
        self.ours, self.table = ours, {k: v if isinstance(v, tuple) else (v, lambda x: x) for k, v in table.items()}

    def of(self, kind, name):
        """Our tensors of a kind for a published name as one, None where they are not there."""
        ours, join = self.table[name]
        if not isinstance(ours, (str, tuple)):
            return None
        names = [f"{kind}/{x}" for x in (ours if isinstance(ours, tuple) else (ours,))]
        return join(*(self.ours[x] for x in names)) if all(x in self.ours for x in names) else None

    def give(self, module):
        """Copies our parameters into a module, all of it."""
        for name, p in (dict(module.named_parameters()) | dict(module.named_buffers())).items():
            if name.endswith("num_batches_tracked"):
                continue
            if name not in self.table:
                raise KeyError(f"{name} {tuple(p.shape)} has no name here")
            value = self.of("param", name)
            if value is None and isinstance(self.table[name][0], float):
                value = torch.full(p.shape, self.table[name][0])
            if value is None or value.shape != p.shape:
                raise ValueError(f"{name} {tuple(p.shape)} is {self.table[name][0]} {None if value is None else tuple(value.shape)} here")
            with torch.no_grad():
                p.copy_(value)
        return module

    def gradients(self, module):
        """(theirs, ours) by the published name, of parameters that are there on both sides."""
        both = {name: (p.grad, self.of("grad", name)) for name, p in module.named_parameters() if p.grad is not None}
        return {k: v for k, v in both.items() if v[1] is not None}


def largest(x):
    return x.abs().max().item() if x.numel() else 0.0


def printed(ours, found):
    """Numbers of an evaluation with as many digits as ours."""
    return {k: f"{v:.{len(ours.recalls[k].split('.')[1])}f}" for k, v in found.items()}


def differ(ours, found):
    """Numbers that are not printed alike."""
    return [f"{k} is {ours.recalls[k]}, published {v}" for k, v in printed(ours, found).items() if v != ours.recalls[k]]


def keep(ours, r):
    """What a test without Python compares of a result: losses, some scores by their place, recalls, and by our names the
    products of published gradients with the cosines of 1, 2, 3 and so on, with their lengths."""
    found = r.recalls or r.evaluate and r.evaluate(r.scores.numpy()) or {}
    kept = {"losses": r.losses, "recalls": printed(ours, found)}
    scores = {"scores": r.scores} if r.scores is not None and r.undecided is None else {}
    kept["scores"] = {name: {int(i): x.flatten()[i].item() for i in range(0, x.numel(), max(1, x.numel() // 8))} for name, x in (scores | r.others).items()}
    kept["gradients"], names = {}, {}
    most = max((largest(theirs) for theirs, _ in r.gradients.values()), default=0)
    for name in ours.part("grad/"):
        names.setdefault(ours["grad/" + name].numel(), []).append(name)
    for theirs, have in r.gradients.values():
        for name in names.get(have.numel(), []):
            if torch.equal(ours["grad/" + name].flatten(), have.flatten()) and largest(theirs) > 1e-6 * max(1, most):  # in our order; below, it is rounding
                x = theirs.double().flatten()
                kept["gradients"][name] = [(x * torch.arange(1, len(x) + 1).double().cos()).sum().item(), x.norm().item()]
    return kept


def share(a, b, most):
    """The largest difference of two gradients relative to the largest element of the first; below, it is rounding of what is 0."""
    size = largest(a) if largest(a) > 1e-7 * most else most
    return largest(a.double() - b.double()) / max(size, 1e-30)


def own_rounding(r, path, single):
    """How far the published gradients in float32, which are kept in a file, are from those in float64."""
    have = {name: theirs.detach() for name, (theirs, _) in r.gradients.items()}
    if single:
        torch.save(have, path)
        return 0.0
    kept, most = torch.load(path), max(map(largest, have.values()), default=0)
    return max((share(x, kept[name], most) for name, x in have.items()), default=0)


def measure(ours, r, bound=GRADIENT):
    """Returns the figures of a comparison, and what misses a bound; bound is that of gradients."""
    figures, missed = {}, []
    if r.scores is not None:
        apart = r.scores.double() - ours["scores"].double()
        if r.undecided is not None:
            apart, figures["undecided"] = apart[~r.undecided], f"{r.undecided.sum()} of {r.undecided.numel()} pairs undecided"
        figures["scores"] = largest(apart)
        if not figures["scores"] <= SCORES:
            missed.append(f"scores differ by {figures['scores']:.1e}")
    for name, theirs in r.others.items():
        d = largest(theirs.double() - ours[name].double())
        figures["scores"] = max(figures.get("scores", 0), d)
        if not d <= SCORES:
            missed.append(f"{name} differs by {d:.1e}")
    for name, value in r.losses.items():
        have = ours[name].item()
        d = abs(value - have) / max(abs(value), 1e-12)
        figures["loss"] = max(figures.get("loss", 0), d)
        if not d <= LOSS:
            missed.append(f"{name} is {have}, published {value}")
    most = max((largest(a) for a, _ in r.gradients.values()), default=0)
    for name, (theirs, have) in r.gradients.items():
        d = share(theirs, have, most)
        figures["gradients"] = max(figures.get("gradients", 0), d)
        if not d <= bound:
            missed.append(f"gradient of {name} differs by {d:.1e} of {largest(theirs):.1e}")
    found = r.recalls or r.evaluate and r.evaluate(r.scores.numpy())
    if found:
        figures["recalls"] = "equal"
        if differ(ours, found) and r.evaluate:  # near ties fall otherwise by rounding
            found, figures["recalls"] = r.evaluate(ours["scores"].numpy()), "equal on our scores"
        missed += differ(ours, found)
        if differ(ours, found):
            figures["recalls"] = "differ"
    figures["parameters"] = len(r.gradients)
    if r.gradients:
        compared = {k[5:] for k in ours.read if k.startswith("grad/")}
        for name in {k for k in ours.part("grad/") if "gssf" not in k} - compared:  # published hosts have no metric
            missed.append(f"{name} has no counterpart")
    return figures, missed
