"""Products of stacked matrices in which the numbers of one chain do not depend on the chains beside it, to the last bit.

On a CPU `torch.bmm` does not promise that. MKL chooses how it sums by the number of matrices, and on processors without
AVX-512 also by the address at which a matrix begins modulo the width of a register; both change with the chains beside one.
Here every chain has a call of its own into OpenBLAS, by the compiled `np.dot`: it copies both matrices to memory of its own
before it multiplies, so that nothing but shapes and values counts. That is one compiled loop however many chains there are.
On a GPU the products stay batched ones, a single launch each.

torch's softplus has the same fault: the last few numbers of a tensor, which fill no register, are rounded differently.
"""

from __future__ import annotations

import numpy as np
import torch

from ensemblepp.compilation.arithmetic import OPTIONS
from ensemblepp.compilation.compiled import compiled

# ------------------------------------------------------------------------------------------------------------- products


def product(left: torch.Tensor, right: torch.Tensor, *, turn_left: bool = False, turn_right: bool = False) -> torch.Tensor:
    """Every chain's left @ right: (chains, rows, k) and (chains, k, columns) to (chains, rows, columns).

    Args:
        left: stacked matrices.
        right: as many.
        turn_left: take the transposes of `left`, which is (chains, k, rows) then.
        turn_right: take the transposes of `right`, which is (chains, columns, k) then.
    """
    if left.device.type == "cpu" and torch.is_grad_enabled():
        return _Product.apply(left, right, turn_left, turn_right)
    return multiply(left, right, turn_left=turn_left, turn_right=turn_right)


