/**
 * An order in which the operators of all stages can be worked off so that whatever one needs has been
 * computed before: sends before their recvs, all stages of a job-wide operator together. It depends on
 * the programs alone, so it is found once and used for every iteration.
 */
import { assert } from "../../base/errors.ts";
import { EMBEDDING, RECV, WORLD, type StageProgram } from "./program.ts";

/** One step: operator `op` of `stage`, or a meeting of the stages in `together` at their own next operator. */
export interface ExecutionOrder {
  readonly stage: Int32Array;
  readonly op: Int32Array;
  /** For a meeting, the stages that take part (their operator indices follow `opOf`); else null. */
  readonly meetings: ReadonlyMap<
    number,
    { readonly stages: readonly number[]; readonly ops: readonly number[] }
  >;
}

export function executionOrder(programs: readonly StageProgram[]): ExecutionOrder {
  const total = programs.reduce((sum, program) => sum + program.count, 0);
  const stage = new Int32Array(total);
  const op = new Int32Array(total);
  const meetings = new Map<number, { stages: number[]; ops: number[] }>();
  const next = new Int32Array(programs.length);
  let steps = 0;
  let done = 0;
  const take = (s: number): void => {
    stage[steps] = s;
    op[steps++] = next[s]!;
    next[s]!++;
    done++;
  };
  while (done < total) {
    const before = done;
    for (const program of programs) {
      const s = program.stage;
      for (; next[s]! < program.count; take(s)) {
        const at = next[s]!;
        const role = program.role[at]!;
        if (role === WORLD || role === EMBEDDING) break;
        if (program.kind[at] === RECV && next[program.peerStage[at]!]! <= program.peerOp[at]!)
          break;
      }
    }
    for (const role of [EMBEDDING, WORLD]) {
      const members = programs.filter((program) => program.role.includes(role));
      const ready = members.filter((program) => program.role[next[program.stage]!] === role);
      if (members.length === 0 || ready.length !== members.length) continue;
      const stages = members.map((program) => program.stage);
      meetings.set(steps, { stages, ops: stages.map((s) => next[s]!) });
      stage[steps] = -1;
      op[steps++] = -1;
      for (const s of stages) {
        next[s]!++;
        done++;
      }
    }
    assert(done > before, "the pipeline schedule deadlocks");
  }
  return { stage: stage.subarray(0, steps), op: op.subarray(0, steps), meetings };
}
