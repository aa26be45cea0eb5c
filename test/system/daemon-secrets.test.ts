// What the sandbox keeps from a command: keys and projects in the home, programs that listen outside. What it leaves: tools, the folder.
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { later, scene } from "../support/daemon-lab.ts";
import { daemonCall, modes } from "../support/daemon-process.ts";

const places = [
  ".ssh/id_ed25519",
  ".netrc",
  ".gitconfig",
  ".config/git/config",
  ".bash_history",
  ".pgpass",
  ".my.cnf",
  ".cargo/credentials",
  ".gem/credentials",
  ".config/hub",
  ".config/glab-cli/config.yml",
  ".config/containers/auth.json",
  ".config/github-copilot/apps.json",
  ".codex/auth.json",
  ".claude/.credentials.json",
  ".fly/config.yml",
  ".config/doctl/config.yaml",
  ".s3cfg",
  ".boto",
  ".config/sops/age/keys.txt",
  ".m2/settings.xml",
  ".gradle/gradle.properties",
  ".config/pip/pip.conf",
  ".config/stripe/config.toml",
  "other-project/.env",
];

/** A home that is not below /tmp, which the sandbox covers as a whole. */
function makeHome(): string {
  const home = mkdtempSync("/var/tmp/switchyard-home-");
  later(() => rmSync(home, { recursive: true, force: true }));
  return home;
}

const put = (path: string, text: string, mode = 0o644): void => {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text, { mode });
};

describe.skipIf(!modes.includes("bwrap"))("a sandboxed command", () => {
  test("[threats] shows no canary of the user's home or of the environment", async () => {
    const home = makeHome();
    for (const place of places) put(join(home, place), `# CANARY-${place}\n`);
    const { cloud, start } = await scene();
    await start("bwrap", { HOME: home, GITHUB_TOKEN: "CANARY-env" }).line("connected");
    const id = cloud.shell(`env; cat /proc/*/environ; grep -rhoa 'CANARY-[^ ]*' ${home} | sort -u; cat /etc/shadow; ls -A /root /home`);
    await cloud.resultOf(id);
    const output = cloud.orderOf(id).output.toString();
    expect(output.match(/CANARY-\S*/g) ?? []).toEqual([]);
    expect(output).not.toMatch(/^root:/m);
  });

  test("works in a granted folder of the home with the tools of the home, and sees no project beside it", async () => {
    const home = makeHome();
    const { cloud, lab, start } = await scene();
    const project = join(home, "projects", "mine");
    put(join(project, "package.json"), '{ "scripts": { "test": "tool && node --test" } }');
    put(join(project, "x.test.js"), 'require("node:test")("x", () => {});');
    put(join(project, "node_modules/.bin/tool"), "#!/bin/sh\necho a tool of the project\n", 0o755);
    put(join(home, "projects/other/secret"), "CANARY");
    put(join(home, ".nvm/versions/node/v1/lib/x"), "");
    mkdirSync(join(home, ".nvm/versions/node/v1/bin"));
    copyFileSync(process.execPath, join(home, ".nvm/versions/node/v1/bin/node"));
    put(join(home, ".cargo/bin/cargo-x"), "#!/bin/sh\necho a tool of the home\n", 0o755);
    put(join(home, "unpacked/bin/unpacked"), '#!/bin/sh\ncat "$(dirname "$0")/../lib/word"\n', 0o755);
    put(join(home, "unpacked/lib/word"), "an unpacked tool\n");
    expect((await daemonCall(lab, ["grant", project])).code).toBe(0);
    const path = [".nvm/versions/node/v1/bin", ".cargo/bin", "unpacked/bin"].map((each) => join(home, each)).join(":");
    await start("bwrap", { HOME: home, PATH: `${path}:${process.env.PATH}` }).line("connected");
    const shell = {
      kind: "shell",
      workspace: "mine",
      script: `set -e; cargo-x; unpacked; command -v node; npm test; echo x > made; ls ${home}/projects`,
    } as const;
    const id = cloud.order(shell);
    const result = await cloud.resultOf(id);
    const output = cloud.orderOf(id).output.toString();
    expect([result.exitCode, output]).toEqual([0, expect.stringContaining("a tool of the project")]);
    for (const said of ["a tool of the home", "an unpacked tool", join(home, ".nvm/versions/node/v1/bin/node"), "pass 1"])
      expect(output).toContain(said);
    expect(output).toMatch(/^mine$/m);
    expect(output).not.toContain("other");
    execFileSync("test", ["-s", join(project, "made")]);
  });

  test("[machines] reaches no socket of another program that has no file, by no kind of socket", async () => {
    const server = createServer((socket) => socket.end("a host service"));
    const name = `switchyard-test-${process.pid}`;
    await new Promise<void>((resolve) => server.listen(`\0${name}`, resolve));
    later(() => new Promise((resolve) => server.close(resolve)));
    const { cloud, start } = await scene();
    await start("bwrap").line("connected");
    const id = cloud.shell(
      `python3 -c "import socket;s=socket.socket(socket.AF_UNIX);s.connect(b'\\0${name}');print(s.recv(50))"; python3 -c "import socket;s=socket.socketpair(socket.AF_UNIX,socket.SOCK_DGRAM)" && echo a datagram pair`,
    );
    await cloud.resultOf(id);
    const output = cloud.orderOf(id).output.toString();
    expect(output).not.toContain("a host service");
    expect(output).not.toContain("a datagram pair");
    expect(output.match(/PermissionError/g)).toHaveLength(2);
  });

  test("still has what ordinary tools need: workers, child processes with a channel, pools, loopback", async () => {
    const { cloud, start, lab } = await scene();
    await start("bwrap").line("connected");
    put(join(lab.work, "a.test.js"), 'require("node:test")("a", () => {});');
    put(join(lab.work, "b.test.js"), 'require("node:test")("b", () => {});');
    put(
      join(lab.work, "fork.js"),
      'if (process.send) process.send("a message"); else require("child_process").fork(__filename).on("message", console.log);',
    );
    put(
      join(lab.work, "loop.js"),
      'const s = require("net").createServer((c) => c.end("loopback")).listen(0, "127.0.0.1", () => require("net").connect(s.address().port).on("data", (d) => { console.log(String(d)); s.close(); }));',
    );
    put(
      join(lab.work, "pool.py"),
      "import multiprocessing as m\nif __name__ == '__main__':\n  print('pool', m.get_context('fork').Pool(2).map(abs, [-1, -2]))\n  print('pair', m.Pipe())\n",
    );
    put(join(lab.work, "Makefile"), "all:\n\t@echo made\n");
    const id = cloud.shell(
      "set -e; node --test; node fork.js; node loop.js; python3 pool.py; make -s -j2 || command -v make || echo made; python3 -c 'import asyncio; asyncio.run(asyncio.sleep(0)); print(\"loop\")'",
    );
    const result = await cloud.resultOf(id, 30_000);
    const output = cloud.orderOf(id).output.toString();
    for (const said of ["pass 2", "a message", "loopback", "pool [1, 2]", "pair", "made", "loop"]) expect(output).toContain(said);
    expect(result.exitCode).toBe(0);
  });
});

test("what others call a command cannot rewrite the owner's terminal", async () => {
  const { cloud, lab, start } = await scene();
  await start("unsandboxed").line("connected");
  await cloud.resultOf(cloud.shell("true # \u001b[1A\u001b[2K \u009b2K \u202egnp"));
  for (const args of [["log"], ["log", "--json"]]) {
    const log = await daemonCall(lab, args);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not be there.
    expect(log.stdout).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/);
    expect(log.stdout).toContain("\\u202e");
  }
});
