// A daemon enrolled at a fake cloud with one granted folder, and everything ended after each test.
import { afterEach } from "vitest";
import { type DaemonProcess as Daemon, DaemonProcess, daemonCall, type Lab, type Mode, makeLab } from "./daemon-process.ts";
import { FakeCloud } from "./fake-cloud.ts";

const cleanups: (() => unknown)[] = [];

/** Runs after the test, last first. */
export const later = (cleanup: () => unknown): void => void cleanups.push(cleanup);

afterEach(async () => {
  for (let next = cleanups.pop(); next; next = cleanups.pop()) await next();
});

export type Scene = { cloud: FakeCloud; lab: Lab; start(mode?: Mode, env?: Record<string, string>): Daemon };

/** Enrols at `url` (the cloud's own, or a proxy's before it) and grants the folder `work`. */
export async function scene(urlOf: (cloud: FakeCloud) => string | Promise<string> = (cloud) => cloud.url): Promise<Scene> {
  const cloud = await FakeCloud.start();
  later(() => cloud.close());
  const lab = makeLab();
  later(() => lab.remove());
  const enrolled = await daemonCall(lab, ["enroll", await urlOf(cloud), cloud.newCode(), "--name", "test-machine"]);
  if (enrolled.code !== 0) throw new Error(`enroll failed: ${enrolled.stderr}`);
  const granted = await daemonCall(lab, ["grant", lab.work]);
  if (granted.code !== 0) throw new Error(`grant failed: ${granted.stderr}`);
  return {
    cloud,
    lab,
    start(mode = "bwrap", env = {}) {
      const daemon = new DaemonProcess(lab, mode, env);
      later(async () => {
        daemon.kill();
        await daemon.ended();
      });
      return daemon;
    },
  };
}
