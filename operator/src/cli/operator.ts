// `penstock operator`: reconciles a cluster with its resources. One process leads and writes; the others serve probes, webhooks and
// agents, and take over when it ends.

import { hostname } from 'node:os'
import { PenstockError } from '@penstock/agent/errors'
import { aborted, giveBackFreeBlocks, version } from '@penstock/agent/program'
import { createLogger, type Logger } from '@penstock/agent/telemetry'
import { collectDefaultMetrics, Registry } from 'prom-client'
import { kinds } from '../api/kinds.ts'
import type { CustomResource, ResourceType } from '../api/object.ts'
import { CompilePool } from '../compile/pool.ts'
import { namespacesOf, type OperatorContext, type OperatorPart, type OperatorSettings } from '../context.ts'
import { Artifacts } from '../controllers/artifacts.ts'
import { ControllerMetrics } from '../controllers/controller.ts'
import { defaultsPart } from '../controllers/defaults.ts'
import { orphanPart } from '../controllers/orphans.ts'
import { pipelinePart } from '../controllers/pipeline.ts'
import { Statuses, type StatusObject } from '../controllers/status.ts'
import { createKubeClient, guarded, type KubeClient } from '../kube/client.ts'
import { KubeConnection } from '../kube/connection.ts'
import { EventWriter } from '../kube/events.ts'
import { LeaderElection } from '../kube/leader.ts'
import { LocalReviews } from '../kube/local-reviews.ts'
import { ReportedReviews, type Reviews, serverReviews } from '../kube/reviews.ts'
import { serverVersion } from '../kube/server-version.ts'
import { SharedCaches } from '../kube/shared-caches.ts'
import { ApiAddresses, apiAddressesPart } from '../policy/api-addresses.ts'
import { judgeOf } from '../policy/judge.ts'
import { followCertificatePart, keepCertificatesPart, OperatorCertificate } from '../serving/certificates.ts'
import { type ProbeOptions, ProbeServer } from '../serving/probes.ts'
import { type ClientAuthority, webhookPart } from '../webhook/server.ts'
import { followTokensPart, keepTokensPart, WebhookTokens } from '../webhook/tokens.ts'
import { parseFlags } from './arguments.ts'
import { checkClusterVersion } from './cluster-version.ts'
import { deliveryParts } from './delivery-parts.ts'
import { limited } from './ending.ts'
import { eventLoopDelay } from './event-loop-delay.ts'
import { flagsOf, type OperatorFlagValues, options, usage } from './operator-flags.ts'
import { Rights } from './rights.ts'
import { stateMetrics } from './state-metrics.ts'

export { options, usage }

/** The parts that handle admission: they write nothing except the authors of ClusterPipelines. */
const webhookParts: readonly string[] = ['compiler', 'certificate', 'webhook-token', 'webhook']

/** Requests of a thousand agents leave small blocks everywhere in memory; half of the space between them is free. */
const freeingMs = 5000

/**
 * @param webhooksOnly whether the process only handles admission: it then writes none of the leader's objects, and
 * needs no leadership
 */
export async function run(argv: string[], { webhooksOnly = false } = {}): Promise<number> {
  const { flags: given } = parseFlags(argv, options)
  const values = webhooksOnly ? { ...given, 'leader-election': 'false' as const, 'heartbeat-address': '' } : given
  if (webhooksOnly && values['webhook-address'] === '')
    throw new PenstockError('PEN_USAGE', '`penstock webhook` needs `--webhook-address`, such as 0.0.0.0:9444.')
  const flags = flagsOf(values)
  const logger = createLogger({ level: flags.logLevel, format: flags.logFormat })
  // A failure in one part must not end all the others; it is logged, and the part retries.
  process.on('unhandledRejection', (error) => logger.error({ error }, 'Unhandled promise rejection.'))
  const stop = new AbortController()
  const end = () => stop.abort()
  process.once('SIGTERM', end)
  process.once('SIGINT', end)
  const freeing = setInterval(giveBackFreeBlocks, freeingMs, logger)
  freeing.unref()
  try {
    return await operate(flags, logger, stop, webhooksOnly)
  } finally {
    clearInterval(freeing)
    process.off('SIGTERM', end)
    process.off('SIGINT', end)
  }
}

