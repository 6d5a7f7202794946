"""The sample models: what they compute, what they learn from, and their inputs.

`RECIPES` has one function per sample, which builds and trains the model and returns a
`Sample`. Nothing here knows PNNX files; `make_samples.py` exports, checks and writes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.nn import functional

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@dataclass
class Preprocessing:
    """How a picture becomes the model's input: (pixels * scale - mean) / std, in float32."""

    size: tuple[int, int]
    order: str
    scale: float
    mean: tuple[float, ...]
    std: tuple[float, ...]

    def apply(self, pictures: np.ndarray) -> torch.Tensor:
        """Turn uint8 pictures of shape (N, H, W, C) into a float32 tensor (N, C, H, W)."""
        x = pictures.astype(np.float32) * np.float32(self.scale)
        x = (x - np.float32(self.mean)) / np.float32(self.std)
        return torch.from_numpy(np.ascontiguousarray(x.transpose(0, 3, 1, 2)))


@dataclass
class Input:
    """The file for one pnnx.Input, and other files that may take its place."""

    file: str
    alternatives: tuple[str, ...] = ()


@dataclass
class Sample:
    """A model with everything that its folder holds.

    Attributes
    ----------
    golden_inputs : list of Tensor
        What the first file of each input becomes; the golden activations belong to these.
    other_shapes : list of shapes or None
        A second set of input shapes, which makes pnnx leave the differing sizes open.
    files : dict
        File name to PIL image, array (``.npy``), dict of arrays (``.npz``) or lines (``.txt``).
    """

    name: str
    title: str
    description: str
    model: nn.Module
    inputs: list[Input]
    golden_inputs: list[torch.Tensor]
    files: dict[str, Any]
    facts: dict[str, Any]
    image: Preprocessing | None = None
    other_shapes: list[tuple[int, ...]] | None = None
    labels: list[str] = field(default_factory=list)


def train(
    model: nn.Module,
    batches: Iterator[tuple[torch.Tensor, torch.Tensor]],
    steps: int,
    peak_rate: float,
    class_weights: torch.Tensor | None = None,
) -> None:
    """Train by cross-entropy for a number of steps, the learning rate rising and falling."""
    optimizer = torch.optim.AdamW(model.parameters(), peak_rate, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, peak_rate, total_steps=steps)
    model.train()
    for step in range(steps):
        inputs, targets = next(batches)
        loss = functional.cross_entropy(model.logits(inputs), targets, class_weights)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 100 == 0:
            print(f"  step {step} of {steps}: loss {loss.item():.3f}", flush=True)
    model.eval()


# digits ------------------------------------------------------------------------------------

DIGIT_SIZE = 32
DIGIT_MARGIN = 4
DIGIT_STEPS = 450


class Residual(nn.Module):
    """Two 3x3 convolutions beside a shortcut."""

    def __init__(self, channels_in: int, channels: int, stride: int = 1) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.relu1 = nn.ReLU()
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.shortcut = nn.Sequential()
        if stride != 1 or channels_in != channels:
            self.shortcut = nn.Sequential(
                nn.Conv2d(channels_in, channels, 1, stride, bias=False),
                nn.BatchNorm2d(channels),
            )
        self.relu2 = nn.ReLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.bn2(self.conv2(self.relu1(self.bn1(self.conv1(x)))))
        return self.relu2(y + self.shortcut(x))


