"""Micro-batch counts for the replicas of a training job, from Faultline's service (`faultline serve`, or `faultline plan serve`
for nothing but this).

    mb = MicroBatches("http://controller:7077", job="llama", total=64,
                      replica=dp_rank, replicas=dp_size, exchange=torch_exchange())
    for step in range(steps):
        count, weight = mb.next()           # a collective: every rank calls it, once an iteration
        with mb.timed():
            for i in range(count):
                loss = train_on(micro_batch(step, mb.offset + i))
                (loss * weight / count).backward()

The job comes first. One rank alone talks to the controller, in a thread of its own, and the training never waits for
it. All ranks learn the counts through the job's own process group, so they always agree, whatever happens to the
network. Counts that do not share out the global batch are never used. Without a controller the counts in force stay.

Standard library only; PyTorch is used where the job itself has imported it.
"""

import http.client
import io
import json
import logging
import math
import os
import re
import socket
import sys
import threading
import time
import urllib.parse
from collections import deque
from contextlib import contextmanager

__all__ = ["MicroBatches", "torch_exchange", "even_counts"]

_log = logging.getLogger("faultline.microbatches")

# The controller's rule: safe in a path, a log line and a terminal.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_MOST_ANSWER_BYTES = 1 << 20
_MOST_REASON = 200
# A longer number is no count; converting it could take seconds that the training would feel.
_MOST_DIGITS = 20
_MOST_WAITING_REPORTS = 8
_LONGEST_PAUSE_S = 30.0


def even_counts(total, replicas, multiple_of=1):
    """`total` micro-batches in shares that differ by `multiple_of` at most; the first replicas have the larger ones."""
    bundles, rest = divmod(total, multiple_of)
    if replicas < 1 or rest != 0 or bundles < replicas:
        raise ValueError(
            f"{total} micro-batches cannot be shared out to {replicas} replicas in multiples of {multiple_of}"
        )
    share, more = divmod(bundles, replicas)
    return [(share + (1 if i < more else 0)) * multiple_of for i in range(replicas)]


class MicroBatches:
    """What this rank's replica takes in the iteration at hand: `count`, `weight`, `offset`; `counts` of all replicas.

    url          the controller; None: the shares stay even
    job          1 to 64 letters, digits, - or _, the first a letter or digit
    replica      index of this rank's replica (data-parallel rank); all ranks of a replica give the same
    exchange     called with a list of numbers by every rank at the same time, returns their maxima over all ranks;
                 see torch_exchange
    leader       whether this rank talks to the controller; exactly one may. Default: what `exchange.leader` says
    multiple_of  every count is a multiple of it (interleaved pipelines)
    bubble       how long a pipeline fills and drains, in micro-batch times: (stages - 1) / chunks of a stage
    timeout      seconds for the controller's whole answer
    iteration    the number of the first iteration, for jobs that resume
    """

    def __init__(self, url, job, total, replica, replicas, exchange=None, *, leader=None, multiple_of=1, bubble=0,
                 token=None, timeout=2.0, iteration=0):
        self.counts = even_counts(total, replicas, multiple_of)
        # On every rank, also on those that do not talk to the controller: all fail here, and none waits for another.
        if not (isinstance(job, str) and _NAME.fullmatch(job)):
            raise ValueError(
                "the job's name must be 1 to 64 letters, digits, - or _, the first a letter or digit, "
                f"not {job!r:.80}"
            )
        if not 0 <= replica < replicas:
            raise ValueError(f"replica {replica} is not one of {replicas}")
        if exchange is None and replicas > 1:
            raise ValueError("several replicas need an exchange: torch_exchange()")
        if leader is None:
            leader = getattr(exchange, "leader", replica == 0)
        self.total = total
        self.replica = replica
        self.replicas = replicas
        self.multiple_of = multiple_of
        self.iteration = iteration - 1
        self._begun = False
        self._exchange = exchange or list
        self._seconds = 0.0
        self._open = None
        self._intervals = []
        self._client = None
        if url is not None and leader:
            shape = {"replicas": replicas, "total": total, "multipleOf": multiple_of, "bubble": bubble}
            self._client = _Client(url, job, token, timeout, self._fits, shape)

    @property
    def count(self):
        """Micro-batches of this replica."""
        return self.counts[self.replica]

    @property
    def weight(self):
        """What this replica's mean gradient is multiplied with before replicas are averaged."""
        return self.count * self.replicas / self.total

    @property
    def offset(self):
        """Micro-batches of the global batch that replicas before this one take: this one's come next."""
        return sum(self.counts[: self.replica])

    @property
    def trouble(self):
        """Why the leader has no plan from the controller; None where all is well, and on other ranks."""
        return self._client.trouble if self._client else None

    def next(self):
        """Begins an iteration, on all ranks together. Returns this replica's count and weight."""
        row = [0.0] * (2 * self.replicas)
        row[self.replica] = self._take_seconds()
        if self._client:
            row[self.replicas:] = [float(m) for m in self._client.plan or self.counts]
        agreed = self._exchange(row)
        seconds, counts = agreed[: self.replicas], [int(m) for m in agreed[self.replicas:]]
        if self._client:
            if self._begun:
                self._client.send(self.iteration, self.counts, seconds)
            # What is asked for now is there for the iteration after this one.
            self._client.ask(self.iteration + 2)
        # All ranks hold the same numbers here, and so decide the same.
        if self._fits(counts) and counts != self.counts:
            if self._client:
                _log.info("iteration %d: micro-batches %s", self.iteration + 1, counts)
            self.counts = counts
        self.iteration += 1
        self._begun = True
        return self.count, self.weight

    @contextmanager
    def timed(self):
        """Around the micro-batches of an iteration; several times where they are not in one piece."""
        self._open = [_now(), None]
        try:
            yield
        finally:
            begin, end = self._open
            self._open = None
            self._intervals.append((begin, end if end is not None else _now()))

    def mark(self):
        """Within timed(): computing ends here, what follows is waiting for others."""
        if self._open is not None:
            self._open[1] = _now()

    def report(self, seconds):
        """Instead of timed(): this replica computed its micro-batches for so long."""
        self._seconds += seconds

    def watch(self, model):
        """For DistributedDataParallel: its last bucket of gradients ends what timed() measures. Takes the place of a
        communication hook; a job that has one of its own calls mark() there."""
        from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook

        # The model's own group: where pipeline stages have each theirs, others hold other parameters.
        def hook(group, bucket):
            if bucket.is_last():
                self.mark()
            return allreduce_hook(group, bucket)

        model.register_comm_hook(model.process_group, hook)

    def _fits(self, counts):
        return (
            isinstance(counts, list)
            and len(counts) == self.replicas
            and all(type(m) is int and m >= 1 and m % self.multiple_of == 0 for m in counts)
            and sum(counts) == self.total
        )

    def _take_seconds(self):
        seconds = self._seconds + sum(_between(begin, end) for begin, end in self._intervals)
        self._seconds = 0.0
        self._intervals = []
        return seconds if 0 < seconds < math.inf else 0.0


