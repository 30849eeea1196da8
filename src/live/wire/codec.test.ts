import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  decodeFrame,
  encodeAck,
  encodeHello,
  encodeParts,
  encodeReply,
  encodeReport,
  encodeRequest,
  type Frame,
  FrameError,
  PART_BYTES,
  replyDefect,
  reportDefect,
} from "./codec.ts";
import { FRAME, writeFrame } from "./frame.ts";
import {
  type AgentHello,
  type AgentReply,
  type AgentRequest,
  ASKS,
  LIMITS,
  type PointsReport,
  type SharesReport,
} from "./messages.ts";
import {
  anyHello,
  anyReply,
  anyReport,
  anyRequest,
  beatOf,
  eventOf,
  pointsOf,
  sharesOf,
} from "../../../test/support/live/messages.ts";

const hello: AgentHello = { protocol: 1, agent: "n-1", machine: "n.1", boot: "b", version: "0" };

function decoded(bytes: Uint8Array): Frame {
  const frame = decodeFrame(bytes);
  if (frame instanceof FrameError) throw frame;
  return frame;
}

/** The same bytes at another place in memory, as a socket hands them over. */
function shifted(bytes: Uint8Array, by: number): Uint8Array {
  const room = new Uint8Array(bytes.length + by);
  room.set(bytes, by);
  return room.subarray(by);
}

describe("shares", () => {
  it("cost 24 bytes a second of each rank, beside the head and the wires", () => {
    const bytes = (slots: number): number => encodeReport(1, sharesOf(slots)).length;
    expect(Math.floor((bytes(122) - bytes(2)) / 60)).toBe(8 * 24 + 2 * 6);
  });

  it("are refused unless they are whole slots, of times and ranks that can be", () => {
    const sound = sharesOf(2);
    const defect = (change: Partial<SharesReport>): string | null =>
      reportDefect({ ...sound, ...change });
    expect(defect({})).toBeNull();
    expect(defect({ ranks: [0, 1, 2] })).toBe("shares that are not whole slots");
    expect(defect({ ranks: [] })).toBe("shares that are not whole slots");
    expect(defect({ late: sound.late.subarray(1) })).toBe("columns of unequal length");
    expect(defect({ wires: ["a", "b"] })).toBe("times of wires that are not whole slots");
    expect(defect({ wireMs: Float32Array.of(-1, 2) })).toBe("an operator that is no duration");
    expect(defect({ wireMs: Float32Array.of(NaN, 2) })).toBeNull();
    expect(defect({ ranks: [0, 1, 2, 3, 4, 5, 6, 1 << 30] })).toMatch(
      /^ranks is not a whole number/,
    );
    expect(defect({ firstSlot: 1.5 })).toMatch(/^firstSlot is not a whole number/);
  });
});

