import { describe, expect, it } from "vitest";
import { newPrefix, readPrefix } from "./prefix.ts";

function read(line: string) {
  const out = newPrefix();
  readPrefix(line, out);
  const cut = (from: number, to: number) => (from < 0 ? null : line.slice(from, to));
  return {
    text: line.slice(out.contentStart),
    host: cut(out.hostFrom, out.hostTo),
    rank: cut(out.rankFrom, out.rankTo),
    writer: cut(out.writerFrom, out.writerTo),
    level: out.level,
    kind: out.stampKind,
    stamp: out.stampFrom < 0 ? null : line.slice(out.stampFrom, out.stampFrom + 8),
  };
}

describe("readPrefix, times", () => {
  it.each([
    ["2031-05-06 07:08:09,123 the pump started", "iso", "2031-05-"],
    ["[2031-05-06T07:08:09.5Z] the pump started", "iso", "2031-05-"],
    ["2031-05-06_07:08:09 the pump started", "iso", "2031-05-"],
    ["05/06/2031 07:08:09 - the pump started", "us", "05/06/20"],
    ["[Tue May  6 07:08:09 2031] the pump started", "kernel", "Tue May "],
    ["[ 1843.308145] the pump started", "uptime", " 1843.30"],
    ["[   43.308145][  T912] the pump started", "uptime", "   43.30"],
    ["1930000000.25 the pump started", "epoch", "19300000"],
    ["07:08:09 the pump started", "clock", "07:08:09"],
    ["31/05/06 07:08:09 the pump started", "clock", "07:08:09"],
    ["[05.06 07:08:09] the pump started", "clock", "07:08:09"],
    ["20310506-7:8:9:606|Pump_A|300023|the pump started", "clock", "7:8:9:60"],
    ["kern  :warn  : 2031-05-06T07:08:09,28+00:00 the pump started", "iso", "2031-05-"],
    ["W0506 07:08:09.123456 4304 pump.cc:12] the pump started", "glog", "W0506 07"],
    ["[W506 07:08:09.123456789 Pump.cpp:475] the pump started", "glog", "W506 07:"],
    ["I0000 00:00:1930000000.123   12 pump.cc:1] the pump started", "epoch", "19300000"],
  ])("%s", (line, kind, stamp) => {
    expect(read(line)).toMatchObject({ text: "the pump started", kind, stamp });
  });

  it.each([
    ["[NeMo W 2031-05-06 07:08:09 pump:36] the pump started", "iso", "warning"],
    ["[2031-05-06 07:08:09 TP0] the pump started", "iso", null],
    [
      "[ERROR] PUMP(43,python3):2031-05-06-07:08:09.1.4 [pump.cc:12] the pump started",
      "clock",
      "error",
    ],
    ['time="2031-05-06T07:08:09Z" level=error msg=the pump started', "iso", "error"],
    ["2031-05-06T07:08:09+00:00 gpu-3 pumpd: the pump started", "iso", null],
  ])("%s", (line, kind, level) => {
    expect(read(line)).toMatchObject({ text: "the pump started", kind, level });
  });

  it("takes message, writer, level and time out of JSON", () => {
    const line =
      '{"ts":"2031-05-06T07:08:09Z","level":"error","host":"n12","rank":7,"msg":"the pump"}';
    expect(read(line)).toMatchObject({
      text: 'the pump"}',
      kind: "iso",
      level: "error",
      stamp: "2031-05-",
      host: "n12",
    });
  });

  it("prefers the time that says most", () => {
    const line =
      "- 1930000000 2031.02.27 n12 Feb 27 11:33:20 n12/n12 crond(pam)[77]: session closed";
    expect(read(line)).toMatchObject({ text: "session closed", kind: "epoch", host: "n12" });
  });
});

describe("readPrefix, levels and components", () => {
  it.each([
    ["[2031-05-06 07:08:09,1] [INFO] [scaler.py:181:update] gone up", "info"],
    ["[INFO|scaler.py:912] 2031-05-06 07:08:09,1 >> gone up", "info"],
    ["2031-05-06 07:08:09,1 - WARNING - gone up", "warning"],
    ["2031-05-06 07:08:09,1 - my.scaler - ERROR - gone up", "error"],
    ["2031-05-06 07:08:09.1 | CRITICAL | my.scaler:run:12 - gone up", "fatal"],
    ["2031-05-06 07:08:09.1  INFO 12 --- [     main] com.acme.Scaler    : gone up", "info"],
    ["2031-05-06 07:08:09,1 - INFO  [Peer[id=1]/0:0:0:2181:Scaler@774] - gone up", "info"],
    ["2031-05-06 07:08:09.008 257 INFO my.scaler [req-38101a0b-2096 113d3a99 - -] gone up", "info"],
    ["310506 070809 148 DEBUG my.Scaler$Inner: gone up", "debug"],
    ["31/05/06 07:08:09 WARN my.Scaler: gone up", "warning"],
    ["ERROR:my.scaler:gone up", "error"],
    ["WARNING: gone up", "warning"],
    ["[WARN ] gone up", "warning"],
    ["INFO 05-06 07:08:09 [scaler.py:12] gone up", "info"],
    ["[W scaler.cpp:601] gone up", "warning"],
    [
      "X7 1930000000 2031.02.27 R1-M0:J1 2031-02-27-11.33.20.6 R1-M0:J1 RAS APP FATAL gone up",
      "fatal",
    ],
    ["app-3.log 2031-05-06 07:08:09 77 ERROR gone up", "error"],
  ])("%s", (line, level) => {
    expect(read(line)).toMatchObject({ text: "gone up", level });
  });
});

