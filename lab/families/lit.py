"""A Lightning job on random text. lit.py ddp|fsdp [steps=N] [quiet]"""
import sys

import pytorch_lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from pytorch_lightning.strategies import DDPStrategy, FSDPStrategy

import faults

steps = next((int(v[6:]) for v in sys.argv if v.startswith("steps=")), 50)


class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(d), nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Lit(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Embedding(1024, 256), *[Block(256) for _ in range(8)], nn.Linear(256, 1024))

    def training_step(self, batch, i):
        loss = F.cross_entropy(self.net(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
        self.log("train_loss", loss, prog_bar=True, sync_dist=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-4)


class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 100000

    def __getitem__(self, i):
        return torch.randint(0, 1024, (129,))


strategy = FSDPStrategy(auto_wrap_policy={Block}) if "fsdp" in sys.argv else DDPStrategy(process_group_backend="nccl")
trainer = L.Trainer(accelerator="gpu", devices=1, num_nodes=8, strategy=strategy, max_steps=steps, logger=False, enable_checkpointing=False,
                    enable_progress_bar="quiet" not in sys.argv, precision="bf16-mixed" if "ddp" in sys.argv else "bf16-true",
                    log_every_n_steps=1, default_root_dir=faults.out)
trainer.fit(Lit(), torch.utils.data.DataLoader(Data(), batch_size=2, num_workers=0))
faults.save_times()