def multiply(
    left: torch.Tensor,
    right: torch.Tensor,
    *,
    turn_left: bool = False,
    turn_right: bool = False,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """`product` without a gradient on a CPU, into `out` (contiguous there) if it is given."""
    if left.device.type != "cpu":
        return torch.bmm(left.mT if turn_left else left, right.mT if turn_right else right, out=out)
    if out is None:
        out = left.new_empty(len(left), left.shape[2 if turn_left else 1], right.shape[1 if turn_right else 2])
    # by the caller's word and not by strides, which mean nothing in dimensions of size 1
    _TURNED[turn_left, turn_right](_array(left), _array(right), out.detach().numpy())
    return out


class _Product(torch.autograd.Function):
    """`product` on a CPU; its derivatives are products too."""

    @staticmethod
    def forward(ctx, left: torch.Tensor, right: torch.Tensor, turn_left: bool, turn_right: bool) -> torch.Tensor:
        left, right = left.contiguous(), right.contiguous()
        ctx.save_for_backward(left, right)
        ctx.turns = turn_left, turn_right
        return multiply(left, right, turn_left=turn_left, turn_right=turn_right)

    @staticmethod
    def backward(ctx, slope: torch.Tensor) -> tuple[torch.Tensor | None, torch.Tensor | None, None, None]:
        (left, right), (turn_left, turn_right) = ctx.saved_tensors, ctx.turns
        by_left = by_right = None
        if ctx.needs_input_grad[0]:
            if turn_left:
                by_left = multiply(right, slope, turn_left=turn_right, turn_right=True)
            else:
                by_left = multiply(slope, right, turn_right=not turn_right)
        if ctx.needs_input_grad[1]:
            if turn_right:
                by_right = multiply(slope, left, turn_left=True, turn_right=turn_left)
            else:
                by_right = multiply(left, slope, turn_left=not turn_left)
        return by_left, by_right, None, None


# ---------------------------------------------------------------------------------------------------------- ReLU layers


def layer(inputs: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """relu(inputs @ weight + bias) of (chains, rows, fan_in), (chains, fan_in, width) and (chains, 1, width)."""
    if inputs.device.type != "cpu":
        return torch.relu_(torch.baddbmm(bias, inputs, weight))
    if torch.is_grad_enabled():
        return _Layer.apply(inputs, weight, bias)
    outputs = inputs.new_empty(*inputs.shape[:2], weight.shape[2])
    _layer(_array(inputs), _array(weight), _array(bias), outputs.numpy())
    return outputs


def layer_gradient(
    inputs: torch.Tensor,
    weight: torch.Tensor,
    outputs: torch.Tensor,
    slope: torch.Tensor,
    by_weight: torch.Tensor,
    by_bias: torch.Tensor,
    lower: bool = True,
) -> torch.Tensor | None:
    """From derivatives by the outputs of `layer`, write those by weight and bias; returns those by the inputs if `lower`."""
    by_inputs = torch.empty_like(inputs, memory_format=torch.contiguous_format) if lower else None
    if inputs.device.type == "cpu":
        none = inputs.new_empty(len(inputs), 0, 0)
        arrays = (_array(values) for values in (inputs, weight, outputs, slope, by_inputs if lower else none))
        _layer_back(*arrays, by_weight.detach().numpy(), by_bias.detach().numpy())
        return by_inputs
    slope = torch.ops.aten.threshold_backward(slope, outputs, 0)
    torch.bmm(inputs.mT, slope, out=by_weight)
    torch.sum(slope, dim=1, keepdim=True, out=by_bias)
    return torch.bmm(slope, weight.mT, out=by_inputs) if lower else None


class _Layer(torch.autograd.Function):
    """`layer` on a CPU."""

    @staticmethod
    def forward(ctx, inputs: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        inputs = inputs.contiguous()
        with torch.no_grad():
            outputs = layer(inputs, weight, bias)
        ctx.save_for_backward(inputs, weight, outputs)
        return outputs

    @staticmethod
    def backward(ctx, slope: torch.Tensor) -> tuple[torch.Tensor | None, torch.Tensor, torch.Tensor]:
        inputs, weight, outputs = ctx.saved_tensors
        by_weight = torch.empty_like(weight)
        by_bias = weight.new_empty(len(weight), 1, weight.shape[2])
        return layer_gradient(inputs, weight, outputs, slope, by_weight, by_bias, ctx.needs_input_grad[0]), by_weight, by_bias


# ------------------------------------------------------------------------------------------------------------- softplus


def softplus(values: torch.Tensor) -> torch.Tensor:
    """log(1 + exp(values)), made of functions whose numbers do not depend on their place in a tensor."""
    return _Softplus.apply(values)


class _Softplus(torch.autograd.Function):
    @staticmethod
    def forward(ctx, values: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(values)
        return values.abs().neg_().exp_().log1p_().add_(values.clamp(min=0))

    @staticmethod
    def backward(ctx, slope: torch.Tensor) -> torch.Tensor:
        (values,) = ctx.saved_tensors
        # not torch.sigmoid, which rounds by place as well
        return slope / values.neg().exp_().add_(1)


# ------------------------------------------------------------------------------------------------------- compiled loops


def _array(values: torch.Tensor) -> np.ndarray:
    return (values.detach() if values.requires_grad else values).contiguous().numpy()


@compiled(**OPTIONS)
def _plain_plain(left, right, out):
    for chain in range(len(out)):
        np.dot(left[chain], right[chain], out[chain])


@compiled(**OPTIONS)
def _plain_turned(left, right, out):
    for chain in range(len(out)):
        np.dot(left[chain], right[chain].T, out[chain])


@compiled(**OPTIONS)
def _turned_plain(left, right, out):
    for chain in range(len(out)):
        np.dot(left[chain].T, right[chain], out[chain])


@compiled(**OPTIONS)
def _turned_turned(left, right, out):
    for chain in range(len(out)):
        np.dot(left[chain].T, right[chain].T, out[chain])


_TURNED = {
    (False, False): _plain_plain,
    (False, True): _plain_turned,
    (True, False): _turned_plain,
    (True, True): _turned_turned,
}


@compiled(**OPTIONS)
def _layer(inputs, weight, bias, outputs):
    _, rows, width = outputs.shape
    for chain in range(len(outputs)):
        out = outputs[chain]
        np.dot(inputs[chain], weight[chain], out)
        for i in range(rows):
            for j in range(width):
                value = out[i, j] + bias[chain, 0, j]
                # not max, which may lose what is no number
                out[i, j] = np.float32(0) if value <= np.float32(0) else value


@compiled(**OPTIONS)
def _layer_back(inputs, weight, outputs, slope, by_inputs, by_weight, by_bias):
    _, rows, width = outputs.shape
    masked = np.empty((rows, width), dtype=np.float32)
    for chain in range(len(outputs)):
        out, above, total = outputs[chain], slope[chain], by_bias[chain, 0]
        total[:] = np.float32(0)
        for i in range(rows):
            for j in range(width):
                masked[i, j] = np.float32(0) if out[i, j] <= np.float32(0) else above[i, j]
                total[j] += masked[i, j]
        np.dot(inputs[chain].T, masked, by_weight[chain])
        if by_inputs.size > 0:
            np.dot(masked, weight[chain].T, by_inputs[chain])
