// Everything that this machine can run: unit tests, conformance cases, whole processes, components against real servers, the
// agent on a real cluster. The last line is `N passed, N failed, N skipped`; what is skipped is listed with its reason.
//
//   npm test [-- --only unit|conformance|fuzz|processes|integration|e2e]
//
// Real servers and a cluster need packages and builds. As root on Debian they are installed, after saying so; elsewhere
// what is missing is named and its tests are skipped. PENSTOCK_TEST_INSTALL=0 forbids installing, 1 allows it anywhere.
// Packages come first, then builds (one large build at a time), then the tests.

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
 * Tests on nodes: one such cluster exists at a time, so they run one after the other. A test that is not named here waits for the
 * cluster beside the others, which takes longer but is correct.
 */
const onNodes = ['e2e/install.test.ts', 'e2e/node-agent.test.ts', 'e2e/documents/on-cluster.test.ts'] as const
/** Ten minutes more, for which a run of all tests has no room: `npm run walk` starts it. */
const byItself = 'e2e/operator/walk.test.ts'
/** Other tests at once beside them: they wait for something nearly half of the time. */
const besideNodes = Math.min(4, 1 + availableParallelism())

/** Loki's build is long: past this time another store that speaks its protocol stands in. */
const lokiBuildMs = Number(process.env['PENSTOCK_TEST_LOKI_BUILD_SECS'] ?? 1500) * 1000

interface Score {
  passed: number
  failed: number
  skipped: number
  /** The failed and skipped tests, a line each. */
  readonly failures: string[]
  readonly skips: string[]
}

const stages = ['unit', 'conformance', 'fuzz', 'processes', 'integration', 'e2e'] as const
type Stage = (typeof stages)[number]

const started = Date.now()
const say = (text: string) => console.log(`[${((Date.now() - started) / 1000).toFixed(0)} s] ${text}`)
/** Ctrl-C and the like: what runs is ended, then servers and clusters, then this process. */
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
  const total = newScore()
  const folder = await mkdtemp(join(tmpdir(), 'penstock-test-'))
  await chmod(folder, 0o755) // some servers drop root
  try {
    if (run('integration') || run('e2e')) await prepare()
    if (run('unit'))
      add(total, 'unit', await runVitest(folder, 'unit', ['--project', 'agent', '--project', 'operator']))
    if (run('conformance')) add(total, 'conformance', await runConformance())
    // Two parallel rows, because tests mostly wait: tests that need servers and nodes, of which one of each exists at a time, and tests
    // that need neither. Changed images are built meanwhile.
    const vitest = async (name: string, args: readonly string[]) =>
      add(total, name, await runVitest(folder, name, ['--project', 'e2e', ...args]))
    const images = run('e2e') ? buildImages() : undefined
    const shared = async () => {
      if (run('integration')) await vitest('integration', ['e2e/components/'])
      await images
      if (run('e2e')) await vitest('e2e-nodes', onNodes)
    }
    const alone = async () => {
      if (run('fuzz')) add(total, 'fuzz', await runFuzz())
      if (run('processes')) add(total, 'processes', await runVitest(folder, 'processes', ['--project', 'processes']))
      const without = ['e2e/components/**', ...onNodes, byItself].flatMap((path) => ['--exclude', path])
      const some = ['--fileParallelism', '--maxWorkers', String(besideNodes), ...without]
      if (run('e2e')) await vitest('e2e-others', some)
    }
    await Promise.all([shared(), alone()])
  } catch (error) {
    total.failed++
    total.failures.push(`the run itself: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`)
  } finally {
    if (run('integration') || run('e2e')) {
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

async function prepare(): Promise<void> {
  const setting = process.env['PENSTOCK_TEST_INSTALL']
  const debianRoot = process.getuid?.() === 0 && existsSync('/etc/debian_version') && present('apt-get')
  const allowed = setting === '1' || (setting === undefined && debianRoot)
  const absent = Object.entries({
    ...{ ...nodePackages, ...servicePackages, ...registryPackages },
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
    say(`Missing, and not installed by this run: ${packages.join(' ')}`)
  }

  if (allowed) {
    await ensureGo().catch((error) => say(`Go: ${error instanceof Error ? error.message : error}`))
    say(`Building helm into ${cacheFolder}, unless it is there`)
    await prepareHelm({ show: true }).catch((error) => say(`There is no helm: ${error}`))
    const clusterMissing = missingForCluster(1)
    if (clusterMissing === undefined) {
      say(`Building the programs of the cluster into ${cacheFolder}, unless they are there (some minutes once)`)
      await prepareCluster(1, { show: true }).catch((error) => say(`The cluster could not be built: ${error}`))
    } else {
      say(`No cluster: ${clusterMissing}`)
    }
    say(`Fetching or building ${usedServices.join(', ')} into ${cacheFolder}, unless they are there`)
    for (const name of usedServices) {
      const limit = name === 'loki' ? lokiBuildMs : 1_200_000
      if ((await install(name, limit)) || name !== 'loki') continue
      say('There is no Loki in time: VictoriaLogs stands in for it')
      await install('victorialogs', 1_200_000)
    }
  }
  // From here on nothing is fetched or built: a test that lacks something is skipped.
  process.env['PENSTOCK_TEST_INSTALL'] = '0'
  say('Ready to test')
}

/** The project's images take some minutes when something has changed, which pass beside tests that wait. */
async function buildImages(): Promise<void> {
  if (missingForCluster(1) !== undefined) return
  try {
    for (const name of ['operator', 'agent'] as const) await buildImage(name, ending.signal)
  } catch (error) {
    // The tests that need it try again, and fail with the reason.
    say(`There is no image yet: ${error instanceof Error ? error.message : error}`)
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
 * Each counts as one test: a minute of generated programs, which must match a plain evaluator, and generated Pipelines of a hostile
 * tenant through compile and render. They are the same each time, so a failure comes from a change; by hand, both use new ones each
 * time. The programs for the byte lane and for objects are new in each run: the seed is printed.
 */
const fuzzers = [
  { script: 'fuzz', args: ['--seconds', '60', '--seed', '20260101'] },
  { script: 'fuzz:lanes', args: ['--seconds', '30'] },
  { script: 'fuzz:tenants', args: ['--cases', '20000', '--seed', '20260101'] },
] as const

async function runFuzz(): Promise<Score> {
  const score = newScore()
  for (const { script, args } of fuzzers) {
    say(script)
    const command = ['run', '--silent', script, '--', ...args]
    // On a machine that is ten times slower the Pipelines take some minutes.
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
  about: 'Everything that this machine can run. The last line is `N passed, N failed, N skipped`.',
  flags: {
    only: {
      type: 'string',
      multiple: true,
      oneOf: stages,
      value: 'STAGE',
      help: `Of ${stages.join(', ')}; may be repeated.`,
    },
  },
  run: ({ flags: { only } }) => main(only.length > 0 ? only : stages),
})