class DigitNet(nn.Module):
    """A small residual network for ten classes."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(1, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU()
        )
        self.block1 = Residual(16, 16)
        self.block2 = Residual(16, 32, 2)
        self.block3 = Residual(32, 48, 2)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Linear(48, 10)

    def logits(self, x: torch.Tensor) -> torch.Tensor:
        x = self.block3(self.block2(self.block1(self.stem(x))))
        return self.classifier(torch.flatten(self.pool(x), 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(self.logits(x), 1)


def digit_pictures() -> tuple[np.ndarray, np.ndarray]:
    """All digits of scikit-learn, 8x8 of 0 to 16, as pictures (N, 32, 32, 1) and labels."""
    from sklearn.datasets import load_digits

    data = load_digits()
    small = np.rint(data.images * (255 / 16)).astype(np.uint8)
    inner = DIGIT_SIZE - 2 * DIGIT_MARGIN
    large = [
        Image.fromarray(digit).resize((inner, inner), Image.Resampling.BICUBIC)
        for digit in small
    ]
    pictures = np.stack([np.asarray(picture) for picture in large])
    margins = ((0, 0), (DIGIT_MARGIN, DIGIT_MARGIN), (DIGIT_MARGIN, DIGIT_MARGIN))
    return np.pad(pictures, margins)[..., None], data.target


def shifted_batches(
    inputs: torch.Tensor, targets: torch.Tensor, size: int, rng: np.random.Generator
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Yield shuffled batches for ever, each batch moved by up to two pixels."""
    while True:
        order = rng.permutation(len(inputs))
        for start in range(0, len(order) - size + 1, size):
            chosen = torch.from_numpy(order[start : start + size])
            down, right = rng.integers(-2, 3, 2)
            yield torch.roll(inputs[chosen], (int(down), int(right)), (2, 3)), targets[chosen]


