// Runs all tests that this machine supports: unit tests, conformance cases, processes, components with real servers, the agent on a real cluster.
// Skipped tests are listed with their reasons. The last line is `N passed, N failed, N skipped`.
//
//   npm test [-- --only unit|conformance|fuzz|processes|integration|e2e|walk|skew]
//
// Real servers and a cluster need packages and builds. As root on Debian, it prints a message and installs them. Otherwise it lists missing
// requirements, and skips their tests. PENSTOCK_TEST_INSTALL=0 forbids installation, and 1 allows it on any system. Packages come first, then
// builds (one large build at a time), then the tests.

import { existsSync } from 'node:fs'
import { chmod, mkdtemp, readFile, rm } from 'node:fs/promises'
import { availableParallelism, tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { runScript } from '@penstock/agent/tools/script'
import { cacheFolder } from './cache.ts'
import { missingForCluster, nodePackages, prepareCluster, present, stopClusters } from './cluster/cluster.ts'
import { execute, root } from './command.ts'
import { registryPackages } from './distribution.ts'
import { ensureGo } from './go.ts'
import { prepareHelm } from './helm.ts'
import { buildImage } from './image.ts'
import { servicePackages, stopServices, usedServices } from './services/service.ts'

/** Recorded cases; all of them must pass. */
const conformance = ['remap', 'wire'] as const

/**
 * Tests on nodes. Only one such cluster can exist at a time, so they run one after another. A test that is missing here still works, but waits
 * for the cluster in parallel with other tests, which takes longer.
 */
const onNodes = [
  'e2e/cluster/cluster.test.ts',
  'e2e/install.test.ts',
  'e2e/node-agent.test.ts',
  'e2e/documents/on-cluster.test.ts',
] as const
/** They take a quarter of an hour, which is too long for a run of all tests; `npm run walk` and `npm run skew` run them. */
const longStages = ['walk', 'skew'] as const
const testOf = (stage: (typeof longStages)[number]) => `e2e/operator/${stage}.test.ts`
/** The shells whose completion is tested; bash is always there. */
const shellPackages = { fish: 'fish', zsh: 'zsh' } as const
/** Number of other tests in parallel, which spend nearly half of their time waiting. */
const workersWithNodes = Math.min(4, 1 + availableParallelism())

/** Time limit for the build of Loki. After it, another store with the same protocol replaces Loki. */
const lokiBuildMs = Number(process.env['PENSTOCK_TEST_LOKI_BUILD_SECS'] ?? 1500) * 1000

interface Score {
  passed: number
  failed: number
  skipped: number
  /** The failed and skipped tests, one line each. */
  readonly failures: string[]
  readonly skips: string[]
}

const stages = ['unit', 'conformance', 'fuzz', 'processes', 'integration', 'e2e'] as const
type Stage = (typeof stages)[number] | (typeof longStages)[number]

const started = Date.now()
const say = (text: string) => console.log(`[${((Date.now() - started) / 1000).toFixed(0)} s] ${text}`)
/** Ends running tests, then servers and clusters, then this process, on Ctrl-C and similar signals. */
const ending = new AbortController()
const newScore = (): Score => ({ passed: 0, failed: 0, skipped: 0, failures: [], skips: [] })

async function main(wanted: readonly string[]): Promise<number> {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      say(`${signal}: ending`)
      ending.abort()
    })
  }
  const run = (stage: Stage) => wanted.includes(stage)
  const long = longStages.filter(run)
  const services = run('integration') || run('e2e') ? usedServices : []
  const isPrepared = services.length > 0 || long.length > 0
  const total = newScore()
  const folder = await mkdtemp(join(tmpdir(), 'penstock-test-'))
  await chmod(folder, 0o755) // some servers drop root
  try {
    if (isPrepared) await prepare(services)
    if (run('unit'))
      add(total, 'unit', await runVitest(folder, 'unit', ['--project', 'agent', '--project', 'operator']))
    if (run('conformance')) add(total, 'conformance', await runConformance())
    // Run two sequences in parallel, because tests mostly wait: tests that need servers and nodes, of which only one of each exists at a time, and
    // other tests. Changed images are built meanwhile.
    const vitest = async (name: string, args: readonly string[]) =>
      add(total, name, await runVitest(folder, name, ['--project', 'e2e', ...args]))
    const images = run('e2e') || long.length > 0 ? buildImages() : undefined
    const shared = async () => {
      if (run('integration')) await vitest('integration', ['e2e/components/'])
      await images
      if (run('e2e')) await vitest('e2e-nodes', onNodes)
      for (const stage of long) await vitest(stage, [testOf(stage)])
    }
    const alone = async () => {
      if (run('fuzz')) add(total, 'fuzz', await runFuzz())
      if (run('processes')) add(total, 'processes', await runVitest(folder, 'processes', ['--project', 'processes']))
      const without = ['e2e/components/**', ...onNodes, ...longStages.map(testOf)].flatMap((path) => [
        '--exclude',
        path,
      ])
      const some = ['--fileParallelism', '--maxWorkers', String(workersWithNodes), ...without]
      if (run('e2e')) await vitest('e2e-others', some)
    }
    await Promise.all([shared(), alone()])
  } catch (error) {
    total.failed++
    total.failures.push(`the run itself: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`)
  } finally {
    if (isPrepared) {
      await stopServices(join(folder, 'services'))
      await stopClusters(folder)
    }
    await rm(folder, { recursive: true, force: true })
  }
  for (const line of total.skips) console.log(`skipped: ${line}`)
  for (const line of total.failures) console.log(`failed: ${line}`)
  say('done')
  console.log(`${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped`)
  return total.failed > 0 ? 1 : 0
}

