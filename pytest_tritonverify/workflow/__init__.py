"""The deterministic decisions of a workflow that generates and optimises kernels, free of pytest.

A workflow keeps its files in a *work directory*; `layout.py` knows where. What it decides from
them is decided here, so that all workflows decide alike: whether a task is one, what a failure is,
whether an optimisation is an improvement, what goes into a report.
"""
