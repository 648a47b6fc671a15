"""Processes that run references and implementations, and what travels between them.

The judge talks to workers through this package; `worker`, `reference`, `candidate` and
`tensors` are the parts that import torch, and none of them is imported by the judge before it
has something to compare.
"""
