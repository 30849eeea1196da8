/** Where the suspects' Python stands, by the stacks among the inputs. */
import { cutText, harmless } from "../../base/text.ts";
import type { Job } from "../../model/job.ts";
import type { StackExcerpt } from "../../model/picture.ts";
import type { Verdict } from "../../model/verdict.ts";

const MOST_STACKS = 4;
const MOST_FRAMES = 64;
const MOST_CHARACTERS = 400;

export function stackExcerpts({ stacks }: Job, { suspects }: Verdict): StackExcerpt[] {
  const ranks = [...new Set(suspects.flatMap((suspect) => suspect.ranks))];
  return ranks
    .filter((rank) => stacks.has(rank))
    .slice(0, MOST_STACKS)
    .flatMap((rank) => {
      const { file, threads } = stacks.get(rank)!;
      const main = threads.find(({ isMain }) => isMain) ?? threads[0];
      if (!main) return [];
      const frames = main.frames
        .slice(0, MOST_FRAMES)
        .map((frame) =>
          harmless(cutText(`${frame.func} (${frame.file}:${frame.line || "?"})`, MOST_CHARACTERS)),
        );
      return [
        {
          file: harmless(cutText(file, MOST_CHARACTERS)),
          rank,
          status: harmless(cutText(main.status, 40)),
          frames,
          leftOut: main.frames.length - frames.length,
        },
      ];
    });
}
