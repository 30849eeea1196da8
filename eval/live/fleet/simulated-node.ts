/** One machine of a simulated fleet in front of an agent: what rings and processes would tell, without either. */
import type { Node } from "../../../src/live/agent/node.ts";
import type {
  AgentReply,
  AgentRequest,
  BeatReport,
  EventReport,
  GroupReport,
  JobReport,
  PointsReport,
  RankReport,
  ReadTestsRequest,
  Report,
  ValidateRequest,
} from "../../../src/live/wire/messages.ts";
import { LIMITS } from "../../../src/live/wire/messages.ts";
import { evidenceFiles } from "./evidence-rings.ts";
import type { RankGroup } from "../../../src/live/fleet/rank-groups.ts";
import { replyTo } from "./simulated-answers.ts";
import { simulatedReport, type SimulatedTests } from "../../../src/live/fleet/simulated-tests.ts";
import { simulatedPid, type SimulatedFleet } from "./simulated-fleet.ts";
import { SimulatedShares } from "./simulated-shares.ts";

const BEAT_MS = 5000;

export interface SimulatedNodeOptions {
  readonly fleet: SimulatedFleet;
  readonly machine: number;
  /** Milliseconds since 1970; what is not over by then is not known. */
  readonly now: () => number;
}

export function simulatedNode({ fleet, machine, now }: SimulatedNodeOptions): Node {
  return new SimulatedNode(fleet, machine, now);
}

class SimulatedNode implements Node {
  readonly #fleet: SimulatedFleet;
  readonly #ranks: readonly number[];
  readonly #groups = new Map<number, readonly RankGroup[]>();
  readonly #now: () => number;
  /** By place among the ranks: the next iteration to be reported. */
  readonly #next: Float64Array;
  /** Ranks whose end was told. */
  readonly #told = new Set<number>();
  readonly #shares: SimulatedShares;
  #beatMs = -Infinity;
  #tests: { readonly at: number; readonly resolve: () => void }[] = [];
  /** By group: what is tested, or was last. */
  readonly #tested = new Map<string, ValidateRequest>();

