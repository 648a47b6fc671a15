"""The hidden-state probe: does an implementation hold the very weights that the reference holds?

Neither side's kernel is at stake here. Where weights differ no kernel can be right, and the
failure looks as if all of it were wrong; so it is told by its own name, before any comparison.
"""
