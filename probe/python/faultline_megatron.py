"""Micro-batches of Megatron-LM follow a Faultline controller; its source code is not changed.

    FAULTLINE_CONTROLLER=http://controller:7077 FAULTLINE_JOB=gpt torchrun … -m faultline_megatron pretrain_gpt.py …

or, in the training script, before it calls pretrain():

    import faultline_megatron
    faultline_megatron.install("http://controller:7077", job="gpt")

A replica (data-parallel rank) that computes slowly gets fewer micro-batches, the others its share. While the shares are
even, the job does exactly what it does without this file. With uneven shares

  - every micro-batch keeps its weight in the gradient: the schedule divides losses by the even count;
  - replica d reads micro-batches offset … offset + count − 1 of the global batch, so every sample is read once;
  - get_num_microbatches() stays as it is, and with it the consumed samples, the learning rate and checkpoints.

Where this cannot work (see _why_not) one line says so, and the job trains with even shares.
"""

import functools
import inspect
import logging
import os
import runpy
import sys
from contextlib import contextmanager

from faultline_microbatches import MicroBatches, torch_exchange

__all__ = ["install"]

_log = logging.getLogger("faultline.megatron")

TRIED = "0.20"
_COLLECTIVES = ("all_reduce", "all_gather", "all_gather_into_tensor", "all_gather_object", "all_to_all", "all_to_all_single",
                "barrier", "broadcast", "reduce", "reduce_scatter", "reduce_scatter_tensor")


def install(url=None, job=None, token=None, timeout=2.0):
    """Prepares Megatron-LM, which must be importable, before its pretrain() is called. Returns whether it could.

    url, job, token   default: FAULTLINE_CONTROLLER, FAULTLINE_JOB (or "megatron") and FAULTLINE_TOKEN; rank 0's count
    timeout           seconds for the controller's whole answer
    """
    # Ranks without an address prepare as well: all of them must do the same in the first step, whatever their nodes know.
    url = url or os.environ.get("FAULTLINE_CONTROLLER")
    try:
        parts = _Parts()
    except (ImportError, AttributeError) as error:
        _refuse(f"this Megatron-LM ({_version()}) is built otherwise than {TRIED}, which was tried: {error}")
        return False
    if hasattr(parts.training.train_step, "of_faultline"):
        return True
    job = job or os.environ.get("FAULTLINE_JOB") or "megatron"
    rebalancing = _Rebalancing(parts, url, job, token or os.environ.get("FAULTLINE_TOKEN"), timeout)
    parts.samplers.MegatronPretrainingSampler = _following(parts.samplers.MegatronPretrainingSampler)
    parts.training.build_pretraining_data_loader = _with_iterators(parts.training.build_pretraining_data_loader)
    parts.training.train_step = rebalancing.around_train_step(parts.training.train_step)
    parts.schedules.forward_step_calc_loss = rebalancing.around_loss(parts.schedules.forward_step_calc_loss)
    return True


class _Parts:
    """The modules that are patched, and the functions that are used. AttributeError where one is not there."""

    def __init__(self):
        import megatron.core.pipeline_parallel.schedules as schedules
        import megatron.training.training as training
        from megatron.core import mpu
        from megatron.core.num_microbatches_calculator import get_num_microbatches
        from megatron.training import get_args

        self.schedules = schedules
        self.training = training
        self.mpu = mpu
        self.get_num_microbatches = get_num_microbatches
        self.get_args = get_args
        self.samplers = sys.modules[training.build_pretraining_data_loader.__module__]
        _needs(training.train_step, "forward_step_func", "data_iterator", "model", "config", "forward_backward_func")
        _needs(schedules.forward_step_calc_loss, "num_microbatches", "loss_func")
        _needs(self.samplers.MegatronPretrainingSampler, "consumed_samples", "micro_batch_size", "data_parallel_rank")
        for name in ("get_data_parallel_rank", "get_data_parallel_world_size", "get_data_parallel_group",
                     "get_pipeline_model_parallel_world_size", "get_virtual_pipeline_model_parallel_world_size"):
            getattr(mpu, name)