  constructor(fleet: SimulatedFleet, machine: number, now: () => number) {
    this.#fleet = fleet;
    this.#ranks = fleet.ranksOf(machine);
    this.#now = now;
    this.#next = new Float64Array(this.#ranks.length).fill(fleet.held.last + 1);
    for (const rank of this.#ranks) this.#groups.set(rank, fleet.groupsOf(rank));
    this.#shares = new SimulatedShares(fleet, this.#ranks, this.#groups);
  }

  introduce(): readonly Report[] {
    const { played, job, run } = this.#fleet;
    const { spec } = played.simulation;
    const report: JobReport = {
      kind: "job",
      job,
      run,
      startedMs: played.startedMs,
      worldSize: spec.gpus,
      ranks: this.#ranks.map((rank) => this.#rank(rank)),
    };
    return [report];
  }

  tick(nowMs: number): readonly Report[] {
    this.#fleet.advance(nowMs);
    const { held } = this.#fleet;
    // The last one that is held has begun, no more.
    const isOver = (iteration: number): boolean =>
      held.last > iteration ||
      (held.last === iteration && Math.max(...held.of(iteration)!.endMs) <= nowMs);
    for (const { at, resolve } of this.#tests) if (isOver(at)) resolve();
    this.#tests = this.#tests.filter(({ at }) => !isOver(at));
    const reports: Report[] = [];
    const points = this.#points(nowMs);
    if (points !== null) reports.push(points);
    const shares = this.#shares.take(nowMs);
    if (shares !== null) reports.push(shares);
    reports.push(...this.#events(nowMs));
    if (nowMs - this.#beatMs >= BEAT_MS) {
      this.#beatMs = nowMs;
      reports.push(this.#beat(nowMs));
    }
    return reports;
  }

  answer(request: AgentRequest): Promise<AgentReply> {
    const { job, run } = this.#fleet;
    if (request.job !== job || request.run !== run)
      return Promise.resolve({ kind: "refused", why: "no such job on this machine" });
    if (request.ask === "prepare-tests")
      return Promise.resolve({ kind: "evidence", files: [], troubles: [] });
    if (request.ask === "validate") return this.#test(request);
    if (request.ask === "read-tests") return this.#read(request);
    if (request.ask === "evidence")
      return Promise.resolve(evidenceFiles(this.#fleet, this.#ranks, request, this.#now()));
    return Promise.resolve(replyTo(this.#fleet, this.#groups, request, this.#now()));
  }

  #test(request: ValidateRequest): Promise<AgentReply> {
    if (request.atIteration <= this.#fleet.held.last)
      return Promise.resolve({ kind: "refused", why: "that iteration is over" });
    this.#tested.set(request.group.join(), request);
    const { rounds, ...once } = request;
    return this.#reports(rounds > 1 ? request : once);
  }

  #read({ group, rounds, atIteration }: ReadTestsRequest): Promise<AgentReply> {
    const tested = this.#tested.get(group.join());
    return tested?.atIteration === atIteration
      ? this.#reports({ ...tested, rounds })
      : Promise.resolve({ kind: "evidence", files: [], troubles: [] });
  }

  /** Done when the last of the iterations is. */
  async #reports(request: SimulatedTests): Promise<AgentReply> {
    const { played } = this.#fleet;
    const at = request.atIteration + (request.rounds ?? 1) - 1;
    await new Promise<void>((resolve) => this.#tests.push({ at, resolve }));
    const files = this.#ranks.flatMap((rank) => {
      const report = simulatedReport(
        played.simulation,
        played.board.specs,
        rank,
        request,
        this.#now(),
      );
      return report === null
        ? []
        : [{ name: `rank${rank}.validation.json`, bytes: Buffer.from(JSON.stringify(report)) }];
    });
    return { kind: "evidence", files, troubles: [] };
  }

  close(): void {
    // There is nothing to let go of: the fleet is everybody's.
  }

  #rank(rank: number): RankReport {
    const { topology } = this.#fleet.played.simulation;
    return {
      rank,
      gpu: topology.gpuOf(rank),
      pid: simulatedPid(rank),
      nic: topology.nicName(rank),
      leaf: topology.leafName(topology.leafOf(rank)),
      stage: this.#fleet.stageOf(rank).stage,
      groups: this.#groups.get(rank)!.map(reported),
    };
  }

  /** Iterations that ended by now and were not told of; those that are no longer held are passed over. */
  #points(nowMs: number): PointsReport | null {
    const { held, job, run } = this.#fleet;
    const rows: number[] = [];
    const ofRow: number[] = [];
    this.#ranks.forEach((rank, i) => {
      let next = Math.max(this.#next[i]!, held.first);
      for (; next <= held.last && rows.length < LIMITS.pointsPerFrame; next++) {
        const one = held.of(next)!;
        if (one.endMs[rank]! > nowMs) break;
        rows.push(rank);
        ofRow.push(next);
      }
      this.#next[i] = next;
    });
    if (rows.length === 0) return null;
    const n = rows.length;
    const report = {
      kind: "points" as const,
      job,
      run,
      rank: Uint32Array.from(rows),
      iteration: Float64Array.from(ofRow),
      endMs: new Float64Array(n),
      durationMs: new Float32Array(n),
      collectiveMs: new Float32Array(n),
      sendMs: new Float32Array(n),
      recvMs: new Float32Array(n),
      issueMs: new Float32Array(n),
    };
    for (let i = 0; i < n; i++) {
      const rank = rows[i]!;
      const one = held.of(ofRow[i]!)!;
      report.endMs[i] = one.endMs[rank]!;
      report.durationMs[i] = one.durationMs[rank]!;
      report.collectiveMs[i] = one.collectiveMs[rank]!;
      report.sendMs[i] = one.sendMs[rank]!;
      report.recvMs[i] = one.recvMs[rank]!;
      report.issueMs[i] = one.spanMs[rank]!;
    }
    return report;
  }

  #beat(nowMs: number): BeatReport {
    const { job, run, held } = this.#fleet;
    const { stopped, gone } = this.#struck(nowMs);
    const { silentMs, openOperators } = this.#silence(nowMs);
    return {
      kind: "beat",
      nowMs,
      jobs: [
        {
          job,
          run,
          alive: this.#ranks.length - gone.length,
          stopped,
          gone,
          silentMs,
          openOperators,
          lastIteration: held.last,
        },
      ],
      dropped: { reports: 0, points: 0 },
    };
  }

  #events(nowMs: number): EventReport[] {
    if (this.#fleet.hung === null) return [];
    const { job, run } = this.#fleet;
    const events: EventReport[] = [];
    const tell = (what: EventReport["what"], ranks: readonly number[], says: string): void => {
      if (ranks.length > 0)
        events.push({ kind: "event", job, run, what, ranks, atMs: nowMs, says });
    };
    const { stopped, gone } = this.#struck(nowMs);
    const isNew = (rank: number): boolean => !this.#told.has(rank);
    tell("gone", gone.filter(isNew), "the process is gone");
    tell("stopped", stopped.filter(isNew), "the process is stopped");
    for (const rank of [...gone, ...stopped]) this.#told.add(rank);
    return events;
  }

  #struck(nowMs: number): { stopped: number[]; gone: number[] } {
    const fates = this.#fleet.struckBy(nowMs, this.#ranks);
    const stopped = [...fates.keys()].filter((rank) => fates.get(rank) === "stopped");
    return { stopped, gone: [...fates.keys()].filter((rank) => !stopped.includes(rank)) };
  }

  #silence(nowMs: number): { silentMs: number; openOperators: number } {
    const { hung, played } = this.#fleet;
    if (hung === null) return { silentMs: 0, openOperators: 0 };
    const { lanes } = played.simulation.lanes;
    let lastNs = hung.startNs;
    let openOperators = 0;
    for (const rank of this.#ranks) {
      const layout = this.#fleet.stageOf(rank);
      const { issueNs, startNs, endNs } = hung.stages[layout.stage]!;
      for (let place = 0; place < layout.count; place++) {
        const at = layout.op[place]! * lanes + this.#fleet.laneOf(rank);
        if (!(issueNs[at]! < Infinity)) break;
        for (const ns of [issueNs[at]!, startNs[at]!, endNs[at]!])
          if (ns < Infinity && ns > lastNs) lastNs = ns;
        if (endNs[at] === Infinity) openOperators++;
      }
    }
    return { silentMs: Math.max(0, nowMs - played.wallMs(lastNs)), openOperators };
  }
}

function reported({ key, name, desc, groupRank, size, ranks }: RankGroup): GroupReport {
  return { key, name, desc, groupRank, size, ranks };
}
