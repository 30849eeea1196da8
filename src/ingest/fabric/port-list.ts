/** Ports as a reader finds them: each once, and no more than a site has. */
import { count } from "../../base/text.ts";
import type { FabricPort } from "../../model/fabric.ts";
import type { Defect, Reading } from "../../model/reading.ts";

/** 64,000 machines with 16 NICs each. */
const MAX_PORTS = 1 << 20;
/** Names of strangers: a host's may have 253 letters. */
const MAX_NAME = 256;

export class PortList {
  readonly #file: string;
  readonly #format: string;
  readonly #ports = new Map<string, FabricPort>();
  #tooMany = 0;

  constructor(file: string, format: string) {
    this.#file = file;
    this.#format = format;
  }

  /** Says nothing where neither switch, rack nor rail is known. */
  add(port: Partial<FabricPort> & Pick<FabricPort, "machine">): void {
    const machine = nameOf(port.machine);
    const [nic, leaf, rack, rail] = [port.nic, port.leaf, port.rack, port.rail].map(nameOf);
    if (!machine || (!leaf && !rack && !rail)) return;
    const key = `${machine}\n${nic ?? ""}`;
    if (!this.#ports.has(key) && this.#ports.size >= MAX_PORTS) {
      this.#tooMany++;
      return;
    }
    const of = (name: string | null | undefined): string | null => name ?? null;
    this.#ports.set(key, {
      machine,
      nic: of(nic),
      leaf: of(leaf),
      rack: of(rack),
      rail: of(rail),
    });
  }

  /** `wrong`: what could not be read, a sentence each. */
  reading(wrong: readonly string[]): Reading {
    const file = this.#file;
    const ports = [...this.#ports.values()];
    const defects: Defect[] = wrong.map((what) => ({ file, what }));
    if (this.#tooMany > 0)
      defects.push({ file, what: `${count(this.#tooMany, "port")} left out: more than we hold` });
    const reading = { file, format: this.#format, rank: null, records: ports.length, defects };
    return ports.length > 0 ? { ...reading, fabric: ports } : reading;
  }
}

function nameOf(name: string | null | undefined): string | null {
  const plain = name?.trim() ?? "";
  return plain === "" ? null : plain.slice(0, MAX_NAME);
}
