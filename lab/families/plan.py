"""What is recorded: families of jobs, and each family's runs. See record.py for what the keys mean."""

RUNS = {}


def add(name, family, fault="", **more):
    """One run. Jobs that are to stand still get a short timeout; the others are dumped near their end and cut off there."""
    run = dict(FAMILIES[family], family=family, fault=fault, **more)
    kind = fault.split(":")[0]
    if kind in ("", "compute", "cpu", "data"):
        run.setdefault("dump", run["steps"] - 2)
        run.setdefault("cut", True)
        run.setdefault("keep", "dump_")
    else:
        run.setdefault("timeout", 8)
        run["limit"] = run["limit"] + 15
    run["script"] = [s.replace("{steps}", str(run["steps"])) for s in run["script"]]
    if family in MEGATRON:
        run["script"] = run["script"] + MEGATRON[family]
    if run.get("log"):
        run["script"] = run["script"] + ["--lines", run["log"]]
    if run.get("log") == "iter":
        run["first"] = 0
    RUNS[name] = run


def job(layout, family, log="titan", steps=48, more=(), **keys):
    return dict(framework="PyTorch", layout=layout, script=["{here}/jobs.py", family, "--steps", "{steps}", *more], log=log, steps=steps, limit=40, **keys)


MEGATRON_ALL = (
    "{trees}/megatron-lm/pretrain_gpt.py --num-layers 8 --hidden-size 256 --num-attention-heads 4 --seq-length 128 "
    "--max-position-embeddings 128 --micro-batch-size 1 --lr 1e-4 --min-lr 1e-5 --bf16 --mock-data --tokenizer-type NullTokenizer "
    "--vocab-size 1024 --transformer-impl local --no-persist-layer-norm --no-gradient-accumulation-fusion --no-masked-softmax-fusion "
    "--no-rope-fusion --no-bias-gelu-fusion --no-bias-dropout-fusion --disable-jit-fuser --attention-backend unfused "
    "--distributed-timeout-minutes 1 --log-interval 1 --eval-iters 0 --eval-interval 1000 --split 99,1,0 --use-distributed-optimizer "
    "--num-workers 0 --log-throughput --timing-log-level 0 --train-iters {steps}"
).split()
MEGATRON = {
    "meg": "--tensor-model-parallel-size 2 --pipeline-model-parallel-size 2 --global-batch-size 8".split(),
    "megi": "--pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 2 --overlap-grad-reduce --overlap-param-gather "
            "--global-batch-size 16".split(),
    "mege": "--num-experts 8 --expert-model-parallel-size 4 --moe-token-dispatcher-type alltoall --moe-router-topk 2 --disable-bias-linear "
            "--moe-router-load-balancing-type aux_loss --global-batch-size 8".split(),
    "megp": "--pipeline-model-parallel-size 4 --global-batch-size 16".split(),
}


def megatron(layout, **more):
    return dict(framework="Megatron-LM", layout=layout, script=MEGATRON_ALL, outside="TransformerLayer", steps=46, limit=60, base=2, **more)


def hf(layout, *words, **more):
    return dict(framework="Transformers Trainer", layout=layout, script=["{here}/hf.py", "steps={steps}", *words], outside="LlamaDecoderLayer",
                steps=46, limit=50, **more)


def lit(layout, *words, **more):
    return dict(framework="Lightning", layout=layout, script=["{here}/lit.py", "steps={steps}", *words], outside="Block", steps=48, limit=50, **more)


def zero(stage):
    return dict(framework="DeepSpeed", layout=f"ZeRO {stage} over 8 ranks", script=["{here}/zero.py", str(stage), "steps={steps}"], outside="Block",
                steps=46, limit=55, env={"EXTRA_PATH": "{trees}/deepspeed", "DS_BUILD_OPS": "0"}, cwd="{trees}/deepspeed")


