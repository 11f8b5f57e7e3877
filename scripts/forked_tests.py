"""Tests in a forked process of their own, in which a plugin has planted a fault.

What the caller has imported need not be imported again, and nothing that the fault does outlives the process.
"""

import os
import resource
import signal

_OPTIONS = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", "-p", "no:cov", "-p", "no:xdist"]
NOT_RUN = "pytest did not run"


class Planter:
    """A plugin of pytest that plants a fault; `outcome(status)` says in words how the tests ended."""

    def pytest_sessionstart(self, session):
        # The first example that fails is enough: none is made smaller.
        from hypothesis import Phase, settings

        settings.register_profile("mutants", settings.get_profile("book"), phases=[Phase.explicit, Phase.generate])
        settings.load_profile("mutants")


def run(planter, tests, seconds, memory=None, options=()):
    """(outcome, CPU seconds). The outcome is "time" after so many CPU seconds, "signal N" where the process was ended.

    memory : bytes of address space that it may have.
    """
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(out)
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
        if memory is not None:
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 1), os.dup2(silence, 2)
        text = NOT_RUN
        try:
            import pytest

            status = pytest.main([*_OPTIONS, *options, *tests], plugins=[planter])
            text = planter.outcome(int(status))
        finally:
            os.write(into, text.encode())
            os._exit(0)
    os.close(into)
    with os.fdopen(out, "rb") as pipe:
        text = pipe.read().decode()
    _, status, used = os.wait4(child, 0)
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        text = "time" if number in (signal.SIGXCPU, signal.SIGKILL) else f"signal {number}"
    return text, round(used.ru_utime + used.ru_stime, 1)
