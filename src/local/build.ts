// Builds the browser parts into dist/assets: the widget's loader and frame, the console, the demo page.
import { cp, mkdir, readdir, readFile, rm } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { type BuildOptions, build, type Plugin } from "esbuild";

const root = join(dirname(fileURLToPath(import.meta.url)), "../..");
const web = join(root, "src/web");

export const assetsFolder = join(root, "dist/assets");

/** Output below `dist/assets` ← source below `src/web`. */
const scripts = {
  widget: "loader.ts",
  "widget/app": "widget/main.tsx",
  "console/app": "console/main.tsx",
};
const styles = { "widget/app": "widget/widget.css", "console/app": "console/console.css", "demo/demo": "demo/demo.css" };
const copied = ["widget/index.html", "console/index.html", "demo/index.html", "icon.svg"];

/**
 * The pages only read Markdown's tokens. The library makes a whole HTML renderer when it is loaded, which no bundler can leave out:
 * without those last statements the widget is a twelfth smaller.
 */
const lexerOnly: Plugin = {
  name: "lexer-only",
  setup(plugin) {
    plugin.onLoad({ filter: /[\\/]marked\.esm\.js$/ }, async ({ path }) => {
      const text = await readFile(path, "utf8");
      const instance = /var [\w$]+=new [\w$]+;function [\w$]+\([^)]*\)\{return [\w$]+\.parse\(/.exec(text);
      const lexer = /export\{[^}]*?([\w$]+) as Lexer\b/.exec(text)?.[1];
      if (instance === null || lexer === undefined)
        throw new Error("marked has another form than this build knows: see src/local/build.ts.");
      return { contents: `${text.slice(0, instance.index)}export{${lexer} as Lexer};`, loader: "js" };
    });
  },
};

/**
 * Builds everything, over what is there: a Worker that serves this folder at the same time keeps serving. What an older build left
 * is removed at the end. Throws with esbuild's message when a source does not compile.
 */
export async function buildAssets(): Promise<void> {
  await mkdir(assetsFolder, { recursive: true });
  const common: BuildOptions = {
    bundle: true,
    minify: true,
    outdir: assetsFolder,
    target: ["es2022", "safari16"],
    logLevel: "error",
    metafile: true,
  };
  const inputs = (entries: Record<string, string>) =>
    Object.entries(entries).map(([output, source]) => ({ out: output, in: join(web, source) }));
  const built = await Promise.all([
    build({
      ...common,
      entryPoints: inputs(scripts),
      format: "iife",
      jsx: "automatic",
      jsxImportSource: "preact",
      legalComments: "none",
      plugins: [lexerOnly],
    }),
    build({ ...common, entryPoints: inputs(styles) }),
  ]);
  for (const file of copied) {
    await mkdir(dirname(join(assetsFolder, file)), { recursive: true });
    await cp(join(web, file), join(assetsFolder, file));
  }
  const outputs = built.flatMap(({ metafile }) => Object.keys(metafile?.outputs ?? {}).map((file) => resolve(file)));
  const known = new Set([...outputs, ...copied.map((file) => join(assetsFolder, file))]);
  for (const entry of await readdir(assetsFolder, { recursive: true, withFileTypes: true })) {
    const file = join(entry.parentPath, entry.name);
    if (entry.isFile() && !known.has(file)) await rm(file, { force: true });
  }
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  await buildAssets();
  console.log("Built the browser parts into dist/assets.");
}