FAMILIES = {
    "fsdptp": job("FSDP2 4 x tensor parallel 2 with sequence parallel", "fsdptp", steps=42, buffer=2600, more=["--layers", "4"]),
    "gpipe": job("GPipe, 4 stages x 2 replicas", "gpipe", "iter", steps=44, buffer=2400),
    "int1f1b": job("interleaved 1F1B, 8 stages on 4 ranks x 2 replicas", "int1f1b", "dict", steps=42, buffer=2600),
    "bfs": job("looped BFS, 8 stages on 4 ranks x 2 replicas", "bfs", "epoch", steps=42, buffer=2600),
    "zb": job("interleaved zero-bubble, 8 stages on 4 ranks x 2 replicas", "zb", steps=42, buffer=2600),
    "zbv": job("zero-bubble V, 8 stages on 4 ranks x 2 replicas", "zbv", "iter", steps=42, buffer=2600),
    "fsdp1": job("FullyShardedDataParallel (FSDP1) over 8 ranks, activation checkpointing", "fsdp1", "iter"),
    "zero1": job("DDP with ZeroRedundancyOptimizer", "zero1", "epoch", buffer=1500),
    "accum": job("DDP, 4 batches accumulated under no_sync", "accum", "dict", base=0.8),
    "join": job("DDP with uneven inputs under Join", "join", "iter"),
    "compile": job("DDP with compiled layers", "compile", "plain", files=True, env={"TORCHINDUCTOR_COMPILE_THREADS": "1"}),
    "graph": job("DDP with layers as CUDA graphs", "graph", "none"),
    "ep": job("expert parallel 4 by all-to-all x 2 replicas", "ep", "plain", steps=42, buffer=2600),
    "cp": job("ring attention over 4 ranks by send/receive x 2 replicas, DDP", "cp", "epoch", steps=42, buffer=2600),
    "ckpt": job("FSDP2 with asynchronous checkpoints every 8 iterations", "ckpt"),
    "eval": job("DDP with an evaluation every 12 iterations", "eval", "epoch"),
    "varlen": job("FSDP2, every rank with sequences of another length each iteration", "varlen", base=2),
    "ddp": job("DistributedDataParallel", "ddp", "plain"),
    "fsdp2": job("FSDP2 over 8 ranks", "fsdp2", "none"),
    "meg": megatron("tp 2 pp 2 dp 2", buffer=2600),
    "megi": megatron("interleaved virtual pipeline, pp 2 (2 chunks) dp 4, overlapped gradient reduce", buffer=2600),
    "mege": megatron("MoE, 8 experts, expert parallel 4, dp 8", buffer=2600),
    "megp": megatron("pp 4 dp 2", buffer=2400),
    "hf": hf("DDP"),
    "hfa": hf("DDP, 3 batches accumulated", "accum", base=0.8),
    "hff": hf("FSDP2 through accelerate", env={
        "ACCELERATE_USE_FSDP": "true", "FSDP_VERSION": "2", "FSDP_AUTO_WRAP_POLICY": "TRANSFORMER_BASED_WRAP",
        "FSDP_TRANSFORMER_CLS_TO_WRAP": "LlamaDecoderLayer", "FSDP_RESHARD_AFTER_FORWARD": "true"}),
    "pld": lit("DDP", "ddp", "quiet", log=None),
    "plf": lit("FSDP strategy", "fsdp"),
    "ds1": zero(1), "ds2": zero(2), "ds3": zero(3),
    "nano": dict(framework="nanoGPT", layout="DDP, 2 batches accumulated", script=(
        "{trees}/nanogpt/train.py --dataset=random --out_dir={out}/nano --eval_interval=1000 --eval_iters=2 --log_interval=1 --block_size=128 "
        "--batch_size=2 --n_layer=8 --n_head=4 --n_embd=256 --max_iters={steps} --compile=False --gradient_accumulation_steps=16").split(),
        outside="Block", cwd="{trees}/nanogpt", steps=48, limit=45, first=0),
}


def more(script, family, layout, log, steps=46, **keys):
    if log == "nemo":      # counts from 0
        keys["first"] = 0
    return dict(framework="PyTorch", layout=layout, script=["{here}/" + script, family, "--steps", "{steps}"], log=log, steps=steps, limit=45,
                buffer=keys.pop("buffer", 2600), **keys)


