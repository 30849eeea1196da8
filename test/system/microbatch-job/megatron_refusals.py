"""Prints, as one line of JSON, why faultline_megatron would leave shares even, for jobs with one argument each."""

import json
from types import SimpleNamespace

from faultline_megatron import _why_not

STEP = {"config": SimpleNamespace(finalize_model_grads_func=print)}


def why(replicas=4, even=4, iterators=(), **args):
    return _why_not(SimpleNamespace(tensor_model_parallel_size=1, cuda_graph_impl="none", **args), STEP, list(iterators), replicas, even)


CASES = {
    "use_megatron_fsdp": True, "use_torch_fsdp2": True, "expert_model_parallel_size": 4, "gtp_weight_remat_size": 2,
    "rampup_batch_size": ["8", "8", "100"], "iterations_to_skip": [7],
}
reasons = {name: why(**{name: value}) for name, value in CASES.items()}
graphs = SimpleNamespace(tensor_model_parallel_size=1, cuda_graph_impl="local")
reasons.update({
    "plain": why(), "one replica": why(replicas=1), "one micro-batch each": why(even=1), "another data loader": why(iterators=[None]),
    "cuda_graph_impl": _why_not(graphs, STEP, [], 4, 4),
})
print(json.dumps(reasons))