def _needs(function, *names):
    lacking = [name for name in names if name not in inspect.signature(function).parameters]
    if lacking:
        raise AttributeError(f"{function.__name__} takes no {lacking[0]}")


def _version():
    try:
        from megatron.core import __version__
        return __version__
    except Exception:
        return "of an unknown version"


def _refuse(why):
    if os.environ.get("RANK", "0") == "0":
        _log.warning("micro-batches stay even: %s", why)


class _Rebalancing:
    """One training: what train_step, the schedule and the data loaders have to agree on."""

    def __init__(self, parts, url, job, token, timeout):
        self._parts = parts
        self._client = {"url": url, "job": job, "token": token, "timeout": timeout}
        self._mb = None
        self._exchange = None
        self._steps = 0
        self._off = False
        # The even count while a training step computes with counts of ours; evaluations see None.
        self._even = None
        self._crossing = None

    def around_train_step(self, train_step):
        takes = inspect.signature(train_step)

        @functools.wraps(train_step)
        def with_counts(*args, **kwargs):
            step = takes.bind(*args, **kwargs)
            if self._begin(step.arguments):
                function = step.arguments["forward_backward_func"]
                step.arguments["forward_backward_func"] = self._around_schedule(function)
            return train_step(*step.args, **step.kwargs)

        with_counts.of_faultline = True
        return with_counts

    def around_loss(self, forward_step_calc_loss):
        """The schedule divides a replica's losses (those of experts and further tokens too) by its own count; divided by
        the even one, every micro-batch of the global batch weighs the same after the average over replicas."""
        takes = inspect.signature(forward_step_calc_loss)

        @functools.wraps(forward_step_calc_loss)
        def with_even_count(*args, **kwargs):
            if self._even is None:
                return forward_step_calc_loss(*args, **kwargs)
            call = takes.bind(*args, **kwargs)
            call.arguments["num_microbatches"] = self._even
            return forward_step_calc_loss(*call.args, **call.kwargs)

        return with_even_count

    def _begin(self, step):
        """Counts and data for the step. All ranks come here together, and decide the same."""
        if self._off:
            return False
        self._steps += 1
        iterators = _iterators(step["data_iterator"])
        even = self._parts.get_num_microbatches()
        if self._mb is None:
            return self._set_up(step, iterators, even)
        if even * self._mb.replicas != self._mb.total:
            self._stop(iterators, "the global batch has changed its size")
            return False
        if self._steps == 2 and self._anyone_objects(self._after_first_step(iterators, even)):
            return False
        self._mb.next()
        uneven = self._mb.counts if len(set(self._mb.counts)) > 1 else None
        for iterator in iterators:
            iterator.begin(uneven, self._mb.total)
        return True

    def _set_up(self, step, iterators, even):
        import torch.distributed as dist

        mpu = self._parts.mpu
        replicas = mpu.get_data_parallel_world_size()
        self._exchange = torch_exchange(dist.new_group(backend="gloo"))
        try:
            why = _why_not(self._parts.get_args(), step, iterators, replicas, even)
            if why is None and self._exchange.leader and not self._client["url"]:
                why = "no controller is given: set FAULTLINE_CONTROLLER on the node of rank 0"
            stages = mpu.get_pipeline_model_parallel_world_size()
            chunks = mpu.get_virtual_pipeline_model_parallel_world_size() or 1
            group = getattr(step["config"], "microbatch_group_size_per_vp_stage", None) or stages
            # The pipeline's fill and drain, in times of a micro-batch.
            bubble = {"bubble": (stages - 1) / chunks} if stages > 1 else {}
            if why is None and chunks > 1 and even % group != 0:
                why = f"the interleaved schedule takes groups of {group} micro-batches, and {even} are not whole groups"
            if why is None:
                self._mb = MicroBatches(total=even * replicas, replica=mpu.get_data_parallel_rank(), replicas=replicas,
                                        exchange=self._exchange, multiple_of=group if chunks > 1 else 1,
                                        iteration=(step.get("iteration") or 0) + 1, **self._client, **bubble)
        except Exception as error:  # Whatever it is, the job goes on.
            why = f"{type(error).__name__}: {error}"
        if self._anyone_objects(why):
            return False
        config = step["config"]
        finalize = config.finalize_model_grads_func

        def after_computing(*args, **kwargs):
            self._mb.mark()
            return finalize(*args, **kwargs)

        config.finalize_model_grads_func = after_computing
        return True

    def _after_first_step(self, iterators, even):
        if self._crossing:
            return f"{self._crossing} between replicas within a micro-batch: with uneven shares it would wait for ever"
        if any(iterator.taken not in (0, even) for iterator in iterators):
            return "the job does not read one batch from its data loader for each micro-batch"
        return None

    def _anyone_objects(self, why):
        """Whether a rank cannot go on; then none does."""
        if self._exchange([1.0 if why else 0.0])[0] == 0.0:
            return False
        self._off = True
        if why:
            _log.warning("micro-batches stay even: %s", why)
        return True

    def _stop(self, iterators, why):
        self._off = True
        _refuse(f"{why}; they are even again")
        for iterator in iterators:
            iterator.begin(None, self._mb.total)

    def _around_schedule(self, forward_backward):
        watch = self._steps == 1

        def with_count(*args, **kwargs):
            mb = self._mb
            if kwargs.get("forward_only") or "num_microbatches" not in kwargs:
                return forward_backward(*args, **kwargs)
            kwargs["num_microbatches"] = mb.count
            if watch:
                kwargs["forward_step_func"] = self._watched(kwargs["forward_step_func"])
            self._even = mb.total // mb.replicas
            try:
                with mb.timed():
                    return forward_backward(*args, **kwargs)
            finally:
                self._even = None

        return with_count

    def _watched(self, forward_step):
        def watched_forward(*args, **kwargs):
            with self._watching():
                output, loss = forward_step(*args, **kwargs)

            def watched_loss(*args, **kwargs):
                with self._watching():
                    return loss(*args, **kwargs)

            return output, loss and watched_loss

        return watched_forward

    @contextmanager
    def _watching(self):
        """Notes collectives that join ranks of several replicas."""
        import torch.distributed as dist

        peers = set(dist.get_process_group_ranks(self._parts.mpu.get_data_parallel_group()))
        true = {name: getattr(dist, name) for name in _COLLECTIVES}

        def spy(name):
            def collective(*args, **kwargs):
                groups = [one for one in (*args, *kwargs.values()) if isinstance(one, dist.ProcessGroup)]
                ranks = dist.get_process_group_ranks(groups[0] if groups else dist.group.WORLD)
                if len(peers.intersection(ranks)) > 1:
                    self._crossing = f"the job calls {name}"
                return true[name](*args, **kwargs)

            return collective

        try:
            for name in true:
                setattr(dist, name, spy(name))
            yield
        finally:
            for name, function in true.items():
                setattr(dist, name, function)