function add(total: Score, part: string, score: Score): void {
  total.passed += score.passed
  total.failed += score.failed
  total.skipped += score.skipped
  total.failures.push(...score.failures)
  total.skips.push(...score.skips)
  say(`${part}: ${score.passed} passed, ${score.failed} failed, ${score.skipped} skipped`)
}

// --- Requirements of the tests ---

/** Installs packages, and builds helm, the cluster, then the services that tests use. */
async function prepare(services: typeof usedServices): Promise<void> {
  const setting = process.env['PENSTOCK_TEST_INSTALL']
  const debianRoot = process.getuid?.() === 0 && existsSync('/etc/debian_version') && present('apt-get')
  const allowed = setting === '1' || (setting === undefined && debianRoot)
  const absent = Object.entries({
    ...nodePackages,
    ...(services.length === 0 ? {} : { ...servicePackages, ...registryPackages, ...shellPackages }),
    go: 'golang-go',
  }).filter(([name]) => !present(name))
  const packages = [...new Set(absent.map(([, name]) => name))].sort()
  if (allowed && debianRoot && packages.length > 0) {
    say(`Installing Debian packages: ${packages.join(' ')} (PENSTOCK_TEST_INSTALL=0 forbids it)`)
    const env = { DEBIAN_FRONTEND: 'noninteractive' }
    const update = await execute('apt-get', ['-q', 'update'], { env })
    const install = ['-q', 'install', '-y', '--no-install-recommends', '--no-remove', ...packages]
    const result = await execute('apt-get', install, { env, timeoutMs: 1_200_000 })
    if (result.code !== 0) say(`apt-get failed: ${(update.stderr + result.stderr).slice(-1000)}`)
  } else if (packages.length > 0) {
    say(`Missing packages, which this run does not install: ${packages.join(' ')}`)
  }

  if (allowed) {
    await ensureGo().catch((error) => say(`Go: ${error instanceof Error ? error.message : error}`))
    say(`Building helm in ${cacheFolder} unless it exists`)
    await prepareHelm({ show: true }).catch((error) => say(`helm is not available: ${error}`))
    const clusterMissing = missingForCluster(1)
    if (clusterMissing === undefined) {
      say(`Building the programs of the cluster in ${cacheFolder} unless they exist (takes some minutes once)`)
      await prepareCluster(1, { show: true }).catch((error) => say(`The cluster could not be built: ${error}`))
    } else {
      say(`No cluster: ${clusterMissing}`)
    }
    if (services.length > 0) say(`Fetching or building ${services.join(', ')} in ${cacheFolder} unless they exist`)
    for (const name of services) {
      const limit = name === 'loki' ? lokiBuildMs : 1_200_000
      if ((await install(name, limit)) || name !== 'loki') continue
      say('Loki is not available in time; VictoriaLogs replaces it')
      await install('victorialogs', 1_200_000)
    }
  }
  // From here on, nothing is downloaded or built, and tests without their requirements are skipped.
  process.env['PENSTOCK_TEST_INSTALL'] = '0'
  say('Ready to test')
}

/** Building changed images takes some minutes, in parallel with tests that wait. */
async function buildImages(): Promise<void> {
  if (missingForCluster(1) !== undefined) return
  try {
    for (const name of ['operator', 'agent'] as const) await buildImage(name, ending.signal)
  } catch (error) {
    // Tests that need it try again, and fail with the reason.
    say(`The image could not be built: ${error instanceof Error ? error.message : error}`)
  }
}

async function install(name: string, limitMs: number): Promise<boolean> {
  const script = resolve(root, 'e2e/services/service.sh')
  const env = { PENSTOCK_TEST_INSTALL: '1' }
  const seconds = String(Math.ceil(limitMs / 1000))
  const result = await execute('timeout', ['--kill-after=5', seconds, script, name, 'install'], {
    env,
    timeoutMs: limitMs + 30_000,
  })
  if (result.code !== 0)
    say(`${name} is not available: ${result.stderr.trim().slice(-1000) || `no result in ${seconds} s`}`)
  return result.code === 0
}

// --- Vitest ---

