"""MoCo (facebookresearch/moco, a commit before its files were removed): forward, loss and queue of its builder around a vision
transformer. Here a batch is compared with the queue as it leaves it, where its other keys stand in the place of the oldest: each
query passes alone, with such a queue."""
import types

import torch
from torch import nn

import towers
from hosts import linear
from ours import Names, Result

FOLDER, PYTHON2, DOUBLE, FLAGS = "moco", False, False, ["-rows", "16"]  # as many forward passes
CASES = {"v2 head": ("geomm-moco", ["objective.itc.in_batch_weight=0", "model.views.hidden=0"])}


def run(ours, case):
    import moco.builder as builder

    class Encoder(nn.Module):
        def __init__(self, num_classes):
            super().__init__()
            self.vit = towers.vit(ours)
            self.fc = nn.Linear(self.vit.embed_dim, num_classes)

        def forward(self, x):
            return self.fc(self.vit.forward_features(x)[:, 0])

    builder.concat_all_gather = lambda x: x
    queue, temperature = ours["queue/image"].T, ours["param/temperature"].item()
    m = builder.MoCo(Encoder, dim=len(queue), K=queue.shape[1], m=1.0, T=temperature, mlp=True)
    m._batch_shuffle_ddp, m._batch_unshuffle_ddp = lambda x: (x, None), lambda x, i: x
    table = towers.table(ours, m.encoder_q.vit, "vit.") | linear("fc.0", "image_proj/fc1") | linear("fc.2", "image_proj/fc2")
    names = Names(ours, table)
    names.give(m.encoder_q)
    for name, p in m.encoder_k.named_parameters():
        p.data.copy_(names.of("momentum", name))

    first, second = ours["input/images"], ours["input/images/2"]
    with torch.no_grad():
        keys = nn.functional.normalize(m.encoder_k(second), dim=1)
    enqueue, m._dequeue_and_enqueue = m._dequeue_and_enqueue, lambda keys: None
    loss, criterion = 0, nn.CrossEntropyLoss()
    for i in range(len(first)):
        m.queue = torch.cat([queue[:, len(keys) :], keys[:i].T, keys[i + 1 :].T], 1)
        loss = loss + criterion(*m(im_q=first[i : i + 1], im_k=second[i : i + 1])) / len(first)
    loss.backward()
    m.queue = queue.clone()
    enqueue(keys)
    with torch.no_grad():
        features = nn.functional.normalize(m.encoder_q(ours["eval/images"]), dim=1)
    return Result(features, {"loss": loss.item()}, names.gradients(m.encoder_q), others={"queued/image": m.queue.T})