describe("frames", () => {
  it("of an event that only other versions have a word for are a remark", () => {
    const event = { ...eventOf("llama", "nothing new for 30 s"), ranks: [1] };
    for (const what of ["hang", "something new"])
      expect(decoded(encodeReport(1, { ...event, what: what as "gone" }, null))).toMatchObject({
        report: { ...event, what: "trouble" },
      });
  });

  it("of a beat carry summaries of work, and stand without one that is not understood", () => {
    const beat = beatOf("j", 1);
    const [job] = beat.jobs;
    const work = {
      interval: 7,
      parts: { step: { bucket: [300, 310], count: [5, 2] } },
      synchronizations: 1,
      shapes: [{ shape: "64x64x64x1", ms: { bucket: [10], count: [3] } }],
      transfers: [{ shape: "all_reduce-64-Half", ms: { bucket: [20], count: [2] } }],
      programs: ["12-abc"],
    };
    const told = (said: unknown): unknown => {
      const report = { ...beat, jobs: [{ ...job!, work: said as typeof work }] };
      return (decoded(encodeReport(1, report, null)) as { report: typeof beat }).report.jobs[0];
    };
    expect(told(work)).toEqual({ ...job, work });
    for (const other of ["new words", { interval: 1.5, parts: {} }, { interval: 1, parts: null }])
      expect(told(other)).toEqual(job);
    const odd = { step: { bucket: [1, 2], count: [1] }, "new part": { bucket: [1], count: [1] } };
    // An older agent's, and one that makes things up.
    const bare = { interval: 7, parts: odd, synchronizations: -1, flops: 3 };
    const none = {
      interval: 7,
      parts: {},
      synchronizations: 0,
      shapes: [],
      transfers: [],
      programs: [],
    };
    expect(told(bare)).toEqual({ ...job, work: none });
    const made = { shapes: [3, { shape: "no shape!", ms: {} }], programs: ["a b", 7] };
    expect(told({ ...bare, ...made })).toEqual({ ...job, work: none });
  });

  it("come back as they were, wherever they lie", () => {
    const shift = fc.integer({ min: 0, max: 9 });
    fc.assert(
      fc.property(anyReport, fc.option(anyHello), shift, fc.nat(), (report, from, by, n) => {
        const bytes = shifted(encodeReport(n + 1, report, from), by);
        expect(decoded(bytes)).toEqual({ type: "report", sequence: n + 1, report, from });
      }),
    );
    fc.assert(
      fc.property(anyReply, shift, fc.nat(), (reply, by, id) => {
        expect(decoded(shifted(encodeReply(id, reply), by))).toEqual({ type: "reply", id, reply });
      }),
    );
    fc.assert(
      fc.property(anyRequest, fc.nat(), (request, id) => {
        expect(decoded(encodeRequest(id, request))).toEqual({ type: "request", id, request });
      }),
    );
    fc.assert(
      fc.property(anyHello, (hello) => {
        expect(decoded(encodeHello(hello))).toEqual({ type: "hello", hello });
      }),
    );
    expect(decoded(encodeAck(7))).toEqual({ type: "ack", sequence: 7 });
  });

  it("are checked before they are encoded as they are when decoded", () => {
    fc.assert(fc.property(anyReport, (report) => reportDefect(report) === null));
    fc.assert(fc.property(anyReply, (reply) => replyDefect(reply) === null));
    const points = pointsOf(2);
    const wrong = [
      { ...points, job: "no name" },
      { ...points, sendMs: new Float32Array(3) },
      { ...points, rank: Uint32Array.of(0, LIMITS.worldSize) },
      { ...points, iteration: Float64Array.of(0, 0.5) },
      { ...points, endMs: Float64Array.of(0, NaN) },
      { ...points, durationMs: Float32Array.of(0, -1) },
      { ...eventOf("j", "x"), atMs: NaN },
      { ...eventOf("j", "x"), ranks: [-1] },
      { ...beatOf("j", 1), jobs: [{ ...beatOf("j", 1).jobs[0]!, run: "" }] },
    ];
    for (const report of wrong) {
      expect(reportDefect(report)).not.toBeNull();
      expect(decodeFrame(encodeReport(1, report))).toBeInstanceOf(FrameError);
    }
    const file = { name: "a", bytes: new Uint8Array(1) };
    const evidence = { kind: "evidence" as const, troubles: [] };
    const replies: AgentReply[] = [
      { ...evidence, files: [file, file] },
      { ...evidence, files: [{ ...file, name: "../a" }] },
    ];
    for (const reply of replies) {
      expect(replyDefect(reply)).not.toBeNull();
      expect(decodeFrame(encodeReply(1, reply))).toBeInstanceOf(FrameError);
    }
  });

  it("are read where they lie when aligned", () => {
    const bytes = encodeReport(1, pointsOf(5));
    const frame = decoded(bytes);
    if (frame.type !== "report" || frame.report?.kind !== "points") throw new Error("not points");
    expect(frame.report.endMs.buffer).toBe(bytes.buffer);
  });

  it("cut at any byte, or with a byte too many, are refused", () => {
    fc.assert(
      fc.property(anyReport, anyReply, anyRequest, anyHello, (report, reply, request, hello) => {
        const all = [
          encodeReport(3, report),
          encodeReply(3, reply),
          encodeRequest(3, request),
          encodeHello(hello),
        ];
        for (const bytes of all) {
          for (let n = 0; n < bytes.length; n++) {
            expect(decodeFrame(bytes.subarray(0, n))).toBeInstanceOf(FrameError);
          }
          expect(decodeFrame(new Uint8Array([...bytes, 0]))).toBeInstanceOf(FrameError);
        }
      }),
      { numRuns: 10 },
    );
  });

  it("of random bytes, random heads or with bytes changed never throw", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        decodeFrame(bytes);
        decodeFrame(new Uint8Array([1, (bytes[0] ?? 0) % 7, ...bytes]));
      }),
      { numRuns: 2000 },
    );
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 6 }),
        fc.object(),
        fc.uint8Array(),
        (type, head, to) => {
          decodeFrame(writeFrame(type as 1, head, [to]));
        },
      ),
      { numRuns: 500 },
    );
    fc.assert(
      fc.property(anyReport, fc.nat(), fc.integer({ min: 0, max: 255 }), (report, at, value) => {
        const bytes = encodeReport(1, report);
        bytes[at % bytes.length] = value;
        decodeFrame(bytes);
      }),
      { numRuns: 2000 },
    );
  });

  const evidence = {
    ask: "evidence",
    job: "j",
    run: "r",
    ranks: null,
    records: 1,
    stacks: false,
    logBytes: 1,
  } as const;
  it.each([
    ["records", 0, 2 ** 31],
    ["logBytes", 0, LIMITS.replyBytes],
  ])("take of %s what lies between %i and %i, and nothing beyond", (field, least, most) => {
    const asked = (value: number): Frame | FrameError =>
      decodeFrame(encodeRequest(3, { ...evidence, [field]: value }));
    for (const value of [least, most])
      expect(asked(value)).toMatchObject({ type: "request", request: { [field]: value } });
    for (const value of [least - 1, most + 1, 0.5]) expect(asked(value)).toBeInstanceOf(FrameError);
  });

  it("that claim absurd sizes are refused before anything is made", () => {
    const head = { kind: "points", job: "j", run: "r", sequence: 1 };
    const claim = (lengths: unknown): Frame | FrameError =>
      decodeFrame(writeFrame(FRAME.report, { ...head, lengths }));
    expect(claim(Array(8).fill(1e15))).toBeInstanceOf(FrameError);
    expect(claim(Array(8).fill(60_000))).toBeInstanceOf(FrameError);
    expect(claim([1, 1, 1, 1, 1, 1, 1, 2])).toBeInstanceOf(FrameError);
    expect(claim([Number.NaN, 0, 0, 0, 0, 0, 0, 0])).toBeInstanceOf(FrameError);
    expect(claim({ length: 8 })).toBeInstanceOf(FrameError);
    expect(claim(Array(8).fill(0))).not.toBeInstanceOf(FrameError);
    const long = new Uint8Array(16);
    long.set([1, FRAME.report, 255, 255, 255, 255]);
    expect(decodeFrame(long)).toBeInstanceOf(FrameError);
  });

  it("with columns of unequal length are refused", () => {
    const points = { ...pointsOf(4), sendMs: new Float32Array(3) };
    expect(decodeFrame(encodeReport(1, points))).toEqual(
      new FrameError("columns of unequal length"),
    );
  });

  const wrong: [string, (points: PointsReport) => void][] = [
    ["NaN for an iteration", ({ iteration }) => (iteration[2] = Number.NaN)],
    ["half an iteration", ({ iteration }) => (iteration[2] = 1.5)],
    ["a rank beyond every job", ({ rank }) => (rank[2] = LIMITS.worldSize)],
    ["an infinite duration", ({ durationMs }) => (durationMs[2] = Infinity)],
    ["no duration", ({ durationMs }) => (durationMs[2] = Number.NaN)],
    ["a negative part", ({ sendMs }) => (sendMs[2] = -1)],
    ["no end", ({ endMs }) => (endMs[2] = Number.NaN)],
  ];
  it.each(wrong)("with %s are refused", (_, spoil) => {
    const points = pointsOf(4);
    expect(decoded(encodeReport(1, points)).type).toBe("report");
    spoil(points);
    expect(decodeFrame(encodeReport(1, points))).toBeInstanceOf(FrameError);
  });

  it("with names that are paths, subjects or escapes are refused", () => {
    for (const name of ["../x", "a.b", "*", ">", "", "a b", "\u001b[2J", "x".repeat(65)]) {
      expect(decodeFrame(encodeHello({ ...hello, agent: name }))).toBeInstanceOf(FrameError);
      const points = { ...pointsOf(1), job: name };
      expect(decodeFrame(encodeReport(1, points))).toBeInstanceOf(FrameError);
    }
    for (const name of ["../x", "/etc/x", "a//b", "a/../b", "a\\b", "", ".", "c:x", "a\nb"]) {
      const reply: AgentReply = {
        kind: "evidence",
        files: [{ name, bytes: new Uint8Array(3) }],
        troubles: [],
      };
      expect(decodeFrame(encodeReply(1, reply))).toBeInstanceOf(FrameError);
    }
  });

  it("of operators that are not there are refused", () => {
    const none = { op: new Uint8Array(1), group: new Int32Array(1), peer: new Int32Array(1) };
    const f64 = (): Float64Array => new Float64Array(1);
    const reply: AgentReply = {
      kind: "operators",
      iteration: f64(),
      from: new Int32Array(1),
      to: Int32Array.of(1),
      startMs: f64(),
      durationMs: f64(),
      epochMs: 0,
      ...none,
      seq: new Int32Array(1),
      bytes: f64(),
      createdNs: f64(),
      startedNs: f64(),
      completedNs: f64(),
    };
    expect(decoded(encodeReply(1, reply)).type).toBe("reply");
    reply.to[0] = 2;
    expect(decodeFrame(encodeReply(1, reply))).toBeInstanceOf(FrameError);
  });

  it("too long for one message come in parts", () => {
    const ms = Float32Array.from({ length: PART_BYTES }, (_, i) => i);
    const bytes = encodeReply(9, {
      kind: "wire",
      rank: new Int32Array(1),
      group: new Int32Array(1),
      peer: new Int32Array(1),
      ms,
    });
    const parts = encodeParts(9, bytes).map(decoded);
    expect(parts).toHaveLength(5);
    const whole = Buffer.concat(parts.map((part) => (part.type === "part" ? part.bytes : bytes)));
    expect(whole.equals(bytes)).toBe(true);
  });

  it("of a request that only later services have a word for are refused by name, not dropped", () => {
    const later = { ask: "defragment", job: "j", run: "r", anything: [1, 2] };
    const frame = decoded(encodeRequest(3, later as unknown as AgentRequest));
    expect(frame).toEqual({
      type: "request",
      id: 3,
      request: { ask: "unknown", job: "j", run: "r", word: "defragment" },
    });
    expect(decodeFrame(encodeRequest(3, { ...later, job: "" } as never))).toBeInstanceOf(
      FrameError,
    );
  });

  it("of an agent without a list of what it can be asked, and of one with more, are read alike", () => {
    expect(decoded(encodeHello(hello))).toEqual({ type: "hello", hello });
    const newer = { ...hello, asks: [...ASKS, "defragment"] };
    expect(decoded(encodeHello(newer))).toEqual({ type: "hello", hello: newer });
    // A service of another version ignores what it does not know.
    expect(decoded(encodeHello({ ...hello, later: true } as AgentHello))).toEqual({
      type: "hello",
      hello,
    });
  });
});
