"""A plugin of pytest: nbval's kernels are copies of one process, which has loaded what most notebooks import.

To import SciPy and Matplotlib takes longer than most cells. A copy has a session, a folder and an environment of its
own, as a kernel always has; it shares loaded modules, none of them of dplib, and no variable.
"""

import gc
import importlib
import json
import os
import signal
import subprocess
import sys

LOADED = ["ipykernel.debugger", "ipykernel.kernelapp", "IPython.extensions.storemagic"]
LOADED += ["matplotlib.backends.backend_agg", "matplotlib.pyplot", "scipy.stats"]
LOADED += ["dp_accounting", "jax.numpy"]


class Kernel:
    """What jupyter_client needs of a subprocess.Popen."""

    server = stdin = stdout = stderr = None

    def __init__(self, command, cwd, env, **_):
        if Kernel.server is None:
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
            Kernel.server = subprocess.Popen([sys.executable, __file__], start_new_session=True, **pipes)
        environment = env | {"JPY_PARENT_PID": str(Kernel.server.pid)}
        print(json.dumps([command, cwd, environment]), file=Kernel.server.stdin, flush=True)
        self.pid = int(Kernel.server.stdout.readline())

    def poll(self):
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return 0

    wait = poll

    def send_signal(self, number):
        os.kill(self.pid, number)


def serve():
    """Start a kernel for each line that comes; it answers with its number."""
    del sys.path[0]  # this folder, which no kernel knows
    for name in LOADED:
        importlib.import_module(name)
    gc.freeze()  # no copy looks through what was loaded
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # a kernel that has ended is gone at once
    for line in sys.stdin:
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            return begin(*json.loads(line))


def begin(command, folder, environment):
    os.setsid()
    print(os.getpid(), flush=True)
    for number in range(3):
        os.dup2(os.open(os.devnull, os.O_RDWR), number)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = [command[0], *command[command.index("-f") :]]
    importlib.import_module("ipykernel.kernelapp").launch_new_instance()


if __name__ == "__main__":
    serve()
else:
    from jupyter_client.provisioning import local_provisioner

    local_provisioner.launch_kernel = Kernel
