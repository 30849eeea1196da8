"""One process' probe: what is traced, into which ring, and who has a ring at all.

A process that is told its RANK makes its ring at the start. Others that have the same environment (launchers, loader
workers, compilers) make one with their first traced call, if ever, so that nothing that rank N starts passes for rank N.
"""

import os
import sys
import threading

from . import background, compiler, garbage, settings, targets, versions
from . import ring as ring_file
from .create import NoRing, create
from .ending import Ending
from .hook import Hook
from .iterations import Iterations
from .membership import is_loader_worker, rank_in_group
from .stacks import cancel_timer, watch_faulthandler

try:
    from .native import load as load_library
except ImportError:  # A Python that was built without ctypes.
    load_library = None

# Set by the process that trains, for its children: this rank has a ring already.
_TAKEN = "FAULTLINE_PROBED"


class Probe:
    def __init__(self, is_trainer):
        self.ring = None
        self._is_off = False
        self._is_torch_known = False
        self._is_trainer = is_trainer
        self._is_fork = False
        self._is_rank_sure = False
        self._rank = self._world = -1
        self._quiet = 0
        self._stacks = None
        self._names = []
        self._phases = []
        self._making = threading.Lock()
        self._resolving = threading.Lock()
        wanted, bad = targets.parse(os.environ.get("FAULTLINE_TRACE"))
        if bad:
            settings.say(f"FAULTLINE_TRACE: not traced: {', '.join(bad)[:300]} (wanted: module@function, gc or default)")
        self._named = [] if not os.environ.get("FAULTLINE_TRACE") else wanted
        self._pending = {}
        for target in wanted:
            if target != targets.GC:
                self._pending.setdefault(targets.module_of(target), []).append(target)
        self._iterations = Iterations(self)
        self._native = load_library() if load_library else None
        self._hook = None
        if os.environ.get("FAULTLINE_HOOK") != "off":
            self._hook = Hook(self._native, self.wake, lambda: self.ring)
            self._watch_imports()
        elif self._native:
            self._native.set_ring(None, None)
        self._stop_gc = garbage.watch(self._append_collection) if targets.GC in wanted else None
        watch_faulthandler()
        Ending(lambda: self.ring if self.ring and self.ring.pid == os.getpid() else None, self._leave)
        os.register_at_fork(after_in_child=self._after_fork)
        # Only RANK is given to each trainer by its launcher; a scheduler's variables are the launcher's as well.
        if is_trainer or (settings.is_told_rank() and os.environ.get(_TAKEN) != str(settings.rank())):
            self._is_trainer = True
            self.wake()

    # The ring.

    def wake(self):
        """Makes the ring where this process is to have one and has none. Safe in any thread; never raises."""
        if self._is_off or self.ring is not None or not self._making.acquire(False):
            return self.ring
        try:
            if self._is_trainer or not is_loader_worker() or os.environ.get("FAULTLINE_WORKERS") == "1":
                self._rank, self._world = self._who()
                ring = create(self._rank, self._world)
                for name in self._names:
                    ring.name(name)
                ring.put_text(ring_file.SOURCE, self._hook.source if self._hook else "python, no hook")
                self._quiet = 0
                if self._native:
                    self._native.set_ring(ring, self.wake)
                self.ring = ring
                if self._rank >= 0:
                    os.environ[_TAKEN] = str(self._rank)
                self._stacks = background.start(self, ring)
                if self._native:
                    # After faulthandler, which would take a truncated ring for a crash.
                    self._native.guard(ring, self._stacks.has_crashes)
        except NoRing as error:
            self._switch_off()
            settings.say(f"{error}; the job goes on without the probe")
        except Exception as error:
            self.give_up(error)
        finally:
            self._making.release()
        return self.ring

    def _who(self):
        rank, world = settings.rank(), settings.world_size()
        is_own = self._is_trainer or os.environ.get(_TAKEN) != str(rank)
        self._is_rank_sure = self._is_fork or (is_own and settings.is_told_rank())
        if is_own and settings.is_told_rank():
            return rank, world
        # A fork has even its parent's groups, so PyTorch knows no better there.
        group = (-1, -1) if self._is_fork else rank_in_group()
        if group[0] >= 0:
            return group
        # A child of a process that has a ring has its parent's variables. A scheduler's may be those of a script that
        # starts several ranks: good until PyTorch says otherwise.
        return (rank, world) if is_own else (-1, -1)

    def rank_text(self):
        return "x" if self._rank < 0 else str(self._rank)

    def append(self, kind, function, a, b, c, issued, ended, d, e):
        ring = self.ring
        if ring is None:
            return
        if self._native:
            self._native.append(kind, function, a, b, c, issued, ended, d, e)
        else:
            ring.append(kind, function, ring_file.NO_NAME, a, b, c, issued, ended, d, e)

    def _append_collection(self, *fields):
        self.append(*fields)
        self._quiet += 1

    # What the background asks.

    def count_quiet(self):
        self._quiet += 1

    def progress(self, ring):
        """Grows with calls and iterations. Collections and samples of memory do not count: other threads make them too."""
        return ring.head() - self._quiet

    def iteration_durations_ns(self):
        return list(self._iterations.durations_ns)

    def look_around(self, ring):
        """Once a second: what has been imported meanwhile, and who we are where nobody has said so."""
        self._resolve()
        version = getattr(sys.modules.get("torch"), "__version__", None)
        library = f"Python {sys.version.split()[0]} torch {version}"
        if version and ring.text(ring_file.LIBRARY, 64) != library[:63]:
            ring.put_text(ring_file.LIBRARY, library)
        if not self._is_rank_sure:
            rank, world = rank_in_group()
            if rank >= 0:
                self._rank, self._world, self._is_rank_sure = rank, world, True
                ring.put(ring_file.RANK, rank)
                ring.put(ring_file.WORLD_SIZE, world)

    # What is traced.

    def _watch_imports(self):
        """Names are looked up when the job has imported their modules; the probe imports none of them."""
        import _frozen_importlib

        self._resolve()
        self._hook.trace(_frozen_importlib._find_and_load.__code__, ring_file.NO_NAME, False, self._resolve)

    def _resolve(self):
        self._look_at_versions()
        if not self._pending or self._hook is None or not self._resolving.acquire(False):
            return
        try:
            for module in list(self._pending):
                if targets.is_ready(module):
                    again = [target for target in self._pending[module] if not self._trace(target)]
                    if again:
                        self._pending[module] = again
                    else:
                        del self._pending[module]
        except Exception as error:
            self.give_up(error)
        finally:
            self._resolving.release()

    def _trace(self, target):
        """False where it is to be tried again."""
        codes = targets.codes(target)
        if not codes:
            # The script itself is there before its functions are.
            if target.startswith("__main__@"):
                return False
            if target in self._named and target not in targets.DEFAULT:
                settings.say(f"FAULTLINE_TRACE: {target} is no function written in Python; it is not traced")
            return True
        index = ring_file.NO_NAME
        if len(self._names) < ring_file.NAMES:
            index = len(self._names)
            self._names.append(target)
            if self.ring is not None:
                self.ring.name(target)
        if target == targets.STEP:
            compiler.leave_us_out()
        for code in codes:
            self._hook.trace(code, index, True, self._on_step if target == targets.STEP else None)
        return True

    def _on_step(self):
        # One function for all time: C holds on to it, and a fork's child counts anew.
        self._iterations.on_step(sys._getframe(1))

    def renew_hook(self):
        if self._hook:
            self._hook.renew()

    def iteration(self, number):
        if not self._is_off:
            self._iterations.on_told(number)

    def enter_phase(self, name):
        self._phases.append(name)
        self._show_phase()

    def leave_phase(self):
        if self._phases:
            self._phases.pop()
        self._show_phase()

    def _show_phase(self):
        ring = self.ring or self.wake()
        if ring is not None:
            ring.put_phase(self._phases[-1] if self._phases else None)

    def _look_at_versions(self):
        """Once, when the job has imported PyTorch."""
        if self._is_torch_known or not targets.is_ready("torch"):
            return
        self._is_torch_known = True
        refusal = versions.why_not()
        if refusal is None:
            return
        ring = self.ring
        self._leave()
        self._switch_off()
        self._pending.clear()
        if ring is not None:
            ring.remove()
        settings.unname_plugin()
        settings.say(f"{refusal}; the job goes on without the probe")

    # Ends.

    def _leave(self):
        cancel_timer()
        # Python collects once more when it takes everything apart, and no job waits for that.
        if self._stop_gc:
            self._stop_gc()
        if self._stacks:
            self._stacks.leave()

    def _after_fork(self):
        """The parent's ring is the parent's; so are its thread and its faulthandler timer."""
        if self._stacks:
            self._stacks.let_go()
        self.ring = self._stacks = None
        self._phases = []
        self._is_fork, self._is_trainer = True, False
        self._making, self._resolving = threading.Lock(), threading.Lock()
        self._iterations = Iterations(self)
        if self._native:
            self._native.set_ring(None, None if self._is_off else self.wake)

    def _switch_off(self):
        self._is_off = True
        self.ring = None
        if self._native:
            self._native.set_ring(None, None)

    def give_up(self, error):
        """Something that nobody thought of: the job goes on, and one line says so."""
        self._switch_off()
        settings.say(f"the probe stopped: {type(error).__name__}: {error}"[:300])
