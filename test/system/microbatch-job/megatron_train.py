"""One rank of a job of Megatron's stand-ins. Prints a JSON line an iteration (loss, samples it read, micro-batches), and the
parameters in the end. Arguments: rank, ranks, file to meet at, JSON: {"plan": [[iteration, counts], …] or null for a job
without faultline_megatron, "args", "argsOfRank3": what get_args() has besides, "addressAt": ranks that know the
controller's address (default: all), "without": a name that is missing, "lateGlobalBatch": another
size from iteration 9 on, "perToken", "crossing": a loss function that asks all
replicas}."""

import json
import logging
import sys

import torch
import torch.distributed as dist

import megatron_parts as parts
import planned

RANK, RANKS, MEET, HOW = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], json.loads(sys.argv[4])
ITERATIONS = 14

logging.basicConfig(level=logging.WARNING, format="%(message)s")
torch.set_num_threads(1)
dist.init_process_group("gloo", init_method=f"file://{MEET}", rank=RANK, world_size=RANKS)
vars(parts.args).update(HOW.get("args", {}))
vars(parts.args).update(HOW.get(f"argsOfRank{RANK}", {}))
if HOW.get("without"):
    delattr(parts, HOW["without"])
if HOW["plan"] is not None:
    import faultline_megatron

    planned.follow(HOW["plan"])
    # A second call, as of a script that is started with -m and calls it too, changes nothing.
    for _ in range(2):
        address = "http://planned.invalid:1" if RANK in HOW.get("addressAt", range(RANKS)) else None
        faultline_megatron.install(address, job="stand-in")


class Data(torch.utils.data.Dataset):
    def __len__(self):
        return parts.args.global_batch_size * ITERATIONS

    def __getitem__(self, number):
        source = torch.Generator().manual_seed(number)
        inputs = torch.randn(8, generator=source, dtype=torch.float64)
        return {"number": number, "inputs": inputs, "wanted": inputs.sin().sum()}


torch.manual_seed(1)
net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1)).double()
net.config = type("Config", (), {})()
net.config.calculate_per_token_loss = HOW.get("perToken", False)
net.config.finalize_model_grads_func = parts.finalize_model_grads
read = []


def forward_step(data_iterator, model):
    batch = next(data_iterator)
    read.extend(batch["number"].tolist())

    def loss_func(output):
        squares = (output.squeeze(1) - batch["wanted"]) ** 2
        # Micro-batches have different numbers of tokens.
        mask = (batch["number"] % 3 > 0).double() if HOW.get("perToken") else torch.ones_like(squares)
        loss, tokens = (squares * mask).sum(), mask.sum()
        reported = torch.stack([loss.detach(), tokens])
        if HOW.get("crossing"):
            dist.all_reduce(reported)
        return loss, tokens, reported

    return model(batch["inputs"]), loss_func


optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
loader = parts.build_pretraining_data_loader(Data(), parts.args.consumed_train_samples)
data = parts.RerunDataIterator(iter(loader))
for iteration in range(ITERATIONS):
    if iteration == 9 and "lateGlobalBatch" in HOW:
        parts.args.global_batch_size = HOW["lateGlobalBatch"]
    loss = parts.train_step(forward_step, data, [net], optimizer, net.config, parts.forward_backward_no_pipelining, iteration=iteration)
    parts.args.consumed_train_samples += parts.args.micro_batch_size * RANKS * parts.get_num_microbatches()
    print(json.dumps({"loss": loss, "samples": sorted(read), "taken": len(read) // parts.args.micro_batch_size,
                      "consumed": parts.args.consumed_train_samples}), flush=True)
    read.clear()
    if iteration == 6:
        evaluation = parts.RerunDataIterator(iter(parts.build_pretraining_data_loader(Data(), 0)))
        assert parts.evaluate(forward_step, evaluation, [net]) == parts.get_num_microbatches()
        read.clear()
print(json.dumps({"parameters": [p for t in net.parameters() for p in t.flatten().tolist()]}), flush=True)
dist.barrier()
