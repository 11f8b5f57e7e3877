"""The page's block, and a small model trained by Opacus with the accountant of dplib; runs in an environment with PyTorch, and prints one
JSON object. The block is the argument."""

import contextlib
import io
import json
import sys
import tempfile
import warnings
from pathlib import Path

import torch
from opacus import PrivacyEngine
from opacus.schedulers import ExponentialNoise
from opacus.utils.batch_memory_manager import BatchMemoryManager

page = io.StringIO()
with contextlib.redirect_stdout(page):
    exec(sys.argv[1], {})
found = {"page": page.getvalue()}

from dplib.bridges import opacus  # noqa: E402

warnings.filterwarnings("ignore")
torch.manual_seed(0)
torch.set_num_threads(1)
opacus.register()
opacus.register("certified")
RECORDS, BATCH, DELTA = 1000, 50, 1e-5
truth = torch.randn(8)
features = torch.randn(RECORDS, 8)
DATA = torch.utils.data.TensorDataset(features, (features @ truth > 0).long())


def start(accountant="dplib", engine=None, target=None):
    """(engine, model, optimizer, loader), with noise multiplier 1 or calibrated to the target (epsilon, epochs)."""
    model, engine = torch.nn.Linear(8, 2), engine or PrivacyEngine(accountant=accountant)
    parts = {
        "module": model,
        "optimizer": torch.optim.SGD(model.parameters(), lr=0.5),
        "data_loader": torch.utils.data.DataLoader(DATA, batch_size=BATCH),
        "max_grad_norm": 1.0,
    }
    if target is None:
        return engine, *engine.make_private(noise_multiplier=1.0, **parts)
    epsilon, epochs = target
    return engine, *engine.make_private_with_epsilon(target_epsilon=epsilon, target_delta=DELTA, epochs=epochs, **parts)


def train(model, optimizer, loader, epochs, after_epoch=lambda: None):
    for _ in range(epochs):
        for inputs, labels in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(inputs), labels).backward()
            optimizer.step()
        after_epoch()


def accuracy(model):
    with torch.no_grad():
        return float((model(DATA.tensors[0]).argmax(1) == DATA.tensors[1]).float().mean())


engine, model, optimizer, loader = start()
found["rate"] = opacus.check_loader(loader)
train(model, optimizer, loader, 5)
found["trained"] = {"epsilon": engine.get_epsilon(DELTA), "history": engine.accountant.history, "accuracy": accuracy(model)}

# Opacus's own accountant, given the same history.
other = PrivacyEngine(accountant="prv")
other.accountant.history = list(engine.accountant.history)
found["prv"] = other.get_epsilon(DELTA)

# The same accountant by another name.
other = PrivacyEngine(accountant="certified")
other.accountant.history = list(engine.accountant.history)
found["certified"] = [other.accountant.mechanism(), other.get_epsilon(DELTA)]

# A checkpoint is taken up by a new engine, whose training goes on.
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "checkpoint.pt"
    engine.save_checkpoint(path=path, module=model, optimizer=optimizer)
    resumed, model, optimizer, loader = start()
    resumed.load_checkpoint(path=path, module=model, optimizer=optimizer)
found["resumed"] = resumed.get_epsilon(DELTA)
train(model, optimizer, loader, 1)
found["continued"] = {"epsilon": resumed.get_epsilon(DELTA), "history": resumed.accountant.history}

# The noise for a target.
engine, model, optimizer, loader = start(target=(2.0, 3))
train(model, optimizer, loader, 3)
found["target"] = {"noise": optimizer.noise_multiplier, "epsilon": engine.get_epsilon(DELTA)}

# Noise that falls from epoch to epoch.
engine, model, optimizer, loader = start()
schedule = ExponentialNoise(optimizer, gamma=0.9)
train(model, optimizer, loader, 3, schedule.step)
found["schedule"] = {"epsilon": engine.get_epsilon(DELTA), "history": engine.accountant.history}

# Batches cut into pieces count once.
engine, model, optimizer, loader = start()
with BatchMemoryManager(data_loader=loader, max_physical_batch_size=8, optimizer=optimizer) as pieces:
    train(model, optimizer, pieces, 1)
found["pieces"] = engine.accountant.history

# Two Poisson batches accumulated before a step count as a group of two, where Opacus is told to let that happen.
engine, model, optimizer, loader = start()
model.allow_grad_accumulation()
for number, (inputs, labels) in enumerate(loader):
    torch.nn.functional.cross_entropy(model(inputs), labels).backward()
    if number % 2:
        optimizer.step()
        optimizer.zero_grad()
found["accumulated"] = {"epsilon": engine.get_epsilon(DELTA), "history": engine.accountant.history}

# With `signal_skip_step` it is not told of the first of the two batches: what it counts then is too little.
engine, model, optimizer, loader = start()
for number, (inputs, labels) in enumerate(loader):
    optimizer.signal_skip_step(number % 2 == 0)
    torch.nn.functional.cross_entropy(model(inputs), labels).backward()
    optimizer.step()
    optimizer.zero_grad()
found["skipped"] = engine.accountant.history

print(json.dumps(found))
