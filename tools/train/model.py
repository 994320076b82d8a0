"""The Marian transformer, written for short sentences on a few CPU cores.

Same function as Hugging Face's MarianMTModel (post-layer-norm, sinusoidal positions, one embedding for
source, target and output), arranged to train fast: query, key and value are one product, dropout draws from a
bank of masks, and the output layer with its loss runs in blocks that stay in the cache.
"""

import math

import torch
from torch import nn
from torch.nn import functional as F


class MaskBank:
    """Dropout masks cut from one array of pre-drawn, pre-scaled decisions at random offsets.

    Torch draws CPU dropout masks on one thread with a Mersenne twister: ten times the cost of the product before
    it. A slice of the bank costs one memory read. The bank is redrawn for every epoch.
    """

    SIZE = 1 << 23

    def __init__(self):
        self.banks = {}
        self.rate = 0.0

    def redraw(self, rate: float) -> None:
        self.rate = rate
        kept = torch.empty(self.SIZE).bernoulli_(1 - rate).div_(1 - rate)
        self.banks = {t: kept.to(t) for t in (torch.float32, torch.bfloat16)}

    def apply(self, x: torch.Tensor) -> torch.Tensor:
        """x: any shape of at most SIZE elements; returns x with elements dropped, the others scaled up."""
        start = int(torch.randint(self.SIZE - x.numel() + 1, ()))
        return x * self.banks[x.dtype][start : start + x.numel()].view(x.shape)


class Attention(nn.Module):
    """Multi-head attention; self-attention where `memory` is absent, else attention to `memory`."""

    def __init__(self, d_model: int, heads: int, cross: bool):
        super().__init__()
        self.heads = heads
        self.cross = cross
        self.register_buffer("kept", torch.ones(heads))  # 0 where a head has been pruned
        # Rows of `project`: query, key, value. Xavier per part, as if they were three layers.
        self.project = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)
        for part in self.project.weight.detach().chunk(3):
            nn.init.xavier_uniform_(part)
        nn.init.xavier_uniform_(self.out.weight)
        nn.init.zeros_(self.project.bias)
        nn.init.zeros_(self.out.bias)

    def forward(self, x, memory=None, mask=None):
        """x: (batch, n, d); memory: (batch, m, d); mask: added to the scores, broadcast to (batch, heads, n, m)."""
        d = x.shape[-1]
        if self.cross:
            q = F.linear(x, self.project.weight[:d], self.project.bias[:d])
            k, v = F.linear(memory, self.project.weight[d:], self.project.bias[d:]).chunk(2, -1)
        else:
            q, k, v = self.project(x).chunk(3, -1)
        q, k, v = (t.float().unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in (q, k, v))
        # Torch's fused attention takes ten times as long on rows this short, most of it in the backward pass.
        with torch.autocast("cpu", enabled=False):
            scores = (q * q.shape[-1] ** -0.5) @ k.transpose(-1, -2)
            if mask is not None:
                scores = scores + mask.to(scores.dtype)
            mixed = scores.softmax(-1) @ v * self.kept[:, None, None]
        return self.out(mixed.transpose(1, 2).flatten(2))


class Layer(nn.Module):
    """An encoder layer, or with `cross` a decoder layer."""

    def __init__(self, d_model, heads, ffn, cross, masks: MaskBank):
        super().__init__()
        self.masks = masks
        self.self_attn = Attention(d_model, heads, cross=False)
        self.self_attn_layer_norm = nn.LayerNorm(d_model)
        if cross:
            self.encoder_attn = Attention(d_model, heads, cross=True)
            self.encoder_attn_layer_norm = nn.LayerNorm(d_model)
        self.fc1 = nn.Linear(d_model, ffn)
        self.fc2 = nn.Linear(ffn, d_model)
        self.final_layer_norm = nn.LayerNorm(d_model)
        for linear in (self.fc1, self.fc2):
            nn.init.xavier_uniform_(linear.weight)
            nn.init.zeros_(linear.bias)

    def residual(self, x, change):
        return x + (self.masks.apply(change) if self.training else change)

    def forward(self, x, self_mask=None, memory=None, memory_mask=None):
        x = self.self_attn_layer_norm(self.residual(x, self.self_attn(x, mask=self_mask)))
        if memory is not None:
            change = self.encoder_attn(x, memory, mask=memory_mask)
            x = self.encoder_attn_layer_norm(self.residual(x, change))
        change = self.fc2(F.relu(self.fc1(x)))
        return self.final_layer_norm(self.residual(x, change))


