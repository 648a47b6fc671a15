"""Which names of PyTorch and of others allocate, view, move or read. All others compute.

Whatever stands below `torch` and in none of these tables counts as computing, so that a name that
is new, hidden or forgotten can't be a way around the check.
"""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Answer with plain Python values.
METADATA = _words(
    """
    __bool__ __class__ __contains__ __dlpack_device__ __format__ __hash__ __index__ __len__ __repr__
    __sizeof__ __str__ backward can_cast data_ptr dense_dim dim dim_order element_size get_device
    has_names is_coalesced is_complex is_conj is_contiguous is_distributed is_floating_point
    is_inference is_neg is_nonzero is_pinned is_same_size is_set_to is_shared is_signed nbytes
    ndimension nelement numel register_hook retain_grad size sparse_dim storage_offset
    storage_type stride sym_size sym_numel sym_stride type_as_string
    """
)

# Properties of tensors that are plain values.
PROPERTIES = _words(
    """
    dtype element_ty grad_fn is_leaf is_meta is_mkldnn is_nested is_quantized is_sparse itemsize
    layout name names nbytes ndim output_nr requires_grad shape storage_offset volatile
    """
)
ON_DEVICE_PROPERTIES = _words("is_cuda is_npu is_xpu is_mps is_privateuseone")

# Views that leave the elements where they are.
VIEWS = _words(
    """
    __getitem__ alias as_subclass broadcast_tensors broadcast_to chunk detach detach_ diagonal
    expand expand_as flatten narrow ravel refine_names rename requires_grad_ reshape reshape_as
    resolve_conj resolve_neg select slice split split_with_sizes squeeze squeeze_ swapdims_
    tensor_split
    unbind unflatten unsafe_chunk unsafe_split unsqueeze unsqueeze_ untyped_storage
    view view_as view_as_complex view_as_real vsplit hsplit dsplit atleast_1d atleast_2d atleast_3d
    __iter__ storage set_ share_memory_ pin_memory record_stream as_tensor
    """
)
# Views whose copy rearranges memory.
PERMUTING = _words(
    """
    adjoint as_strided as_strided_ movedim moveaxis permute swapaxes swapdims t t_ transpose
    transpose_ unfold
    """
)
PERMUTING_PROPERTIES = _words("T mT H mH")
VIEW_PROPERTIES = _words("data real imag grad")

# Copies to another type, device or layout.
CASTS = _words(
    """
    bfloat16 bool byte cdouble cfloat chalf char cpu cuda double float half int long npu short to
    to_dense type type_as xpu
    """
)
# Copies that keep every element in its place, and constants.
COPIES = _words(
    """
    __copy__ __deepcopy__ __setitem__ clone contiguous copy_ exponential_ fill_ normal_ random_
    uniform_ zero_
    """
)

# Allocation and constants, as methods.
NEW = _words(
    """
    new new_empty new_empty_strided new_full new_ones new_tensor new_zeros resize_ resize_as_
    __new__ _make_subclass
    """
)

# Movement: allowed, but reported.
MOVING_METHODS = _words(
    """
    flip fliplr flipud repeat repeat_interleave roll rot90 tile
    """
)
MOVING = MOVING_METHODS | _words(
    """
    block_diag cat channel_shuffle column_stack concat concatenate dstack hstack vstack
    row_stack pad pixel_shuffle pixel_unshuffle stack meshgrid combinations
    cartesian_prod clone
    """
)
# Calls that chunk or flatten: views by their nature, named as movement by the standard.
REPORTED_VIEWS = _words("flatten split chunk tensor_split unbind split_with_sizes")

# Movement by data: computes as far as an implementation goes, moves as far as a task goes.
GATHERS = _words(
    """
    embedding gather index index_copy index_copy_ index_fill index_fill_ index_put index_put_
    index_select
    masked_fill masked_fill_ masked_scatter masked_select scatter scatter_ select_scatter
    slice_scatter
    take take_along_dim tril triu tril_ triu_ where diag diag_embed diagonal_scatter narrow_copy
    put put_
    """
)

# Hand elements of a tensor to Python.
READS = _words("item tolist numpy __array__ __float__ __int__ __dlpack__ __complex__")

