"""python -m faultline_probe [--trace WHAT] [--dir FOLDER] [--job NAME] train.py args…
python -m faultline_probe [options] -m module args…
python -m faultline_probe [options] -c code args…
python -m faultline_probe --library              prints the path of the native library, for LD_PRELOAD

Starts Python anew in this very process, with the probe switched on by the environment: what runs then is python train.py,
with its own sys.argv, sys.path, __main__, tracebacks and exit status.
"""

import os
import subprocess
import sys

_VARIABLES = {"--trace": "FAULTLINE_TRACE", "--dir": "FAULTLINE_DIR", "--job": "FAULTLINE_JOB"}


def _parse(words):
    """(variables, what Python is to run)."""
    variables = {}
    at = 0
    while at < len(words):
        option, sign, value = words[at].partition("=")
        if option not in _VARIABLES:
            break
        if not sign:
            at += 1
            if at == len(words):
                sys.exit(f"faultline_probe: {option} needs a value")
            value = words[at]
        variables[_VARIABLES[option]] = value
        at += 1
    return variables, words[at:]


def _interpreter_flags():
    """Those of this interpreter: what -m was given to."""
    flags = subprocess._args_from_interpreter_flags()
    if getattr(sys.stdout, "write_through", False):
        flags.append("-u")
    if getattr(sys.flags, "safe_path", False) and not {"-P", "-I"} & set(flags):
        flags.append("-P")
    return flags


def _own_name():
    """The name that this interpreter was called by, which it shows in its messages."""
    try:
        with open("/proc/self/cmdline", "rb") as file:
            return os.fsdecode(file.read().split(b"\0", 1)[0])
    except OSError:
        return ""


def main():
    variables, program = _parse(sys.argv[1:])
    if not program or program[0] in ("-h", "--help"):
        print(__doc__.strip())
        sys.exit(0 if program else 2)
    if program == ["--library"]:
        from . import settings

        print(settings.library_path() or sys.exit("faultline_probe: there is no native library in this installation"))
        return
    if program[0].startswith("-") and program[0] not in ("-m", "-c", "-"):
        sys.exit(f"faultline_probe: unknown option {program[0]} (Python's own go before -m faultline_probe)")
    os.environ.update(variables, FAULTLINE_PROBE=f"main:{os.getpid()}")
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    site = os.path.join(package, "site", "sitecustomize.py")
    if os.path.exists(site):
        # A checkout. Where the package is installed, Python finds its .pth file by itself.
        paths = [os.path.dirname(site), package, *filter(None, [os.environ.get("PYTHONPATH")])]
        os.environ["PYTHONPATH"] = os.pathsep.join(paths)
    flags = _interpreter_flags()
    if {"-I", "-E", "-S"} & set(flags):
        print("faultline: Python's options -I, -E and -S keep the probe out; the job goes on without it", file=sys.stderr)
    sys.stdout.flush()
    executable = sys.executable or os.readlink("/proc/self/exe")
    os.execv(executable, [_own_name() or executable, *flags, *program])


if __name__ == "__main__":
    main()
