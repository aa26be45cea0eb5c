// Globs of a search: `*`, `?`, `**` and `{a,b}`. Without a slash the file's name is meant, else its whole path.

const special = /[.+^$()|[\]\\]/g;

/** A test of (path, file name). */
export function globMatcher(glob: string): (path: string, name: string) => boolean {
  const source = glob.replace(special, "\\$&").replace(/\*\*\/|\*\*|\*|\?|\{[^{}]*\}/g, (part) => {
    if (part === "**/") return "(?:.*/)?";
    if (part === "**") return ".*";
    if (part === "*") return "[^/]*";
    if (part === "?") return "[^/]";
    const choices = part.slice(1, -1).split(",");
    return `(?:${choices.map((each) => each.replaceAll("*", "[^/]*")).join("|")})`;
  });
  const pattern = new RegExp(`^${source}$`);
  return glob.includes("/") ? (path) => pattern.test(path) : (_, name) => pattern.test(name);
}
