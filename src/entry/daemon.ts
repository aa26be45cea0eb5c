// The machines' door: a daemon enrols with a code, then dials in and stays.
import { Hono } from "hono";
import type { z } from "zod/mini";
import type { AppEnv } from "../env.ts";
import { enrolRequest, type enrolResponse } from "../protocol/daemon-frames.ts";
import { Fault } from "../protocol/fault.ts";
import { endpointId } from "../protocol/ids.ts";
import { machineById, redeemEnrolmentCode } from "../storage/enrolment.ts";
import { fromD1 } from "../storage/from-d1.ts";
import { requireStrongKey } from "../tools/machine-key.ts";
import { bodyAtMost, bodyOf } from "./json-body.ts";
import { noUpgrade } from "./upgrade.ts";

/** A name, a code and a key: nothing near this. */
const maxEnrolBytes = 8 * 1024;

export const daemonDoor = new Hono<AppEnv>();

// A daemon sends no Origin; only a browser does, and no page has business here.
daemonDoor.use("/api/daemon/*", async (c, next) => {
  if (c.req.header("origin") !== undefined) throw new Fault("forbidden", "This address is for daemons, not for web pages.");
  await next();
});

daemonDoor.post("/api/daemon/enrol", bodyAtMost(maxEnrolBytes, "An enrolment"), async (c) => {
  const asked = await bodyOf(c, enrolRequest);
  requireStrongKey(asked.publicKey);
  const machine = await fromD1(c.env.DB, (db) => redeemEnrolmentCode(db, asked, Date.now()));
  if (!machine) throw new Fault("unauthorised", "This code is unknown, used or older than ten minutes. Make a new one in the console.");
  const { publicKey, platform } = asked;
  const { host } = new URL(c.req.url);
  await c.env.ENDPOINT.getByName(machine.endpointId).enrol({ ...machine, publicKey, platform, host });
  return c.json(machine satisfies z.infer<typeof enrolResponse>);
});

daemonDoor.get("/api/daemon/connect", async (c) => {
  const wrong = noUpgrade(c, "Connect here with a WebSocket: run the daemon.");
  if (wrong !== null) return wrong;
  const id = endpointId.safeParse(c.req.query("endpoint"));
  const machine = id.success ? await fromD1(c.env.DB, (db) => machineById(db, id.data)) : null;
  if (!id.success || !machine) throw new Fault("not_found", "No such machine is enrolled here. Enrol it with a code from the console.");
  if (machine.revokedMs !== null)
    return c.json(
      { error: "gone", message: `${machine.name} was revoked. Enrol it again with a code from the console.`, retry: "never" },
      410,
    );
  return c.env.ENDPOINT.getByName(id.data).fetch(c.req.raw);
});
