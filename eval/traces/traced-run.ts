/** A simulated run's traces, from the emitter straight into the reader: no file, and never more than a piece in memory. */
import { kinetoSink } from "../../src/ingest/kineto.ts";
import type { Sink } from "../../src/ingest/reader.ts";
import { profileRun } from "../../src/methods/traces/profile-run.ts";
import type { RankKernels } from "../../src/model/kernels.ts";
import type { RunProfile } from "../../src/model/trace-profile.ts";
import { severitiesFromCosts } from "../../src/simulate/cluster/costs.ts";
import { simulate } from "../../src/simulate/cluster/engine.ts";
import type { ClusterSpec } from "../../src/simulate/cluster/spec.ts";
import { emitKineto } from "../../src/simulate/emit/kineto.ts";

export function traceRun(
  spec: ClusterSpec,
  ranks: readonly number[],
  steps: readonly number[],
): RankKernels[] {
  const simulation = simulate(severitiesFromCosts(spec));
  const sinks: Sink[] = [];
  const output = {
    open(path: string) {
      const sink = kinetoSink(path);
      sinks.push(sink);
      return {
        write: (chunk: string | Uint8Array) => sink.push(Buffer.from(chunk)),
        end: () => undefined,
      };
    },
  };
  const emitter = emitKineto(simulation, output, { ranks, steps });
  for (const times of simulation.iterations()) emitter.iteration(times);
  emitter.end();
  return sinks.flatMap((sink) => sink.end().kernels ?? []);
}

export function profileOf(
  spec: ClusterSpec,
  ranks: readonly number[],
  steps: readonly number[],
  source: string,
): RunProfile {
  const profile = profileRun(traceRun(spec, ranks, steps), source);
  if (!profile) throw new Error(`${source}: the simulated traces have no GPU events`);
  return profile;
}
