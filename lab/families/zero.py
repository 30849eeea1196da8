"""A DeepSpeed job on random text. zero.py STAGE [steps=N]; modules DeepSpeed imports but does not need here are stood in for."""
import importlib.util, json, os, sys, types


def stand_in(name, **members):
    if importlib.util.find_spec(name) is None:
        sys.modules[name] = types.ModuleType(name)
        vars(sys.modules[name]).update(members)
        sys.modules[name].__spec__ = importlib.util.spec_from_loader(name, None)


stand_in("hjson", load=json.load, loads=json.loads, dumps=json.dumps)
stand_in("msgpack")
stand_in("einops", rearrange=None)
stand_in("cpuinfo", get_cpu_info=lambda: {"vendor_id_raw": "GenuineIntel", "brand_raw": ""})
stand_in("ninja")
stand_in("psutil", virtual_memory=lambda: types.SimpleNamespace(total=1 << 36, available=1 << 35, used=1 << 35, percent=50.0))

import torch
import torch.nn as nn
import torch.nn.functional as F
import deepspeed

import faults

steps = next((int(v[6:]) for v in sys.argv if v.startswith("steps=")), 50)
stage = int(sys.argv[1])


class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(d), nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


torch.cuda.set_device(0)
torch.manual_seed(7)
model = nn.Sequential(nn.Embedding(1024, 256), *[Block(256) for _ in range(8)], nn.Linear(256, 1024))
config = {"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 1, "bf16": {"enabled": True}, "steps_per_print": 1,
          "gradient_clipping": 1.0, "wall_clock_breakdown": False, "zero_allow_untested_optimizer": True, "zero_force_ds_cpu_optimizer": False,
          "zero_optimization": {"stage": stage, "overlap_comm": stage > 1, "reduce_bucket_size": 600000, "allgather_bucket_size": 2000000,
                                "stage3_param_persistence_threshold": 1000, "stage3_prefetch_bucket_size": 600000, "stage3_max_live_parameters": 2000000}}
deepspeed.init_distributed("nccl")
engine, _, _, _ = deepspeed.initialize(model=model, optimizer=torch.optim.AdamW(model.parameters(), lr=1e-4), config=config)
loader = iter(torch.utils.data.DataLoader([torch.randint(0, 1024, (129,)) for _ in range(2 * steps + 8)], batch_size=2))
for n in range(steps):
    batch = next(loader).cuda()
    loss = F.cross_entropy(engine(batch[:, :-1]).flatten(0, 1).float(), batch[:, 1:].flatten())
    engine.backward(loss)
    engine.step()
    value = loss.item()
    if engine.global_rank == 0:
        print(f"step={n + 1}, loss={value:.4f}", flush=True)
faults.save_times()
torch.distributed.destroy_process_group()
