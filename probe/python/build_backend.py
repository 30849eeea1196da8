"""Builds the wheel and the source distribution of faultline-probe (PEP 517) with Python's own library alone, because GPU
nodes often have no network. `python3 build_backend.py FOLDER` builds a wheel there.

The native library is built by probe/nccl's Makefile; CC chooses the compiler. Without make and cc, or with
FAULTLINE_PURE=1, the wheel is of Python alone. FAULTLINE_LIBRARY_FILE takes a library that was built before.
"""

import base64
import gzip
import hashlib
import io
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile

NAME = "faultline_probe"
HERE = os.path.dirname(os.path.abspath(__file__))
# In a checkout beside us; in a source distribution inside.
NCCL = next((path for path in (os.path.join(HERE, "nccl"), os.path.join(HERE, "..", "nccl")) if os.path.isdir(path)), None)
MODULES = ("faultline_microbatches.py", "faultline_megatron.py", "faultline_transformers.py")
# Read by every Python at its start: one look into the environment where the probe is off.
HOOK = 'import os; os.environ.get("FAULTLINE_PROBE", "0") in ("", "0") or __import__("faultline_probe.from_site")\n'
METADATA = """Metadata-Version: 2.1
Name: faultline-probe
Version: {version}
Summary: Records what a distributed training job does, so that Faultline can say which rank, GPU or link is at fault.
License: Apache-2.0
Requires-Python: >=3.8
Platform: linux
Classifier: License :: OSI Approved :: Apache Software License
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: Python :: 3
Description-Content-Type: text/markdown

{readme}"""


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    version = _version()
    library = _library()
    tag = f"py3-none-{_platform(library)}" if library else "py3-none-any"
    info = f"{NAME}-{version}.dist-info"
    files = {f"{NAME}/{name}": _read(HERE, NAME, name) for name in _python_files()}
    files.update({name: _read(HERE, name) for name in MODULES})
    files[f"{NAME}.pth"] = HOOK.encode()
    if library:
        files[f"{NAME}/libfaultline.so"] = library
    files[f"{info}/METADATA"] = _metadata(version)
    files[f"{info}/LICENSE"] = _beside_root("LICENSE")
    root_is_pure = "false" if library else "true"
    files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: faultline\nRoot-Is-Purelib: {root_is_pure}\nTag: {tag}\n".encode()
    files[f"{info}/RECORD"] = _record(files, f"{info}/RECORD")
    name = f"{NAME}-{version}-{tag}.whl"
    with zipfile.ZipFile(os.path.join(wheel_directory, name), "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, data in files.items():
            # One fixed date: the same sources give the same bytes.
            entry = zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0))
            entry.external_attr = (0o755 if path.endswith(".so") else 0o644) << 16
            wheel.writestr(entry, data, zipfile.ZIP_DEFLATED)
    return name


def build_sdist(sdist_directory, config_settings=None):
    version = _version()
    top = f"{NAME}-{version}"
    files = {f"{NAME}/{name}": _read(HERE, NAME, name) for name in _python_files()}
    for name in (*MODULES, "build_backend.py", "pyproject.toml", "README.md"):
        files[name] = _read(HERE, name)
    for name in sorted(os.listdir(NCCL)):
        if name == "Makefile" or name.endswith((".c", ".h", ".def")):
            files[f"nccl/{name}"] = _read(NCCL, name)
    files["LICENSE"] = _beside_root("LICENSE")
    files["PKG-INFO"] = _metadata(version)
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for path, data in files.items():
            entry = tarfile.TarInfo(f"{top}/{path}")
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    with open(os.path.join(sdist_directory, f"{top}.tar.gz"), "wb") as file:
        # No date either: the same sources give the same bytes.
        file.write(gzip.compress(packed.getvalue(), mtime=0))
    return f"{top}.tar.gz"


def _python_files():
    return sorted(name for name in os.listdir(os.path.join(HERE, NAME)) if name.endswith(".py"))


def _library():
    """The native library's bytes; None where it cannot be built, which is said."""
    given = os.environ.get("FAULTLINE_LIBRARY_FILE")
    if given:
        return _read(given)
    compiler = (os.environ.get("CC") or "cc").split()[0]
    if os.environ.get("FAULTLINE_PURE") == "1" or NCCL is None or sys.platform != "linux":
        return None
    if not shutil.which("make") or not shutil.which(compiler):
        print("faultline-probe: no make or C compiler: the wheel is of Python alone", file=sys.stderr)
        return None
    with tempfile.TemporaryDirectory() as out:
        subprocess.run(["make", "-s", "-C", NCCL, f"OUT={out}", "CFLAGS=-O2"], check=True, stdout=sys.stderr)
        return _read(out, "libfaultline.so")


def _platform(library):
    """PEP 600: the newest glibc that the library asks for. The machine is that of the library's own header (ELF e_machine)."""
    wanted = {int(minor) for minor in re.findall(rb"GLIBC_2\.(\d+)\b", library)} | {17}
    machine = {62: "x86_64", 183: "aarch64"}.get(int.from_bytes(library[18:20], "little"), platform.machine())
    return f"manylinux_2_{max(wanted)}_{machine}"


def _version():
    for path in (os.path.join(HERE, "..", "..", "package.json"), os.path.join(HERE, "PKG-INFO")):
        if os.path.exists(path):
            text = _read(path).decode()
            return json.loads(text)["version"] if path.endswith(".json") else re.search(r"^Version: (.*)$", text, re.M)[1]
    sys.exit("faultline-probe: no version: build from a checkout or a source distribution")


def _metadata(version):
    return METADATA.format(version=version, readme=_read(HERE, "README.md").decode()).encode()


def _beside_root(name):
    inside = os.path.join(HERE, name)
    return _read(inside if os.path.exists(inside) else os.path.join(HERE, "..", "..", name))


def _record(files, own):
    def line(path, data):
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        return f"{path},sha256={digest},{len(data)}"

    return "\n".join([*(line(*file) for file in files.items()), f"{own},,", ""]).encode()


def _read(*parts):
    with open(os.path.join(*parts), "rb") as file:
        return file.read()


if __name__ == "__main__":
    os.makedirs(sys.argv[1], exist_ok=True)
    print(os.path.join(sys.argv[1], build_wheel(sys.argv[1])))
