// Ecosystems with one way to do it.
import type { Purpose } from "../intents.ts";
import { quoted } from "../shell.ts";
import type { Runner } from "./runner.ts";

type Marker = { name: string; file: RegExp; commands: Partial<Record<Purpose, string>>; only?: (subject: string) => string };

/** Ecosystems with one way to do it: the marker file is enough. */
const markers: readonly Marker[] = [
  {
    name: "Cargo",
    file: /^Cargo\.toml$/,
    commands: { test: "cargo test", build: "cargo build", lint: "cargo clippy", typecheck: "cargo check" },
    only: (subject) => `cargo test ${quoted(subject)}`,
  },
  {
    name: "Go",
    file: /^go\.mod$/,
    commands: { test: "go test ./...", build: "go build ./...", lint: "go vet ./...", typecheck: "go vet ./..." },
    only: (subject) => `go test ./... -run ${quoted(`(?i)${subject}`)}`,
  },
  {
    name: "Gradle",
    file: /^build\.gradle(?:\.kts)?$/,
    commands: { test: "gradle test", build: "gradle build", lint: "gradle check" },
    only: (subject) => `gradle test --tests ${quoted(`*${subject}*`)}`,
  },
  {
    name: "Maven",
    file: /^pom\.xml$/,
    commands: { test: "mvn test", build: "mvn package" },
    only: (subject) => `mvn test ${quoted(`-Dtest=*${subject}*`)}`,
  },
  { name: "Mix", file: /^mix\.exs$/, commands: { test: "mix test", build: "mix compile" } },
  { name: ".NET", file: /\.(?:sln|csproj|fsproj)$/, commands: { test: "dotnet test", build: "dotnet build" } },
  { name: "Swift", file: /^Package\.swift$/, commands: { test: "swift test", build: "swift build" } },
  { name: "Dart", file: /^pubspec\.yaml$/, commands: { test: "dart test", lint: "dart analyze" } },
];

const runnerOf = (entry: Marker): Runner => ({
  name: entry.name,
  reads: () => [],
  find({ paths }, purpose) {
    const file = paths.find((path) => entry.file.test(path));
    const command = entry.commands[purpose];
    if (file === undefined || command === undefined) return null;
    const wrapped = (line: string): string =>
      line.startsWith("gradle ") && paths.includes("gradlew")
        ? `./gradlew ${line.slice(7)}`
        : line.startsWith("mvn ") && paths.includes("mvnw")
          ? `./mvnw ${line.slice(4)}`
          : line;
    const only = entry.only;
    return {
      script: wrapped(command),
      from: file,
      ...(only && purpose === "test" ? { only: (subject: string) => wrapped(only(subject)) } : {}),
    };
  },
});

export const ecosystems: readonly Runner[] = markers.map(runnerOf);
