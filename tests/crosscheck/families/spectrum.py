"""Complex numbers and Fourier transforms."""

from __future__ import annotations

import torch

from crosscheck.draw import FLOATS, Draw
from crosscheck.specification import Case, spec, specs

COMPLEXES = (torch.complex64, torch.complex128)
ONE = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")


def numbers(draw: Draw, name: str, rank: int):
    dtype = draw.one(*FLOATS)
    is_complex = name.startswith(("irfft", "hfft")) or (
        name.startswith(("fft", "ifft")) and draw.flag()
    )
    if is_complex:
        dtype = {torch.float32: torch.complex64, torch.float64: torch.complex128}[dtype]
    return draw.normal(*draw.shape(rank, 2, 6), dtype=dtype)


def norms(draw: Draw):
    return draw.keywords(norm=draw.one("backward", "ortho", "forward"))


@specs({name: (f"torch.fft.{name}",) for name in ONE}, tolerance=1e-4)
def one_dimension(draw: Draw, name: str):
    rank = draw.integer(1, 3)
    x = numbers(draw, name, rank)
    more = draw.keywords(n=draw.integer(1, 8), dim=draw.dim(rank)) | norms(draw)
    function = getattr(torch.fft, name)
    return Case(lambda x: function(x, **more), x)


@specs({f"{name}2": (f"torch.fft.{name}2",) for name in ONE}, tolerance=1e-4)
def two_dimensions(draw: Draw, name: str):
    rank = draw.integer(2, 4)
    x = numbers(draw, name, rank)
    more = draw.keywords(s=draw.shape(2, 2, 7), dim=draw.dims(rank, 2, 2)) | norms(draw)
    function = getattr(torch.fft, name)
    return Case(lambda x: function(x, **more), x)


@specs({f"{name}n": (f"torch.fft.{name}n",) for name in ONE}, tolerance=1e-4)
def any_dimensions(draw: Draw, name: str):
    rank = draw.integer(1, 4)
    x = numbers(draw, name, rank)
    more = norms(draw)
    if draw.flag():
        more["dim"] = draw.dims(rank)
        if draw.flag():
            more["s"] = draw.shape(len(more["dim"]), 2, 7)
    function = getattr(torch.fft, name)
    return Case(lambda x: function(x, **more), x)


@specs({"fftshift": ("aten::fft_fftshift",), "ifftshift": ("aten::fft_ifftshift",)})
def shifted(draw: Draw, name: str):
    rank = draw.integer(1, 3)
    dims = draw.one(None, draw.dims(rank))
    return Case(lambda x: getattr(torch.fft, name)(x, dims), draw.normal(*draw.shape(rank)))


def transform(draw: Draw):
    size = draw.integer(4, 12)
    more = draw.keywords(
        hop_length=draw.integer(1, size), normalized=draw.flag(), center=draw.flag(),
    )  # fmt: skip
    width = draw.integer(3, size) if draw.flag() else None
    if width:
        more["win_length"] = width
    return size, width or size, more


@spec("torch.stft", tolerance=1e-4)
def stft(draw: Draw):
    size, width, more = transform(draw)
    more |= draw.keywords(
        onesided=draw.flag(), pad_mode=draw.one("reflect", "constant", "replicate", "circular")
    )
    x = draw.normal(*draw.shape(draw.integer(0, 1), 1, 3), draw.integer(14, 40))
    window = draw.uniform(0.2, 1, width)
    match draw.turn("fed", "constant", "none", "real"):
        case "fed":
            return Case(
                lambda x, w: torch.stft(x, size, window=w, return_complex=True, **more),
                x,
                window,
            )
        case "constant":
            return Case(
                lambda x: torch.stft(x, size, window=window, return_complex=True, **more), x
            )
        case "real":
            return Case(
                lambda x: torch.view_as_real(
                    torch.stft(x, size, window=window, return_complex=True, **more)
                ),
                x,
            )
        case _:
            return Case(lambda x: torch.stft(x, size, return_complex=True, **more), x)


