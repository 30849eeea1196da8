/** Where the cards sit: logs, the kernel and the exporters have to agree on it. */

/** PCI buses of the GPUs of an HGX H100 board; made up beyond its eight. */
const BUSES = ["1b", "43", "52", "61", "9d", "c3", "d1", "df"];

export function busOf(gpu: number): string {
  return BUSES[gpu] ?? (0x20 + gpu).toString(16).padStart(2, "0");
}