# Each with the ranks whose GPU, loader and CPU are slow in its recordings: spread over all ranks, none of them chosen.
MORE = {
    "dualpipe": (more("jobs-more.py", "dualpipe", "DualPipeV, 8 stages on 4 ranks x 2 replicas", "nemo"), 3, 7, 6),
    "ulysses": (more("jobs-more.py", "ulysses", "Ulysses: heads by all-to-all over 4 ranks x 2 replicas, DDP", "jsonl"), 6, 2, 1),
    "dlrm": (more("jobs-more.py", "dlrm", "embedding tables over 8 ranks, uneven all-to-all, data-parallel top", "mosaic"), 1, 5, 4),
    "syncbn": (more("jobs-more.py", "syncbn", "DDP with synchronized batch norms", "plain"), 5, 0, 2),
    "diloco": (more("jobs-more.py", "diloco", "local steps, averaged every sixth", "tqdm"), 2, 5, 7),
    "rl": (more("jobs-more.py", "rl", "answers of random length, then two updates under DDP", "plain"), 7, 3, 0),
    "hsdp": (more("jobs-more.py", "hsdp", "FSDP2, 2 replicas x 4 shards", "nemo"), 4, 1, 6),
    "tp8": (more("jobs-more.py", "tp8", "tensor parallel 8", "jsonl"), 0, 3, 5),
    "gan": (more("jobs-more.py", "gan", "two DDP models in turn", "plain"), 6, 4, 3),
    "halo": (more("jobs-more.py", "halo", "edges exchanged with both neighbours, one average of all gradients", "none"), 3, 6, 1),
    "curric": (more("jobs-more.py", "curric", "DDP whose work grows at iteration 24", "nemo"), 4, 7, 2),
    "imb": (more("jobs-more.py", "imb", "1F1B, 4 uneven stages x 2 replicas", "mosaic"), 1, 0, 5),
    "accfsdp": (more("jobs-more.py", "accfsdp", "FSDP2, 4 batches accumulated", "tqdm"), 7, 2, 1),
    "hook": (more("jobs-more.py", "hook", "DDP with gradients compressed to bfloat16", "jsonl"), 2, 5, 4),
    "databound": (more("jobs-more.py", "databound", "DDP that waits 60 to 180 ms for its loaders", "nemo"), 4, 6, 0),
    "moecap": (more("jobs-further.py", "moecap", "experts on 8 ranks with a fixed capacity, dense part under DDP", "nemo"), 2, 6, 5),
    "usp": (more("jobs-further.py", "usp", "heads by all-to-all over 2 ranks x tokens round a ring of 4, DDP", "jsonl"), 5, 3, 0),
    "offload": (more("jobs-further.py", "offload", "FSDP2 with parameters and optimizer in the host's memory", "plain"), 1, 4, 7),
    "powersgd": (more("jobs-further.py", "powersgd", "DDP with low-rank gradients (PowerSGD)", "tqdm"), 7, 0, 3),
    "lora": (more("jobs-further.py", "lora", "DDP over a frozen model with adapters", "mosaic"), 3, 1, 6),
    "muon": (more("jobs-further.py", "muon", "updates of matrices shared out over 8 ranks and gathered", "plain"), 0, 7, 2),
    "clip": (more("jobs-further.py", "clip", "contrastive towers: features gathered with gradients, DDP", "none"), 6, 2, 4),
    "hier": (more("jobs-further.py", "hier", "local steps averaged in pairs, fours and all", "nemo"), 4, 5, 1),
    "gossip": (more("jobs-further.py", "gossip", "parameters averaged with one other rank, another one each iteration", "jsonl"), 1, 6, 3),
    "pserver": (more("jobs-further.py", "pserver", "gradients reduced to a layer's keeper, which broadcasts the parameters", "plain"), 5, 3, 7),
    "distill": (more("jobs-further.py", "distill", "4 teachers send to 4 students, groups of their own", "tqdm"), 2, 1, 6),
    "actor": (more("jobs-further.py", "actor", "4 actors and their 4 critics, groups of their own", "mosaic"), 6, 0, 5),
}
FAMILIES.update({name: keys for name, (keys, *_) in MORE.items()})
QUICK = {"env": {"TORCH_NCCL_ENABLE_TIMING": "0"}, "note": "recorder without timing"}

# In good health.
add("fsdptp-none", "fsdptp")
add("gpipe-none", "gpipe")
add("zb-none", "zb")
add("zbv-none", "zbv")
add("fsdp1-none", "fsdp1")
add("zero1-none", "zero1")
add("accum-none", "accum")
add("join-none", "join")
add("compile-none", "compile", limit=75)
add("ep-none", "ep")
add("cp-none", "cp")
add("ckpt-none", "ckpt")
add("eval-none", "eval")
add("varlen-none", "varlen")
add("hff-none", "hff")
add("plf-none", "plf")
add("ds1-none", "ds1")
add("ds2-none", "ds2")
add("ds3-none", "ds3")
add("ddp-none-notiming", "ddp", **QUICK)
add("zb-none-notiming", "zb", **QUICK)
add("nano-none-eval", "nano", note="rank 0 alone evaluates every 15 iterations")
RUNS["nano-none-eval"]["script"] = [s.replace("eval_interval=1000", "eval_interval=15") for s in RUNS["nano-none-eval"]["script"]]
add("cp-none-noframes", "cp", frames=False, log="none", note="dumps without stacks, no iteration lines")
add("varlen-none-b", "varlen", steps=60)

