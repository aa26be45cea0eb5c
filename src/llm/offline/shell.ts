// Words of the shell: quoting, and which first words make a text a command.

/** A word as the shell reads it back unchanged, whatever it holds. */
export const quoted = (word: string): string => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

/** A path that no program takes for an option. */
export const quotedPath = (path: string): string => quoted(path.startsWith("-") ? `./${path}` : path);

const programs = new Set(
  (
    "npm npx yarn pnpm bun bunx node deno make gmake just task cargo rustc go python python3 pip pip3 pytest tox nox uv poetry ruby rake bundle " +
    "rspec gem php composer phpunit java mvn gradle sbt mix dotnet swift dart flutter git ls cat grep rg find wc head tail sort uniq awk sed echo " +
    "printf pwd env date uname whoami df du ps sh bash zsh fish bats docker kubectl terraform tsc eslint prettier biome vitest jest mocha ctest " +
    "cmake ninja meson gcc cc clang perl prove curl wget diff stat file which test sleep true false seq tree jq mkdir touch cp mv rm ln chmod tar"
  ).split(" "),
);

/** English sentences begin with these too, so they alone make no command. */
const alsoEnglish = new Set(
  "make go find test file date which just task cat head tail sort grep curl true false stat tree sleep touch time".split(" "),
);

const scriptFile = /^(?:\.{0,2}\/)?[\w@.+-]+(?:\/[\w@.+-]+)*\.(?:sh|bash|py|rb|js|mjs|ts|pl|php)$/;

/** After the word "run": is this a command line? */
export function isCommandLine(text: string): boolean {
  const [first = "", second = ""] = text.split(/\s+/);
  if (/^(?:\.{1,2}|~)?\/[\w./+-]+$/.test(first) || scriptFile.test(first)) return true;
  // `FOO=1 npm test`
  if (/^[A-Z_][A-Z0-9_]*=\S*$/.test(first)) return second !== "";
  if (programs.has(first) && first !== "test") return true;
  return /^[a-z][\w.-]*$/.test(first) && /(?:^|\s)--?[a-zA-Z]/.test(text);
}

const makeTargets = /^(?:make|just) (?:test|tests|check|build|lint|all|clean|install|format|fmt|ci|verify)\b/;
const gitWords = /^git (?:status|log|diff|show|branch|blame|shortlog|describe|fetch|pull|ls-files|grep|remote|tag|stash list)\b/;

/** Without the word "run": only what nobody would write as English. */
export function isPlainlyCommand(text: string): boolean {
  const [first = "", second = ""] = text.split(/\s+/);
  if (/^\.\/[\w./+-]+$/.test(first)) return true;
  if (makeTargets.test(text) || gitWords.test(text)) return true;
  if (/^go (?:test|build|vet|run|version|env)\b/.test(text)) return true;
  return programs.has(first) && !alsoEnglish.has(first) && first !== "git" && (second === "" || /^[\w./:@=-]+$/.test(second));
}

/** What cannot be taken back: deleting, overwriting, switching off. */
export const isDestructive = (text: string): boolean =>
  /(?:^|[;&|]\s*)(?:sudo\s+)?(?:rm\s+\S|shutdown(?:$|\s+[-+\d]|\s+now)|(?:reboot|poweroff)$|mkfs(?:\.\w+)?(?:\s|$)|dd\s.*\bof=|git\s+push\b.*\s(?:--force\S*|-f)(?:\s|$)|git\s+reset\b.*\s--hard\b|git\s+clean\s+-\w*f|drop\s+(?:table|database)\s)/i.test(
    text,
  );

/** A script that is spelled without a path is found in the folder, not on the PATH. */
export function asScript(line: string): string {
  const [first = ""] = line.split(/\s+/);
  if (!scriptFile.test(first) || first.includes("/")) return line;
  const rest = line.slice(first.length);
  const path = `./${first}`;
  const interpreter = interpreterOf(path);
  return interpreter === null ? `${path}${rest}` : `${interpreter} ${path}${rest}`;
}

/** Which program runs a script: by its first line, else by its name; null when it can only run itself. */
export function interpreterOf(path: string, text = ""): string | null {
  const shebang = /^#!\s*(\S+)(?:\s+(\S+))?/.exec(text);
  const program = shebang?.[1]?.endsWith("/env") ? shebang[2] : shebang?.[1]?.split("/").at(-1);
  if (program && /^(?:sh|bash|zsh|dash|ksh|python3?|node|ruby|perl|php)$/.test(program)) return program === "python" ? "python3" : program;
  if (/\.bash$/.test(path)) return "bash";
  if (/\.sh$/.test(path)) return text === "" ? "bash" : "sh";
  if (/\.py$/.test(path)) return "python3";
  if (/\.(?:js|mjs|ts)$/.test(path)) return "node";
  if (/\.rb$/.test(path)) return "ruby";
  if (/\.pl$/.test(path)) return "perl";
  if (/\.php$/.test(path)) return "php";
  return null;
}
