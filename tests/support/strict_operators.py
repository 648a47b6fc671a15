"""Operators with honest and wrong ways to compute them, for the corpus of the strict rule."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

Make = Callable[..., Tensor]


@dataclass(frozen=True)
class Operator:
    """An operator of the corpus.

    Attributes:
        name: What it is.
        inputs: Makes its arguments, in float32, from a generator that is seeded.
        compute: The operator; in whatever precision its arguments have.
        honest: Other ways to compute it, by name: right in any precision.
        wrong: Wrong algorithms by name.
    """

    name: str
    inputs: Callable[[], tuple[Tensor, ...]]
    compute: Make
    honest: tuple[tuple[str, Make], ...] = ()
    wrong: tuple[tuple[str, Make], ...] = ()


def randn(*shape: int) -> Tensor:
    """Return normal numbers."""
    return torch.randn(*shape)


def blocked_sum(x: Tensor, block: int) -> Tensor:
    """Sum the last axis block by block, the blocks' sums one after the other."""
    parts = [part.sum(-1, keepdim=True) for part in torch.split(x, block, dim=-1)]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def lanes_sum(x: Tensor, lanes: int) -> Tensor:
    """Sum the last axis as so many lanes do that step through it side by side."""
    columns = x.shape[-1] // lanes
    return x.reshape(*x.shape[:-1], columns, lanes).sum(-2).sum(-1, keepdim=True)


def blocked_matmul(a: Tensor, b: Tensor, block: int) -> Tensor:
    """Multiply matrices, adding up blocks of the inner axis."""
    total = torch.zeros(a.shape[0], b.shape[1], dtype=a.dtype)
    for start in range(0, a.shape[1], block):
        total = total + a[:, start : start + block] @ b[start : start + block]
    return total


def half_accumulator(a: Tensor, b: Tensor, block: int = 16) -> Tensor:
    """Multiply matrices with an accumulator that is rounded to bfloat16 after every block."""
    dtype = torch.bfloat16
    total = torch.zeros(a.shape[0], b.shape[1], dtype=dtype)
    for start in range(0, a.shape[1], block):
        part = a[:, start : start + block].float() @ b[start : start + block].float()
        total = (total.float() + part).to(dtype)
    return total.to(a.dtype)


def online_softmax(x: Tensor, block: int = 32) -> Tensor:
    """Compute a softmax in one pass over blocks, with exp2."""
    log2e = 1 / math.log(2)
    top = torch.full_like(x[..., :1], -math.inf)
    total = torch.zeros_like(top)
    for part in torch.split(x, block, dim=-1):
        higher = torch.maximum(top, part.amax(-1, keepdim=True))
        total = total * torch.exp2((top - higher) * log2e)
        total = total + torch.exp2((part - higher) * log2e).sum(-1, keepdim=True)
        top = higher
    return torch.exp2((x - top) * log2e) / total


def layer_norm(x: Tensor, eps: float = 1e-5, *, unstable: bool = False) -> Tensor:
    """Normalise the last axis; unstably as E[x^2] - E[x]^2."""
    mean = x.mean(-1, keepdim=True)
    if unstable:
        variance = (x * x).mean(-1, keepdim=True) - mean * mean
    else:
        variance = (x - mean).square().mean(-1, keepdim=True)
    return (x - mean) * torch.rsqrt(variance.clamp(min=0) + eps)


def welford_norm(x: Tensor, block: int = 64) -> Tensor:
    """Normalise the last axis by Chan's update of mean and variance, block by block."""
    count, mean, squares = 0, torch.zeros_like(x[..., :1]), torch.zeros_like(x[..., :1])
    for part in torch.split(x, block, dim=-1):
        size = part.shape[-1]
        own = part.mean(-1, keepdim=True)
        own_squares = (part - own).square().sum(-1, keepdim=True)
        delta = own - mean
        mean = mean + delta * (size / (count + size))
        squares = squares + own_squares + delta * delta * (count * size / (count + size))
        count += size
    return (x - mean) * torch.rsqrt(squares / count + 1e-5)


