// Who is at this page: an invite or a guest's session, kept by the browser, bound to the page that frames us.
import { DoorError, fetchJson } from "../shared/fetch-json.ts";
import { read, write } from "./keep.ts";

export type Ticket = { ticket: string; rootThreadId: string };
type Kept = { session: string; rootThreadId: string | null };

export class Session {
  readonly #hostOrigin: string;
  #invite: string | null;
  #kept: Kept | null;
  /** Says what became of an invite that could not be used. */
  onInviteRefused: (message: string) => void = () => {};

  constructor(hostOrigin: string, invite: string | null) {
    this.#hostOrigin = hostOrigin;
    this.#invite = invite;
    this.#kept = parseKept(read(this.#key));
  }

  /** The root thread of the last visit, known without asking anybody. */
  get rootThreadId(): string | null {
    return this.#kept?.rootThreadId ?? null;
  }

  /** A single-use ticket for one connection. A session that is no longer good is replaced by a new one, once. */
  async ticket(): Promise<Ticket> {
    await this.#ensure();
    try {
      return await this.#askTicket();
    } catch (error) {
      if (!(error instanceof DoorError) || error.status !== 401) throw error;
      this.forget();
      await this.#ensure();
      return await this.#askTicket();
    }
  }

  forget(): void {
    this.#kept = null;
    write(this.#key, null);
  }

  get #key(): string {
    return `session:${this.#hostOrigin}`;
  }

  async #ensure(): Promise<void> {
    if (this.#invite !== null) await this.#useInvite(this.#invite);
    if (this.#kept === null) await this.#open({});
  }

  async #useInvite(invite: string): Promise<void> {
    try {
      await this.#open({ invite });
      this.#invite = null;
    } catch (error) {
      // Without an answer it may still be good: it is tried again with the next connection.
      if (!(error instanceof DoorError) || error.status === 0 || error.status >= 500) throw error;
      this.#invite = null;
      this.onInviteRefused(error.message);
    }
  }

  async #open(input: { invite?: string }): Promise<void> {
    const { session } = await fetchJson<{ session: string }>("POST", "/api/widget/session", { ...input, origin: this.#hostOrigin });
    this.#keep({ session, rootThreadId: null });
  }

  async #askTicket(): Promise<Ticket> {
    const session = this.#kept?.session ?? "";
    const ticket = await fetchJson<Ticket>("POST", "/api/widget/ticket", {}, { authorization: `Bearer ${session}` });
    this.#keep({ session, rootThreadId: ticket.rootThreadId });
    return ticket;
  }

  #keep(kept: Kept): void {
    this.#kept = kept;
    write(this.#key, JSON.stringify(kept));
  }
}

function parseKept(text: string | null): Kept | null {
  if (text === null) return null;
  try {
    const kept = JSON.parse(text) as Kept;
    return typeof kept.session === "string" ? { session: kept.session, rootThreadId: kept.rootThreadId ?? null } : null;
  } catch {
    // Damaged: as if there had been none.
    return null;
  }
}
