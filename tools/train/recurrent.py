"""The two translation models that attention came from, written for short sentences on a few CPU cores.

Bahdanau: Bahdanau, Cho and Bengio 2015 (arXiv:1409.0473): a bidirectional GRU, additive attention before the cell.
Luong: Luong, Pham and Manning 2015 (arXiv:1508.04025): stacked LSTMs, general attention after them, input feeding.
Cells, gate orders and weight names are PyTorch's. As in the transformer beside them, one embedding serves source,
target and output, and is scaled at the input.

The decoders' loops are short rows of small products: what does not depend on the step (the share of the words in the
gates, the projected memory, the output layer) is computed for all steps at once.
"""

import math

import torch
from torch import nn
from torch.nn import functional as F

from model import MaskBank, SmoothedCrossEntropy


class EncoderDecoder(nn.Module):
    """What both have: embedding, packing, loss and greedy search. decode() takes and returns the decoder's state."""

    def __init__(self, pieces: int, width: int):
        super().__init__()
        self.masks = MaskBank()
        self.pad = pieces - 1
        self.width = width
        self.embedding = nn.Embedding(pieces, width)
        nn.init.normal_(self.embedding.weight, std=width**-0.5)
        self.output_bias = nn.Parameter(torch.zeros(pieces))

    def drop(self, x):
        return self.masks.apply(x.contiguous()) if self.training else x

    def embed(self, ids):
        return self.drop(self.embedding(ids) * self.width**0.5)

    def run_encoder(self, network, x, lengths):
        """x: (batch, m, E). Returns outputs (batch, m, ...) and the final states of a torch.nn network."""
        if int(lengths.min()) == x.shape[1]:
            return network(x)
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        outputs, state = network(packed)
        return nn.utils.rnn.pad_packed_sequence(outputs, batch_first=True, total_length=x.shape[1])[0], state

    def mask_of(self, source):
        """Added to scores of (batch, m): -infinity at padding; None where there is none."""
        padding = source == self.pad
        return torch.zeros(source.shape).masked_fill_(padding, -math.inf) if padding.any() else None

    def logits(self, x):
        return widened(x) @ self.embedding.weight.T + self.output_bias

    def loss(self, source, target, smoothing, compute_type):
        """target: (batch, n) with `</s>` and no start piece. Returns the smoothed loss and -log p(piece), means."""
        start = torch.full_like(target[:, :1], self.pad)
        memory, state = self.encode(source)
        x = self.decode(torch.cat([start, target[:, :-1]], 1), memory, state)[0]
        real = target != self.pad
        return SmoothedCrossEntropy.apply(x[real], self.embedding.weight, self.output_bias, target[real], smoothing,
                                          compute_type)

    @torch.no_grad()
    def greedy(self, source, eos, longest):
        """source: (batch, m). Returns a list of id lists without `</s>`."""
        memory, state = self.encode(source)
        piece = torch.full((len(source),), self.pad)
        ended = torch.zeros(len(source), dtype=torch.bool)
        out = []
        while len(out) < longest and not ended.all():
            x, state, _ = self.decode(piece[:, None], memory, state)
            logits = self.logits(x[:, -1])
            logits[:, self.pad] = -math.inf
            piece = logits.argmax(-1).masked_fill(ended, eos)
            ended |= piece == eos
            out.append(piece)
        rows = torch.stack(out, 1).tolist()
        return [row[: row.index(eos)] if eos in row else row for row in rows]


def widened(x):
    """States and softmax stay f32 under autocast."""
    return x.float() if x.dtype == torch.bfloat16 else x


def narrowed(*tensors):
    """As products want them, once: autocast keeps no copy of what is cut or joined from weights."""
    if not torch.is_autocast_enabled("cpu"):
        return tensors
    return [tensor.to(torch.get_autocast_dtype("cpu")) for tensor in tensors]


def attend(scores, mask, memory):
    """scores: (batch, m); memory: (batch, m, d). Returns the mean of the memory, (batch, d), and its weights."""
    scores = widened(scores)
    weights = (scores if mask is None else scores + mask).softmax(-1)
    return (weights.to(memory.dtype)[:, None] @ memory)[:, 0], weights


