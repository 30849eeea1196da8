import { expect, test } from "vitest";
import { FaultMatchers } from "./matcher.ts";
import { shippedMatchers, shippedRecords } from "./shipped.ts";

const told = (text: string): string[] =>
  shippedMatchers()
    .match(text)
    .flatMap(({ record }) => (record.role === "root" ? record.id : []));

test.each([
  "no GPU has fallen off the bus in dmesg",
  "node healthy: no 'GPU has fallen off the bus' in dmesg",
  "INFO summary: 0 CUDA out of memory errors, 0 NaN losses, 0 NCCL errors",
  "NOTE: if you hit CUDA out of memory, set PYTORCH_CUDA_ALLOC_CONF",
  "Tip: to avoid 'CUDA out of memory' at inference use --half",
  "If dmesg shows `NVRM: Xid (PCI:0000:3b:00): 79`, the GPU has fallen off the bus.",
  "    # NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus",
  "ERROR_REGEX=(Segmentation fault|Killed|CUDA error: device-side assert triggered)",
  "MyError: refused (previous run hit CUDA out of memory)",
  'if math.isnan(loss): print("Loss is nan, stopping training"); sys.exit(1)',
])("only speaks of a fault: %s", (text) => {
  expect(told(text)).toEqual([]);
});

test.each([
  "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. If reserved memory is >> allocated memory",
  "NVRM: Xid (PCI:0000:0f:00): 79, GPU has fallen off the bus.",
  "OSError: [Errno 28] No space left on device",
  "[rank0]: RuntimeError: CUDA error: device-side assert triggered",
])("tells of one: %s", (text) => {
  expect(told(text)).not.toEqual([]);
});

test("no record's own example is taken for talk", () => {
  const records = shippedRecords();
  const matchers = new FaultMatchers(records);
  const lost = records.filter(
    ({ id, example }) => !matchers.match(example).some(({ record }) => record.id === id),
  );
  expect(lost.map(({ id }) => id)).toEqual([]);
});
