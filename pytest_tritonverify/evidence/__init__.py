"""What is concluded from the observation of an implementation at work: plain data and functions.

Nothing here imports torch or pytest, and nothing here trusts what an observation says about
itself.
"""
