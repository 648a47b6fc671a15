"""Instruments that observe an implementation at work, inside of a worker process.

They note what happens and draw no conclusions: user code in the same process could change those.
"""
