"""The version of the stand-in: that of torch, as torch_npu's own is."""

from importlib.metadata import version

__version__ = version("torch").partition("+")[0]
