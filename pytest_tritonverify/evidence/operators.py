"""Which of torch's operators compute: whatever stands in none of the lists of others.

Names are those of the namespace `aten`, without overload: `copy_`, `cat`. A name that is in no
list computes (default-deny), so an operator of a later torch is never let through by oversight.
"""

from __future__ import annotations

import re

from pytest_tritonverify.evidence.composites import COMPOSITE, MIXED

ALLOWED = "allowed"
VIEW = "view"
MOVING = "moving"
RANDOM = "random"
PARTED = "parted"
COMPUTING = "computing"

# Memory, values that follow from arguments alone, copies, casts, and questions about tensors.
_WORDS_ALLOWED = """
    empty empty_like empty_strided empty_permuted new_empty new_empty_strided
    zeros zeros_like new_zeros ones ones_like new_ones full full_like new_full
    arange range eye linspace logspace scalar_tensor tril_indices triu_indices
    _efficientzerotensor _lazy_clone from_file
    fill fill_ zero zero_ clone copy copy_ _to_copy _copy_from _copy_from_and_resize
    _foreach_copy_ _foreach_zero_ to_mkldnn _to_dense
    set_ resize_ resize_as_ _resize_output_ record_stream
    _local_scalar_dense is_same_size is_set_to is_pinned _pin_memory pin_memory
    _assert_async _assert_scalar _functional_assert_async _functional_assert_scalar
    _assert_tensor_metadata sym_constrain_range sym_constrain_range_for_size
    _has_same_storage_numel _print dense_dim sparse_dim _dimI _dimV _nnz is_coalesced
    q_scale q_zero_point qscheme int_repr
"""
_ALLOWED = frozenset(_WORDS_ALLOWED.split())
_WORDS_VIEWS = """
    alias as_strided as_strided_ detach detach_ diagonal expand lift lift_fresh lift_fresh_copy
    permute select slice split split_with_sizes squeeze squeeze_ t t_ transpose transpose_ unbind
    unfold unsqueeze unsqueeze_ view view_as_complex view_as_real _unsafe_view _reshape_alias
    _conj _neg_view unsafe_split unsafe_split_with_sizes _mkldnn_reshape _mkldnn_transpose
    _fw_primal _make_dual _nested_view_from_buffer _nested_view_from_jagged values indices
"""
_VIEWS = frozenset(_WORDS_VIEWS.split())
_WORDS_MOVING = """
    cat stack _stack _chunk_cat block_diag constant_pad_nd reflection_pad1d reflection_pad2d
    reflection_pad3d replication_pad1d replication_pad2d replication_pad3d
    repeat roll flip rot90 pixel_shuffle pixel_unshuffle channel_shuffle native_channel_shuffle
    slice_scatter select_scatter diagonal_scatter as_strided_scatter
    alias_copy as_strided_copy detach_copy diagonal_copy expand_copy narrow_copy permute_copy
    select_copy slice_copy split_copy split_with_sizes_copy squeeze_copy t_copy transpose_copy
    unbind_copy unfold_copy unsqueeze_copy view_copy view_as_complex_copy view_as_real_copy
    _reshape_copy _reshape_alias_copy _conj_copy _neg_view_copy
"""
_MOVING = frozenset(_WORDS_MOVING.split())
_WORDS_RANDOM = """
    rand rand_like randn randn_like randint randint_like randperm
    bernoulli_ cauchy_ exponential_ geometric_ log_normal_ normal_ random_ uniform_
    normal normal_functional _philox_normal_ _philox_uniform_
"""
_RANDOM = frozenset(_WORDS_RANDOM.split())
_KINDS = {
    **dict.fromkeys(COMPOSITE, PARTED),
    **dict.fromkeys(_RANDOM, RANDOM),
    **dict.fromkeys(_MOVING, MOVING),
    **dict.fromkeys(_VIEWS, VIEW),
    **dict.fromkeys(_ALLOWED, ALLOWED),
}

# Those that make a new tensor in the likeness of another one, whose values they do not read.
_MAKERS = re.compile(r"(new_\w+|\w+_like)$")

