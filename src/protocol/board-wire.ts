// How a console follows the board over its socket. Constants only, so that the browser part stays small.

export const boardProtocol = "board.v1";

/** Set by the Worker on its own request to the Board; a browser cannot set it. */
export const boardSessionHeader = "x-switchyard-session";

/** Close codes of the board's socket. */
export const boardClose = {
  /** The ticket is wrong, used or old: get a new one. */
  unauthorised: 4401,
  /** The operator signed out. */
  signedOut: 4403,
} as const;
