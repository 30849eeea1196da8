/** The licences of the packages inside the bundle, which ask to be passed on with it. */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { root } from "./root.mjs";

export function writeLicenses(names, file) {
  const texts = [...new Set(names)]
    .sort((a, b) => (a < b ? -1 : 1))
    .map((name) => {
      const folder = `${root}node_modules/${name}`;
      const { version, license } = JSON.parse(readFileSync(`${folder}/package.json`, "utf8"));
      const found = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
      const text = found === undefined ? "" : readFileSync(`${folder}/${found}`, "utf8").trim();
      return `${name} ${version} (${license})\n\n${text}`;
    });
  writeFileSync(file, `${texts.join(`\n\n${"-".repeat(80)}\n\n`)}\n`);
}