describe("readPrefix, writers", () => {
  it.each([
    ["n7:88:99 [2] NCCL INFO Using ring", "n7", null, "88"],
    ["n7:88:99 [2] ring.cc:12 NCCL WARN Using ring", "n7", null, "88"],
    ["[2031-05-06 07:08:09] n7:88:99 [2] NCCL INFO Using ring", "n7", null, "88"],
    ["n7:88:99 [2031-05-06 07:08:09] ring.cc:12 NCCL WARN Using ring", "n7", null, "88"],
    ["[rank3]: Using ring", null, "3", null],
    ["[rank3]:[W506 07:08:09.1 Ring.cpp:4] Using ring", null, "3", null],
    ["2031-05-06 07:08:09 [INFO] [rank3] Using ring", null, "3", null],
    ["[default3]:Using ring", null, null, "default3"],
    ["3: Using ring", null, null, "3"],
    ["3: [rank19]: Using ring", null, "19", "3"],
    ["[1,3]<stderr>:Using ring", null, "3", null],
    ["(Worker pid=77, ip=10.1.2.3) Using ring", "10.1.2.3", null, "77"],
    ["(Worker[rank=5] pid=77) Using ring", null, "5", "77"],
    ["[node1:0]Using ring", "node1", null, "node1:0"],
    ["node3: Using ring", "node3", null, null],
    ["[pod/train-0/main] Using ring", "train-0", null, null],
    ["May  6 07:08:09 n7 ringd[12]: Using ring", "n7", null, "12"],
    ["<34>May  6 07:08:09 n7 kernel: [   12.345678] Using ring", "n7", null, null],
    ["2031-05-06T07:08:09+00:00 n7 kernel: Using ring", "n7", null, null],
    ["[2031-05-06 07:08:09,1] [INFO] [log.py:60:dist] [Rank 4] Using ring", null, "4", null],
  ])("%s", (line, host, rank, writer) => {
    expect(read(line)).toMatchObject({ text: "Using ring", host, rank, writer });
  });

  it("reads a program's level", () => {
    expect(read("slurmstepd: error: it was killed")).toMatchObject({
      text: "it was killed",
      level: "error",
    });
  });

  it("gives places in the coloured line", () => {
    const line = "\u001b[36m(Worker pid=88)\u001b[0m \u001b[32mINFO\u001b[0m: Using ring";
    expect(read(line)).toMatchObject({ text: "Using ring", writer: "88", level: "info" });
  });

  it("takes a progress bar for a header only where one is glued to it", () => {
    const bar = " 12%|#2        | 12/100 [00:12<01:20,  1.10it/s]";
    expect(read(bar).text).toBe(bar);
    expect(read(`${bar}[INFO|a.py:1] 2031-05-06 07:08:09,1 >> Saving`).text).toBe("Saving");
  });
});

describe("readPrefix leaves messages whole", () => {
  it.each([
    "RuntimeError: device went away",
    "eth0: link is not ready",
    "mlx5_0: port went down",
    "step 5: loss 3.1",
    '  File "a.py", line 3, in run',
    "    10: LayerPipe",
    " iteration  10/ 100 | loss: 3.1 | time: 2.0",
    "ERROR happened while reading",
    "[Rank 3] Watchdog caught a timeout",
    "Job started 2031-05-06 07:08:09",
    "model.layers: 32",
  ])("%s", (line) => {
    expect(read(line).text).toBe(line);
  });

  it.each([
    ["2031-05-06 07:08:09 ", "my.pkg.DeviceError: it went away"],
    ["2031-05-06 07:08:09 ", "received ERROR from the peer"],
    ["2031-05-06 07:08:09 INFO ", "optimizer.lr: 0.1"],
    ["2031-05-06 07:08:09 INFO ", "Epoch: 3 of 10"],
    ["2031-05-06T07:08:09Z ", "Starting worker: now"],
    ["[Tue May  6 07:08:09 2031] ", "INFO: task python:28 blocked"],
    ["n7:88:99 [2] NCCL WARN ", "NET/IB : no such port here"],
    ["[rank3]: ", '  File "a.py", line 3'],
  ])("%s%s", (head, text) => {
    expect(read(head + text).text).toBe(text);
  });
});
