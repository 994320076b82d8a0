#!/usr/bin/env python3
"""Trains the graph attention network of examples/graph_attention.cpp on Zachary's karate club, and writes it as text.

    tools/train/karate.py --export examples/karate

The graph: 34 members of a club, and the 78 pairs of them who met outside of it; the club split in two (Zachary 1977,
doi:10.1086/jar.33.4.3629752). The network, of two GATv2 layers (arXiv:2105.14491), sees who knows whom, and of two
members where they went: the instructor (node 0) and the president (node 33). It predicts the other 32.
"""

import argparse
import time
from pathlib import Path

import torch
from torch.nn import functional

ROOT = Path(__file__).resolve().parents[2]
LEADERS = (0, 33)  # the members whose club the network is told; the others are looked at once, at the end


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--data", type=Path, default=ROOT / "examples/karate", help="folder with edges.txt and clubs.txt")
    add("--export", type=Path, default=ROOT / "examples/karate", help="folder that gets model.txt and expected.txt")
    add("--heads", type=int, default=4)
    add("--size", type=int, default=4, help="columns of a head of the first layer")
    add("--epochs", type=int, default=300)
    add("--rate", type=float, default=1e-2)
    add("--decay", type=float, default=5e-3, help="weight decay")
    add("--dropout", type=float, default=0.5, help="of the edges' weights and of what goes into the second layer")
    add("--seed", type=int, default=1977)
    return parser.parse_args()


def read_graph(folder: Path):
    """Targets and sources of all edges, both ways and with self-loops, ordered by target, then source."""
    pairs = [tuple(map(int, line.split())) for line in (folder / "edges.txt").read_text().splitlines()]
    clubs = torch.tensor([int(line) for line in (folder / "clubs.txt").read_text().split()])
    nodes = len(clubs)
    edges = {(a, b) for a, b in pairs} | {(b, a) for a, b in pairs} | {(n, n) for n in range(nodes)}
    ordered = torch.tensor(sorted(edges))
    return ordered[:, 0], ordered[:, 1], clubs


class GraphAttention(torch.nn.Module):
    def __init__(self, columns: int, heads: int, size: int, averaged: bool):
        super().__init__()
        self.heads, self.size, self.averaged = heads, size, averaged
        self.query = torch.nn.Linear(columns, heads * size)  # of the node that attends
        self.key = torch.nn.Linear(columns, heads * size)  # of its neighbours, and what is taken from them
        self.vector = torch.nn.Parameter(torch.empty(heads, size))
        torch.nn.init.xavier_uniform_(self.vector)

    def forward(self, x, target, source, dropout):
        nodes = len(x)
        q = self.query(x).view(nodes, self.heads, self.size)
        k = self.key(x).view(nodes, self.heads, self.size)
        scores = (functional.leaky_relu(q[target] + k[source], 0.2) * self.vector).sum(-1)
        weights = torch.exp(scores - scores.amax(0))
        total = torch.zeros(nodes, self.heads, dtype=x.dtype).index_add(0, target, weights)
        weights = weights / total[target]
        kept = functional.dropout(weights, dropout, self.training)
        y = torch.zeros(nodes, self.heads, self.size, dtype=x.dtype)
        y = y.index_add(0, target, kept[:, :, None] * k[source])
        return (y.mean(1) if self.averaged else y.flatten(1)), weights


class Network(torch.nn.Module):
    def __init__(self, nodes: int, options):
        super().__init__()
        self.dropout = options.dropout
        self.first = GraphAttention(nodes, options.heads, options.size, averaged=False)
        self.second = GraphAttention(options.heads * options.size, options.heads, 2, averaged=True)

    def forward(self, target, source):
        # A member is known by its number alone.
        x = torch.eye(int(target.max()) + 1, dtype=self.first.vector.dtype)
        hidden, near = self.first(x, target, source, self.dropout)
        hidden = functional.dropout(functional.elu(hidden), self.dropout, self.training)
        logits, far = self.second(hidden, target, source, self.dropout)
        return logits, near, far


def numbers(tensor) -> str:
    rows = tensor.reshape(-1, tensor.shape[-1]).tolist()
    return "\n".join(" ".join(f"{value:.6g}" for value in row) for row in rows)


def export(model: Network, target, source, folder: Path) -> None:
    """Weights as a name, extents and numbers; what the network computes of the numbers as written, in float64."""
    with (folder / "model.txt").open("w") as file:
        for name, tensor in model.state_dict().items():
            file.write(f"{name} {' '.join(map(str, tensor.shape))}\n{numbers(tensor)}\n")
    model.double()
    for name, tensor in model.state_dict().items():
        tensor.copy_(torch.tensor([float(f"{value:.6g}") for value in tensor.flatten()],
                                  dtype=torch.float64).view_as(tensor))
    with torch.no_grad():
        logits, near, far = model(target, source)
    with (folder / "expected.txt").open("w") as file:
        for name, tensor in (("logits", logits), ("first.weights", near), ("second.weights", far)):
            rows = "\n".join(" ".join(f"{value:.9g}" for value in row) for row in tensor.tolist())
            file.write(f"{name} {' '.join(map(str, tensor.shape))}\n{rows}\n")


def main() -> None:
    options = arguments()
    torch.manual_seed(options.seed)
    torch.set_num_threads(1)
    began = time.monotonic()
    target, source, clubs = read_graph(options.data)
    model = Network(len(clubs), options)
    known = torch.tensor(LEADERS)
    optimizer = torch.optim.Adam(model.parameters(), lr=options.rate, weight_decay=options.decay)
    for epoch in range(options.epochs):
        model.train()
        logits, _, _ = model(target, source)
        loss = functional.cross_entropy(logits[known], clubs[known])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if epoch % 50 == 49:
            print(f"epoch {epoch + 1}: loss {loss.item():.4f}", flush=True)
    model.eval()
    with torch.no_grad():
        right = model(target, source)[0].argmax(1) == clubs
    others = [node for node in range(len(clubs)) if node not in LEADERS]
    print(f"{int(right[others].sum())} of {len(others)} members right, in {time.monotonic() - began:.1f} s; wrong:",
          [node for node in others if not right[node]])
    export(model, target, source, options.export)


if __name__ == "__main__":
    main()