def digits() -> Sample:
    """Train the digits classifier on four fifths of the data and judge it by the rest."""
    from sklearn.model_selection import train_test_split

    image = Preprocessing((DIGIT_SIZE, DIGIT_SIZE), "GRAY", 1 / 255, (0.0,), (1.0,))
    pictures, labels = digit_pictures()
    seen, held, seen_labels, held_labels = train_test_split(
        pictures, labels, test_size=360, random_state=0, stratify=labels
    )
    model = DigitNet()
    batches = shifted_batches(
        image.apply(seen), torch.from_numpy(seen_labels).long(), 64, np.random.default_rng(0)
    )
    train(model, batches, DIGIT_STEPS, 0.01)
    with torch.no_grad():
        sure = model(image.apply(held)).numpy()
    guesses = sure.argmax(1)
    right = guesses == held_labels
    files: dict[str, Any] = {
        "held_out.npz": {
            "pictures": held[..., 0],
            "labels": held_labels.astype(np.uint8),
        }
    }
    for digit in range(10):
        # The median of the rightly read ones is a plain specimen, neither best nor worst.
        mine = np.flatnonzero(right & (held_labels == digit))
        chosen = mine[np.argsort(sure[mine, digit], kind="stable")[len(mine) // 2]]
        files[f"digit_{digit}.png"] = Image.fromarray(held[chosen, :, :, 0])
    wrong = np.flatnonzero(~right)
    facts: dict[str, Any] = {
        "held_out": len(held),
        "held_out_accuracy": round(float(right.mean()), 4),
        "trained_on": len(seen),
        "data": "scikit-learn digits (UCI optical recognition of handwritten digits)",
    }
    if len(wrong):
        worst = wrong[np.argmax(sure[wrong].max(1))]
        files["mistaken.png"] = Image.fromarray(held[worst, :, :, 0])
        facts["mistaken"] = {
            "file": "mistaken.png",
            "label": str(held_labels[worst]),
            "predicted": str(guesses[worst]),
        }
    first = "digit_3.png"
    others = tuple(f for f in files if f.endswith(".png") and f != first)
    return Sample(
        name="digits",
        title="Handwritten digits",
        description="A small residual network that reads digits.",
        model=model,
        inputs=[Input(first, others)],
        golden_inputs=[image.apply(np.asarray(files[first])[None, :, :, None])],
        files=files,
        facts=facts,
        image=image,
        labels=[str(digit) for digit in range(10)],
    )


# unet --------------------------------------------------------------------------------------

SCENE_SIZE = 96
SCENE_CLASSES = ("background", "disc", "rectangle", "triangle")
SCENE_COLOURS = ((20, 22, 28), (239, 108, 87), (86, 180, 233), (240, 201, 74))
UNET_STEPS = 2000


class DoubleConv(nn.Module):
    """Twice a 3x3 convolution with batch norm and ReLU."""

    def __init__(self, channels_in: int, channels: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.relu1 = nn.ReLU()
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.relu2 = nn.ReLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.relu1(self.bn1(self.conv1(x)))
        return self.relu2(self.bn2(self.conv2(x)))


class UNet(nn.Module):
    """Three levels down and up, with skip connections."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.down1 = DoubleConv(3, 8)
        self.pool1 = nn.MaxPool2d(2)
        self.down2 = DoubleConv(8, 16)
        self.pool2 = nn.MaxPool2d(2)
        self.down3 = DoubleConv(16, 32)
        self.pool3 = nn.MaxPool2d(2)
        self.bottom = DoubleConv(32, 48)
        self.up3 = nn.ConvTranspose2d(48, 32, 2, 2)
        self.merge3 = DoubleConv(64, 32)
        self.up2 = nn.ConvTranspose2d(32, 16, 2, 2)
        self.merge2 = DoubleConv(32, 16)
        self.up1 = nn.ConvTranspose2d(16, 8, 2, 2)
        self.merge1 = DoubleConv(16, 8)
        self.head = nn.Conv2d(8, classes, 1)

    def logits(self, x: torch.Tensor) -> torch.Tensor:
        skip1 = self.down1(x)
        skip2 = self.down2(self.pool1(skip1))
        skip3 = self.down3(self.pool2(skip2))
        x = self.bottom(self.pool3(skip3))
        x = self.merge3(torch.cat((skip3, self.up3(x)), 1))
        x = self.merge2(torch.cat((skip2, self.up2(x)), 1))
        x = self.merge1(torch.cat((skip1, self.up1(x)), 1))
        return self.head(x)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(self.logits(x), 1)


def polygon_distance(rows: np.ndarray, cols: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """Signed distance, in pixels, to a convex polygon's edge lines; negative inside.

    The corners (row, column) go from the column axis towards the row axis.
    """
    distance = np.full(rows.shape, -np.inf)
    for (r0, c0), (r1, c1) in zip(corners, np.roll(corners, -1, 0), strict=True):
        normal = np.array((c0 - c1, r1 - r0)) / math.hypot(r1 - r0, c1 - c0)
        distance = np.maximum(distance, (rows - r0) * normal[0] + (cols - c0) * normal[1])
    return distance


def shape_distance(kind: int, rng: np.random.Generator, size: int) -> np.ndarray:
    """Signed distance of every pixel from a random shape of a kind."""
    rows, cols = np.mgrid[0:size, 0:size] + 0.5
    centre = rng.uniform(0.12, 0.88, 2) * size
    radius = rng.uniform(0.13, 0.24) * size
    if kind == 1:
        return np.hypot(rows - centre[0], cols - centre[1]) - radius
    turn = rng.uniform(0, 2 * math.pi)
    if kind == 2:
        half = rng.uniform(0.45, 0.8)  # the angle to the first corner, so the aspect
        angles = np.array((half, math.pi - half, math.pi + half, -half)) + turn
    else:
        angles = np.array((0, 2, 4)) * (math.pi / 3) + turn + rng.uniform(-0.3, 0.3, 3)
        radius *= 1.15
    corners = centre + radius * np.stack((np.sin(angles), np.cos(angles)), 1)
    return polygon_distance(rows, cols, corners)


def scene(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Paint shapes over a noisy ground.

    Returns
    -------
    picture : uint8 ndarray of shape (96, 96, 3)
    classes : uint8 ndarray of shape (96, 96)
    """
    size = SCENE_SIZE
    coarse = Image.fromarray(rng.integers(40, 170, (6, 6, 3), dtype=np.uint8))
    ground = coarse.resize((size, size), Image.Resampling.BICUBIC)
    picture = np.asarray(ground, dtype=np.float64)
    classes = np.zeros((size, size), np.uint8)
    for _ in range(rng.integers(3, 7)):
        kind = int(rng.integers(1, 4))
        distance = shape_distance(kind, rng, size)
        inside = distance < 0
        if classes[inside].astype(bool).mean() > 0.25:
            continue  # two shapes that cover each other are a riddle, not a lesson
        colour = Image.new("HSV", (1, 1), (int(rng.integers(256)), 190, 235)).convert("RGB")
        cover = np.clip(0.5 - distance, 0, 1)[..., None]
        picture = picture * (1 - cover) + np.array(colour.getpixel((0, 0))) * cover
        classes[inside] = kind
    picture += rng.normal(0, 12, picture.shape)
    return np.clip(np.rint(picture), 0, 255).astype(np.uint8), classes


def scene_batches(
    image: Preprocessing, size: int, rng: np.random.Generator
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Yield batches of new scenes for ever."""
    while True:
        pictures, classes = zip(*(scene(rng) for _ in range(size)), strict=True)
        yield image.apply(np.stack(pictures)), torch.from_numpy(np.stack(classes)).long()


def intersection_over_union(found: np.ndarray, truth: np.ndarray) -> list[float]:
    """The overlap of each class, over all pixels of all pictures."""
    return [
        float(
            ((found == kind) & (truth == kind)).sum()
            / ((found == kind) | (truth == kind)).sum()
        )
        for kind in range(len(SCENE_CLASSES))
    ]


def class_picture(classes: np.ndarray) -> Image.Image:
    """Show classes as a picture with a palette, so that its pixels stay class numbers."""
    picture = Image.fromarray(classes.astype(np.uint8), "P")
    picture.putpalette([level for colour in SCENE_COLOURS for level in colour])
    return picture


def unet() -> Sample:
    """Train the U-Net on endless random scenes and judge it by a hundred others."""
    image = Preprocessing((SCENE_SIZE, SCENE_SIZE), "RGB", 1 / 255, (0.5,) * 3, (0.25,) * 3)
    model = UNet(len(SCENE_CLASSES))
    batches = scene_batches(image, 8, np.random.default_rng(1))
    train(model, batches, UNET_STEPS, 0.003, torch.tensor((0.5, 1.0, 1.0, 1.0)))
    judge = np.random.default_rng(2)
    pictures, truths = (
        np.stack(many) for many in zip(*(scene(judge) for _ in range(100)), strict=True)
    )
    with torch.no_grad():
        found = model(image.apply(pictures)).argmax(1).numpy()
    overlaps = intersection_over_union(found, truths)
    # Show scenes in which every class has its place: the richest by the rarest class.
    rarest = [min(np.bincount(t.ravel(), minlength=4)) for t in truths]
    chosen = np.argsort(rarest, kind="stable")[::-1][:3]
    files: dict[str, Any] = {}
    for place, index in enumerate(chosen, 1):
        files[f"scene_{place}.png"] = Image.fromarray(pictures[index])
        files[f"truth_{place}.png"] = class_picture(truths[index])
    return Sample(
        name="unet",
        title="Shapes by U-Net",
        description="A small U-Net that finds discs, rectangles and triangles on noisy ground.",
        model=model,
        inputs=[Input("scene_1.png", ("scene_2.png", "scene_3.png"))],
        golden_inputs=[image.apply(pictures[chosen[:1]])],
        files=files,
        facts={
            "classes": list(SCENE_CLASSES),
            "held_out": len(truths),
            "held_out_mean_iou": round(float(np.mean(overlaps)), 4),
            "held_out_iou": {
                name: round(overlap, 4)
                for name, overlap in zip(SCENE_CLASSES, overlaps, strict=True)
            },
            "trained_on": UNET_STEPS * 8,
            "data": "random scenes painted by samples/recipes.py",
        },
        image=image,
    )


# expressions -------------------------------------------------------------------------------


class Expressions(nn.Module):
    """Arithmetic without learning: a picture, a 1-D time axis and a 5-D volume.

    Steps (floor, sign, ...) are only taken of values that float32 holds exactly, so that
    rounding differences of other engines cannot move them.
    """

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("tint", torch.tensor((1.25, 1.0, 0.75)).reshape(1, 3, 1, 1))
        self.register_buffer("white", torch.ones(1, 1, 1, 1))

    def look(self, picture: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Edges, tone curves and posters of a picture."""
        red, green, blue = torch.chunk(picture, 3, dim=1)
        luma = 0.25 * red + 0.5 * green + 0.25 * blue
        across = luma[:, :, 1:-1, 2:] - luma[:, :, 1:-1, :-2]
        down = luma[:, :, 2:, 1:-1] - luma[:, :, :-2, 1:-1]
        strength = torch.sqrt(torch.square(across) + torch.square(down) + 0.0001)
        direction = torch.atan2(down, torch.abs(across) + 0.0625)
        edges = functional.pad(strength, (1, 1, 1, 1))
        tinted = torch.max(torch.minimum(picture * self.tint, self.white), edges)
        tone = torch.log(1 + 8 * torch.pow(picture, 2)) * torch.rsqrt(
            1 + torch.exp(-4 * picture)
        )
        posters = torch.floor(picture * 4) / 4 + torch.fmod(picture, 0.25)
        brightest, where = functional.max_pool2d(red, 2, return_indices=True)
        detail = red - functional.interpolate(brightest, scale_factor=2.0, mode="nearest")
        return torch.cat((tinted, tone, posters, detail), 1), direction, where

    def listen(self, time: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Curves over a time axis, and the plane that two of them span."""
        pulse = torch.sin(time * 12.5) * torch.exp(time * -1.5)
        echo = torch.cos(time * 12.5) / (time + 0.5)
        plane = torch.matmul(pulse.reshape(-1, 1), echo.reshape(1, -1))
        steps = torch.ceil(time * 8) / 8 + torch.trunc(time * 3) - torch.remainder(-time, 0.25)
        curve = torch.erf(4 * time - 2) + torch.acos(time) - torch.asinh(3 * time)
        curve = curve * torch.cosh(time) + torch.tan(time) - torch.log10(time + 1)
        return plane, steps, curve / time.size(0)

    def dive(self, volume: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Ripples in a volume of N, C, D, H, W."""
        ripples = torch.cos(volume * 12.5) * torch.reciprocal(1 + torch.square(volume))
        near, far = torch.split(volume, 1, dim=1)
        layers = torch.tanh(near * 4) * torch.sign(far) + torch.round(far * 4) / 4
        return layers.permute(0, 1, 3, 4, 2), torch.mean(ripples, dim=2)

    def forward(
        self, picture: torch.Tensor, time: torch.Tensor, volume: torch.Tensor
    ) -> tuple[Any, ...]:
        mosaic, direction, where = self.look(picture)
        plane, steps, curve = self.listen(time)
        layers, mean = self.dive(volume)
        return mosaic, direction, where, (plane, steps, curve), layers, mean


def landscape(size: int) -> Image.Image:
    """Paint a sun over hills."""
    large = 4 * size
    rows, cols = np.mgrid[0:large, 0:large] / large
    sky = np.stack((0.35 + 0.6 * rows, 0.45 + 0.3 * rows, 0.8 - 0.35 * rows), -1)
    picture = np.clip(sky, 0, 1)
    sun = np.hypot(rows - 0.42, cols - 0.62)
    picture += 0.35 * np.exp(-((sun / 0.25) ** 2))[..., None] * (1.0, 0.8, 0.3)
    picture[sun < 0.14] = (1.0, 0.9, 0.55)
    hills = ((0.62, 0.06, 9, 0.4, (0.42, 0.36, 0.52)), (0.75, 0.08, 6, 2.2, (0.16, 0.3, 0.33)))
    for level, height, waves, shift, colour in hills:
        picture[rows > level + height * np.sin(waves * cols + shift)] = colour
    pixels = (np.clip(picture, 0, 1) * 255).astype(np.uint8)
    return Image.fromarray(pixels).resize((size, size), Image.Resampling.BOX)


def ball(depth: int, size: int) -> np.ndarray:
    """Two fields over a volume (1, 2, D, H, W): distance from the middle, and a slope.

    Rounded to multiples of 1/64, which float32 holds exactly.
    """
    d, r, c = np.meshgrid(
        np.linspace(-1, 1, depth),
        np.linspace(-1, 1, size),
        np.linspace(-1, 1, size),
        indexing="ij",
    )
    fields = np.stack((np.sqrt(d * d + r * r + c * c), (d + r * c) / 2))
    return (np.rint(fields * 64) / 64).astype(np.float32)[None]


def expressions() -> Sample:
    """Arithmetic of every kind that pnnx folds into pnnx.Expression."""
    image = Preprocessing((64, 64), "RGB", 1 / 255, (0.0,) * 3, (1.0,) * 3)
    picture = landscape(64)
    time = (np.arange(64) / 64).astype(np.float32)
    volume = ball(6, 16)
    return Sample(
        name="expressions",
        title="A walk through expressions",
        description=(
            "Arithmetic on a picture, a 1-D curve and a 5-D volume, with several inputs, "
            "operators with many outputs and a nested tuple as result."
        ),
        model=Expressions().eval(),
        inputs=[Input("landscape.png"), Input("time.npy"), Input("volume.npy")],
        golden_inputs=[
            image.apply(np.asarray(picture)[None]),
            torch.from_numpy(time),
            torch.from_numpy(volume),
        ],
        files={"landscape.png": picture, "time.npy": time, "volume.npy": volume},
        facts={"data": "computed by samples/recipes.py"},
        image=image,
        other_shapes=[(1, 3, 64, 64), (96,), (1, 2, 6, 16, 16)],
    )


# linear ------------------------------------------------------------------------------------


class LinearSigmoid(nn.Module):
    """One linear layer of 32 to 128 features and a sigmoid."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(32, 128)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(self.linear(x))


def linear() -> Sample:
    """Build the KuiperInfer course's first model, with random weights of its own."""
    x = np.random.default_rng(3).normal(0, 1, (1, 32)).astype(np.float32)
    return Sample(
        name="linear",
        title="Linear and sigmoid",
        description="One linear layer and a sigmoid, as the KuiperInfer course has it.",
        model=LinearSigmoid().eval(),
        inputs=[Input("input.npy")],
        golden_inputs=[torch.from_numpy(x)],
        files={"input.npy": x},
        facts={"data": "random weights and input, seeded"},
    )


# gaze --------------------------------------------------------------------------------------

GAZE_SIZE = 168
GAZE_PATCH = 14
GAZE_GRID = GAZE_SIZE // GAZE_PATCH
GAZE_HEADS = 3  # colour, texture, place
GAZE_WIDTH = 8  # of a head
GAZE_PHOTOGRAPHS = {"palace": "china", "flower": "flower"}  # names in scikit-learn
GAZE_SHARPNESS = (40.0, 20.0, 30.0)
# Luma, blue against yellow, red against green.
OPPONENT = ((0.30, 0.59, 0.11), (-0.35, -0.35, 0.70), (0.70, -0.70, 0.00))
WAVES = ((0, 2), (2, 0), (2, 2), (0, 4), (4, 0), (4, 4), (0, 7), (7, 0))  # rows, columns


class Gaze(nn.Module):
    """One attention whose heads look for patches of like colour, texture and place.

    Nothing is learned: a patch is described by its mean colours, by waves of the cosine
    transform, and by its place. Queries and keys of a head are the same unit vectors of one
    of these, so its weights fall with the angle between them, as in Swin Transformer V2.
    """

    def __init__(self) -> None:
        super().__init__()
        waves = 2 * len(WAVES)  # both signs, because a wave has no mean
        self.colours = len(OPPONENT)
        features = 24
        assert self.colours + waves + 4 < features  # one stays dead, on purpose
        self.embed = nn.Conv2d(3, features, GAZE_PATCH, GAZE_PATCH)
        self.relu = nn.ReLU()
        self.place = nn.Parameter(torch.zeros(1, GAZE_GRID**2, features))
        heads = GAZE_HEADS * GAZE_WIDTH
        self.query, self.value = nn.Linear(features, heads), nn.Linear(features, heads)
        self.sharpness = nn.Parameter(torch.tensor(GAZE_SHARPNESS).reshape(1, GAZE_HEADS, 1, 1))
        self.mix = nn.Linear(heads, 3)
        with torch.no_grad():
            self._set_embedding(waves)
            self._set_heads(waves)

    def _set_embedding(self, waves: int) -> None:
        step = (torch.arange(GAZE_PATCH) + 0.5) * (math.pi / GAZE_PATCH)
        self.embed.weight.zero_()
        self.embed.bias.zero_()
        for channel, colour in enumerate(OPPONENT):
            mean = torch.tensor(colour)[:, None, None] / GAZE_PATCH**2
            self.embed.weight[channel] = mean.expand(-1, GAZE_PATCH, GAZE_PATCH)
        self.embed.bias[1 : self.colours] = 1.0  # opponent colours have both signs
        luma = torch.tensor(OPPONENT[0])[:, None, None]
        for place, (down, right) in enumerate(WAVES):
            wave = torch.cos(down * step)[:, None] * torch.cos(right * step)[None]
            wave = 8 * luma * wave / GAZE_PATCH**2
            first = self.colours + 2 * place
            self.embed.weight[first], self.embed.weight[first + 1] = wave, -wave
        # No rotation comes back to its beginning: the ends of rows and columns are far apart.
        angle = torch.arange(GAZE_GRID) * (0.8 * math.pi / GAZE_GRID)
        rows, columns = angle.repeat_interleave(GAZE_GRID), angle.repeat(GAZE_GRID)
        first = self.colours + waves
        circles = rows.cos(), rows.sin(), columns.cos(), columns.sin()
        for offset, numbers in enumerate(circles):
            self.place[0, :, first + offset] = numbers

    def _set_heads(self, waves: int) -> None:
        for linear in (self.query, self.value, self.mix):
            linear.weight.zero_()
            linear.bias.zero_()
        weight, bias = self.query.weight, self.query.bias
        first, texture, place = range(0, GAZE_HEADS * GAZE_WIDTH, GAZE_WIDTH)
        for channel, (gain, middle) in enumerate(((1.5, 0.45), (4.0, 1.0), (4.0, 1.0))):
            weight[first + channel, channel] = gain
            bias[first + channel] = -gain * middle
        bias[first + self.colours] = 0.3
        for wave in range(waves // 2):
            both = self.colours + 2 * wave
            weight[texture + wave, both : both + 2] = 1.0
        bias[texture : texture + GAZE_WIDTH] = 0.02
        for offset in range(4):
            weight[place + offset, self.colours + waves + offset] = 1.0
        # Each head hands on the mean colours of what it looks at, and they are mixed to RGB.
        back = torch.linalg.inv(torch.tensor(OPPONENT))
        for head in range(GAZE_HEADS):
            for channel in range(self.colours):
                self.value.weight[head * GAZE_WIDTH + channel, channel] = 1.0
                self.value.bias[head * GAZE_WIDTH + channel] = -1.0 if channel else 0.0
            part = slice(head * GAZE_WIDTH, head * GAZE_WIDTH + self.colours)
            self.mix.weight[:, part] = back / GAZE_HEADS

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        tokens = self.relu(self.embed(x)).flatten(2).transpose(1, 2) + self.place
        query, value = (
            part(tokens).reshape(1, GAZE_GRID**2, GAZE_HEADS, GAZE_WIDTH).permute(0, 2, 1, 3)
            for part in (self.query, self.value)
        )
        query = functional.normalize(query, dim=-1)
        weights = torch.softmax(query @ query.transpose(2, 3) * self.sharpness, dim=-1)
        heads = (weights @ value).permute(0, 2, 1, 3).reshape(1, GAZE_GRID**2, -1)
        return self.mix(heads).transpose(1, 2).reshape(1, 3, GAZE_GRID, GAZE_GRID)


def gaze() -> Sample:
    """Set the weights of an attention by hand, and give it two photographs."""
    from sklearn.datasets import load_sample_image

    image = Preprocessing((GAZE_SIZE, GAZE_SIZE), "RGB", 1 / 255, (0.0,) * 3, (1.0,) * 3)
    files: dict[str, Any] = {}
    for name, left in (("palace", 0), ("flower", 120)):
        photograph = Image.fromarray(load_sample_image(f"{GAZE_PHOTOGRAPHS[name]}.jpg"))
        height = photograph.height
        part = photograph.crop((left, 0, left + height, height))
        files[f"{name}.png"] = part.resize((GAZE_SIZE, GAZE_SIZE), Image.Resampling.LANCZOS)
    model = Gaze().eval()
    return Sample(
        name="gaze",
        title="Attention on a photograph",
        description="Three heads that compare patches by colour, by texture and by place.",
        model=model,
        inputs=[Input("palace.png", ("flower.png",))],
        golden_inputs=[image.apply(np.asarray(files["palace.png"])[None])],
        files=files,
        facts={"data": "two photographs by danielbuechele and vultilion, from scikit-learn"},
        image=image,
    )


RECIPES: dict[str, Callable[[], Sample]] = {
    "digits": digits,
    "unet": unet,
    "expressions": expressions,
    "linear": linear,
    "gaze": gaze,
}