def _why_not(args, step, iterators, replicas, even):
    """A reason why shares must stay even, from what the job says of itself; None where there is none."""

    def on(*names):
        return any(getattr(args, name, None) for name in names)

    if replicas < 2:
        return "there is only one replica"
    if even < 2:
        return "each replica takes one micro-batch an iteration, which cannot be shared out: raise --global-batch-size"
    if on("use_megatron_fsdp", "use_custom_fsdp", "use_torch_fsdp2"):
        return "FSDP gathers parameters in every micro-batch, from all replicas"
    tensor = getattr(args, "tensor_model_parallel_size", 1)
    if (getattr(args, "expert_model_parallel_size", None) or 1) > 1:
        return "experts are spread over replicas (--expert-model-parallel-size)"
    if on("num_experts") and (getattr(args, "expert_tensor_parallel_size", None) or tensor) > tensor:
        return "experts are spread over replicas (--expert-tensor-parallel-size)"
    if (getattr(args, "gtp_weight_remat_size", None) or 1) > 1:
        return "weights are gathered from replicas in every micro-batch (GTP)"
    if on("rampup_batch_size", "step_batch_size_schedule"):
        return "the global batch changes its size (--rampup-batch-size, --step-batch-size-schedule)"
    if on("enable_cuda_graph", "external_cuda_graph") or getattr(args, "cuda_graph_impl", None) not in (None, "none"):
        return "CUDA graphs fix the number of micro-batches"
    if on("iterations_to_skip"):
        return "skipped iterations read the data of even shares (--iterations-to-skip)"
    if on("perform_rl_step", "hybrid_context_parallel"):
        return "reinforcement learning and hybrid context parallelism share out samples by rules of their own"
    if step.get("pg_collection") is not None:
        return "the job has process groups of its own for several models"
    if step["config"].finalize_model_grads_func is None:
        return "the job has no finalize_model_grads_func"
    if None in iterators:
        return "its data loader is not the one of --dataloader-type single"
    return None


