"""Imports PyTorch once for ranks that are forked."""
import importlib, os


def preload():
    """Imports what the jobs need, except what would start CUDA here: a fork could not use it any more."""
    os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"

    def harmless(module):
        child = os.fork()
        if child:
            return os.waitpid(child, 0)[1] == 0
        try:
            importlib.import_module(module)
            import torch

            grandchild = os.fork()
            if grandchild == 0:
                os._exit(1 if torch.cuda._is_in_bad_fork() else 0)
            os._exit(0 if os.waitpid(grandchild, 0)[1] == 0 else 1)
        except BaseException as e:
            print(f"   {module}: {e}", flush=True)
            os._exit(2)

    for module in ("torch", "torch.distributed.run", "torch.distributed.launcher.api", "torch.distributed.fsdp", "torch.distributed.tensor.parallel",
                   "torch.distributed.pipelining", "torch.distributed.checkpoint"):
        if harmless(module):
            importlib.import_module(module)
        else:
            print(f"   {module} starts CUDA", flush=True)
