import { cloudflareTest } from "@cloudflare/vitest-pool-workers";
import { defineConfig } from "vitest/config";
import { outboundTrap } from "./test/support/outbound-trap.ts";

// pure: decisions and words, in Node. workerd: objects and the Worker, in the real runtime. system: real processes and a real browser.
export default defineConfig({
  test: {
    globalSetup: "./test/support/scratch-folder.ts",
    projects: [
      {
        test: {
          name: "pure",
          include: ["test/core/**/*.test.ts", "test/protocol/**/*.test.ts", "test/daemon/**/*.test.ts", "test/house/**/*.test.ts"],
          environment: "node",
          // Some start processes, and a machine may be busy with others.
          testTimeout: 20_000,
        },
      },
      {
        plugins: [
          cloudflareTest({
            main: "./src/index.ts",
            wrangler: { configPath: "./test/support/wrangler.test.toml" },
            miniflare: {
              outboundService: outboundTrap,
              bindings: {
                SESSION_SECRET: "test-session-secret-of-32-bytes!",
                OPERATOR_TOKEN: "test-operator-token",
                GITHUB_WEBHOOK_SECRET: "s3cret",
                GITHUB_TOKEN: "test-github-token",
                GITHUB_API_URL: "http://github.test",
                GENERIC_WEBHOOK_SECRET: "generic-test-secret",
                GENERIC_REPLY_URL: "http://generic.test/reply",
                MODEL_PROVIDER: "openai-compatible",
                MODEL_BASE_URL: "http://model.test/v1",
                MODEL_API_KEY: "test-model-key",
                MODEL_NAME: "scripted",
              },
            },
          }),
        ],
        test: { name: "workerd", include: ["test/workerd/**/*.test.ts"], testTimeout: 30_000 },
      },
      {
        test: {
          name: "system",
          include: ["test/system/**/*.test.ts"],
          environment: "node",
          fileParallelism: false,
          testTimeout: 120_000,
          hookTimeout: 120_000,
          // What is polled for comes in milliseconds, and on a busy machine in seconds.
          expect: { poll: { timeout: 10_000 } },
        },
      },
    ],
  },
});
