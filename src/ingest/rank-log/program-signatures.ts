/**
 * What a program gets wrong by itself: its set-up, its versions, its numbers. Wording: NCCL, argparse, OmegaConf,
 * Python's importer and the dynamic linker, PyTorch, Megatron-LM, DeepSpeed.
 */
import { own, raised } from "./signature.ts";
import type { Signature } from "./signature.ts";

const SETUP: readonly Signature[] = [
  own("nccl-config", "user-config", ["Duplicate GPU detected", "no socket interface found"]),
  own(
    "arguments",
    "user-config",
    ["unrecognized arguments", "arguments are required", "error: argument "],
    /error: (?:unrecognized arguments|the following arguments are required|argument \S+: (?:invalid|expected|ignored))/,
  ),
  own(
    "checkpoint-shape",
    "user-config",
    ["size mismatch for "],
    /size mismatch for \S+ copying a param/,
  ),
  raised("config", "user-config", [
    "ConfigAttributeError",
    "ConfigKeyError",
    "ConfigCompositionException",
    "MissingMandatoryValue",
    "ConfigTypeError",
    "ArgumentError",
  ]),
  raised(
    "config",
    "user-config",
    ["FileNotFoundError"],
    /FileNotFoundError.{0,400}(?:\.(?:ya?ml|toml|ini|cfg)\b|config\w*\.json)/,
  ),
  raised(
    "config",
    "user-config",
    ["divisible", "world size", "world_size", "--"],
    /^(?:AssertionError|ValueError)\b.{0,300}(?:divisible by|world.size|--[a-z][a-z0-9]+[-_][\w-]+)/i,
  ),
  raised("import", "software-version", ["ModuleNotFoundError", "ImportError"]),
  own(
    "version",
    "software-version",
    ["undefined symbol", "`GLIBC", "version mismatch", "cannot open shared object file"],
    /undefined symbol|version `GLIBC|version mismatch|cannot open shared object file/,
  ),
];

const NUMBERS: readonly Signature[] = [
  own(
    "nan",
    "numerical",
    [
      "is NaN",
      "is nan",
      "is inf",
      "is Inf",
      "are NaN",
      "became NaN",
      "found NaN",
      "found nan",
      "Found NaN",
      "found Inf",
      "found inf",
      "NaN loss",
      "nan loss",
      "NaN in ",
      "nan in ",
      "NaN or Inf",
      "non-finite",
      "NaN detected",
      "nan detected",
      "result nan",
    ],
    /loss|grad|norm|tensor|output|result|activation|weight|param|input/i,
  ),
  own("loss-scale", "numerical", ["loss scale already at minimum"]),
  raised("nan", "numerical", ["FloatingPointError"]),
];

export const PROGRAM_FAILURES: readonly Signature[] = [...SETUP, ...NUMBERS];
