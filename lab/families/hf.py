"""Transformers' Trainer on random text. hf.py [accum] [steps=N]; how it is spread is accelerate's business (see plan.py)."""
import sys

import torch
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

import faults

steps = next((int(v[6:]) for v in sys.argv if v.startswith("steps=")), 50)


class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 100000

    def __getitem__(self, i):
        x = torch.randint(0, 1024, (128,))
        return {"input_ids": x, "labels": x}


config = LlamaConfig(hidden_size=256, intermediate_size=688, num_hidden_layers=8, num_attention_heads=4, num_key_value_heads=4, vocab_size=1024)
args = TrainingArguments(output_dir=f"{faults.out}/hf", max_steps=steps, per_device_train_batch_size=2, logging_steps=1, report_to=[],
                         save_strategy="no", bf16=True, learning_rate=1e-4, dataloader_num_workers=0,
                         gradient_accumulation_steps=3 if "accum" in sys.argv else 1)
Trainer(model=LlamaForCausalLM(config), args=args, train_dataset=Data()).train()
faults.save_times()