class Bahdanau(EncoderDecoder):
    """s_t = GRU(s_{t-1}, [y_{t-1}; c_t]), c_t by v . tanh(W s_{t-1} + U h_j + b); logits from tanh(R [y_{t-1}; c_t; s_t]).

    The paper's maxout layer before the output is a tanh here, of the embedding's width, so that the output can share
    the embedding; it reads s_t where the paper has s_{t-1}.
    """

    def __init__(self, pieces, width, hidden, attention):
        super().__init__(pieces, width)
        self.hidden = hidden
        self.encoder = nn.GRU(width, hidden, batch_first=True, bidirectional=True)
        self.initial = nn.Linear(hidden, hidden)  # from the backward state at the first word
        self.query = nn.Linear(hidden, attention, bias=False)
        self.key = nn.Linear(2 * hidden, attention)
        self.score = nn.Parameter(torch.empty(attention).uniform_(-(attention**-0.5), attention**-0.5))
        self.decoder = nn.GRUCell(width + 2 * hidden, hidden)
        self.readout = nn.Linear(width + 2 * hidden + hidden, width)

    def encode(self, source):
        outputs, final = self.run_encoder(self.encoder, self.embed(source), (source != self.pad).sum(1))
        outputs = self.drop(outputs)
        return (outputs, self.key(outputs), self.mask_of(source)), torch.tanh(widened(self.initial(final[1])))

    def decode(self, target, memory, state):
        """target: (batch, n). Returns rows for the output (batch, n, E), the state, the weights (batch, n, m)."""
        memory, keys, mask = memory
        cell = self.decoder
        words = self.embed(target)
        of_words, of_context = cell.weight_ih.split([self.width, 2 * self.hidden], 1)
        # The state's share of the gates and its query are one product.
        of_state = torch.cat([cell.weight_hh, self.query.weight])
        bias = F.pad(cell.bias_hh, (0, len(self.score)))
        of_context, of_state, bias, score = narrowed(of_context, of_state, bias, self.score)
        states, contexts, maps = [], [], []
        for word in F.linear(words, of_words, cell.bias_ih).unbind(1):
            gates, query = F.linear(state, of_state, bias).split([3 * self.hidden, len(self.score)], -1)
            context, weights = attend(torch.tanh(keys + query[:, None]) @ score, mask, memory)
            inputs = widened(word + F.linear(context, of_context))
            (r_in, z_in, n_in), (r, z, n) = inputs.chunk(3, -1), widened(gates).chunk(3, -1)
            n = torch.tanh(n_in + torch.sigmoid(r_in + r) * n)
            state = torch.lerp(n, state, torch.sigmoid(z_in + z))
            for values, value in ((states, state), (contexts, context), (maps, weights)):
                values.append(value)
        read = torch.cat([words, torch.stack(contexts, 1).to(words.dtype), torch.stack(states, 1).to(words.dtype)], -1)
        return self.drop(torch.tanh(self.readout(read))), state, torch.stack(maps, 1)


class Luong(EncoderDecoder):
    """h_t by stacked LSTM cells from [y_{t-1}; a_{t-1}], scores h_t W h_j, a_t = tanh(C [c_t; h_t]), logits from a_t.

    a_t has the embedding's width, so that the output can share the embedding. The decoder starts from the encoder's
    final states and a_0 = 0.
    """

    def __init__(self, pieces, width, hidden, layers):
        super().__init__(pieces, width)
        self.hidden = hidden
        self.encoder = nn.LSTM(width, hidden, layers, batch_first=True)
        self.decoder = nn.LSTM(2 * width, hidden, layers, batch_first=True)
        self.general = nn.Linear(hidden, hidden, bias=False)  # of the memory: h_t . (W h_j)
        self.combine = nn.Linear(2 * hidden, width, bias=False)

    def encode(self, source):
        self.encoder.dropout = self.decoder.dropout = self.masks.rate if self.training else 0.0
        outputs, (h, c) = self.run_encoder(self.encoder, self.embed(source), (source != self.pad).sum(1))
        outputs = self.drop(outputs)
        start = torch.zeros(len(source), self.width, dtype=outputs.dtype)
        return (outputs, self.general(outputs), self.mask_of(source)), (h.unbind(0), c.unbind(0), start)

    def decode(self, target, memory, state):
        """target: (batch, n). Returns rows for the output (batch, n, E), the state, the weights (batch, n, m)."""
        memory, keys, mask = memory
        hiddens, cells, fed = state
        network = self.decoder
        of_word, of_fed = network.weight_ih_l0.split(self.width, 1)
        # Products of all that is known when a layer's turn comes: what is fed to it and its own state.
        both = [torch.cat([of_fed, network.weight_hh_l0], 1)]
        biases = [network.bias_hh_l0]
        for i in range(1, network.num_layers):
            both.append(torch.cat([getattr(network, f"weight_ih_l{i}"), getattr(network, f"weight_hh_l{i}")], 1))
            biases.append(getattr(network, f"bias_ih_l{i}") + getattr(network, f"bias_hh_l{i}"))
        both, biases = narrowed(*both), narrowed(*biases)
        rows, maps = [], []
        for word in F.linear(self.embed(target), of_word, network.bias_ih_l0).unbind(1):
            below, next_hiddens, next_cells = fed, [], []
            for i, (h, c) in enumerate(zip(hiddens, cells)):
                gates = F.linear(torch.cat([below, h], -1), both[i], biases[i])
                gates = widened(gates + word if i == 0 else gates)
                into, forget, new, out = gates.chunk(4, -1)
                c = torch.sigmoid(forget) * c + torch.sigmoid(into) * torch.tanh(new)
                h = torch.sigmoid(out) * torch.tanh(c)
                next_hiddens.append(h)
                next_cells.append(c)
                below = self.drop(h)
            hiddens, cells = next_hiddens, next_cells
            context, weights = attend((keys @ below.to(keys.dtype)[:, :, None])[:, :, 0], mask, memory)
            fed = torch.tanh(widened(self.combine(torch.cat([context, below.to(context.dtype)], -1))))
            rows.append(fed)
            maps.append(weights)
        return self.drop(torch.stack(rows, 1)), (hiddens, cells, fed), torch.stack(maps, 1)


def recurrent_config(model) -> dict:
    """What config.json says of the network, beside what every model's says (docs/guide/recurrence.md)."""
    sizes = dict(embedding_size=model.width, hidden_size=model.hidden, scale_embedding=True)
    if isinstance(model, Bahdanau):
        return dict(model_type="bahdanau", attention_size=len(model.score), max_position_embeddings=512, **sizes)
    return dict(model_type="luong", num_layers=model.encoder.num_layers, max_position_embeddings=512, **sizes)


def recurrent_tensors(model, dtype) -> dict[str, torch.Tensor]:
    """The weights as their modules name them."""
    return {name: tensor.detach().to(dtype).contiguous().clone() for name, tensor in model.state_dict().items()}
