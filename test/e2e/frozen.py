"""Stops one thread of another process, as a rank that hangs would stop: the rest of the process goes on."""
import ctypes
import os
from pathlib import Path

SEIZE, INTERRUPT, WALL = 0x4206, 0x4207, 0x40000000


class Frozen:
    """A context manager: the thread stays stopped inside. Needs the right to trace (root, or the process's parent)."""

    def __init__(self, pid: int, name: str):
        self.tid = next(int(task.name) for task in Path(f"/proc/{pid}/task").iterdir()
                        if (task / "comm").read_text().strip() == name)
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
        self.libc.ptrace.restype = ctypes.c_long

    def _ptrace(self, request: int) -> None:
        if self.libc.ptrace(request, self.tid, None, None) != 0:
            error = ctypes.get_errno()
            raise OSError(error, f"ptrace: {os.strerror(error)}")

    def __enter__(self):
        self._ptrace(SEIZE)
        self._ptrace(INTERRUPT)
        os.waitpid(self.tid, WALL)
        return self

    def collect(self) -> None:
        """What is left of the thread once its process has ended is ours to collect, or the process stays a zombie."""
        try:
            os.waitpid(self.tid, WALL | os.WNOHANG)
        except ChildProcessError:
            pass

    def __exit__(self, *_):
        self.collect()
