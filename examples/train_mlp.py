"""Trains a small classifier on a simulated NeuronCore: plain PyTorch, one changed line.

    trena run --target trn2 examples/train_mlp.py        # or: python examples/train_mlp.py
    TRENA_STRICT=1 python examples/train_mlp.py          # no operator may run on the CPU

Losses are what the instructions computed; the time beside them is the device's, not the host's.
"""

import torch
import trena.torch  # only to ask the device's clock; the model needs no import

torch.manual_seed(0)
centres = torch.randn(10, 64)
labels = torch.randint(0, 10, (512,))
points = centres[labels] + 0.7 * torch.randn(512, 64)

model = torch.nn.Sequential(
    torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10)
)
model.to("neuron")  # the one changed line
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
points, labels = points.to("neuron"), labels.to("neuron")

for epoch in range(3):
    for batch in range(0, len(points), 128):
        with trena.torch.step() as step:
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(points[batch : batch + 128]), labels[batch : batch + 128])
            loss.backward()
            optimizer.step()
    print(f"epoch {epoch}  loss {loss.item():.4f}  step on the device: {step}")
