// Provides the real servers for tests. Tests do not depend on their origin, which is the first available of
//
//   1. PENSTOCK_TEST_<NAME>_URL: an address in the environment; nothing is started;
//   2. service.sh, if its requirements are met;
//   3. a Docker container, if Docker responds;
//   4. nothing: the test is skipped with the reason in its name. PENSTOCK_TEST_REQUIRE=loki,... turns this into a failure.

import { spawnSync } from 'node:child_process'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { command } from '../command.ts'

const script = resolve(import.meta.dirname, 'service.sh')

interface Recipe {
  /** The variable with the address, which is read from the environment and printed by `service.sh NAME up`. */
  readonly variable: string
  readonly docker?: {
    readonly image: string
    readonly port: number
    readonly ready: string
    readonly env?: Record<string, string>
  }
  /** Variables for `service.sh`, such as a version. */
  readonly env?: Readonly<Record<string, string>>
  /** Several test files use it, so a run of all tests shares one server. */
  readonly shared?: true
}

const search = { 'discovery.type': 'single-node' }
const recipes = {
  loki: {
    variable: 'PENSTOCK_TEST_LOKI_URL',
    shared: true,
    env: { LOKI_AUTH: 'true' }, // separates tenants
    docker: { image: 'grafana/loki:3.7.8', port: 3100, ready: '/ready' },
  },
  victorialogs: { variable: 'PENSTOCK_TEST_VICTORIALOGS_URL' },
  opensearch: {
    variable: 'PENSTOCK_TEST_OPENSEARCH_URL',
    shared: true,
    docker: {
      image: 'opensearchproject/opensearch:3.6.0',
      port: 9200,
      ready: '/_cluster/health',
      env: { ...search, DISABLE_SECURITY_PLUGIN: 'true', DISABLE_INSTALL_DEMO_CONFIG: 'true' },
    },
  },
  elasticsearch: {
    variable: 'PENSTOCK_TEST_ELASTICSEARCH_URL',
    docker: {
      image: 'elasticsearch:8.19.21',
      port: 9200,
      ready: '/_cluster/health',
      env: { ...search, 'xpack.security.enabled': 'false' },
    },
  },
  prometheus: { variable: 'PENSTOCK_TEST_PROMETHEUS_URL' },
  influxdb: { variable: 'PENSTOCK_TEST_INFLUXDB_URL' },
  sqs: { variable: 'PENSTOCK_TEST_SQS_ENDPOINT' },
  aws: { variable: 'PENSTOCK_TEST_STS_ENDPOINT' },
  rabbitmq: { variable: 'PENSTOCK_TEST_AMQP_URL' },
  pulsar: { variable: 'PENSTOCK_TEST_PULSAR_URL' },
  victoriametrics: { variable: 'PENSTOCK_TEST_VICTORIAMETRICS_URL' },
  apache: { variable: 'PENSTOCK_TEST_APACHE_STATUS_URL' },
  hec: { variable: 'PENSTOCK_TEST_HEC_URL' },
} as const satisfies Record<string, Recipe>

export type ServiceName = keyof typeof recipes

/** The servers that the tests use, in the order of preparation. */
export const usedServices: readonly ServiceName[] = [
  'prometheus',
  'influxdb',
  'apache',
  'rabbitmq',
  'sqs',
  'aws',
  'opensearch',
  'elasticsearch',
  'pulsar',
  'victoriametrics',
  'victorialogs',
  'hec',
  'loki',
]

/** Commands that the scripts need, with their Debian packages. The scripts look for Java and Go themselves. */
export const servicePackages: Readonly<Record<string, string>> = {
  curl: 'curl',
  openssl: 'openssl',
  python3: 'python3',
  unzip: 'unzip',
  mvn: 'maven',
  java: 'openjdk-17-jre-headless',
  apache2: 'apache2',
  'rabbitmq-server': 'rabbitmq-server',
  flock: 'util-linux',
}

export interface RunningService extends AsyncDisposable {
  readonly url: string
  readonly from: 'environment' | 'here' | 'docker'
  /** Other output of `service.sh`, such as further addresses and certificate files. Only for servers started here. */
  readonly variables: Readonly<Record<string, string>>
}

export interface Service {
  readonly name: ServiceName
  /** The reason why it is unavailable, for the name of a skipped test; undefined if it is available. */
  readonly missing: string | undefined
  start(): Promise<RunningService>
}

