"""Stand-ins for the functions of Megatron-LM that faultline_megatron patches or calls: their names, their arguments and what
they do with micro-batches, for a tiny model on CPU (Gloo). One module plays the part of all of Megatron's."""

import sys
from types import SimpleNamespace

import torch
import torch.distributed as dist

__version__ = "0.0.stand-in"
args = SimpleNamespace(micro_batch_size=2, global_batch_size=32, consumed_train_samples=0, num_workers=0,
                       dataloader_type="single", tensor_model_parallel_size=1)
replicas_group = None


def get_args():
    return args


def get_num_microbatches():
    return args.global_batch_size // args.micro_batch_size // dist.get_world_size()


def get_data_parallel_rank():
    return dist.get_rank()


def get_data_parallel_world_size():
    return dist.get_world_size()


def get_data_parallel_group():
    return dist.group.WORLD


def get_pipeline_model_parallel_world_size():
    return 1


def get_virtual_pipeline_model_parallel_world_size():
    return None


class MegatronPretrainingSampler:
    def __init__(self, total_samples, consumed_samples, micro_batch_size, data_parallel_rank, data_parallel_size):
        self.total_samples = total_samples
        self.consumed_samples = consumed_samples
        self.micro_batch_size = micro_batch_size
        self.data_parallel_rank = data_parallel_rank
        self.stride = micro_batch_size * data_parallel_size

    def __len__(self):
        return self.total_samples

    def __iter__(self):
        for first in range(self.consumed_samples, self.total_samples - self.stride + 1, self.stride):
            mine = first + self.data_parallel_rank * self.micro_batch_size
            yield list(range(mine, mine + self.micro_batch_size))


def build_pretraining_data_loader(dataset, consumed_samples):
    if args.dataloader_type == "external":
        return dataset
    sampler = MegatronPretrainingSampler(len(dataset), consumed_samples, args.micro_batch_size, dist.get_rank(), dist.get_world_size())
    return torch.utils.data.DataLoader(dataset, batch_sampler=sampler, num_workers=args.num_workers,
                                       persistent_workers=args.num_workers > 0)


class RerunDataIterator:
    def __init__(self, iterable):
        self.iterable = iterable

    def __next__(self):
        return next(self.iterable)


def forward_step_calc_loss(model, output_tensor, loss_func, config, num_microbatches, forward_data_store):
    loss, tokens, reported = loss_func(output_tensor)
    forward_data_store.append(reported)
    if config.calculate_per_token_loss:
        return loss, tokens
    return loss / tokens / num_microbatches, tokens


def forward_backward_no_pipelining(*, forward_step_func, data_iterator, model, num_microbatches, forward_only=False):
    config = model[0].config
    store, tokens = [], torch.zeros((), dtype=torch.float64)
    for _ in range(num_microbatches):
        output, loss_func = forward_step_func(data_iterator, model[0])
        loss, some = forward_step_calc_loss(model[0], output, loss_func, config, num_microbatches, store)
        tokens += some
        if not forward_only:
            loss.backward()
    if not forward_only:
        config.finalize_model_grads_func(model, tokens if config.calculate_per_token_loss else None)
    return store


def finalize_model_grads(model, num_tokens=None):
    """Gradients are averaged over replicas, or summed and divided by the tokens of all."""
    divisor = torch.tensor(float(dist.get_world_size()), dtype=torch.float64)
    if num_tokens is not None:
        divisor = num_tokens.clone()
        dist.all_reduce(divisor)
    for parameter in model[0].parameters():
        dist.all_reduce(parameter.grad)
        parameter.grad /= divisor


def train_step(forward_step_func, data_iterator, model, optimizer, config, forward_backward_func, iteration=None, pg_collection=None):
    optimizer.zero_grad()
    losses = forward_backward_func(forward_step_func=forward_step_func, data_iterator=data_iterator, model=model,
                                   num_microbatches=get_num_microbatches())
    optimizer.step()
    whole = torch.stack(losses).sum(0)
    dist.all_reduce(whole)
    return (whole[0] / whole[1]).item()


def evaluate(forward_step_func, data_iterator, model):
    with torch.no_grad():
        store = forward_backward_no_pipelining(forward_step_func=forward_step_func, data_iterator=data_iterator, model=model,
                                               num_microbatches=get_num_microbatches(), forward_only=True)
    return len(store)


core = pipeline_parallel = schedules = training = mpu = num_microbatches_calculator = sys.modules[__name__]
for name in ("megatron", "megatron.core", "megatron.core.pipeline_parallel", "megatron.core.pipeline_parallel.schedules",
             "megatron.core.mpu", "megatron.core.num_microbatches_calculator", "megatron.training", "megatron.training.training"):
    sys.modules[name] = core