async function operate(
  flags: OperatorFlagValues,
  logger: Logger,
  stop: AbortController,
  webhooksOnly: boolean,
): Promise<number> {
  const base = await connected(flags, logger, stop)
  const settings = await settled(base)
  if (settings === undefined) {
    base.connection.close()
    return 0
  }
  const operator = assembled(base, settings, webhooksOnly)
  const started = new AsyncDisposableStack()
  const leading = new AsyncDisposableStack()
  try {
    await serve(operator, started)
    await lead(operator, leading)
    await aborted(stop.signal)
    logger.info(operator.claim.isLost ? 'The leadership is lost; the process exits.' : 'The operator ends.')
  } finally {
    await end(operator, started, leading)
  }
  // Remaining threads and timers must not keep a process alive that may no longer write.
  if (operator.claim.isLost) process.exit(1)
  return 0
}

/** The claim of this process to write. */
interface Claim {
  election: LeaderElection | undefined
  /** Set when the process must exit without a stop signal. */
  isLost: boolean
}

/** A process that can send requests but has not started anything yet. */
interface Connected {
  readonly flags: OperatorFlagValues
  readonly logger: Logger
  readonly stop: AbortController
  /** Reflectors and servers run until the end; the leader's parts stop before them. */
  readonly closing: AbortController
  readonly connection: KubeConnection
  readonly given: OperatorSettings
  readonly metrics: Registry
  readonly delay: ReturnType<typeof eventLoopDelay>
  readonly client: KubeClient
  readonly reviews: Reviews
  /** For an operator that only has Roles. */
  readonly rights: Rights | undefined
  readonly claim: Claim
}

async function connected(flags: OperatorFlagValues, logger: Logger, stop: AbortController): Promise<Connected> {
  const connection = await KubeConnection.open(flags.connection)
  const given = flags.settings(connection.namespace)
  const metrics = new Registry()
  collectDefaultMetrics({ register: metrics })
  const delay = eventLoopDelay(metrics)
  const { perSecond, burst } = flags
  const client = createKubeClient(connection, { metrics, logger, perSecond, burst })
  const reviews = new ReportedReviews(reviewsOf(given, connection, client, logger), metrics, logger)
  const rights = given.rolesOnly ? new Rights(client, given, logger) : undefined
  const claim: Claim = { election: undefined, isLost: false }
  const closing = new AbortController()
  return { flags, logger, stop, closing, connection, given, metrics, delay, client, reviews, rights, claim }
}

function probesOf(
  { given, reviews, metrics, logger }: Connected,
  probes: Pick<ProbeOptions, 'health' | 'readiness'>,
): ProbeServer {
  return new ProbeServer({ address: given.httpAddress, reviews, metrics, logger, ...probes })
}

/** The effective settings; undefined if the process must exit before it has its rights. */
async function settled(base: Connected): Promise<OperatorSettings | undefined> {
  const { given, rights, stop } = base
  if (rights === undefined) return given
  return withRights(given, rights, (probes) => probesOf(base, probes), stop.signal)
}

/** All parts of the operator, not started yet. */
interface Assembled extends Connected {
  readonly settings: OperatorSettings
  readonly caches: SharedCaches
  readonly events: EventWriter
  readonly statuses: Statuses
  readonly leaderClient: KubeClient
  readonly context: OperatorContext
  readonly parts: readonly OperatorPart[]
}

