"""Given to `python -c`: imports the embedded modules, which come on the request descriptor, and serves.

No file is written, and the working directory, which `-c` puts first on the path of modules, is taken off it.
"""

import gc
import sys

# Until lit is there: what is imported stays, and to look through it takes a millisecond or two.
gc.disable()
sys.path[:1] = [entry for entry in sys.path[:1] if entry]

import os  # noqa: E402

# What was written while Python started (by a shim, by `site`) waits in a file, which is standard error until now.
early = os.pread(2, 1 << 16, 0)
os.dup2(5, 2)
os.close(5)
if early:
    os.write(2, early)

for descriptor in (3, 4):
    # A process that a config leaves behind must not keep the runner's pipes open.
    os.set_inheritable(descriptor, False)
requests, replies = open(3, "rb"), open(4, "wb")


class Embedded:
    """Finds and loads modules from memory."""

    def __init__(self, sources):
        self.sources = sources

    def find_spec(self, name, path=None, target=None):
        if name in self.sources:
            # The type of all module specs, without the cost of importing importlib.
            return type(os.__spec__)(name, self, origin="<%s>" % name, is_package="." not in name)

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        name = module.__name__
        exec(compile(self.sources[name], name.replace(".", "/") + ".py", "exec"), module.__dict__)

    def get_source(self, name):
        # For tracebacks.
        return self.sources[name].decode()


count = int(requests.readline())
headers = [requests.readline().split() for _ in range(count)]
sys.meta_path.insert(0, Embedded({name.decode(): requests.read(int(size)) for name, size in headers}))

from litprobe.server import serve  # noqa: E402

serve(requests, replies)
