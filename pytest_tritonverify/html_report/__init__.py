"""One self-contained HTML page about many pairs, made from the files that a run writes.

It needs neither pytest nor PyTorch, and reads counts and verdicts in verification results alone,
times and speed-ups in benchmark reports alone.
"""
