"""Judge Triton kernels against their PyTorch references, as pytest items."""

__version__ = "0.1.0"
__all__ = ["__version__"]
