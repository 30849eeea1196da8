/** Where machines are plugged into the network, as switches, subnet managers, schedulers or inventories know it. */
export interface FabricPort {
  readonly machine: string;
  /** "mlx5_3"; null where the source knows only the machine. */
  readonly nic: string | null;
  /** The switch that the NIC, or the whole machine, hangs on. */
  readonly leaf: string | null;
  readonly rack: string | null;
  readonly rail: string | null;
}
