"""Golden residual networks for model/resnet_golden_test.go.

Networks of torchvision's blocks at reduced widths with random weights: the tokens of images, which are the mean of the places of
the last layer and then the places, and for a loss over them the gradient of every parameter and the running statistics after the
pass. Variants of the first network freeze some of its stages or all of its batch norms (torchvision's FrozenBatchNorm2d), and those of
both are as in inference. Parameters have the names that the Go code gives them.

Run from the root of the repository with a Python that has torch, torchvision and safetensors; the last run was with torch
2.15 and torchvision 0.29:

    python tools/goldens/resnet.py

Writes model/testdata/resnet_*.safetensors.
"""

import copy
import re

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import nn
from torchvision.models.resnet import BasicBlock, Bottleneck, ResNet
from torchvision.ops.misc import FrozenBatchNorm2d

BLOCKS = {18: (BasicBlock, (2, 2, 2, 2)), 34: (BasicBlock, (3, 4, 6, 3)), 50: (Bottleneck, (3, 4, 6, 3)), 101: (Bottleneck, (3, 4, 23, 3))}
N, READ = 4, 3


class Narrow(ResNet):
    """A network of torchvision of another width, with its own stages."""

    def __init__(self, depth, width, small_stem):
        nn.Module.__init__(self)
        block, counts = BLOCKS[depth]
        self._norm_layer, self.groups, self.base_width, self.dilation, self.inplanes = nn.BatchNorm2d, 1, 64, 1, width
        self.conv1 = nn.Conv2d(3, width, 3, 1, 1, bias=False) if small_stem else nn.Conv2d(3, width, 7, 2, 3, bias=False)
        self.bn1, self.relu = nn.BatchNorm2d(width), nn.ReLU(inplace=True)
        self.maxpool = nn.Identity() if small_stem else nn.MaxPool2d(3, 2, 1)
        for i, n in enumerate(counts):
            setattr(self, f"layer{i + 1}", self._make_layer(block, width << i, n, stride=1 if i == 0 else 2))
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(m, nn.BatchNorm2d):
                m.weight.data.add_(0.3 * torch.randn_like(m.weight))
                m.bias.data.copy_(0.3 * torch.randn_like(m.bias))
        for m in self.modules():  # what a block adds is small, else the network is so ill-conditioned that float32 shows
            if isinstance(m, block):
                (m.bn3 if block is Bottleneck else m.bn2).weight.data.mul_(0.3)

    def tokens(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        for i in range(1, 5):
            x = getattr(self, f"layer{i}")(x)
        places = x.flatten(2).transpose(1, 2)  # (N, P, D)
        return torch.cat([places.mean(1, keepdim=True), places], 1)

    def parts(self):
        return [nn.ModuleList([self.conv1, self.bn1]), self.layer1, self.layer2, self.layer3, self.layer4]


def ours(name):
    """layer1.0.downsample.1.weight is image/layer1/00/downsample/1/weight."""
    name = re.sub(r"^(layer\d)\.(\d+)\.", lambda m: f"{m[1]}/{int(m[2]):02d}/", name)
    return "image/" + name.replace(".", "/")


def freeze_norms(module):
    for name, child in module.named_children():
        if isinstance(child, nn.BatchNorm2d):
            frozen = FrozenBatchNorm2d(child.num_features, eps=child.eps).double()
            frozen.load_state_dict(child.state_dict())
            setattr(module, name, frozen)
        else:
            freeze_norms(child)


def variant(out, name, model, images, read, stages=0, frozen_norm=False, train=True):
    model = copy.deepcopy(model)
    model.train(train)
    for part in model.parts()[:stages]:
        part.eval()
        part.requires_grad_(False)
    if frozen_norm:
        freeze_norms(model)
    tokens = model.tokens(images)
    out[f"{name}/tokens"] = tokens.reshape(-1, tokens.shape[-1])
    if not train:
        return
    loss = F.gelu(tokens @ read.T).sum()
    loss.backward()
    out[f"{name}/loss"] = loss
    for key, p in model.named_parameters():
        if p.requires_grad:
            out[f"{name}/grad/{ours(key)}"] = p.grad
    for key, b in model.named_buffers():
        if "running_" in key and not frozen_norm:
            out[f"{name}/after/{ours(key)}"] = b


def network(name, seed, depth, width, size, small_stem, frozen):
    torch.manual_seed(seed)
    model = Narrow(depth, width, small_stem).double().train()
    for _ in range(30):  # running statistics of such images
        model.tokens(torch.randn(8, 3, size, size).double())
    images = torch.randn(N, 3, size, size).float().double()
    model = model.float().double()  # values that the file holds
    read = (0.5 * torch.randn(READ, 8 * width * BLOCKS[depth][0].expansion)).float().double()
    out = {"images": images, "read": read}
    out |= {f"param/{ours(k)}": v for k, v in model.state_dict().items() if "num_batches" not in k}
    variant(out, "train", model, images, read)
    if frozen:
        variant(out, "stages", model, images, read, stages=2)
        variant(out, "norm", model, images, read, frozen_norm=True)
    variant(out, "eval", model, images, read, train=False)
    save_file({k: v.detach().float().clone().contiguous() for k, v in out.items()}, f"model/testdata/resnet_{name}.safetensors")
    print(name, out["train/loss"].item(), images.shape)


network("18", 1, depth=18, width=2, size=9, small_stem=True, frozen=True)
network("50", 3, depth=50, width=2, size=64, small_stem=False, frozen=False)
