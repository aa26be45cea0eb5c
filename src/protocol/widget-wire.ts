// Constants of the widget's socket without the schemas, so that the browser part stays small.

export const widgetProtocol = "switchyard.v1";

/** Close codes of the widget's socket. */
export const widgetClose = {
  protocolError: 4400,
  /** The ticket is wrong, used or old: get a new one. */
  unauthorised: 4401,
  /** The person was revoked: forget the session. */
  revoked: 4403,
} as const;

/** One message typed by a person; leaves room for the envelope within `limits.maxTriggerBytes`. Here, since the page counts it too. */
export const maxMessageChars = 16_000;
