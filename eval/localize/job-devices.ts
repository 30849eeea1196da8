/** The devices of a kept job, with its topology known. */
import { devicesOf, type Device, type Devices } from "./attribution/devices.ts";
import type { KeptJob } from "./kept-job.ts";

const devicesByJob = new WeakMap<KeptJob, Devices>();

/** Groups are asked for thousands of times. */
export function jobDevices(job: KeptJob): Devices {
  const { spec, topology } = job.simulation;
  let devices = devicesByJob.get(job);
  if (devices) return devices;
  const plain = devicesOf(
    Array.from({ length: spec.gpus }, (_, rank) => ({
      machine: topology.machineName(topology.machineOf(rank)),
      nic: topology.nicName(rank),
      leaf: topology.leafName(topology.leafOf(rank)),
    })),
  );
  const ways = new WeakMap<readonly number[], readonly Device[]>();
  devices = {
    ...plain,
    among(ranks) {
      let known = ways.get(ranks);
      if (!known) ways.set(ranks, (known = plain.among(ranks)));
      return known;
    },
  };
  devicesByJob.set(job, devices);
  return devices;
}
