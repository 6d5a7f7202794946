"""Makes the files beside it: one small network, as TorchScript and as ONNX.

Run by hand, where PyTorch and onnx are installed: ``python make_models.py``. ``expected.npz``
has an input and what PyTorch computes of it.
"""

import zipfile
from pathlib import Path

import numpy as np
import torch
from torch import nn

HERE = Path(__file__).resolve().parent


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)
        self.linear = nn.Linear(4, 2)

    def forward(self, image):
        return self.linear(torch.relu(self.conv(image)).mean((2, 3)))


def strip_inputs(traced: Path, target: Path) -> None:
    """Leave out the traced inputs, as versions of PyTorch before 2.11 did."""
    with zipfile.ZipFile(traced) as source, zipfile.ZipFile(target, "w") as archive:
        for entry in source.infolist():
            if "traced_inputs" not in entry.filename:
                archive.writestr(entry, source.read(entry))


def main() -> None:
    torch.manual_seed(7)
    model, image = Small().eval(), torch.rand(1, 3, 8, 8)
    traced = torch.jit.trace(model, image)
    traced.save(str(HERE / "traced.pt"))
    strip_inputs(HERE / "traced.pt", HERE / "no_sizes.pt")
    torch.onnx.export(model, image, HERE / "small.onnx", dynamo=False, input_names=["image"])
    torch.onnx.export(
        model, image, HERE / "open.onnx", dynamo=False, input_names=["image"],
        dynamic_axes={"image": {0: "batch", 2: "h", 3: "w"}},
    )  # fmt: skip
    with torch.no_grad():
        np.savez(HERE / "expected.npz", image=image.numpy(), out=model(image).numpy())


if __name__ == "__main__":
    main()
