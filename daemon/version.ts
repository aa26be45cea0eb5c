// The daemon's version, as a hello says it; a test keeps it equal to package.json.
export const daemonVersion = "0.1.0";
