"""GPT-2 with the sizes of prony's gpt2-bytes, in PyTorch: as in karpathy/nanoGPT (model.py: one product for query, key and value,
scaled_dot_product_attention, the head's weight is the embedding's), with GELU by tanh as OpenAI's."""
import torch
import torch.nn.functional as F
from torch import nn

import window

WIDTH, HEADS, DEPTH, POSITIONS = 128, 4, 4, 1024


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.project = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp1, self.mlp2 = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        batch, tokens, _ = x.shape
        q, k, v = (part.view(batch, tokens, HEADS, WIDTH // HEADS).transpose(1, 2)
                   for part in self.qkv(self.norm1(x)).split(WIDTH, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.project(y.transpose(1, 2).contiguous().view(batch, tokens, WIDTH))
        return x + self.mlp2(F.gelu(self.mlp1(self.norm2(x)), approximate="tanh"))


class Gpt2(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.positions = nn.Embedding(window.WORDS, WIDTH), nn.Embedding(POSITIONS, WIDTH)
        self.blocks, self.norm = nn.Sequential(*(Block() for _ in range(DEPTH))), nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, window.WORDS, bias=False)
        self.head.weight = self.words.weight

    def forward(self, tokens):
        x = self.words(tokens) + self.positions(torch.arange(tokens.shape[1]))
        return self.head(self.norm(self.blocks(x))).flatten(0, 1)