# Functions of torch that allocate, make constants, describe or set something.
ALLOWED = frozenset(
    f"torch.{name}"
    for name in _words(
        """
        Generator Size Tensor Tensor.new_empty Tensor.data_ptr arange
        are_deterministic_algorithms_enabled
        as_strided as_tensor asarray broadcast_shapes can_cast compiler.is_compiling
        compiler.is_dynamo_compiling default_generator
        device dtype empty empty_like empty_permuted empty_strided eye finfo from_dlpack
        from_numpy full
        full_like get_autocast_dtype get_autocast_gpu_dtype get_default_device get_default_dtype
        get_device
        get_device_module get_float32_matmul_precision get_num_threads get_rng_state
        iinfo initial_seed is_autocast_enabled is_complex is_conj is_floating_point
        is_grad_enabled is_inference is_inference_mode_enabled is_nonzero is_storage is_tensor
        is_warn_always_enabled jit.is_scripting jit.is_tracing jit.annotate layout linspace
        logspace manual_seed
        nn.Module nn.Parameter nn.ParameterList nn.UninitializedParameter nn.Buffer
        numel ones ones_like promote_types rand rand_like randint randint_like randn randn_like
        randperm result_type scalar_tensor seed set_default_device set_default_dtype
        set_float32_matmul_precision
        set_grad_enabled set_num_threads set_printoptions set_rng_state sym_float sym_int
        sym_max sym_min
        tensor use_deterministic_algorithms zeros zeros_like no_grad inference_mode enable_grad
        set_warn_always get_deterministic_debug_mode memory_format strided autocast
        Stream Event current_stream
        _assert _assert_async _check _check_is_size _dynamo.mark_dynamic _dynamo.mark_static
        _dynamo.graph_break _dynamo.reset _dynamo.is_compiling overrides.has_torch_function
        autograd.set_grad_enabled autograd.no_grad autograd.enable_grad autograd.Variable
        autograd.function.once_differentiable get_cudnn_enabled
        FloatTensor HalfTensor BFloat16Tensor DoubleTensor IntTensor LongTensor ShortTensor
        ByteTensor CharTensor BoolTensor
        """
    )
)
ALLOWED_BELOW = (
    "torch.accelerator.",
    "torch.amp.",
    "torch.autograd.profiler",
    "torch.backends.",
    "torch.cpu.",
    "torch.cuda.",
    "torch.distributed.get_",
    "torch.distributed.is_",
    "torch.library.",
    "torch.npu.",
    "torch.nn.init.",
    "torch.nn.parameter.",
    "torch.profiler.",
    "torch.random.",
    "torch.types.",
    "torch.utils.cpp_extension.CUDA_HOME",
    "torch.utils.hooks.",
    "torch.version.",
    "torch.xpu.",
    "torch_npu.npu.",
    "torch_npu.profiler.",
)
# What code generators write beside their kernels; by the last part of a name below `torch._`.
ALLOWED_INTERNALS = _words(
    """
    _DeviceGuard _cuda_getCurrentRawStream _empty_strided_cpu _empty_strided_cuda _get_device_index
    _npu_getCurrentRawStream _reinterpret_tensor alloc_from_pool assert_alignment assert_size_stride
    empty_strided_cpu empty_strided_cuda empty_strided_xpu get_raw_stream get_current_device
    getCurrentRawStream grid grid_combo_kernels is_dynamo_compiling reinterpret_tensor
    split_scan_grid start_graph end_graph instance_descriptor AttrsDescriptor DeviceProperties
    next_power_of_2 maybe_profile is_grad_enabled get_interface_for_device
    _record_function_enter _set_grad_enabled is_autocast_enabled empty_strided
    """
)

# Below the prefixes above, yet computing.
DENIED_BELOW = ("torch.backends.mha", "torch.cuda.comm.reduce", "torch.cuda.comm.all_reduce")
# Make of a function something that generates code.
COMPILERS = frozenset(
    {
        "torch.compile",
        "torch._dynamo.optimize",
        "torch.jit.script",
        "torch.jit.trace",
        "torch.jit.trace_module",
        "torch.fx.symbolic_trace",
        "torch.export.export",
        "torch._inductor.compile",
        "torch.compiler.compile",
    }
)
# Return the callable that they are given.
TRANSPARENT = frozenset(
    {
        "functools.cache",
        "functools.lru_cache",
        "functools.singledispatch",
        "contextlib.contextmanager",
        "dataclasses.dataclass",
        "atexit.register",
        "torch.no_grad",
        "torch.enable_grad",
        "torch.inference_mode",
        "torch.compiler.disable",
        "torch.compiler.allow_in_graph",
        "torch._dynamo.disable",
        "torch._dynamo.allow_in_graph",
        "torch.fx.wrap",
        "torch.jit.ignore",
        "torch.jit.export",
        "torch.jit.unused",
        "torch.amp.custom_fwd",
        "torch.amp.custom_bwd",
        "torch.cuda.amp.custom_fwd",
        "torch.cuda.amp.custom_bwd",
        "torch.autograd.function.once_differentiable",
        "torch.library.wrap_triton",
        "torch._library.triton.wrap_triton",
        "torch._library.capture_triton",
        "torch.library.capture_triton",
        "torch.cuda.make_graphed_callables",
        "typing.no_type_check",
        "typing.overload",
        "typing.final",
    }
)
CUSTOM_OPERATORS = frozenset(
    {"torch.library.custom_op", "torch.library.triton_op", "torch._library.custom_ops.custom_op"}
)

