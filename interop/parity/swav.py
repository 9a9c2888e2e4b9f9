"""SwAV (facebookresearch/swav): a step of its training with a full queue, heads and codes of its own code, around a vision
transformer. It keeps a queue for each view, here one: both have the same features."""
import time
import types

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

import published
import towers
from hosts import linear
from ours import Names, Result

FOLDER, PYTHON2 = "swav", False
CASES = {"two views": ("geomm-swav", [])}


class Meter:
    def update(self, value, n=1):
        self.avg = value


def run(ours, case):
    import src.resnet50 as resnets

    class Model(nn.Module):
        forward, forward_head = resnets.ResNet.forward, resnets.ResNet.forward_head

        def __init__(self):
            super().__init__()
            self.vit = towers.vit(ours)
            hidden, width = ours["param/image_proj/fc1/weight"].shape
            count, dim = ours["param/prototypes"].shape
            self.projection_head = nn.Sequential(nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, dim))
            self.prototypes, self.l2norm = nn.Linear(dim, count, bias=False), True

        def forward_backbone(self, x):
            return self.vit.forward_features(x)[:, 0]

        @property
        def module(self):
            return self

    m = Model()
    table = towers.table(ours, m.vit, "vit.") | linear("projection_head.0", "image_proj/fc1") | linear("projection_head.2", "image_proj/fc2") | {"prototypes.weight": "prototypes"}
    names = Names(ours, table)
    names.give(m)
    args = types.SimpleNamespace(
        crops_for_assign=[0, 1], nmb_crops=[2], temperature=ours["param/temperature"].item(), epsilon=0.02, sinkhorn_iterations=3, world_size=1, rank=1, use_fp16=False, freeze_prototypes_niters=0)
    sinkhorn = published.function("main_swav.py", "distributed_sinkhorn", torch=torch, args=args, dist=types.SimpleNamespace(all_reduce=lambda x: None))
    train = published.function("main_swav.py", "train", torch=torch, nn=nn, F=F, np=np, time=time, args=args, AverageMeter=Meter, distributed_sinkhorn=sinkhorn)
    optimizer = types.SimpleNamespace(param_groups=[{}], zero_grad=m.zero_grad, step=lambda: None)
    views = [ours["input/images"], ours["input/images/2"]]
    queue = ours["queue/image"].repeat(2, 1, 1)
    (_, loss), queue = train([views], m, optimizer, 0, [0.0], queue)
    n = len(views[0])
    ring = torch.cat([queue[0, :n], ours["queue/image"][n:]])  # the newest stand where the pointer was here
    with torch.no_grad():
        features, _ = m.eval()([ours["eval/images"]])
    return Result(features, {"loss": loss}, names.gradients(m), others={"queued/image": ring})