interface VitestReport {
  readonly testResults: readonly {
    readonly name: string
    readonly status: string
    readonly message: string
    readonly assertionResults: readonly {
      readonly status: 'passed' | 'failed' | 'pending' | 'skipped' | 'todo' | 'disabled'
      readonly fullName: string
      readonly failureMessages: readonly string[] | null
    }[]
  }[]
}

async function runVitest(folder: string, part: string, args: readonly string[]): Promise<Score> {
  say(`${part}: vitest`)
  const file = join(folder, `${part}.json`)
  const result = await execute(
    process.execPath,
    [
      ...['node_modules/vitest/vitest.mjs', 'run', '--config', '.vitest.ts', '--passWithNoTests'],
      ...['--reporter', 'default', '--reporter', 'json', '--outputFile.json', file],
      ...args,
    ],
    { show: true, timeoutMs: 3_000_000, env: { PENSTOCK_TEST_RUN: folder }, signal: ending.signal },
  )
  const score = newScore()
  const text = await readFile(file, 'utf8').catch(() => undefined)
  if (text === undefined) {
    if (result.code !== 0 || !`${result.stdout}${result.stderr}`.includes('No test files found')) {
      score.failed++
      score.failures.push(`${part}: vitest ended with ${result.code ?? result.signal} and without a report`)
    }
    return score
  }
  const report = JSON.parse(text) as VitestReport
  for (const { name, status, message, assertionResults } of report.testResults) {
    const path = name.startsWith(root) ? name.slice(root.length + 1) : name
    let failed = false
    for (const test of assertionResults) {
      if (test.status === 'passed') {
        score.passed++
      } else if (test.status === 'failed') {
        failed = true
        score.failed++
        const reason = test.failureMessages?.[0]?.split('\n')[0] ?? ''
        score.failures.push(`${path}: ${test.fullName}: ${reason.slice(0, 400)}`)
      } else {
        score.skipped++
        score.skips.push(`${path}: ${test.fullName}`)
      }
    }
    if (status === 'failed' && !failed) {
      score.failed++ // a file that could not be loaded, or a hook that failed
      score.failures.push(`${path}: ${message.split('\n')[0]?.slice(0, 400)}`)
    }
  }
  if (result.code !== 0 && score.failed === 0) {
    score.failed++
    score.failures.push(`${part}: vitest ended with ${result.code ?? result.signal}, such as for an unhandled error`)
  }
  return score
}

// --- Conformance ---

async function runConformance(): Promise<Score> {
  const score = newScore()
  for (const kind of conformance) {
    say(`conformance: ${kind}`)
    const args = ['run', '--silent', 'conformance', '--', kind, `e2e/conformance/${kind}`]
    const result = await execute('npm', args, { show: true, timeoutMs: 600_000, signal: ending.signal })
    const counts = /(\d+) passed, (\d+) failed\s*$/.exec(result.stdout.trimEnd())
    score.passed += Number(counts?.[1] ?? 0)
    score.failed += Number(counts?.[2] ?? 0)
    if (counts?.[2] !== '0')
      score.failures.push(`conformance ${kind}: ${counts?.[0] ?? `no result (exit ${result.code})`}`)
    if (counts === null || (result.code !== 0 && counts[2] === '0')) score.failed++
  }
  return score
}

// --- Fuzzing ---

/**
 * Each of these counts as one test: 40,000 generated programs (about a minute), which must match a simple evaluator, and generated
 * Pipelines of a hostile tenant. The cases are the same each time, so a failure is caused by a change; when run manually, both use new
 * cases. The programs for the two lanes are new in each run, and the seed is printed.
 */
const fuzzers = [
  { script: 'fuzz', args: ['--cases', '40000', '--seconds', '1200', '--seed', '20260101'] },
  { script: 'fuzz:lanes', args: ['--seconds', '30'] },
  { script: 'fuzz:tenants', args: ['--cases', '20000', '--seed', '20260101'] },
] as const

async function runFuzz(): Promise<Score> {
  const score = newScore()
  for (const { script, args } of fuzzers) {
    say(script)
    const command = ['run', '--silent', script, '--', ...args]
    // On a ten times slower machine, the Pipelines take some minutes.
    const result = await execute('npm', command, { show: true, timeoutMs: 1_800_000, signal: ending.signal })
    if (result.code === 0) score.passed++
    else {
      score.failed++
      score.failures.push(`${script}: the seed and the case are printed above (exit ${result.code ?? result.signal})`)
    }
  }
  return score
}

await runScript({
  call: 'npm test --',
  about: 'Runs all tests that this machine supports. The last line is `N passed, N failed, N skipped`.',
  flags: {
    only: {
      type: 'string',
      multiple: true,
      oneOf: [...stages, ...longStages],
      value: 'STAGE',
      help: `Only this stage: ${stages.join(', ')}, or ${longStages.join(' and ')}, which run only on demand. Can be repeated.`,
    },
  },
  run: ({ flags: { only } }) => main(only.length > 0 ? only : stages),
})