# GPUs that compute slowly.
MID = 24


def slow(name, family, kind, rank, size, at=MID, **more):
    add(name, family, f"{kind}:{rank}:{at}:{size}", **more)


slow("meg-slow6", "meg", "compute", 6, "80%", at=27, early=23, early_name="meg-none")
slow("megi-slow1", "megi", "compute", 1, "80%", at=27, early=23, early_name="megi-none")
slow("mege-slow5", "mege", "compute", 5, "80%", at=27, early=23, early_name="mege-none")
slow("megp-slow4", "megp", "compute", 4, "80%", at=27, early=23, early_name="megp-none")
slow("hf-slow2", "hf", "compute", 2, "80%", at=27, early=23, early_name="hf-none-b")
slow("hfa-slow7", "hfa", "compute", 7, "70%", at=27, early=23, early_name="hfa-none")
slow("hff-slow4", "hff", "compute", 4, "80%")
slow("pld-slow1", "pld", "compute", 1, "80%", at=27, early=23, early_name="pld-none")
slow("plf-slow6", "plf", "compute", 6, "80%")
slow("ds1-slow3", "ds1", "compute", 3, "80%")
slow("ds2-slow5", "ds2", "compute", 5, "70%")
slow("ds3-slow7", "ds3", "compute", 7, "90%")
slow("fsdptp-slow3", "fsdptp", "compute", 3, "80%")
slow("fsdptp-slow6-low", "fsdptp", "compute", 6, "35%")
slow("gpipe-slow2", "gpipe", "compute", 2, "80%")
slow("int-slow5", "int1f1b", "compute", 5, "80%", at=24, early=20, early_name="int-none")
slow("bfs-slow7", "bfs", "compute", 7, "80%", at=24, early=20, early_name="bfs-none")
slow("zb-slow4", "zb", "compute", 4, "90%")
slow("zbv-slow3", "zbv", "compute", 3, "80%")
slow("fsdp1-slow0", "fsdp1", "compute", 0, "120%")
slow("fsdp1-slow5-start", "fsdp1", "compute", 5, "3", at=0)
slow("zero1-slow6", "zero1", "compute", 6, "80%")
slow("accum-slow2", "accum", "compute", 2, "70%")
slow("join-slow4", "join", "compute", 4, "80%")
slow("compile-slow5", "compile", "compute", 5, "80%", limit=60)
slow("graph-slow1", "graph", "compute", 1, "80%", at=24, early=20, early_name="graph-none")
slow("ep-slow6", "ep", "compute", 6, "80%")
slow("ep-slow2-start", "ep", "compute", 2, "3", at=0)
slow("cp-slow7", "cp", "compute", 7, "80%")
slow("cp-slow1-low", "cp", "compute", 1, "35%")
slow("nano-slow3", "nano", "compute", 3, "80%", at=24, early=20, early_name="nano-none")
slow("ckpt-slow2", "ckpt", "compute", 2, "80%")
slow("eval-slow5", "eval", "compute", 5, "80%")
slow("varlen-slow4", "varlen", "compute", 4, "90%")
slow("nano-slow6-start", "nano", "compute", 6, "2", at=0)

# Hosts and loaders that are slow.
slow("meg-cpu3", "meg", "cpu", 3, "60%")
slow("megi-data0", "megi", "data", 0, "15%")
slow("hf-cpu5", "hf", "cpu", 5, "80%")
slow("hff-data1", "hff", "data", 1, "60%")
slow("plf-cpu2", "plf", "cpu", 2, "80%")
slow("ds2-cpu1", "ds2", "cpu", 1, "80%")
slow("ds3-data4", "ds3", "data", 4, "60%")
slow("fsdptp-cpu5", "fsdptp", "cpu", 5, "60%")
slow("fsdptp-data2", "fsdptp", "data", 2, "60%")
slow("int-cpu2", "int1f1b", "cpu", 2, "70%")
slow("zb-cpu7", "zb", "cpu", 7, "70%")
slow("fsdp1-cpu3", "fsdp1", "cpu", 3, "70%")
slow("zero1-data1", "zero1", "data", 1, "60%")
slow("accum-cpu6", "accum", "cpu", 6, "60%")
slow("compile-cpu2", "compile", "cpu", 2, "80%", limit=60)
slow("ep-cpu3", "ep", "cpu", 3, "60%")
slow("ep-data7", "ep", "data", 7, "60%")
slow("cp-cpu4", "cp", "cpu", 4, "70%")
slow("cp-data5", "cp", "data", 5, "50%")
slow("nano-cpu1", "nano", "cpu", 1, "80%")