def rms_norm(x: Tensor, w: Tensor, eps: float = 1e-6) -> Tensor:
    """Divide by the root mean square of the last axis."""
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * w


def gelu_tanh(x: Tensor) -> Tensor:
    """Approximate GELU by a hyperbolic tangent."""
    return functional.gelu(x, approximate="tanh")


def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attend, head by head."""
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    return torch.softmax(scores, -1) @ v


def flash_attention(q: Tensor, k: Tensor, v: Tensor, block: int = 16) -> Tensor:
    """Attend in one pass over blocks of keys."""
    top = torch.full_like(q[..., :1], -math.inf)
    total, out = torch.zeros_like(top), torch.zeros_like(q)
    for keys, values in zip(torch.split(k, block, -2), torch.split(v, block, -2), strict=True):
        scores = q @ keys.transpose(-1, -2) / math.sqrt(q.shape[-1])
        higher = torch.maximum(top, scores.amax(-1, keepdim=True))
        shrink, weights = torch.exp(top - higher), torch.exp(scores - higher)
        total = total * shrink + weights.sum(-1, keepdim=True)
        out = out * shrink + weights @ values
        top = higher
    return out / total


def serial_cumsum(x: Tensor) -> Tensor:
    """Add up the last axis one by one."""
    total, out = torch.zeros_like(x[..., 0]), []
    for index in range(x.shape[-1]):
        total = total + x[..., index]
        out.append(total)
    return torch.stack(out, -1)


def taps_conv(x: Tensor, w: Tensor) -> Tensor:
    """Convolve in two dimensions, tap by tap."""
    out = torch.zeros(x.shape[0], w.shape[0], x.shape[2] - 2, x.shape[3] - 2, dtype=x.dtype)
    for i in range(3):
        for j in range(3):
            window = x[:, :, i : i + out.shape[2], j : j + out.shape[3]]
            out = out + torch.einsum("nchw,oc->nohw", window, w[:, :, i, j])
    return out


OPERATORS = (
    Operator(
        "softmax",
        lambda: (randn(128, 512),),
        lambda x: torch.softmax(x, -1),
        (
            ("online, exp2", online_softmax),
            ("blocked sum", lambda x: (e := (x - x.amax(-1, keepdim=True)).exp())
             / blocked_sum(e, 64)),
            ("times reciprocal", lambda x: (e := (x - x.amax(-1, keepdim=True)).exp())
             * (1 / lanes_sum(e, 128))),
            ("via log_softmax", lambda x: torch.log_softmax(x, -1).exp()),
        ),
        (("maximum of the first half", lambda x: (e := (x - x[..., :256].amax(-1, keepdim=True))
                                                  .exp()) / (e.sum(-1, keepdim=True) + 1e-2)),),
    ),
    Operator(
        "wide_softmax",
        lambda: (randn(64, 4096),),
        lambda x: torch.softmax(x, -1),
        (("online, exp2", lambda x: online_softmax(x, 512)),
         ("lanes", lambda x: (e := (x - x.amax(-1, keepdim=True)).exp()) / lanes_sum(e, 256))),
    ),
    Operator(
        "log_softmax",
        lambda: (randn(64, 256),),
        lambda x: torch.log_softmax(x, -1),
        (("blocked", lambda x: (y := x - x.amax(-1, keepdim=True))
          - blocked_sum(y.exp(), 32).log()),),
    ),
    Operator(
        "layer_norm",
        lambda: (randn(64, 512) * 2 + 5,),
        lambda x: functional.layer_norm(x, x.shape[-1:]),
        (("two passes", layer_norm), ("Welford", welford_norm),
         ("one pass", lambda x: layer_norm(x, unstable=True))),
        (("eps 1e-1", lambda x: layer_norm(x, 1e-1)),
         ("unbiased variance", lambda x: layer_norm(x) * math.sqrt(511 / 512))),
    ),
    Operator(
        "far_layer_norm",
        lambda: (randn(64, 512) + 300,),
        lambda x: functional.layer_norm(x, x.shape[-1:]),
        (("two passes", layer_norm), ("Welford", welford_norm)),
        (("one pass, unstable", lambda x: layer_norm(x, unstable=True)),),
    ),
    Operator(
        "rms_norm",
        lambda: (randn(64, 256), randn(256)),
        rms_norm,
        (("division", lambda x, w: x / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt() * w),
         ("blocked", lambda x, w: x * torch.rsqrt(blocked_sum(x * x, 32) / 256 + 1e-6) * w),
         ("weight first", lambda x, w: (x * w)
          * torch.rsqrt(lanes_sum(x * x, 32) / 256 + 1e-6))),
        (("eps 1e-2", lambda x, w: rms_norm(x, w, 1e-2)),),
    ),
    Operator(
        "matmul",
        lambda: (randn(64, 1024), randn(1024, 64)),
        torch.matmul,
        (("blocks of 16", lambda a, b: blocked_matmul(a, b, 16)),
         ("blocks of 128", lambda a, b: blocked_matmul(a, b, 128)),
         ("reversed", lambda a, b: a.flip(1) @ b.flip(0)),
         ("transposed", lambda a, b: (b.t() @ a.t()).t().contiguous())),
        (("one block left out", lambda a, b: a[:, :1008] @ b[:1008]),),
    ),
    Operator(
        "small_matmul",
        lambda: (randn(96, 64) * 1e-2, randn(64, 96) * 1e-2),
        torch.matmul,
        (("blocks of 16", lambda a, b: blocked_matmul(a, b, 16)),),
        (("one block left out", lambda a, b: a[:, :60] @ b[:60]),),
    ),
    Operator(
        "bmm",
        lambda: (randn(4, 32, 64), randn(4, 64, 48)),
        torch.bmm,
        (("einsum", lambda a, b: torch.einsum("bij,bjk->bik", a, b)),
         ("products summed", lambda a, b: (a.unsqueeze(-1) * b.unsqueeze(1)).sum(2))),
    ),
    Operator(
        "attention",
        lambda: (randn(2, 4, 64, 32), randn(2, 4, 64, 32), randn(2, 4, 64, 32)),
        attention,
        (("flash", flash_attention),
         ("torch's", functional.scaled_dot_product_attention),
         ("scaled query", lambda q, k, v: torch.softmax(
             (q / math.sqrt(32)) @ k.transpose(-1, -2), -1) @ v)),
        (("scale left out by 1 %", lambda q, k, v: attention(q * 1.01, k, v)),),
    ),
    Operator(
        "gelu",
        lambda: (randn(256, 256),),
        functional.gelu,
        (("erf", lambda x: x * 0.5 * (1 + torch.erf(x / math.sqrt(2)))),
         ("erfc", lambda x: x * 0.5 * torch.erfc(-x * math.sqrt(0.5)))),
        (("tanh", gelu_tanh),),
    ),
    Operator(
        "silu",
        lambda: (randn(256, 256),),
        functional.silu,
        (("quotient", lambda x: x / (1 + (-x).exp())),
         ("sigmoid", lambda x: x * torch.sigmoid(x)),
         ("exp2", lambda x: x / (1 + torch.exp2(-x / math.log(2))))),
        (("hard", functional.hardswish),),
    ),
    Operator(
        "tanh",
        lambda: (randn(256, 256),),
        torch.tanh,
        (("exp", lambda x: 1 - 2 / ((2 * x).exp() + 1)),),
        (("clipped cubic", lambda x: (x - x**3 / 3).clamp(-1, 1)),),
    ),
    Operator(
        "softplus",
        lambda: (randn(256, 128),),
        functional.softplus,
        (("stable", lambda x: x.clamp(min=0) + torch.log1p((-x.abs()).exp())),
         ("logaddexp", lambda x: torch.logaddexp(x, torch.zeros_like(x)))),
        (("relu", functional.relu),),
    ),
    Operator(
        "row_sum",
        lambda: (randn(512, 1024),),
        lambda x: x.sum(-1),
        (("blocked", lambda x: blocked_sum(x, 64)[..., 0]),
         ("lanes", lambda x: lanes_sum(x, 128)[..., 0]),
         ("reversed", lambda x: x.flip(-1).sum(-1)),
         ("product with ones", lambda x: x @ torch.ones(1024, dtype=x.dtype))),
        (("last column left out", lambda x: x[:, :-1].sum(-1)),),
    ),
    Operator(
        "column_mean",
        lambda: (torch.rand(1024, 256),),
        lambda x: x.mean(0),
        (("blocked", lambda x: blocked_sum(x.t(), 32)[..., 0] / 1024),
         ("lanes", lambda x: lanes_sum(x.t(), 64)[..., 0] * (1 / 1024))),
        (("divided by n - 1", lambda x: x.sum(0) / 1023),),
    ),
    Operator(
        "variance",
        lambda: (randn(256, 512) + 1,),
        lambda x: x.var(-1),
        (("two passes", lambda x: (x - x.mean(-1, keepdim=True)).square().sum(-1) / 511),
         ("blocked", lambda x: blocked_sum(
             (x - blocked_sum(x, 32) / 512).square(), 32)[..., 0] / 511)),
        (("divided by n", lambda x: x.var(-1, correction=0)),),
    ),
    Operator(
        "logsumexp",
        lambda: (randn(256, 512),),
        lambda x: torch.logsumexp(x, -1),
        (("blocked", lambda x: (m := x.amax(-1, keepdim=True))[..., 0]
          + blocked_sum((x - m).exp(), 64).log()[..., 0]),),
    ),
    Operator(
        "cumsum",
        lambda: (randn(64, 256),),
        lambda x: x.cumsum(-1),
        (("one by one", serial_cumsum),
         ("product with a triangle", lambda x: x @ torch.ones(256, 256, dtype=x.dtype).triu())),
        (("exclusive", lambda x: x.cumsum(-1) - x),),
    ),
    Operator(
        "conv2d",
        lambda: (randn(2, 16, 18, 18), randn(16, 16, 3, 3)),
        functional.conv2d,
        (("tap by tap", taps_conv),
         ("unfolded", lambda x, w: (w.reshape(16, -1) @ functional.unfold(x, 3))
          .reshape(x.shape[0], 16, 16, 16))),
        (("corner tap left out", lambda x, w: functional.conv2d(
            x, w - functional.pad(w[:, :, 2:, 2:], (2, 0, 2, 0)))),),
    ),
    Operator(
        "avg_pool",
        lambda: (torch.rand(2, 16, 32, 32),),
        lambda x: functional.avg_pool2d(x, 2),
        (("added", lambda x: (x[..., ::2, ::2] + x[..., 1::2, ::2] + x[..., ::2, 1::2]
                              + x[..., 1::2, 1::2]) / 4),
         ("means of means", lambda x: x.unflatten(-1, (16, 2)).mean(-1)
          .unflatten(-2, (16, 2)).mean(-2))),
        (("maximum", lambda x: functional.max_pool2d(x, 2)),),
    ),
    Operator(
        "cross_entropy_grad",
        lambda: (randn(128, 256),),
        lambda x: (torch.softmax(x, -1) - torch.eye(128, 256, dtype=x.dtype)) / 128,
        (("online", lambda x: (online_softmax(x) - torch.eye(128, 256, dtype=x.dtype)) / 128),),
        (("target left out", lambda x: torch.softmax(x, -1) / 128),),
    ),
    Operator(
        "scaled_add",
        lambda: (randn(256, 256), randn(256, 256)),
        lambda x, y: x * 0.3 + y,
        (("added", lambda x, y: torch.add(y, x, alpha=0.3)),),
        (("other factor", lambda x, y: x * 0.301 + y),),
    ),
    Operator(
        "exp_decay",
        lambda: (torch.rand(256, 256) * 20,),
        lambda x: (-x).exp(),
        (("exp2", lambda x: torch.exp2(-x / math.log(2))), ("reciprocal", lambda x: 1 / x.exp())),
    ),
    Operator(
        "norm",
        lambda: (randn(128, 512),),
        lambda x: x / x.norm(dim=-1, keepdim=True),
        (("rsqrt", lambda x: x * torch.rsqrt(blocked_sum(x * x, 64))),),
        (("squared", lambda x: x / x.square().sum(-1, keepdim=True)),),
    ),
)  # fmt: skip
