/** A measured value with its unit: "512 W", "14.9 %", "374 MB/s". */
export function amount(value: number, unit: string): string {
  if (unit === "share") return `${digits(100 * value)} %`;
  if (unit === "B/s") {
    const [factor, word] =
      value >= 1e9 ? [1e9, "GB/s"] : value >= 1e6 ? [1e6, "MB/s"] : [1e3, "kB/s"];
    return `${digits(value / factor)} ${word}`;
  }
  return unit === "" ? digits(value) : `${digits(value)} ${unit}`;
}

function digits(value: number): string {
  if (!Number.isFinite(value)) return "?";
  const size = Math.abs(value);
  if (size >= 100) return String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, ",");
  return String(Number(value.toPrecision(size >= 1 ? 3 : 2)));
}
