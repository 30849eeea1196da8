"""Micro-batches of a Transformers Trainer follow a Faultline controller.

    import faultline_transformers

    trainer = Trainer(…)
    faultline_transformers.rebalance(trainer, "http://controller:7077", job="llama")
    trainer.train()

A replica that computes slowly takes fewer of the batches that an update accumulates
(gradient_accumulation_steps × replicas of them), the others its share. With uneven shares

  - every batch keeps its weight in the gradient: Trainer divides either by the tokens of all ranks' batches or by
    gradient_accumulation_steps, which stays what it is;
  - rank d reads batches offset … offset + count − 1 of the update's, in the sampler's order, so every sample is read once;
  - steps, epochs, the learning rate, logs and checkpoints go on as before.

Where this cannot work (see _why_not) one line says so, and the job trains with even shares. For DistributedDataParallel,
also under `accelerate launch`; a loop of your own with an Accelerator is like one of plain PyTorch.
"""

import itertools
import logging
import os

from faultline_microbatches import MicroBatches, torch_exchange

__all__ = ["rebalance"]

_log = logging.getLogger("faultline.transformers")

TRIED = "5.18"


def rebalance(trainer, url=None, job=None, token=None, timeout=2.0):
    """Prepares the trainer, before its train() is called. Returns it.

    url, job, token   default: FAULTLINE_CONTROLLER, FAULTLINE_JOB (or "trainer") and FAULTLINE_TOKEN; rank 0's count
    timeout           seconds for the controller's whole answer
    """
    lacking = [name for name in ("get_train_dataloader", "get_batch_samples", "training_step", "floating_point_ops", "accelerator")
               if not hasattr(trainer, name)]
    if lacking:
        _log.warning("batches stay even: this Trainer has no %s; Transformers %s was tried", lacking[0], TRIED)
    else:
        # Ranks without an address prepare as well: all of them must do the same in the first step, whatever their nodes know.
        url = url or os.environ.get("FAULTLINE_CONTROLLER")
        job = job or os.environ.get("FAULTLINE_JOB") or "trainer"
        client = {"url": url, "job": job, "token": token or os.environ.get("FAULTLINE_TOKEN"), "timeout": timeout}
        _Rebalancing(trainer, client)
    return trainer


class _Bundle(list):
    """Batches that take the place of one in Trainer's loop: none, one, or several."""


class _Rebalancing:
    def __init__(self, trainer, client):
        self._trainer = trainer
        self._client = client
        self._mb = None
        self._off = False
        self._loader = None
        self._sampler = None
        # What Trainer iterates over in this epoch; what is read from, another one once counts have changed.
        self._epoch = None
        self._batches = None
        self._updates = 0
        self._resumed = False
        self._timing = False
        for name in ("get_train_dataloader", "get_batch_samples", "training_step", "floating_point_ops"):
            setattr(self, f"_their_{name}", getattr(trainer, name))
            setattr(trainer, name, getattr(self, name))

    def get_train_dataloader(self):
        self._loader = self._their_get_train_dataloader()
        return self._loader

    def get_batch_samples(self, epoch_iterator, num_batches, *args, **kwargs):
        """One update's batches. All ranks come here together, and decide the same: what they look at is the same on all."""
        if not self._off and self._mb is None:
            self._set_up()
        if self._off:
            return self._their_get_batch_samples(epoch_iterator, num_batches, *args, **kwargs)
        if epoch_iterator is not self._epoch:
            # A resumed epoch has a loader of its own, which skips what was read before.
            self._resumed = self._epoch is None and self._trainer.state.global_step > 0
            self._epoch = self._batches = epoch_iterator
            self._sampler.go_on(0, None)
            self._updates = 0
        # An epoch's last update may have fewer batches, or smaller ones.
        whole = num_batches == self._even and (self._updates + 1) * self._samples_of_update <= len(self._loader.dataset)
        self._timing = whole and not self._resumed
        if self._timing:
            self._mb.next()
        counts = self._mb.counts if self._timing and len(set(self._mb.counts)) > 1 else None
        if counts != self._sampler.counts:
            self._sampler.go_on(self._updates, counts)
            if self._updates > 0:
                # What workers have loaded ahead is dropped.
                self._batches.close()
                self._loader.end()
                self._batches = iter(self._loader)
        self._updates += 1
        if counts is None:
            return self._their_get_batch_samples(self._batches, num_batches, *args, **kwargs)
        batches, items = self._their_get_batch_samples(self._batches, self._mb.count, *args, **kwargs)
        return _bundles(batches, num_batches), items

    def training_step(self, model, inputs, *args, **kwargs):
        import torch

        if not self._timing:
            return self._their_training_step(model, inputs, *args, **kwargs)
        if not isinstance(inputs, _Bundle):
            with self._mb.timed():
                return self._their_training_step(model, inputs, *args, **kwargs)
        loss = torch.zeros((), device=self._trainer.args.device)
        for i, batch in enumerate(inputs):
            with self._mb.timed():
                if i < len(inputs) - 1:
                    with self._trainer.accelerator.no_sync(model=model):
                        loss = loss + self._their_training_step(model, batch, *args, **kwargs)
                else:
                    loss = loss + self._their_training_step(model, batch, *args, **kwargs)
        return loss

    def floating_point_ops(self, inputs):
        if isinstance(inputs, _Bundle):
            return sum(self._their_floating_point_ops(batch) for batch in inputs)
        return self._their_floating_point_ops(inputs)

    def _set_up(self):
        trainer = self._trainer
        accelerator = trainer.accelerator
        try:
            why = _why_not(trainer, self._loader)
            if why is None:
                self._even = trainer.args.gradient_accumulation_steps
                self._sampler = _following(self._loader.batch_sampler, self._even)
                self._samples_of_update = self._even * accelerator.num_processes * self._sampler.batch_size
            if why is None and accelerator.process_index == 0 and not self._client["url"]:
                why = "no controller is given: set FAULTLINE_CONTROLLER on the node of rank 0"
        except Exception as error:  # Whatever it is, the job goes on.
            why = f"{type(error).__name__}: {error}"
        if self._anyone_objects(why, torch_exchange):
            return
        import torch.distributed as dist

        exchange = torch_exchange(dist.new_group(backend="gloo"))
        try:
            self._mb = MicroBatches(total=self._even * accelerator.num_processes, replica=accelerator.process_index,
                                    replicas=accelerator.num_processes, iteration=trainer.state.global_step,
                                    exchange=exchange, **self._client)
            self._mb.watch(trainer.model_wrapped)
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
        self._anyone_objects(why, lambda: exchange)

    def _anyone_objects(self, why, exchange):
        """Whether a rank cannot go on; then none does."""
        import torch.distributed as dist

        if not dist.is_initialized():
            why = why or "there is one process only"
        elif exchange()([1.0 if why else 0.0])[0] == 0.0:
            return False
        self._off = True
        if self._trainer.args.process_index == 0:
            _log.warning("batches stay even: %s", why or "another rank cannot have uneven ones")
        elif why:
            _log.info("batches stay even: %s", why)
        return True


