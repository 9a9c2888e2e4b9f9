"""Writes weights/testdata/resnet18 and resnet_hf: narrow residual networks with random weights, as torchvision saves a state dict and
transformers a model, and what they compute of some images.

    venv/bin/python tools/goldens/weights_resnet.py       # from the root of the repository

Needs torch, torchvision, transformers and safetensors. Last run with torch 2.15, torchvision 0.29, transformers 5.23. expected.safetensors has
the images (pixel_values), the places of the last layer (hidden, (N, P, D)) and their mean (pooled).
"""

import json
import os
import shutil

import torch
import transformers as T
from safetensors.torch import save_file
from torch import nn
from torchvision.models.resnet import BasicBlock, ResNet

ROOT = "weights/testdata/"
WIDTH, SIZE = 2, 40
gen = torch.Generator().manual_seed(23)
pixels = torch.randn(2, 3, SIZE, SIZE, generator=gen)


def randomise(model):
    with torch.no_grad():
        for name, x in sorted(model.state_dict().items()):
            if x.dtype == torch.float32 and x.dim() < 4:
                x.copy_(0.3 * torch.randn(x.shape, generator=gen).abs() + (0.7 if name.endswith("var") else 0.2))
    return model.eval()


def folder(name):
    shutil.rmtree(ROOT + name, ignore_errors=True)
    os.makedirs(ROOT + name)
    return ROOT + name + "/"


def expect(name, hidden):
    hidden = hidden.flatten(2).transpose(1, 2)
    save_file({"pixel_values": pixels, "hidden": hidden.detach().contiguous(), "pooled": hidden.mean(1).detach().contiguous()}, ROOT + name + "/expected.safetensors")


class Narrow(ResNet):
    """ResNet-18 of torchvision with fewer channels."""

    def __init__(self):
        super().__init__(BasicBlock, (2, 2, 2, 2), num_classes=3)
        self.inplanes, self.conv1, self.bn1 = WIDTH, nn.Conv2d(3, WIDTH, 7, 2, 3, bias=False), nn.BatchNorm2d(WIDTH)
        for i in range(4):
            setattr(self, f"layer{i + 1}", self._make_layer(BasicBlock, WIDTH << i, 2, stride=1 if i == 0 else 2))
        self.fc = nn.Linear(8 * WIDTH, 3)

    def hidden(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        return self.layer4(self.layer3(self.layer2(self.layer1(x))))


torch.manual_seed(23)
model = randomise(Narrow())
torch.save(model.state_dict(), folder("resnet18") + "resnet18.pth")
expect("resnet18", model.hidden(pixels))

config = T.ResNetConfig(embedding_size=WIDTH, hidden_sizes=[4 * WIDTH << i for i in range(4)], depths=[3, 4, 6, 3], layer_type="bottleneck")
model = randomise(T.ResNetForImageClassification(config))
model.save_pretrained(folder("resnet_hf"))
with open(ROOT + "resnet_hf/preprocessor_config.json", "w") as f:
    json.dump({"crop_pct": 0.875, "do_normalize": True, "do_resize": True, "image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225],
               "image_processor_type": "ConvNextImageProcessor", "resample": 3, "size": {"shortest_edge": SIZE}}, f, indent=1)
expect("resnet_hf", model.resnet(pixel_values=pixels).last_hidden_state)
