import { availableParallelism } from 'node:os'
import { configDefaults, defineConfig } from 'vitest/config'

// The workspaces import each other by name; in development the names resolve to the sources.
const resolve = { conditions: ['source'] }
const ssr = { resolve }

/** Long timeouts, because machines can be slow: they only end tests that hang. */
const patience = { testTimeout: 180_000, hookTimeout: 180_000 }

/** Long timeouts for conditions that tests wait for; the file sets that of `vi.waitFor`. */
const waits = { setupFiles: ['./agent/src/testing/patience.ts'], expect: { poll: { timeout: 120_000 } } }

/** Tests that start whole processes of the agent or of the command, or load every module of it: each start costs a second of CPU time. */
const processes = '**/*.process.test.ts'
const startsPatience = { testTimeout: 600_000, hookTimeout: 600_000 }
const exclude = [...configDefaults.exclude, processes]

export default defineConfig({
  test: {
    // Many tests wait for their own servers and processes, so one worker for each core would leave the cores idle.
    maxWorkers: Math.max(3, availableParallelism()),
    projects: [
      {
        resolve,
        ssr,
        test: {
          name: 'agent',
          include: ['agent/src/**/*.test.ts'],
          exclude,
          maxConcurrency: 20,
          ...patience,
          ...waits,
        },
      },
      {
        resolve,
        ssr,
        test: { name: 'operator', include: ['operator/src/**/*.test.ts'], exclude, ...patience, ...waits },
      },
      {
        resolve,
        ssr,
        test: { name: 'processes', include: [`{agent,operator}/src/${processes}`], ...startsPatience, ...waits },
      },
      {
        resolve,
        ssr,
        test: {
          name: 'e2e',
          include: ['e2e/**/*.test.ts'],
          testTimeout: 600_000,
          hookTimeout: 600_000,
          fileParallelism: false,
        },
      },
    ],
  },
})