# Copies, which move values about where they read them in another order than they lie in memory.
COPIES = frozenset({"clone", "copy_", "_to_copy", "contiguous"})


def plain_name(name: str) -> str:
    """Return an operator's name without namespace and overload.

    Args:
        name: as torch writes it, `aten.add.Tensor` or `aten::add`; operators outside of `aten`
            keep their namespace, so that they are in no list.
    """
    namespace, _, rest = name.replace("::", ".").partition(".")
    if not rest:
        return name
    base = rest.partition(".")[0]
    return base if namespace == "aten" else f"{namespace}.{base}"


def kind(name: str) -> str:
    """Return what an operator does: one of `ALLOWED`, `VIEW`, `MOVING`, `RANDOM`, `COMPUTING`.

    `PARTED` is an operator that consists of others, which are recorded for themselves.
    """
    plain = plain_name(name)
    if plain.startswith(("prim.", "profiler.")):
        return ALLOWED
    return _KINDS.get(plain, COMPUTING)


def makes_memory(name: str) -> bool:
    """Whether an operator reads no values of the tensor that it is given."""
    plain = plain_name(name)
    return kind(name) in (ALLOWED, RANDOM) and bool(_MAKERS.match(plain))


def may_be_parted(name: str) -> bool:
    """Whether an operator consists of others in some of its overloads."""
    plain = plain_name(name)
    return plain in MIXED or plain in COMPOSITE


# Kernels of a device's libraries that only copy or fill, as profilers name them.
_COPY_KERNELS = re.compile(
    r"Memcpy|Memset|memcpy|memset"
    r"|FillFunctor|direct_copy_kernel|\w*copy_kernel_cuda|LoadWithCast\w*.*copy"
    r"|MemcpyAsync|MemsetAsync|fillKernel|rocclr_copyBuffer|rocclr_fillBuffer",
)
_OTHER_HARMLESS = re.compile(
    r"arange_cuda|elementwise_kernel_with_index|CatArrayBatchedCopy|distribution_\w*kernel"
    r"|randperm|eye_kernel|linspace"
)


# What kernels of CANN's libraries are called, before the type of operator that they belong to.
OF_CANN = "cann::"
_CANN_COPIES = re.compile(
    r"TensorMove|MemSet|ZerosLike|OnesLike|Fills?$|Cast$|ViewCopy|Identity|Range$|TransData|Transpose"
    r"|(Strided)?Slice|AsStrided|Concat|Pack$|Tile$|BroadcastTo|Expand|Pad|Split|Unpack"
    r"|Stateless|DSARandom|RandomUniform|RandomNormal|LinSpace|Eye$|ScatterUpdate|Contiguous",
)
_CANN_COMPUTING = re.compile(
    r"(Batch|Grouped|Quant)*MatMul|Gemm|Conv\d|Depthwise|(Log)?Softmax|\w*Norm(V\d|Grad|$)|Reduce|Arg(Max|Min)"
    r"|TopK|Sort|Cum(sum|prod|max|min)|Add|Sub$|Mul|(Real|Floor|Trunc)?Div|Pow|Exp|Log|R?[Ss]qrt|Square|Abs"
    r"|Neg$|Sin|Cos|Tan|Erf|Sigmoid|\w*Relu|\w*Gelu|Swish|Silu|SwiGlu|Maximum|Minimum|Clip|Select|Equal"
    r"|NotEqual|Greater|Less|Logical|\w*FlashAttention|\w*Pool|Einsum|Embedding|Gather|Index|AxpyV?\d?$"
)


def device_kernel_kind(name: str) -> str | None:
    """Return what a kernel of the device's own libraries does, by the name in a profile.

    Returns:
        `ALLOWED`, `MOVING` or `COMPUTING`; None for a kernel of CANN that is in no list.
    """
    if name.startswith(OF_CANN):
        kind = name.removeprefix(OF_CANN)
        if _CANN_COPIES.match(kind):
            return ALLOWED
        return COMPUTING if _CANN_COMPUTING.match(kind) else None
    if _COPY_KERNELS.search(name):
        return ALLOWED
    return MOVING if _OTHER_HARMLESS.search(name) else COMPUTING