# Layers that hand their input on.
IDLE_LAYERS = _words(
    """
    Identity Flatten Unflatten PixelShuffle PixelUnshuffle ChannelShuffle Unfold
    ConstantPad1d ConstantPad2d ConstantPad3d ZeroPad1d ZeroPad2d ZeroPad3d
    ReflectionPad1d ReflectionPad2d ReflectionPad3d
    ReplicationPad1d ReplicationPad2d ReplicationPad3d
    CircularPad1d CircularPad2d CircularPad3d
    """
)
# They pick elements by indices: the task's movement, and work where a kernel is wanted.
GATHERING_LAYERS = _words("Embedding")
CONTAINERS = _words("ModuleList Sequential ModuleDict ParameterList ParameterDict")

# Movement in other libraries.
FOREIGN_MOVING = frozenset(
    {
        "einops.rearrange",
        "einops.repeat",
        "einops.pack",
        "einops.unpack",
        "torch_npu.npu_format_cast",
    }
)
FOREIGN_HARMLESS = _words(
    """
    __future__ abc ascend atexit builtins collections contextlib copy copyreg dataclasses datetime
    enum functools gc inspect io itertools json logging numbers operator os packaging pathlib
    platform pprint random re string sys tempfile textwrap threading time tqdm traceback types
    typing typing_extensions uuid warnings weakref jaxtyping beartype loguru
    """
)
ARRAY_LIBRARIES = _words("numpy scipy numba cupy jax tensorflow pandas PIL cv2 numexpr math cmath")
# Functions of numpy that hand an array on.
ARRAY_MOVING = _words(
    """
    array asarray ascontiguousarray copy empty empty_like expand_dims frombuffer fromiter full
    full_like
    ones ones_like reshape shape squeeze transpose zeros zeros_like size ndim
    """
)

# Run code that the file doesn't show, or look at and change what isn't the file's.
DYNAMIC = {
    "builtins.exec": "runs code from a string",
    "builtins.eval": "runs code from a string",
    "builtins.compile": "compiles code from a string",
    "types.FunctionType": "makes a function from code",
    "types.CodeType": "makes code",
    "runpy.run_path": "runs another file",
    "runpy.run_module": "runs another module",
    "importlib.util.spec_from_file_location": "loads another file",
    "importlib.util.module_from_spec": "loads another file",
    "importlib.machinery.SourceFileLoader": "loads another file",
    "importlib.reload": "loads a module again",
    "pickle.loads": "unpickles code",
    "pickle.load": "unpickles code",
    "marshal.loads": "loads code",
    "code.InteractiveInterpreter": "runs code from a string",
    "codeop.compile_command": "compiles code from a string",
    "sys._getframe": "looks into its callers' frames",
    "sys._current_frames": "looks into other frames",
    "sys.settrace": "follows its callers",
    "sys.setprofile": "follows its callers",
    "inspect.stack": "looks into its callers' frames",
    "inspect.currentframe": "looks into its callers' frames",
    "inspect.getouterframes": "looks into its callers' frames",
    "gc.get_objects": "searches the process for objects",
    "gc.get_referrers": "searches the process for objects",
    "torch.utils.cpp_extension.load_inline": "compiles C++ code",
    "torch.utils.cpp_extension.load": "compiles C++ code",
    "torch.utils._python_dispatch._disable_current_modes": "switches off PyTorch's modes",
    "torch._C._DisableTorchDispatch": "switches off PyTorch's modes",
    "torch._C._ExcludeDispatchKeyGuard": "switches off PyTorch's modes",
}
THREADS = (
    "threading.Thread",
    "threading.Timer",
    "_thread.start_new_thread",
    "multiprocessing.",
    "concurrent.futures.",
    "subprocess.",
    "os.fork",
    "os.system",
    "os.popen",
    "torch.multiprocessing.",
)

# Attributes of foreign modules that may be set.
SETTINGS = (
    "torch.backends.",
    "torch._dynamo.config.",
    "torch._inductor.config.",
    "torch.autograd.",
    "torch.cuda.",
    "torch.npu.",
    "triton.knobs.",
    "sys.",
    "os.environ",
)
ACCELERATORS = frozenset({"cuda", "npu", "xpu", "privateuseone", "musa", "mlu"})
AVAILABILITY = frozenset(
    {
        "torch.cuda.is_available",
        "torch.npu.is_available",
        "torch.xpu.is_available",
        "torch_npu.npu.is_available",
        "torch.accelerator.is_available",
    }
)

# Methods of containers, strings and numbers which tensors don't have, or share.
PLAIN_METHODS = _words(
    """
    append as_integer_ratio bit_count bit_length capitalize casefold center clear copy count
    decode difference discard encode endswith extend find format from_bytes get hex index insert
    intersection isdigit items join keys lower lstrip partition pop popitem prefetch remove replace
    reverse rpartition rsplit rstrip setdefault sort split startswith strip symmetric_difference
    title to_bytes union update upper values zfill __len__ __getitem__ __iter__ __contains__
    """
)
ADDING_METHODS = _words("append add insert extend update setdefault appendleft put")
