// Named places where the kill tests end the process. Without FAULT_URL a fault point costs one comparison and does nothing.

/** Every fault point of the cloud side, in the order of the road. */
export type FaultPoint =
  | "thread.committed"
  | "thread.delivered"
  | "thread.outbound.sending"
  | "thread.outbound.sent"
  | "router.model.called"
  | "router.committed"
  | "router.effect.applied"
  | "worker.started"
  | "worker.model.called"
  | "worker.model.answered"
  | "worker.step.committed"
  | "worker.effect.applied"
  | "endpoint.queued"
  | "endpoint.settled"
  | "endpoint.result.handed";

/** Tells the harness that the point was reached; an armed harness kills the process before it answers. */
export async function faultPoint(faultUrl: string | null, point: FaultPoint): Promise<void> {
  if (faultUrl === null) return;
  const response = await fetch(`${faultUrl}/${point}`, { method: "POST" });
  await response.arrayBuffer();
}
