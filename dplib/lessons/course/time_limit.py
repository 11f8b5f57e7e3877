"""An end, after some seconds, to code that others wrote."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager


class TooLong(BaseException):
    """Not an Exception, so that code that catches those does not catch this."""


@contextmanager
def time_limit(seconds):
    """Raise TooLong in what runs inside after so many seconds of wall time.

    Needs Unix's timer, and the main thread, which alone receives it; elsewhere, or when the timer is in use, there is no limit.
    """
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return
    if signal.getitimer(signal.ITIMER_REAL)[0]:
        yield
        return

    def stop(*_):
        raise TooLong

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
