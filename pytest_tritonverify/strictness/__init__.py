"""What a verdict is worth: null candidates, and gates beyond the documented standard.

Functions of CPU tensors and plain settings, as in `accuracy`, whose rules they use.
"""
