import { describe, expect, it } from "vitest";
import { maskText } from "./masks.ts";

describe("maskText", () => {
  it.each([
    ["took 3.5 seconds of 10ms", "took <TIME> of <TIME>"],
    ["read 12 MB, 3.2GiB and 7 bytes", "read <SIZE>, <SIZE> and <SIZE>"],
    ["wrote 2048 bytes (2 KB) twice", "wrote <SIZE> twice"],
    ["loss 2.3E+00 at -17 of 1,024 (5%)", "loss <NUM> at <NUM> of <NUM> (<NUM>)"],
    ["from 10.1.2.3:80 to /10.1.2.4", "from <IP> to <IP>"],
    ["peer fe80::1:2%ib1 is gone", "peer <IP> is gone"],
    ["host gpu-3.rack.example.org:22 up", "host <HOST> up"],
    ["class org.acme.train.Loader up", "class org.acme.train.Loader up"],
    ["open /data/a/b.bin and ./x/y", "open <PATH> and <PATH>"],
    ["get https://acme.example/x?y=1 now", "get <URL> now"],
    ["mail to joe@acme.example now", "mail to <EMAIL> now"],
    ["id 1b4e28ba-2fa1-11d2-883f-0016d3cca427 ok", "id <UUID> ok"],
    ["at 0x7fff12 and 00ab12cd34", "at <HEX> and <HEX>"],
    ["pci 0000:b3:00.0: reset", "pci <PCI>: reset"],
    ["since Fri Jun 17 07:07:00 2005 on", "since <TIME> on"],
    ["since 2031-05-06 07:08:09 on", "since <TIME> on"],
    ["blk_-17 core.22 rank3", "blk_<NUM> core.<NUM> rank<NUM>"],
    ["ring.cc:475 of v2.18.3+cuda12", "ring.cc:<NUM> of <NUM>"],
    ["no module named 'acme.net'", "no module named '<STR>'"],
    ["{'loss': 2.5, 'lr': 1e-05}", "{'loss': <NUM>, 'lr': <NUM>}"],
    ["from 10.1.2.3 () at noon", "from <IP> (<*>) at noon"],
    ["read/write and n/a stay", "read/write and n/a stay"],
    ["nothing to mask here.", "nothing to mask here."],
  ])("%s", (text, masked) => {
    expect(maskText(text)).toBe(masked);
    expect(maskText(masked)).toBe(masked);
  });

  it("cuts what is long between words", () => {
    const list = (n: number) => `blocks ${Array.from({ length: n }, (_, i) => `b_${i}`).join(" ")}`;
    expect(maskText(list(900)).endsWith("b_<NUM>")).toBe(true);
  });
});
