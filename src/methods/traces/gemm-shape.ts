/** Sizes of a matrix product out of an operator's input dims: ② FLOPS (FLARE §5.2.2) and its layout (§7.3.2). */
import type { InputShape } from "../../model/kernels.ts";

export interface Gemm {
  readonly batch: number;
  readonly m: number;
  readonly k: number;
  readonly n: number;
  readonly elementBytes: number;
}

/**
 * null for what is no plain product. Convolutions and attention are not: stride, padding and masks, which decide
 * how much is computed, are no dims; their kernels are compared by duration instead (profile-trace.ts).
 */
export function gemmOf(operator: string, { dims, types }: InputShape): Gemm | null {
  const name = operator.replace(/^.*::/, "").replace(/_+$/, "");
  // addmm and baddbmm have the bias, or what is added to, first.
  const [a, b, at] = /^(?:addmm|_addmm_activation|baddbmm)$/.test(name)
    ? [dims[1], dims[2], 1]
    : /^(?:mm|bmm|linear|matmul|_scaled_mm|_int_mm)$/.test(name)
      ? [dims[0], dims[1], 0]
      : [undefined, undefined, 0];
  if (!a || !b || a.length < 2 || b.length < 2) return null;
  const elementBytes = bytesOf(types[at] ?? "");
  if (name === "linear") {
    const [n, k] = [b[0]!, b[1]!];
    const rows = product(a.slice(0, -1));
    return b.length === 2 && a.at(-1) === k ? { batch: 1, m: rows, k, n, elementBytes } : null;
  }
  const k = a.at(-1)!;
  if (b.at(-2) !== k) return null;
  const batch = product(a.slice(0, -2));
  // A batched left side with a plain right side is one long product.
  if (b.length === 2) return { batch: 1, m: batch * a.at(-2)!, k, n: b[1]!, elementBytes };
  return {
    batch: Math.max(batch, product(b.slice(0, -2))),
    m: a.at(-2)!,
    k,
    n: b.at(-1)!,
    elementBytes,
  };
}

export function flopsOf({ batch, m, k, n }: Gemm): number {
  return 2 * batch * m * k * n;
}

const BYTES: Readonly<Record<string, number>> = {
  BFloat16: 2,
  Half: 2,
  Float: 4,
  float: 4,
  double: 8,
  Double: 8,
  Char: 1,
  "signed char": 1,
  Byte: 1,
  "unsigned char": 1,
  Int: 4,
  int: 4,
  Long: 8,
  "long int": 8,
};

/** Of "c10::BFloat16" or "BFloat16"; 0 where the type is not known. */
export function bytesOf(type: string): number {
  const name = type.replace(/^c10::/, "");
  return BYTES[name] ?? (name.startsWith("Float8") ? 1 : 0);
}

/** "[4096×8192]·[8192×8484] BFloat16". */
export function shapeWords({ dims, types }: InputShape): string {
  const tensors = dims.filter((one) => one.length > 0).map((one) => `[${one.join("×")}]`);
  const type = (types.find((one) => bytesOf(one) > 0) ?? "").replace(/^c10::/, "");
  return [tensors.join("·"), ...(type === "" ? [] : [type])].join(" ");
}

/** Tensor cores read 16 bytes at a time; below, libraries fall back to kernels of a half or a quarter of the speed. */
const NEEDED_BYTES = 16;
/** A cache line, and what FLARE's infrastructure team padded to: 8484 → 8512 of bfloat16 (§7.3.2). */
const PADDED_BYTES = 128;
/** Vectors and tiny products never reach tensor cores: nobody pads them. */
const LEAST_SIZE = 64;

export interface Misaligned {
  readonly dimension: "m" | "k" | "n";
  readonly size: number;
  readonly paddedSize: number;
}

/** The largest dimension that tensor cores cannot read; null where all are fine. */
export function misalignedOf({ m, k, n, elementBytes }: Gemm): Misaligned | null {
  if (elementBytes === 0 || elementBytes >= 8 || Math.min(m, k, n) < LEAST_SIZE) return null;
  const step = PADDED_BYTES / elementBytes;
  return (
    (
      [
        { dimension: "m", size: m },
        { dimension: "k", size: k },
        { dimension: "n", size: n },
      ] as const
    )
      .filter(({ size }) => (size * elementBytes) % NEEDED_BYTES !== 0)
      .map((one) => ({ ...one, paddedSize: Math.ceil(one.size / step) * step }))
      .toSorted((a, b) => b.size - a.size)[0] ?? null
  );
}

function product(values: readonly number[]): number {
  return values.reduce((a, b) => a * b, 1);
}
