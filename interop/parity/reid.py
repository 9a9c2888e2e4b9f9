"""fast-reid (JDAI-CV/fast-reid): its triplet loss with hard mining on unit features, its cross-entropy with label smoothing, and
its evaluation by the rule of Market-1501. Its distance is 2 - 2 cos and here -cos, so its margin and loss are twice as large;
its smoothing leaves out the own class of a row, so its share is smaller by a class."""
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

import published
import towers
from ours import Names, Result

FOLDER, PYTHON2 = "fast-reid", False
CASES = {"triplets and identities": ("reid", [])}
LOSSES = "fastreid/modeling/losses/"


def run(ours, case):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.vit = towers.vit(ours)
            dim, width = ours["param/image_proj/weight"].shape
            self.proj, self.classes = nn.Linear(width, dim, bias=False), nn.Linear(dim, len(ours["param/softmax/weight"]), bias=False)

        def forward(self, x):
            return F.normalize(self.proj(self.vit.forward_features(x)[:, 0]), dim=1)

    m = Model()
    names = Names(ours, towers.table(ours, m.vit, "vit.") | {"proj.weight": "image_proj/weight", "classes.weight": "softmax/weight"})
    names.give(m)
    cosine = published.function(LOSSES + "utils.py", "cosine_dist", torch=torch, F=F)
    mining = published.function(LOSSES + "triplet_loss.py", "hard_example_mining", torch=torch)
    triplet = published.function(LOSSES + "triplet_loss.py", "triplet_loss", torch=torch, F=F, cosine_dist=cosine, hard_example_mining=mining)
    cross_entropy = published.function(LOSSES + "cross_entroy_loss.py", "cross_entropy_loss", torch=torch, F=F)
    features, ids, count = m(ours["input/images"]), ours["input/ids"], m.classes.out_features
    near = triplet(features, ids, margin=2 * 0.3, norm_feat=True, hard_mining=True) / 2
    known = cross_entropy(m.classes(features), ids, eps=0.1 * (count - 1) / count)
    (near + known).backward()

    rank = published.function("fastreid/evaluation/rank.py", "eval_market1501", np=np)
    distance = published.function("fastreid/utils/compute_dist.py", "compute_cosine_distance", torch=torch, F=F)
    with torch.no_grad():
        found = m(ours["eval/images"])
    features, people, cameras, n = ours["eval/features"], ours["eval/identities"].numpy(), ours["eval/cameras"].numpy(), 40
    cmc, precision, penalty = rank(distance(features[:n], features[n:]), people[:n], people[n:], cameras[:n], cameras[n:], 100)
    recalls = {f"r{k}": 100 * cmc[k - 1] for k in (1, 5, 10, 100)} | {"map": 100 * np.mean(precision), "minp": 100 * np.mean(penalty)}
    losses = {"loss": (near + known).item(), "loss/triplet": near.item(), "loss/softmax": known.item()}
    return Result(found, losses, names.gradients(m), recalls=recalls)