function assembled(base: Connected, settings: OperatorSettings, webhooksOnly: boolean): Assembled {
  const { flags, logger, closing, connection, metrics, client, reviews, rights, claim } = base
  const isLeader = () => claim.election === undefined || claim.election.leads
  const { signal } = closing
  // Agents and the installation's resources are watched too, in addition to the namespaces of Pipelines.
  const namespaces = namespacesOf(settings)
  const { rolesOnly } = settings
  const caches = new SharedCaches({ kube: client, logger, metrics, signal, namespaces, rolesOnly })
  const controllerMetrics = new ControllerMetrics(metrics)
  const isWatched = (kind: ResourceType) => kind.namespaced || settings.watchNamespaces === undefined
  stateMetrics(metrics, (kind) =>
    isWatched(kind) ? caches.cache<CustomResource<unknown, unknown>>(kind).values() : undefined,
  )
  const identity = identityOf(settings)
  const leaderClient = guarded(client, isLeader)
  const events = new EventWriter({
    kube: leaderClient.as('events'),
    logger,
    instance: identity,
    signal,
    mayWrite: isLeader,
  })
  const cluster = settings.watchNamespaces === undefined
  if (!cluster) {
    const facts = { namespaces: settings.watchNamespaces, left_out: rights?.leftOut }
    const message =
      'Watching single namespaces: ClusterPipelines, ClusterSources, ClusterSinks and TenantPolicies are disabled.'
    logger.info(facts, message)
  }
  const statuses = new Statuses({
    kube: leaderClient.as('status'),
    cacheOf: (kind) => (kind.namespaced || cluster ? caches.cache<StatusObject>(kind) : undefined),
    events,
    logger,
    metrics: controllerMetrics,
    signal,
    periodMs: flags.statusPeriodMs,
  })
  const artifacts = new Artifacts()
  const context: OperatorContext = {
    kube: client,
    reviews,
    caches,
    artifacts,
    status: statuses,
    events,
    logger,
    metrics,
    settings,
    signal,
    isLeader,
    leader: () => (claim.election === undefined ? identity : claim.election.leader),
  }
  const { hostname } = new URL(connection.access.server)
  const apiAddresses = new ApiAddresses([hostname, process.env['KUBERNETES_SERVICE_HOST'] ?? ''])
  const parts = partsOf(settings, artifacts, controllerMetrics, apiAddresses, flags.webhookClients, logger).filter(
    (part) => !webhooksOnly || webhookParts.includes(part.name),
  )
  // Looked up by name, so that readiness waits for them even on replicas that do not lead.
  for (const kind of kinds) if (kind.namespaced || cluster) caches.cache(kind)
  return { ...base, settings, caches, events, statuses, leaderClient, context, parts }
}

/**
 * Starts the parts of every replica: probes, the election, and, once the caches are full, the parts that need no leader.
 */
async function serve(operator: Assembled, started: AsyncDisposableStack): Promise<void> {
  const { settings, caches, stop, logger, connection, claim, rights, context, parts } = operator
  let partsReady = false
  if (settings.httpAddress !== '') {
    const probes = probesOf(operator, {
      health: () => {
        const stuck = caches.stuck()
        return stuck.length === 0 ? undefined : `no progress for 15 minutes: ${stuck.join(', ')}`
      },
      readiness: () =>
        stop.signal.aborted ? 'ending' : caches.isSynced && partsReady ? undefined : unsyncedText(caches.unsynced),
    })
    started.use(await probes.open())
    logger.info({ port: probes.port, version }, 'The operator has started.')
  }
  if (settings.leaderElection) {
    claim.election = new LeaderElection({
      connection,
      namespace: settings.namespace,
      name: 'penstock-operator',
      identity: identityOf(settings),
      logger,
      onLost: () => {
        claim.isLost = true
        stop.abort()
      },
    })
  }
  checkClusterVersion(await serverVersion(context.kube.as('version'), logger, stop.signal), logger)
  await untilSynced(caches, stop.signal)
  const isIncomplete = rights !== undefined && rights.leftOut.length > 0
  const all = isIncomplete ? [...parts, rights.part(() => stop.abort())] : parts
  for (const part of all) if (!part.leaderOnly) started.use(await part.start(context))
  partsReady = true
}

/** Names the resources, because one of them may be the reason: the API server cannot return it, or a right is missing. */
const unsyncedText = (resources: readonly string[]) =>
  resources.length === 0 ? 'starting' : `these resources have not been read yet: ${resources.join(', ')}`

/** Waits until this process leads, and starts the leader's parts. */
async function lead(
  { claim, stop, context, leaderClient, statuses, parts, logger }: Assembled,
  leading: AsyncDisposableStack,
): Promise<void> {
  const isElected = claim.election === undefined || (await claim.election.elected(stop.signal))
  if (!isElected || stop.signal.aborted) return
  const leaderContext: OperatorContext = { ...context, kube: leaderClient }
  leading.use(statuses.start())
  for (const part of parts) {
    if (stop.signal.aborted) break
    if (part.leaderOnly) leading.use(await part.start(leaderContext))
  }
  if (!stop.signal.aborted) logger.info({ parts: parts.map((part) => part.name) }, 'All controllers run.')
}

