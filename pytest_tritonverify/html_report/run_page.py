"""The page about a run of pytest, written by the process that knows all outcomes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_tritonverify.workflow import files

if TYPE_CHECKING:
    from pytest_tritonverify.session import VerifySession


def clear(session: VerifySession) -> None:
    """Remove an earlier page: a run that is killed must not leave one to be taken for its own."""
    if session.settings.html is not None and session.ledger is not None:
        try:
            session.settings.html.unlink(missing_ok=True)
        except OSError:
            # Writing it will say what is wrong.
            return


def write(session: VerifySession) -> str | None:
    """Write the page, where one is asked for.

    Args:
        session: the session, once it is closed.

    Returns:
        What went wrong, in a sentence; None where nothing did.
    """
    path = session.settings.html
    if path is None or session.ledger is None:
        return None
    # Most runs need no page.
    from pytest_tritonverify.html_report import page, subjects

    try:
        page.write(path, subjects.of_session(session))
    except files.FileError as error:
        return str(error)
    return None
