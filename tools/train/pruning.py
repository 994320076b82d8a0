"""Takes away the attention heads that a model needs least, as `mulciber heads` names them.

How much a head matters is the mean of |d loss / d (a factor on the head's output)| over batches of the validation set,
divided by the length of the vector of these numbers in its layer (Michel et al. 2019, arXiv:1905.10650, section 4.1).
"""

import torch


def attentions(model):
    """(name, module) of every attention of a transformer: encoder.L, decoder.L, cross.L."""
    for i, layer in enumerate(model.encoder):
        yield f"encoder.{i}", layer.self_attn
    for i, layer in enumerate(model.decoder):
        yield f"decoder.{i}", layer.self_attn
        yield f"cross.{i}", layer.encoder_attn


def importance(model, batches) -> dict[tuple[str, int], float]:
    """Of every head that is left."""
    model.eval()
    found = dict(attentions(model))
    sums = {name: torch.zeros(module.heads) for name, module in found.items()}
    factors = [module.kept.requires_grad_() for module in found.values()]
    for source, target in batches:
        loss, _ = model.loss(source, target, 0.0, torch.float32)
        for name, gradient in zip(found, torch.autograd.grad(loss, factors)):
            sums[name] += gradient.abs()
    for factor in factors:
        factor.requires_grad_(False)
    return {(name, head): float(sums[name][head] / sums[name].norm())
            for name, module in found.items() for head in range(module.heads) if module.kept[head]}


def prune_heads(model, count: int, batches) -> None:
    """Takes heads away until `count` are gone in all."""
    scores = importance(model, batches)
    found = dict(attentions(model))
    gone = sum(module.heads for module in found.values()) - len(scores)
    for name, head in sorted(scores, key=scores.get)[: max(0, count - gone)]:
        found[name].kept[head] = 0


def names_of_pruned(model) -> list[str]:
    return [f"{name}.{head}" for name, module in attentions(model) for head in range(module.heads) if not module.kept[head]]