class SmoothedCrossEntropy(torch.autograd.Function):
    """Output layer and label-smoothed cross entropy in one, block of rows by block of rows.

    The whole logits (2,500 tokens x 6,000 pieces) would make five trips through main memory; a block is made,
    turned into its own gradient and used while still in the cache. Gradients are ready when `forward` returns.
    """

    ROWS = 256

    @staticmethod
    def forward(ctx, x, weight, bias, labels, smoothing, compute_type):
        """x: (n, d); weight: (V, d); bias: (V); labels: (n). Returns the mean loss and the mean of -log p(label)."""
        with torch.autocast("cpu", enabled=False):
            n, pieces = len(labels), len(bias)
            w = weight.to(compute_type)
            grad_x = []
            grad_w = torch.zeros(weight.shape)
            grad_b = torch.zeros(pieces)
            surprise = torch.zeros(())
            spread = torch.zeros(())
            for rows, label in zip(x.to(compute_type).split(SmoothedCrossEntropy.ROWS),
                                   labels.split(SmoothedCrossEntropy.ROWS)):
                logp = ((rows @ w.T).float() + bias).log_softmax(-1)
                label = label[:, None]
                surprise -= logp.gather(1, label).sum()
                spread -= logp.mean(-1).sum()
                grad = logp.exp_().sub_(smoothing / pieces)
                grad.scatter_add_(1, label, torch.full(label.shape, smoothing - 1.0))
                grad_b += grad.sum(0)
                grad = grad.to(compute_type)
                grad_x.append((grad @ w).float())
                grad_w += grad.T @ rows
            grad_x = torch.cat(grad_x)
            for grad in (grad_x, grad_w, grad_b):
                grad.div_(n)
            ctx.save_for_backward(grad_x, grad_w, grad_b)
            return ((1 - smoothing) * surprise + smoothing * spread) / n, surprise / n

    @staticmethod
    def backward(ctx, grad_loss, _):
        return *(grad * grad_loss for grad in ctx.saved_tensors), None, None, None


def sinusoids(positions: int, d_model: int) -> torch.Tensor:
    """(positions, d_model): sines in the first half, cosines in the second (Vaswani et al. 2017 interleave them)."""
    rates = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
    angles = torch.arange(positions)[:, None] * rates
    return torch.cat([angles.sin(), angles.cos()], -1)


class Marian(nn.Module):
    def __init__(self, pieces, d_model, layers, heads, ffn, positions=512):
        super().__init__()
        self.masks = MaskBank()
        self.d_model = d_model
        self.pad = pieces - 1
        self.shared = nn.Embedding(pieces, d_model)
        nn.init.normal_(self.shared.weight, std=d_model**-0.5)
        self.final_logits_bias = nn.Parameter(torch.zeros(pieces))
        self.encoder = nn.ModuleList(Layer(d_model, heads, ffn, False, self.masks) for _ in range(layers))
        self.decoder = nn.ModuleList(Layer(d_model, heads, ffn, True, self.masks) for _ in range(layers))
        self.register_buffer("positions", sinusoids(positions, d_model), persistent=False)

    def embed(self, ids):
        x = self.shared(ids) * self.d_model**0.5 + self.positions[: ids.shape[1]]
        return self.masks.apply(x) if self.training else x

    def encode(self, source):
        """source: (batch, m), padded at the end. Returns the memory (batch, m, d) and its mask or None."""
        padding = (source == self.pad)[:, None, None, :]
        mask = torch.zeros(padding.shape).masked_fill_(padding, -math.inf) if padding.any() else None
        x = self.embed(source)
        for layer in self.encoder:
            x = layer(x, self_mask=mask)
        return x, mask

    def decode(self, target, memory, mask):
        """target: (batch, n), starting with the padding piece. Padding after it is harmless: attention is causal."""
        x = self.embed(target)
        causal = torch.full((target.shape[1],) * 2, -math.inf).triu_(1)
        for layer in self.decoder:
            x = layer(x, self_mask=causal, memory=memory, memory_mask=mask)
        return x

    def loss(self, source, target, smoothing, compute_type):
        """target: (batch, n) with `</s>` and no start piece. Returns the smoothed loss and -log p(piece), means."""
        start = torch.full_like(target[:, :1], self.pad)
        x = self.decode(torch.cat([start, target[:, :-1]], 1), *self.encode(source))
        real = target != self.pad
        return SmoothedCrossEntropy.apply(x[real], self.shared.weight, self.final_logits_bias, target[real],
                                          smoothing, compute_type)

    @torch.no_grad()
    def greedy(self, source, eos, longest):
        """source: (batch, m). Returns a list of id lists without `</s>`. Recomputes the prefix: sentences are short."""
        memory, mask = self.encode(source)
        out = torch.full((len(source), 1), self.pad)
        ended = torch.zeros(len(source), dtype=torch.bool)
        while out.shape[1] <= longest and not ended.all():
            last = self.decode(out, memory, mask)[:, -1]
            logits = last.float() @ self.shared.weight.T + self.final_logits_bias
            logits[:, self.pad] = -math.inf
            piece = logits.argmax(-1).masked_fill(ended, eos)
            ended |= piece == eos
            out = torch.cat([out, piece[:, None]], 1)
        return [row[: row.index(eos)] if eos in row else row for row in out[:, 1:].tolist()]
