// Projects of Python, PHP and Ruby.
import { quoted, quotedPath } from "../shell.ts";
import { has, matching, parseJson, pick, type Runner, scriptsOf } from "./runner.ts";

export const pythonTest = /(?:^|\/)(?:test_[^/]*|[^/]*_test|tests)\.py$/;
export const python: Runner = {
  name: "Python",
  reads: (paths, purpose) => [
    ...matching(paths, /^(?:pyproject\.toml|setup\.cfg|tox\.ini|pytest\.ini|requirements[\w.-]*\.txt)$/).slice(0, 4),
    ...(purpose === "test" ? matching(paths, pythonTest).slice(0, 1) : []),
  ],
  find(folder, purpose) {
    const { paths } = folder;
    const pyproject = folder.text("pyproject.toml") ?? "";
    const config = [
      pyproject,
      folder.text("setup.cfg") ?? "",
      ...matching(paths, /^requirements[\w.-]*\.txt$/).map((file) => folder.text(file) ?? ""),
    ].join("\n");
    const with_ = paths.includes("uv.lock")
      ? "uv run "
      : paths.includes("poetry.lock")
        ? "poetry run "
        : paths.includes("Pipfile.lock")
          ? "pipenv run "
          : "";
    const module = (name: string): string => (with_ === "" ? `python3 -m ${name}` : `${with_}${name}`);
    const tests = matching(paths, pythonTest);
    switch (purpose) {
      case "test": {
        if (paths.includes("manage.py") && !/pytest/.test(config)) return { script: `${with_}python3 manage.py test`, from: "manage.py" };
        const usesPytest =
          /\bpytest\b/.test(config) || has(paths, "pytest.ini") !== undefined || paths.some((path) => /(?:^|\/)conftest\.py$/.test(path));
        const sample = tests.map((file) => folder.text(file)).find((text) => text !== undefined) ?? "";
        if (usesPytest || (tests.length > 0 && !/\bunittest\b/.test(sample) && !paths.includes("tox.ini")))
          return {
            script: module("pytest"),
            from: usesPytest ? (has(paths, "pytest.ini", "pyproject.toml", "setup.cfg") ?? "its test files") : "its test files",
            only: (subject, files) =>
              `${module("pytest")} ${files.length > 0 ? files.map(quotedPath).join(" ") : `-k ${quoted(subject.replace(/\s+/g, " and "))}`}`,
          };
        if (paths.includes("tox.ini") || /\[tool\.tox/.test(pyproject)) return { script: "tox", from: "tox.ini" };
        if (paths.includes("noxfile.py")) return { script: "nox", from: "noxfile.py" };
        if (tests.length === 0) return null;
        const where = tests.every((path) => !path.includes("/"))
          ? ""
          : ` discover -s ${quotedPath(tests[0]?.split("/").slice(0, -1).join("/") ?? "tests")} -t .`;
        return {
          script: `${with_}python3 -m unittest${where}`,
          from: "its test files",
          only: (subject) => `${with_}python3 -m unittest${where} -k ${quoted(subject)}`,
        };
      }
      case "build":
        return /\[build-system\]/.test(pyproject) ? { script: "python3 -m build", from: "pyproject.toml" } : null;
      case "lint":
        return /\bruff\b/.test(config) || paths.includes("ruff.toml")
          ? { script: `${with_}ruff check .`, from: "pyproject.toml" }
          : /\bflake8\b/.test(config) || paths.includes(".flake8")
            ? { script: `${with_}flake8`, from: "its configuration" }
            : null;
      case "typecheck":
        return /\bmypy\b/.test(config) || paths.includes("mypy.ini")
          ? { script: `${with_}mypy .`, from: "its configuration" }
          : /\bpyright\b/.test(config)
            ? { script: `${with_}pyright`, from: "its configuration" }
            : null;
    }
  },
};

export const composer: Runner = {
  name: "Composer",
  reads: (paths) => matching(paths, /^composer\.json$/),
  find(folder, purpose) {
    const name = pick(purpose, Object.keys(scriptsOf(parseJson(folder.text("composer.json")), "scripts")));
    if (name !== undefined) return { script: `composer run-script ${quoted(name)}`, from: "composer.json" };
    const config = has(folder.paths, "phpunit.xml", "phpunit.xml.dist");
    if (purpose !== "test" || config === undefined) return null;
    return { script: "vendor/bin/phpunit", from: config, only: (subject) => `vendor/bin/phpunit --filter ${quoted(subject)}` };
  },
};

export const ruby: Runner = {
  name: "Ruby",
  reads: (paths) => matching(paths, /^(?:Gemfile|Rakefile)$/),
  find(folder, purpose) {
    const { paths } = folder;
    const bundle = paths.includes("Gemfile") ? "bundle exec " : "";
    if (purpose === "test" && (paths.includes(".rspec") || paths.some((path) => /^spec\/.*_spec\.rb$/.test(path))))
      return {
        script: `${bundle}rspec`,
        from: has(paths, ".rspec") ?? "spec/",
        only: (subject, files) => `${bundle}rspec ${files.length > 0 ? files.map(quotedPath).join(" ") : `-e ${quoted(subject)}`}`,
      };
    if (purpose === "lint" && paths.includes(".rubocop.yml")) return { script: `${bundle}rubocop`, from: ".rubocop.yml" };
    const rakefile = folder.text("Rakefile");
    if (rakefile === undefined) return null;
    const tasks = [...rakefile.matchAll(/\btask[ (]+:?["']?([\w:]+)/g)].map((match) => match[1] ?? "");
    if (/Rake::TestTask/.test(rakefile)) tasks.push("test");
    const name = pick(purpose, tasks);
    return name === undefined ? null : { script: `${bundle}rake ${quoted(name)}`, from: "Rakefile" };
  },
};
