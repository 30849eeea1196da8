import { expect, test } from "vitest";
import { splitCommands } from "./commands.ts";

function commandsIn(text: string): string[] {
  return splitCommands(text).flatMap((piece) => (piece.isCommand ? piece.text : []));
}

test.each([
  ["py-spy dump --pid <pid> shows the line it is stuck in", ["py-spy dump --pid <pid>"]],
  ["py-spy dump --pid 705 shows the line", ["py-spy dump --pid 705"]],
  ["if ps -p 705. says nothing", ["ps -p 705"]],
  ["dcgmi diag -r 2 on it, 3 times", ["dcgmi diag -r 2"]],
  ["ps -eo rss,cmd --sort=-rss | head on it", ["ps -eo rss,cmd --sort=-rss | head"]],
  [
    "nvidia-smi -q and dmesg | grep -i xid on its machine",
    ["nvidia-smi -q", "dmesg | grep -i xid"],
  ],
  [
    "ps -o stat,wchan -p <pid>: T is stopped (kill -CONT), D waits in the kernel",
    ["ps -o stat,wchan -p <pid>", "kill -CONT"],
  ],
  ["rerun with CUDA_LAUNCH_BLOCKING=1 to find the kernel", ["CUDA_LAUNCH_BLOCKING=1"]],
  ["dumps (TORCH_FR_BUFFER_SIZE=2000, A_B=1)", ["TORCH_FR_BUFFER_SIZE=2000", "A_B=1"]],
  ["run `nccl-tests -b 8` between them", ["nccl-tests -b 8"]],
  ["dmesg (OOM killer, Xid), the scheduler's log and the machine's health", []],
  ["the steps -o of maps-py", []],
])("%s", (text, commands) => {
  expect(commandsIn(text)).toEqual(commands);
});

test("nothing but backquotes is lost", () => {
  const text = "first py-spy dump --pid <pid>, then `x y` and A_B=1";
  const pieces = splitCommands(text).map((piece) => piece.text);
  expect(pieces.join("")).toBe(text.replaceAll("`", ""));
});
