"""One rank of a Transformers Trainer on CPU (Gloo). Rank 0 prints a JSON line a logged loss, and the parameters in the end.
Arguments: rank, ranks, file to meet at, JSON: {"plan": [[iteration, counts], …] or null for a Trainer as it is, "args": of
TrainingArguments, "ownLoss": a model that does not count tokens}."""

import json
import logging
import os
import sys
import tempfile

import torch

RANK, RANKS, MEET, HOW = sys.argv[1], sys.argv[2], sys.argv[3], json.loads(sys.argv[4])
os.environ.update(RANK=RANK, WORLD_SIZE=RANKS, LOCAL_RANK=RANK, LOCAL_WORLD_SIZE=RANKS, ACCELERATE_USE_CPU="1")
torch.set_num_threads(1)
torch.distributed.init_process_group("gloo", init_method=f"file://{MEET}", rank=int(RANK), world_size=int(RANKS))
from transformers import Trainer, TrainerCallback, TrainingArguments

import faultline_transformers
import planned

logging.getLogger("faultline").addHandler(logging.StreamHandler())
logging.getLogger("faultline").setLevel(logging.INFO)
torch.manual_seed(5)


class Model(torch.nn.Module):
    """Predicts the next token; a loss over the tokens of all ranks' batches, or its own mean."""

    def __init__(self):
        super().__init__()
        self.tokens = torch.nn.Embedding(32, 8)
        self.out = torch.nn.Linear(8, 32)

    def loss(self, input_ids, labels, items):
        logits = self.out(self.tokens(input_ids)).flatten(0, 1)
        total = torch.nn.functional.cross_entropy(logits, labels.flatten(), ignore_index=-100, reduction="sum")
        return {"loss": total / (items if items is not None else labels.ne(-100).sum())}

    def forward(self, input_ids, labels=None, **kwargs):
        return self.loss(input_ids, labels, kwargs.get("num_items_in_batch"))


class PlainModel(Model):
    def forward(self, input_ids, labels=None):
        return self.loss(input_ids, labels, None)


class Data(torch.utils.data.Dataset):
    """An epoch ends with an update of fewer batches."""

    def __len__(self):
        return 300

    def __getitem__(self, number):
        source = torch.Generator().manual_seed(number)
        ids = torch.randint(0, 32, (6,), generator=source)
        labels = ids.roll(-1)
        labels[: number % 4] = -100
        return {"input_ids": ids, "labels": labels}


class Lines(TrainerCallback):
    def on_log(self, args, state, control, logs=None, **_):
        if RANK == "0" and "loss" in logs:
            print(json.dumps({"loss": logs["loss"], "step": state.global_step}), flush=True)


args = TrainingArguments(tempfile.mkdtemp(), per_device_train_batch_size=2, gradient_accumulation_steps=4, num_train_epochs=2,
                         learning_rate=1e-2, logging_steps=1, report_to=[], use_cpu=True, save_strategy="no", disable_tqdm=True,
                         **HOW.get("args", {}))
model = PlainModel() if HOW.get("ownLoss") else Model()
trainer = Trainer(model=model.double(), args=args, train_dataset=Data(), callbacks=[Lines()])
trainer.label_names = ["labels"]
if HOW["plan"] is not None:
    planned.follow(HOW["plan"])
    faultline_transformers.rebalance(trainer, "http://planned.invalid:1", job="trainer")
trainer.train()
if RANK == "0":
    numbers = [p for t in model.parameters() for p in t.flatten().tolist()]
    print(json.dumps({"parameters": numbers, "step": trainer.state.global_step, "flos": trainer.state.total_flos}), flush=True)
