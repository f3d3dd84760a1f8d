"""Models that an answer builds, for the tests of modules on the line."""

from typing import Any

MODEL = """
class Block(nn.Module):
    scale = 2.0
    def __init__(self, size=3, tied=False):
        super().__init__()
        self.one = nn.Linear(size, size)
        self.two = nn.Linear(size, size)
        if tied: self.two.weight = self.one.weight
        self.drop = nn.Dropout(0.5)
        self.register_buffer("seen", torch.zeros(()))
        self.register_buffer("aside", torch.ones(2), persistent=False)
        self.parts = nn.ModuleList([nn.Linear(size, size) for _ in range(2)])
        self.width = size
    def forward(self, x):
        self.seen += 1
        y = self.two(torch.tanh(self.one(x)))
        for part in self.parts: y = y + part(y)
        return self.drop(y) * self.scale
    def helper(self, x): return self.one(x)
    def first(self): return self.one
    def swap(self): self.one = nn.Linear(3, 3); return self
def build(**kwargs):
    torch.manual_seed(0)
    return Block(**kwargs)
def step(model, optimiser, x, y):
    optimiser.zero_grad()
    loss = F.mse_loss(model(x), y)
    loss.backward()
    optimiser.step()
    return loss
def fit(model, x, y):
    optimiser = torch.optim.Adam(model.parameters(), lr=0.1)
    model.train()
    return [step(model, optimiser, x, y).item() for _ in range(3)]
def freeze(model):
    for p in model.parameters(): p.requires_grad_(False)
def replace(model): model.one = nn.Linear(3, 3); return model
def close(model): model.eval()
"""


def leaves(found: Any) -> list[Any]:
    """All that lists, tuples and dictionaries hold, in order."""
    if isinstance(found, dict):
        found = list(found.values())
    if not isinstance(found, list | tuple):
        return [found]
    return [leaf for part in found for leaf in leaves(part)]