# Jobs that stand still.
add("meg-hang2", "meg", "hang:2:9:1", ask=True, stacks=True, timeout=60, note="dumped through the pipes while it stood")
add("megi-hang5", "megi", "hang:5:9:1", ask=True, timeout=60, note="dumped through the pipes while it stood")
add("mege-hang3", "mege", "hang:3:9:1", timeout=10)
add("hff-hang6", "hff", "hang:6:9:1")
add("hfa-hang1", "hfa", "hang:1:9:1")
add("plf-hang4", "plf", "hang:4:9:1", stacks=True)
add("pld-hang7", "pld", "hang:7:9:1", ask=True, timeout=60, note="dumped through the pipes while it stood")
add("ds3-hang2", "ds3", "hang:2:9:1", ask=True, timeout=60, note="dumped through the pipes while it stood")
add("ds1-hang6", "ds1", "hang:6:9:1")
add("fsdptp-hang7", "fsdptp", "hang:7:9:1")
add("fsdptp-extra4", "fsdptp", "extra:4:9:1")
add("fsdptp-gpuhang1", "fsdptp", "gpuhang:1:9:1", stacks=True)
add("gpipe-hang4", "gpipe", "hang:4:9:1", **QUICK)
add("int-hang3", "int1f1b", "hang:3:9:1", stacks=True)
add("bfs-hang1", "bfs", "hang:1:9:1", no_dump=6, note="rank 6's dump is missing")
add("zb-hang6", "zb", "hang:6:9:1")
add("zb-skip3", "zb", "skip:3:9:1")
add("zbv-hang0", "zbv", "hang:0:9:1", ask=True, timeout=60, note="dumped through the pipes while it stood")
add("zbv-gpuhang5", "zbv", "gpuhang:5:9:1")
add("fsdp1-hang2", "fsdp1", "hang:2:9:1", **QUICK)
add("fsdp1-early6", "fsdp1", "early:6:9:1")
add("fsdp1-stop1", "fsdp1", "stop:1:9:1", no_dump=1)
add("zero1-hang7", "zero1", "hang:7:9:1", stacks=True)
add("accum-early3", "accum", "early:3:9:1")
add("accum-hang5", "accum", "hang:5:9:1")
add("join-hang3", "join", "hang:3:9:1")
add("compile-hang7", "compile", "hang:7:9:1", timeout=20, limit=75)
add("graph-hang4", "graph", "hang:4:9:1", ask=True, timeout=60, note="dumped through the pipes while it stood")
add("ep-hang1", "ep", "hang:1:9:1")
add("ep-gpuhang4", "ep", "gpuhang:4:9:1")
add("cp-hang6", "cp", "hang:6:9:1", stacks=True)
add("cp-extra2", "cp", "extra:2:9:1")
add("cp-stop5", "cp", "stop:5:9:1", no_dump=5, ask=True, timeout=60, note="dumped through the pipes while it stood")
add("nano-hang5", "nano", "hang:5:9:1")
add("ckpt-hang5", "ckpt", "hang:5:9:1")
add("eval-skip2", "eval", "skip:2:9:1")

# Jobs that end badly.
add("meg-raise5", "meg", "raise:5:9:1")
add("hf-raise6", "hf", "raise:6:9:1")
add("plf-raise3", "plf", "raise:3:9:1")
add("ds2-oom6", "ds2", "oom:6:9:1")
add("nano-kill2", "nano", "kill:2:9:1")
add("fsdptp-badfile3", "fsdptp", "badfile:3:9:1")
add("ep-oom5", "ep", "oom:5:9:1")
add("cp-nan3", "cp", "nan:3:9:1")
add("zb-kill2", "zb", "kill:2:9:1", apart=True, no_dump=2, log="plain", note="every rank started by itself, nobody ends the others")
add("fsdp1-raise4", "fsdp1", "raise:4:9:1", apart=True, no_dump=4, note="every rank started by itself, nobody ends the others")
add("accum-oom7", "accum", "oom:7:9:1", apart=True, no_dump=7, log="plain", note="every rank started by itself, nobody ends the others")

# The families of jobs-more.py and jobs-further.py; record-list.py has all four of a family from one job.
for name, (_, gpu, loader, cpu) in MORE.items():
    add(f"{name}-none", name)
    slow(f"{name}-slow{gpu}", name, "compute", gpu, "80%")
    slow(f"{name}-data{loader}", name, "data", loader, "60%")
    slow(f"{name}-cpu{cpu}", name, "cpu", cpu, "70%")