/** Stops the leader's parts first, and the parts that they need for writing last. */
async function end(
  { claim, events, closing, delay, connection, logger }: Assembled,
  started: AsyncDisposableStack,
  leading: AsyncDisposableStack,
): Promise<void> {
  // A process that has lost its claim must exit without delay.
  if (!claim.isLost) {
    await limited(
      leading.disposeAsync().then(() => events.settled()),
      logger,
    )
  }
  closing.abort()
  await limited(started.disposeAsync(), logger)
  await claim.election?.[Symbol.asyncDispose]()
  delay.disable()
  connection.close()
}

/** The settings with the accessible namespaces; undefined if the process must exit before there are any. */
async function withRights(
  settings: OperatorSettings,
  rights: Rights,
  probesWith: (probes: Pick<ProbeOptions, 'health' | 'readiness'>) => ProbeServer,
  signal: AbortSignal,
): Promise<OperatorSettings | undefined> {
  // While it waits, it is alive but not ready.
  const probes = probesWith({ health: () => undefined, readiness: () => 'RBAC permissions are missing; see the log' })
  await using _ = settings.httpAddress === '' ? probes : await probes.open()
  try {
    return { ...settings, watchNamespaces: await rights.granted(signal) }
  } catch (error) {
    if (signal.aborted) return undefined
    throw error
  }
}

function reviewsOf(
  settings: OperatorSettings,
  connection: KubeConnection,
  client: KubeClient,
  logger: Logger,
): Reviews {
  const kube = client.as('reviews')
  if (!settings.rolesOnly) return serverReviews(kube)
  return new LocalReviews({
    kube,
    logger,
    namespace: settings.namespace,
    namespaces: namespacesOf(settings) ?? [],
    ownToken: () => /^Bearer (\S+)$/i.exec(String(connection.access.headers['authorization'] ?? ''))?.[1],
  })
}

function partsOf(
  settings: OperatorSettings,
  artifacts: Artifacts,
  metrics: ControllerMetrics,
  apiAddresses: ApiAddresses,
  webhookClients: ClientAuthority | undefined,
  logger: Logger,
): readonly OperatorPart[] {
  const certificate = new OperatorCertificate()
  const pool = new CompilePool({ logger })
  const tokens = new WebhookTokens()
  // A certificate is needed if other machines connect.
  const secure = [settings.heartbeatAddress, settings.webhookAddress].some(
    (address) => address !== '' && !isLoopback(address),
  )
  return [
    { name: 'compiler', leaderOnly: false, start: async () => pool },
    // Roles cannot grant access to the endpoints.
    ...(settings.watchNamespaces === undefined ? [apiAddressesPart(apiAddresses)] : []),
    ...(secure ? [keepCertificatesPart(certificate), followCertificatePart(certificate)] : []),
    // An operator with only Roles has no webhooks; otherwise other pods may serve them, and the leader registers them.
    ...(secure && !settings.rolesOnly ? [keepTokensPart(tokens)] : []),
    ...(settings.webhookAddress === ''
      ? []
      : [
          followTokensPart(tokens),
          webhookPart(certificate, {
            tokens,
            clients: webhookClients,
            judge: (context) => judgeOf(context, apiAddresses, pool),
            workloadInput: ({ settings }) => ({
              image: settings.agentImage,
              operatorUrl: settings.heartbeatUrl,
              operatorNamespace: settings.namespace,
            }),
          }),
        ]),
    pipelinePart({ artifacts, metrics, apiAddresses, pool }),
    ...deliveryParts({
      metrics,
      heartbeatPeriodMs: settings.heartbeatPeriodMs,
      certificate,
      apiAddresses,
    }),
    defaultsPart(metrics),
    orphanPart(),
  ]
}

/** `penstock-operator-abc@10.0.0.7:9443`: unique, and reachable by other replicas. */
function identityOf(settings: OperatorSettings): string {
  const name = process.env['POD_NAME'] ?? `${hostname()}-${process.pid}`
  const port = /:(\d+)$/.exec(settings.heartbeatAddress)?.[1]
  if (port === undefined) return name
  const address = process.env['POD_IP'] ?? '127.0.0.1'
  return `${name}@${address.includes(':') ? `[${address}]` : address}:${port}`
}

function isLoopback(address: string): boolean {
  return /^(127\.\d+\.\d+\.\d+|\[::1\]|localhost):\d+$/.test(address)
}

async function untilSynced(caches: SharedCaches, signal: AbortSignal): Promise<void> {
  try {
    await caches.synced(signal)
  } catch (error) {
    if (!signal.aborted) throw error
  }
}
