"""Losses in 32 bits. Shape letters: B batch, C channels, Q queue entries, N rows, V classes."""
import torch


def soft_cross_entropy(logits, target):
    return -(target * logits.log_softmax(-1)).sum(-1).mean()


def distilled(teacher, labels, alpha):
    """alpha * softmax(teacher) + (1 - alpha) * one-hot labels, (N, V)."""
    y = teacher.softmax(-1).mul_(alpha)
    return y.scatter_add_(1, labels[:, None], y.new_full((len(labels), 1), 1 - alpha))


def similarities(x, own, queue, temperature):
    """Logits (B, B+Q) of features x (B, C) and those of the batch and the queue."""
    x = x / temperature
    return torch.cat([x @ own.T, x @ queue.T], 1).float()


def in_batch(image, text, temperature):
    """Symmetric contrast of features (B, C) within the batch, with gradient to both sides."""
    s = ((image / temperature) @ text.T).float()
    return (s.logsumexp(0) + s.logsumexp(1)).mean() / 2 - s.diagonal().mean()


def draw_negatives(logits, noise):
    """For each row another index of the batch, drawn by similarity."""
    b = logits.shape[0]
    w = (logits[:, :b].softmax(-1) + 1e-4).fill_diagonal_(0)
    return (w.log() + noise).argmax(-1)


def gumbel(b, device="cpu"):
    return -torch.empty(2, b, b, device=device).exponential_().log_()