def _iterators(data_iterator):
    """Ours, of all chunks of a pipeline stage; None for one that is not. Ranks that read no data have none."""
    found = []
    for one in data_iterator if isinstance(data_iterator, (list, tuple)) else [data_iterator]:
        while one is not None and not isinstance(one, _Iterator) and hasattr(one, "iterable"):
            one = one.iterable
        if one is None:
            continue
        found.append(one if isinstance(one, _Iterator) else None)
    return found


def _following(sampler):
    class MegatronPretrainingSampler(sampler):
        """Megatron's own, unless counts are given: then this replica's part of every global batch from consumed_samples."""

        counts = None

        def __iter__(self):
            return super().__iter__() if self.counts is None else self._uneven(self.counts)

        def _uneven(self, counts):
            size = self.micro_batch_size
            offset = sum(counts[: self.data_parallel_rank])
            first = self.consumed_samples
            while first + sum(counts) * size <= self.total_samples:
                for i in range(offset, offset + counts[self.data_parallel_rank]):
                    yield list(range(first + i * size, first + (i + 1) * size))
                first += sum(counts) * size

    return MegatronPretrainingSampler


def _with_iterators(build_data_loader):
    @functools.wraps(build_data_loader)
    def build(*args, **kwargs):
        loader = build_data_loader(*args, **kwargs)
        return _Loader(loader) if hasattr(getattr(loader, "batch_sampler", None), "counts") else loader

    return build


class _Loader:
    """A DataLoader whose iterator can go on with other counts."""

    def __init__(self, loader):
        self._loader = loader

    def __len__(self):
        return len(self._loader)

    def __iter__(self):
        return _Iterator(self._loader)

    def __getattr__(self, name):
        return getattr(self._loader, name)


class _Iterator:
    def __init__(self, loader):
        self._loader = loader
        self._sampler = loader.batch_sampler
        self._batches = iter(loader)
        # Iterations since the sampler began.
        self._begun = 1
        # Batches read, for the check after the first iteration.
        self.taken = 0

    def __iter__(self):
        return self

    def __next__(self):
        self.taken += 1
        return next(self._batches)

    def begin(self, counts, total):
        """An iteration begins, with the replicas' counts; None: even ones. Where they are others than before, what
        workers have loaded ahead is dropped, and loading starts again with this iteration."""
        if counts != self._sampler.counts:
            self._sampler.consumed_samples += self._begun * total * self._sampler.micro_batch_size
            self._sampler.counts = counts
            self._batches = iter(self._loader)
            self._begun = 0
        self._begun += 1


def main():
    if len(sys.argv) < 2:
        sys.exit("usage: python -m faultline_megatron pretrain_gpt.py ARGUMENTS")
    sys.argv = sys.argv[1:]
    sys.path.insert(0, os.path.dirname(os.path.abspath(sys.argv[0])))
    # The module that the script may import, not this __main__.
    import faultline_megatron

    faultline_megatron.install()
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