/** Determines the origin of a server without starting it. */
export function service(name: ServiceName): Service {
  const recipe: Recipe = recipes[name]
  const address = process.env[recipe.variable]
  if (address !== undefined && address !== '') {
    const running: RunningService = {
      url: address,
      from: 'environment',
      variables: {},
      async [Symbol.asyncDispose]() {},
    }
    return { name, missing: undefined, start: async () => running }
  }
  const installing = process.env['PENSTOCK_TEST_INSTALL'] === '1'
  const have = spawnSync(script, [name, 'have'], { encoding: 'utf8', env: { ...process.env, ...recipe.env } })
  if (have.status === 0 || installing) return { name, missing: undefined, start: () => startHere(name, recipe) }
  if (recipe.docker !== undefined && dockerAnswers())
    return { name, missing: undefined, start: () => startInDocker(recipe) }

  const missing = `${have.stderr?.trim() || `${name}: service.sh cannot run here`}; there is no ${recipe.variable} and no Docker`
  if ((process.env['PENSTOCK_TEST_REQUIRE'] ?? '').split(',').includes(name)) {
    throw new Error(`PENSTOCK_TEST_REQUIRE requires ${name}, which is not available: ${missing}.`)
  }
  return { name, missing, start: () => Promise.reject(new Error(missing)) }
}

/** Restarts a server: connections end, and stored data stays. Only for servers started here. */
export async function restartService(name: ServiceName, running: RunningService): Promise<void> {
  await command(script, [name, 'restart'], { env: { SVC_RUN: running.variables['SVC_RUN'] ?? '' } })
}

/** Stops all servers that were started in a run folder. */
export async function stopServices(folder: string): Promise<void> {
  for (const name of Object.keys(recipes)) await command(script, [name, 'down'], { env: { SVC_RUN: folder } })
}

// The test runner (PENSTOCK_TEST_RUN is its folder) stops shared servers itself. Other servers stop with their test file, because the rest of
// the run needs the CPU.
async function startHere(name: ServiceName, recipe: Recipe): Promise<RunningService> {
  const run = process.env['PENSTOCK_TEST_RUN']
  const folder = run === undefined ? await mkdtemp(join(tmpdir(), 'penstock-service-')) : join(run, 'services')
  if (run === undefined) await chmod(folder, 0o755) // some servers drop root
  const env = { ...recipe.env, SVC_RUN: folder }
  const end = async () => {
    if (run !== undefined && recipe.shared === true) return
    await command(script, [name, 'down'], { env })
    if (run === undefined) await rm(folder, { recursive: true, force: true })
  }
  try {
    const printed = await command(script, [name, 'up'], { env, timeoutMs: 3_600_000 })
    const variables = Object.fromEntries(
      [...printed.matchAll(/\b(\w+)=(\S+)/g)].map(([, variable, value]) => [variable as string, value as string]),
    )
    const url = variables[recipe.variable]
    if (url === undefined) throw new Error(`service.sh ${name} up printed no ${recipe.variable}: ${printed}`)
    return { url, from: 'here', variables, [Symbol.asyncDispose]: end }
  } catch (error) {
    await end().catch(() => {}) // report why it did not start instead
    throw error
  }
}

async function startInDocker(recipe: Recipe): Promise<RunningService> {
  const { docker } = recipe
  if (docker === undefined) throw new Error('There is no image of this server.')
  const { GenericContainer, Wait } = await loadTestcontainers()
  const container = await new GenericContainer(docker.image)
    .withEnvironment(docker.env ?? {})
    .withExposedPorts(docker.port)
    .withWaitStrategy(Wait.forHttp(docker.ready, docker.port).forStatusCode(200))
    .withStartupTimeout(180_000)
    .start()
  return {
    url: `http://${container.getHost()}:${container.getMappedPort(docker.port)}`,
    from: 'docker',
    variables: {},
    async [Symbol.asyncDispose]() {
      await container.stop()
    },
  }
}

// An optional dependency, which npm skips if the installing Node is too old. So it is imported by a name that the compiler does not resolve, and
// the types that are used are declared here.
interface ContainerBuilder {
  withEnvironment(variables: Record<string, string>): ContainerBuilder
  withExposedPorts(port: number): ContainerBuilder
  withWaitStrategy(strategy: unknown): ContainerBuilder
  withStartupTimeout(ms: number): ContainerBuilder
  start(): Promise<{ getHost(): string; getMappedPort(port: number): number; stop(): Promise<unknown> }>
}
interface Testcontainers {
  readonly GenericContainer: new (image: string) => ContainerBuilder
  readonly Wait: { forHttp(path: string, port: number): { forStatusCode(code: number): unknown } }
}
async function loadTestcontainers(): Promise<Testcontainers> {
  const name: string = 'testcontainers'
  return (await import(name)) as Testcontainers
}

function dockerAnswers(): boolean {
  return spawnSync('docker', ['version', '--format', '{{.Server.Version}}'], { timeout: 5000 }).status === 0
}
