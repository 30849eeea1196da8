/** Whose task it is, in words that a reader knows; the JSON keeps FLARE's names (§5.2.4). */
const TEAMS: Readonly<Record<string, string>> = {
  operations: "operations team, which runs the machines",
  infrastructure: "infrastructure team, which maintains framework and kernels",
  algorithm: "model team, which writes the training code",
  user: "person who started the job",
};

export function ownerWords(owner: string): string {
  return TEAMS[owner] ?? owner;
}