def _bundles(batches, places):
    """As many bundles as Trainer makes steps; the last is never empty, for with it gradients are averaged."""
    empty = max(0, places - len(batches))
    single = places - empty - 1
    return [_Bundle() for _ in range(empty)] + [_Bundle([one]) for one in batches[:single]] + [_Bundle(batches[single:])]


def _why_not(trainer, loader):
    """A reason why shares must stay even; None where there is none. The same on all ranks."""
    from accelerate.data_loader import BatchSamplerShard, DataLoaderShard, SeedableRandomSampler
    from torch.nn.parallel import DistributedDataParallel
    from torch.utils.data import SequentialSampler

    args, accelerator = trainer.args, trainer.accelerator
    if accelerator.num_processes < 2:
        return "there is only one replica"
    if not isinstance(trainer.model_wrapped, DistributedDataParallel):
        return (f"the model is a {type(trainer.model_wrapped).__name__}, not a DistributedDataParallel: "
                "FSDP and DeepSpeed exchange parameters in every batch")
    parallel = getattr(accelerator, "parallelism_config", None)
    if parallel is not None and getattr(parallel, "non_data_parallel_size", 1) > 1:
        return "ranks of one replica share its batches (tensor or context parallelism)"
    if args.gradient_accumulation_steps < 2:
        return "each replica takes one batch an update, which cannot be shared out: raise gradient_accumulation_steps"
    if accelerator.gradient_state.plugin_kwargs.get("sync_each_batch", False):
        return "gradients are averaged after every batch (sync_each_batch)"
    counts_tokens = getattr(trainer, "model_accepts_loss_kwargs", False) or getattr(trainer, "compute_loss_func", None) is not None
    if counts_tokens and not getattr(args, "average_tokens_across_devices", False):
        return "each rank divides by its own tokens: set average_tokens_across_devices=True"
    if getattr(args, "include_num_input_tokens_seen", False) not in (False, "no"):
        return "tokens are gathered from all ranks in every batch (include_num_input_tokens_seen)"
    shard = getattr(loader, "batch_sampler", None)
    if not isinstance(loader, DataLoaderShard) or type(shard) is not BatchSamplerShard or shard.split_batches:
        return "its data loader is not one that Accelerate shards by batches"
    if type(getattr(shard.batch_sampler, "sampler", None)) not in (SeedableRandomSampler, SequentialSampler):
        return "its sampler gives another order each time it is asked: use_seedable_sampler=True, without grouping by length"
    return None


def _following(shard, each):
    """The shard itself, which can go on with other counts from an update of the epoch; even ones are `each`."""
    from accelerate.data_loader import BatchSamplerShard

    class FollowingShard(BatchSamplerShard):
        counts = None
        updates = 0
        even = each

        def go_on(self, updates, counts):
            """The next iterator begins after so many updates of the epoch."""
            self.updates, self.counts = updates, counts

        def __iter__(self):
            counts = self.counts
            if counts is None:
                return itertools.islice(super().__iter__(), self.updates * self.even, None)
            return self._uneven(counts)

        def _uneven(self, counts):
            offset, total = sum(counts[: self.process_index]), sum(counts)
            for number, batch in enumerate(itertools.islice(self.batch_sampler, self.updates * total, None)):
                if offset <= number % total < offset + counts[self.process_index]:
                    yield batch

    shard.__class__ = FollowingShard
    return shard