@spec("torch.istft", tolerance=1e-4)
def istft(draw: Draw):
    size, width, more = transform(draw)
    more["center"] = True
    onesided = draw.flag(0.8)
    more["onesided"] = onesided
    more["hop_length"] = draw.integer(1, max(1, width // 2))
    window = draw.uniform(0.3, 1, width)
    batch = draw.shape(draw.integer(0, 1), 1, 3)
    rows = size // 2 + 1 if onesided else size
    z = draw.normal(*batch, rows, draw.integer(4, 9), dtype=torch.complex64)
    if onesided:
        z[..., 0, :].imag.zero_()
        if size % 2 == 0:
            z[..., -1, :].imag.zero_()
    if draw.flag(0.3):
        more["length"] = draw.integer(3, 9)
    if draw.turn(True, False):
        return Case(lambda z, w: torch.istft(z, size, window=w, **more), z, window)
    return Case(lambda z: torch.istft(z, size, window=window, **more), z)


@spec("torch.complex")
def complex_of_parts(draw: Draw):
    shape = draw.shape(draw.integer(1, 3))
    dtype = draw.one(*FLOATS)
    return Case(
        torch.complex, draw.normal(*draw.broadcastable(shape), dtype=dtype),
        draw.normal(*shape, dtype=dtype),
    )  # fmt: skip


@spec("aten::polar")
def polar(draw: Draw):
    shape = draw.shape(2)
    return Case(torch.polar, draw.normal(*shape).abs(), draw.normal(*shape))


@specs({
    "real": ("torch.real",), "imag": ("torch.imag",), "conj": ("aten::conj",), "abs": (),
    "view_as_real": ("torch.view_as_real",), "angle": (), "resolve_conj": (),
    "conj_physical": ("aten::conj_physical",),
})  # fmt: skip
def parts(draw: Draw, name: str):
    x = draw.normal(
        *draw.shape(draw.integer(1, 3)), dtype=draw.one(torch.complex64, torch.complex128)
    )
    function = getattr(torch, name)
    if name in {"conj", "resolve_conj"}:
        return Case(lambda x: torch.resolve_conj(torch.conj(x)) * 2, x)
    return Case(lambda x: function(x) * 1, x)


@spec("torch.view_as_complex")
def view_as_complex(draw: Draw):
    return Case(torch.view_as_complex, draw.normal(*draw.shape(draw.integer(1, 3)), 2))


@spec("pnnx.Expression", tolerance=1e-4)
def complex_arithmetic(draw: Draw):
    shape = draw.shape(2)
    x, y = (draw.normal(*shape, dtype=torch.complex64) for _ in range(2))
    number = complex(draw.number(-2, 2), draw.number(-2, 2))
    chosen = draw.turn(
        lambda x, y: x * y + number, lambda x, y: x / (y + 5), lambda x, y: x - number * y,
        lambda x, y: torch.exp(x) + y, lambda x, y: x.abs() + y.real, lambda x, y: x**2 - y,
    )  # fmt: skip
    return Case(chosen, x, y)


@spec("torchaudio.functional.spectrogram", tolerance=1e-4)
def spectrogram(draw: Draw):
    """As torchaudio writes it, which pnnx knows."""
    size = draw.integer(4, 10)
    width, hop, center = draw.integer(3, size), draw.integer(1, size), draw.flag()
    power = draw.turn(None, 1, 2)

    def compute(x, window):
        frames = torch.stft(
            x.reshape(-1, x.shape[-1]), size, hop, width, window, center, "reflect",
            normalized=False, onesided=True, return_complex=True,
        )  # fmt: skip
        result = frames.reshape(x.shape[:-1] + frames.shape[-2:])
        if power is None:
            return result
        return result.abs() if power == 1 else result.abs().pow(2)

    lead = draw.shape(draw.integer(0, 1), 1, 3)
    return Case(compute, draw.normal(*lead, draw.integer(14, 30)), draw.uniform(0.2, 1, width))


@spec("torchaudio.functional.inverse_spectrogram", tolerance=1e-4)
def inverse_spectrogram(draw: Draw):
    """As torchaudio writes it, which pnnx knows."""
    size = draw.integer(4, 10)
    width, rows = draw.integer(3, size), size // 2 + 1
    hop = draw.integer(1, max(1, width // 2))

    def compute(z, window):
        shape = z.shape
        wave = torch.istft(
            z.reshape(-1, shape[-2], shape[-1]), size, hop, width, window, center=True,
            normalized=False, onesided=True, length=None, return_complex=False,
        )  # fmt: skip
        return wave.reshape(shape[:-2] + wave.shape[-1:])

    lead = draw.shape(draw.integer(0, 1), 1, 3)
    z = draw.normal(*lead, rows, draw.integer(4, 9), dtype=torch.complex64)
    z[..., 0, :].imag.zero_()
    z[..., -1, :].imag.zero_()
    return Case(compute, z, draw.uniform(0.3, 1, width))