def _now():
    """A moment of the work: the GPU's where the job uses one, since the CPU runs ahead of it."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event
    return time.perf_counter()


def _between(begin, end):
    if isinstance(begin, float) or isinstance(end, float):
        # The first interval of a job may begin before the GPU is used at all; it is not a time.
        return end - begin if isinstance(begin, float) and isinstance(end, float) else 0.0
    end.synchronize()
    return begin.elapsed_time(end) / 1000.0


def torch_exchange(group=None, device=None):
    """The exchange over a torch.distributed group that all ranks of the job are in (default: the whole job), one small
    all-reduce. A Gloo group spares the GPU a synchronisation: torch_exchange(dist.new_group(backend="gloo"))."""
    import torch
    import torch.distributed as dist

    if device is None:
        device = "cuda" if dist.get_backend(group) == "nccl" else "cpu"

    def exchange(row):
        numbers = torch.tensor(row, dtype=torch.float64, device=device)
        dist.all_reduce(numbers, op=dist.ReduceOp.MAX, group=group)
        return numbers.tolist()

    exchange.leader = dist.get_rank() == 0
    return exchange


class _Client:
    """Talks to the controller from a daemon thread; whoever trains only leaves and takes notes."""

    def __init__(self, url, job, token, timeout, fits, shape):
        self.trouble = "no answer yet"
        # The counts of the latest answer; None before there is one.
        self.plan = None
        self._fits = fits
        self._shape = shape
        self._url = url
        # For the log, which is no place for a password.
        self._where = re.sub(r"//[^/]*@", "//", url)
        self._job = job
        # Iterations count from a checkpoint again when a job is restarted: the name of the start tells them apart.
        self._run = os.urandom(8).hex()
        self._headers = {"Content-Type": "application/json"}
        token = (token or "").strip()
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        self._timeout = timeout
        self._reports = deque(maxlen=_MOST_WAITING_REPORTS)
        self._asked = None
        self._wake = threading.Event()
        self._thread = None

    def send(self, iteration, counts, seconds):
        self._reports.append({
            "run": self._run,
            "iteration": iteration,
            "counts": list(counts),
            "multipleOf": self._shape["multipleOf"],
            "bubble": self._shape["bubble"],
            # Nine digits are more than any clock has, and keep reports of many replicas small.
            "seconds": [float(f"{s:.9g}") if 0 < s < math.inf else None for s in seconds],
        })

    def ask(self, iteration):
        self._asked = iteration
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="faultline-microbatches", daemon=True)
            self._thread.start()
        self._wake.set()

    def _work(self):
        pause = 0.0
        while True:
            self._wake.wait()
            self._wake.clear()
            try:
                self._talk()
            except Exception as error:  # Whatever it is, it must not reach the job.
                why = str(error) if isinstance(error, _Refused) else f"{type(error).__name__}: {error}"
                why = _printable(why)
                if self.trouble is None or pause == 0.0:
                    _log.warning("no plan for %s from %s (%s): the counts in force stay", self._job, self._where, why)
                self.trouble = why
                pause = min(_LONGEST_PAUSE_S, 2 * pause or 0.5)
                time.sleep(pause)
            else:
                if self.trouble is not None and pause > 0.0:
                    _log.warning("%s answers again", self._where)
                self.trouble = None
                pause = 0.0

    def _talk(self):
        while self._reports:
            self._call("/iterations", self._reports.popleft())
        asked = urllib.parse.urlencode({"iteration": self._asked, "run": self._run, **self._shape})
        plan = self._call(f"/plan?{asked}")
        counts = plan.get("counts") if isinstance(plan, dict) else None
        if not self._fits(counts):
            raise _Refused("the plan does not share out the global batch")
        self.plan = counts

    def _call(self, path, body=None):
        """One exchange: no proxy (they lead out of the cluster), and no redirect is followed, for the token would go
        with it."""
        parts = urllib.parse.urlsplit(self._url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise _Refused("the controller's address must begin with http:// or https://")
        tls = parts.scheme == "https"
        headers = {**self._headers, "Host": parts.netloc.rpartition("@")[2], "Connection": "close"}
        target = f"{parts.path.rstrip('/')}/v1/jobs/{self._job}{path}"
        data = None if body is None else json.dumps(body, separators=(",", ":")).encode()
        # A name may have several addresses, of which some do not answer: the time of the answer begins after them.
        with socket.create_connection((parts.hostname, parts.port or (443 if tls else 80)), self._timeout) as plain:
            bounded = _Bounded(plain, self._timeout)
            with _secured(plain, parts.hostname) if tls else plain as bounded.socket:
                connection = http.client.HTTPConnection(parts.hostname, parts.port or 80)
                connection.sock = bounded
                connection.request("GET" if data is None else "POST", target, data, headers)
                with connection.getresponse() as answer:
                    text = answer.read(_MOST_ANSWER_BYTES)
        if answer.status != 200:
            raise _Refused(f"{answer.status} {_reason_of(answer.status, answer.reason, text)}")
        return json.loads(text, parse_int=_small_int)


class _Refused(Exception):
    """What is wrong with an exchange, in words that need no name of an exception before them."""


class _Bounded(io.RawIOBase):
    """A socket for http.client that ends at a moment and after so many bytes, however they come: a socket's own timeout
    begins anew with every byte."""

    def __init__(self, plain, seconds):
        self.socket = plain
        self._seconds = seconds
        self._end = time.monotonic() + seconds
        self._bytes_left = _MOST_ANSWER_BYTES + (1 << 16)

    def makefile(self, _mode):
        return io.BufferedReader(self)

    def readable(self):
        return True

    def readinto(self, buffer):
        count = self._in_time(self.socket.recv_into, buffer)
        self._bytes_left -= count
        if self._bytes_left < 0:
            raise _Refused("the answer is too long")
        return count

    def sendall(self, data):
        rest = memoryview(data)
        while rest:
            rest = rest[self._in_time(self.socket.send, rest):]

    def close(self):
        """Nothing: http.client closes its socket before the answer is read. Who opened it closes it."""

    def _in_time(self, act, buffer):
        left = self._end - time.monotonic()
        try:
            if left > 0:
                self.socket.settimeout(left)
                return act(buffer)
        except socket.timeout:
            pass
        raise _Refused(f"no complete answer within {self._seconds:g} s")


def _secured(plain, host):
    import ssl

    return ssl.create_default_context().wrap_socket(plain, server_hostname=host)


def _reason_of(status, phrase, text):
    """What the controller says: the error of its JSON, or else HTTP's words."""
    if 300 <= status < 400:
        return f"{phrase}: redirects are not followed"
    try:
        return str(json.loads(text, parse_int=_small_int)["error"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return phrase


def _printable(text):
    """A line that a terminal and a log can take, whoever wrote it: without escape sequences and control characters."""
    text = re.sub(r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)?)", "", text[: 8 * _MOST_REASON])
    return "".join(c for c in text if c.isprintable())[:_MOST_REASON]


def _small_int(digits):
    if len(digits) > _MOST_DIGITS:
        raise ValueError("a number is too long")
    return int(digits)
