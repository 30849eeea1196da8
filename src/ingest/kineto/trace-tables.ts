/** The tables that a trace is read into, with what only linking needs beside the model's columns. */
import { GrowingTable } from "../growing-table.ts";

/**
 * What one trace may cost: 5 million GPU events and as many calls are 500 MB, of a trace of about 15 GB. The other
 * tables are small in any real trace.
 */
const MAX_ROWS = 5_000_000;
const MAX_HOST_ROWS = 2_000_000;

export function traceTables(most = MAX_ROWS) {
  const fewer = Math.min(most, MAX_HOST_ROWS);
  return {
    gpu: new GrowingTable(
      (n) => ({
        startNs: new Float64Array(n),
        durNs: new Float64Array(n),
        name: new Int32Array(n),
        kind: new Uint8Array(n),
        device: new Int32Array(n),
        stream: new Int32Array(n),
        correlation: new Uint32Array(n),
        externalId: new Uint32Array(n),
        collective: new Int32Array(n),
      }),
      most,
    ),
    calls: new GrowingTable(
      (n) => ({
        startNs: new Float64Array(n),
        durNs: new Float64Array(n),
        name: new Int32Array(n),
        kind: new Uint8Array(n),
        thread: new Int32Array(n),
        correlation: new Uint32Array(n),
      }),
      most,
    ),
    host: new GrowingTable(
      (n) => ({
        startNs: new Float64Array(n),
        durNs: new Float64Array(n),
        name: new Int32Array(n),
        kind: new Uint8Array(n),
        thread: new Int32Array(n),
      }),
      fewer,
    ),
    steps: new GrowingTable(
      (n) => ({
        number: new Float64Array(n),
        startNs: new Float64Array(n),
        durNs: new Float64Array(n),
      }),
      fewer,
    ),
    matrixOps: new GrowingTable(
      (n) => ({
        startNs: new Float64Array(n),
        durNs: new Float64Array(n),
        name: new Int32Array(n),
        thread: new Int32Array(n),
        externalId: new Uint32Array(n),
        shape: new Int32Array(n),
      }),
      fewer,
    ),
    collectives: new GrowingTable(
      (n) => ({
        operation: new Int32Array(n),
        group: new Int32Array(n),
        inputNumel: new Float64Array(n),
        outputNumel: new Float64Array(n),
        dtype: new Int32Array(n),
        groupSize: new Int32Array(n),
        seq: new Float64Array(n),
        peer: new Int32Array(n),
      }),
      fewer,
    ),
  };
}

export type TraceTables = ReturnType<typeof traceTables>;
