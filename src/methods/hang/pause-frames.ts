/** What a stack shows a rank to do other than training: frames of frameworks that save, evaluate or compile. */
import type { Frame } from "../../model/operators.ts";

type Pause = "checkpoint" | "evaluation" | "compilation";

/** Recomputing activations is called checkpointing, too, and is training. */
const ACTIVATIONS = /torch\/utils\/checkpoint\.py|checkpoint_wrapper|activation_checkpoint/;
const SAVES_FILE = /torch\/serialization\.py|torch\/distributed\/checkpoint\/|safetensors\//;
const SAVES = /(?:^|_)(?:save|load|dump|restore)(?:_|$)|checkpoint/i;
const SAVES_ALONE =
  /^_?(?:async_)?(?:save|load)_(?:checkpoint|pretrained|state|model)|checkpoint_and_/i;
const EVALUATES = /^_?(?:run_)?(?:evaluat(?:e|ion)|validat(?:e|ion)|eval)(?:_|$)/i;
/** Not the frames that run what was compiled: those are below every step. */
const COMPILES =
  /torch\/_dynamo\/(?:convert_frame|symbolic_convert|output_graph|bytecode_transformation)|torch\/_inductor\/(?:graph|scheduler|codegen|codecache|async_compile|lowering|select_algorithm)|triton\/(?:compiler|backends)\/|torch\/utils\/cpp_extension/;

/** The innermost frame that tells; null where the rank trains, or nothing tells. */
export function pauseOf(
  frames: readonly Frame[],
): { readonly pause: Pause; readonly frame: Frame } | null {
  for (const frame of frames) {
    const pause = kindOf(frame);
    if (pause !== null) return { pause, frame };
  }
  return null;
}

function kindOf({ file, func }: Frame): Pause | null {
  if (ACTIVATIONS.test(file)) return null;
  if ((SAVES_FILE.test(file) && SAVES.test(func)) || SAVES_ALONE.test(func)) return "checkpoint";
  if (COMPILES.test(file)) return "compilation";
  return EVALUATES.test(func) ? "evaluation" : null;
}
