"""Parts that some versions of Triton lack."""

from triton.runtime.errors import InterpreterError


def optional(launch):
    """Return what a launch returns, or why this version of Triton refuses it."""
    try:
        return launch()
    except (AttributeError, AssertionError, InterpreterError, TypeError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
