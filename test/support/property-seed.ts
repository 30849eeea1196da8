import fc from "fast-check";

/**
 * Property tests draw the same cases in every run, so that a change that fails is the change's fault. Whoever wants
 * to look further runs `FAULTLINE_PROPERTY_SEED=random npm test`, or gives a number to repeat what was found.
 */
const asked = process.env["FAULTLINE_PROPERTY_SEED"];
if (asked !== "random") fc.configureGlobal({ seed: Number(asked ?? 20_261_115) });
