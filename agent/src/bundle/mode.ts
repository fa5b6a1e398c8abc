// The agent as a pod of an operator: builds a runner, a heartbeat and the objects that they share from flags and
// environment.

import { randomBytes } from 'node:crypto'
import { isIP } from 'node:net'
import type { ApiOptions } from '../api/server.ts'
import type { Config } from '../config/config.ts'
import { loadConfigObject } from '../config/load.ts'
import { PenstockError } from '../errors.ts'
import { ApiServerClient } from '../kube/client.ts'
import { inClusterTarget, type KubeTarget, kubeConfigTarget } from '../kube/config.ts'
import { PodLogHub } from '../sources/orchestrator_logs/hub.ts'
import { CountedEvents } from '../telemetry/component-events.ts'
import type { Logger } from '../telemetry/logger.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { RepetitionLimit } from '../telemetry/repetition-limit.ts'
import type { Topology, TopologyOptions } from '../topology/run.ts'
import { version } from '../version.ts'
import { askOperator, askServer, ReaderAccess } from './access.ts'
import { unwritable } from './data-folder.ts'
import { Election } from './election.ts'
import { startSpreadIn } from './folder.ts'
import { Heartbeat, useOf } from './heartbeat.ts'
import { InquiryAnswers } from './inquiries.ts'
import { Leftovers } from './leftovers.ts'
import { type OperatorAddress, OperatorClient } from './operator-client.ts'
import { BundleRunner } from './runner.ts'
import { Sidecar } from './sidecar.ts'
import { BundleStream } from './stream.ts'

export interface BundleFlags {
  readonly bundle: string
  readonly secrets: string | undefined
  readonly operator: string | undefined
  readonly 'operator-token': string | undefined
  readonly 'operator-ca': string | undefined
  readonly 'data-dir': string | undefined
  readonly 'logs-dir': string | undefined
  readonly 'kube-config': string | undefined
  readonly 'api-address': string | undefined
  readonly 'metric-prefix': string | undefined
  readonly 'log-volume': string | undefined
  readonly 'log-paths': string | undefined
  readonly pipelines: string | undefined
  readonly 'drain-seconds': number | undefined
  readonly 'removed-drain-seconds': number | undefined
  readonly 'leftover-seconds': number | undefined
  readonly 'max-rotated-files': number | undefined
  readonly 'kubelet-address': string | undefined
  readonly namespaces: string | undefined
  readonly drain: boolean | undefined
  readonly lease: string | undefined
}

const accountFolder = '/var/run/secrets/penstock.dev'

export class BundleMode {
  /** Settings of the agent; its components are in the bundle. */
  readonly config: Config
  readonly runner: BundleRunner
  readonly topologyOptions: Pick<TopologyOptions, 'bundle' | 'sourceFailed' | 'drainMs'>
  readonly api: Pick<ApiOptions, 'allows' | 'trouble' | 'unready' | 'programLines'>
  readonly #flags: BundleFlags
  readonly #operator: OperatorAddress | undefined
  readonly #logger: Logger
  readonly #metrics: Metrics
  readonly #node: string
  readonly #limit = new RepetitionLimit(10_000)
  #hub: PodLogHub | undefined
  #reader: ApiServerClient | undefined
  /** Asked about readers if the agent may not query the API server. */
  #readerOperator: OperatorClient | undefined
  #heartbeat: Heartbeat | undefined
  #inquiries: InquiryAnswers | undefined
  #access: ReaderAccess | undefined
  readonly #sidecar: Sidecar | undefined
  readonly #election: Election | undefined

  static async open(flags: BundleFlags, logger: Logger, metrics: Metrics): Promise<BundleMode> {
    const address = flags['api-address'] ?? '0.0.0.0:8686'
    const loaded = loadConfigObject(
      {
        data_dir: flags['data-dir'] ?? '/var/lib/penstock',
        api: { metric_prefix: flags['metric-prefix'] ?? '', ...(address === '' ? {} : { enabled: true, address }) },
      },
      { env: process.env, allowEmpty: true },
    )
    if (!loaded.ok) {
      const problems = loaded.problems.map(({ path, message }) => `${path}: ${message}`).join('; ')
      throw new PenstockError('PEN_USAGE', `The flags of --bundle are invalid: ${problems}`)
    }
    const mode = new BundleMode(flags, loaded.config, logger, metrics)
    if (flags.namespaces !== undefined) {
      if (mode.#operator !== undefined) mode.#readerOperator = new OperatorClient(mode.#operator)
      return mode
    }
    const target = await mode.#target().catch(() => undefined) // reported when a source needs it
    if (target !== undefined) mode.#reader = new ApiServerClient(target, `Penstock/${version}`)
    return mode
  }

  private constructor(flags: BundleFlags, config: Config, logger: Logger, metrics: Metrics) {
    this.#flags = flags
    this.#logger = logger
    this.#metrics = metrics
    this.config = config
    this.#node = process.env['AGENT_SELF_NODE_NAME'] || process.env['VECTOR_SELF_NODE_NAME'] || ''
    if (this.#node === '') {
      throw new PenstockError(
        'PEN_NODE_NAME',
        'The environment variable AGENT_SELF_NODE_NAME is not set; an agent with --bundle needs the name of its node. Set it from `spec.nodeName` by the downward API.',
      )
    }
    this.#sidecar = sidecarOf(flags)
    this.#election = this.#electionOf(flags)
    this.#operator = operatorOf(flags)
    const stream =
      this.#operator === undefined
        ? undefined
        : new BundleStream({ ...this.#operator, logger, metrics, busy: () => this.runner.busy() })
    const apiHost = process.env['KUBERNETES_SERVICE_HOST']
    this.runner = new BundleRunner({
      bundleDir: flags.bundle,
      secretsDir: flags.secrets ?? flags.bundle,
      dataDir: config.globals.dataDir,
      node: this.#node,
      denied: apiHost === undefined || apiHost === '' ? [] : [apiHost],
      openHub: () => this.#openHub(),
      stream,
      sidecar: this.#sidecar,
      draining: flags.drain === true,
      leadership: this.#election,
      logger,
      metrics,
    })
    this.topologyOptions = {
      bundle: this.runner.parts,
      drainMs: (flags['removed-drain-seconds'] ?? 60) * 1000,
      sourceFailed: (id, error) => this.runner.sourceFailed(id, error),
    }
    this.api = {
      allows: async (request, path) => {
        this.#access ??= new ReaderAccess(this.#askAccess(), logger)
        return this.#access.allows(request, path)
      },
      trouble: () => this.runner.trouble,
      // Without positions and buffers it would read everything again after each restart.
      unready: () => unwritable(config.globals.dataDir),
      programLines: (pipeline) => this.runner.lines(pipeline),
    }
  }

  request(): void {
    this.runner.request()
  }

  async start(topology: Topology): Promise<void> {
    // The metric by which aggregators are scaled.
    this.#metrics.computed('buffer_utilization', {}, () =>
      Math.max(0, ...[...topology.sinks.values()].map(({ buffer }) => useOf(buffer))),
    )
    const reason = unwritable(this.config.globals.dataDir)
    if (reason !== undefined) this.#logger.error({ reason }, 'The agent is not ready.')
    const address = this.#operator
    const grace = this.#flags['leftover-seconds']
    if (address !== undefined) {
      const heartbeat = new Heartbeat(
        {
          ...address,
          node: this.#node,
          pod: process.env['POD_NAME'] ?? '',
          namespace: process.env['POD_NAMESPACE'] ?? '',
          logger: this.#logger,
          metrics: this.#metrics,
          leftovers: new Leftovers({
            dataDir: this.config.globals.dataDir,
            topology,
            runner: this.runner,
            logger: this.#logger,
            metrics: this.#metrics,
            graceMs: grace === undefined ? undefined : grace * 1000,
          }),
        },
        this.runner,
        topology,
      )
      this.#heartbeat = heartbeat
      const figures = () => heartbeat.figures()
      this.#inquiries = new InquiryAnswers({ ...address, logger: this.#logger, topology, figures })
    }
    await this.runner.start(topology)
  }

  /** With --drain: resolves when the buffers are empty, with an error for undelivered events. */
  async drained(topology: Topology): Promise<PenstockError | undefined> {
    const { drained } = await import('./drain.ts')
    return drained(topology, this.runner, this.config.globals.dataDir, this.#logger)
  }

  async stop(): Promise<void> {
    this.#election?.leave()
    await this.#sidecar?.drain(this.#metrics, () => this.runner.state.state === 'Loaded')
    await this.#inquiries?.stop()
    await this.runner.stop()
    await this.#heartbeat?.stop()
  }

  /** Called after the topology has stopped. */
  async close(): Promise<void> {
    await this.#heartbeat?.close()
    await this.#election?.close()
    await this.#hub?.close()
    await this.#reader?.close()
    await this.#readerOperator?.close()
    this.#limit.close()
  }

  #electionOf({ lease, drain }: BundleFlags): Election | undefined {
    if (lease === undefined || lease === '' || drain === true) return undefined
    const { POD_NAME: pod = '', POD_NAMESPACE: namespace = '' } = process.env
    if (pod === '' || namespace === '') {
      throw new PenstockError(
        'PEN_USAGE',
        '--lease needs the environment variables POD_NAME and POD_NAMESPACE; set them from `metadata.name` and `metadata.namespace` by the downward API.',
      )
    }
    return new Election({
      namespace,
      name: lease,
      // A restarted container is another agent, because the previous one may have left a claim behind.
      identity: `${pod}_${randomBytes(4).toString('hex')}`,
      open: async () => new ApiServerClient(await this.#target(), `Penstock/${version}`),
      logger: this.#logger,
      metrics: this.#metrics,
    })
  }

  #askAccess() {
    if (this.#readerOperator !== undefined) return askOperator(this.#readerOperator)
    return this.#reader === undefined ? undefined : askServer(this.#reader)
  }

  #target(): Promise<KubeTarget> {
    const path = this.#flags['kube-config']
    return path === undefined ? inClusterTarget() : kubeConfigTarget(path)
  }

  async #openHub(): Promise<PodLogHub> {
    const identity = { id: 'hub', kind: 'source', type: 'orchestrator_logs' } as const
    if (this.#hub !== undefined) return this.#hub
    const target = await this.#target()
    this.#hub = new PodLogHub({
      node: this.#node,
      target,
      kubelet: kubeletTarget(this.#flags['kubelet-address'], target),
      logsDir: this.#flags['logs-dir'] ?? '/var/log/pods',
      dataDir: this.config.globals.dataDir,
      namespaces: this.#flags.namespaces?.split(',').filter((name) => name !== ''),
      maxRotatedFiles: this.#flags['max-rotated-files'],
      startDelayMs: this.#startDelayMs(),
      logger: this.#logger,
      events: new CountedEvents(this.#metrics, this.#logger, this.#limit, identity),
    })
    return this.#hub
  }

  /** Agents of many nodes may start at the same time. A running agent applies a later bundle at once. */
  #startDelayMs(): number {
    if (this.runner.state.revision !== undefined) return 0
    const delayMs = Math.round(Math.random() * startSpreadIn(this.#flags.bundle))
    if (delayMs > 0) {
      this.#logger.info(
        { delay_ms: delayMs },
        'There are many agents; sending the first request to the Kubernetes API after a delay.',
      )
    }
    return delayMs
  }
}

function operatorOf(flags: BundleFlags): OperatorAddress | undefined {
  const { operator } = flags
  if (operator === undefined || operator === '') return undefined
  if (!URL.canParse(operator)) throw new PenstockError('PEN_USAGE', `--operator needs a URL; found "${operator}".`)
  return {
    url: operator,
    tokenFile: flags['operator-token'] ?? `${accountFolder}/token`,
    caFile: flags['operator-ca'] ?? `${accountFolder}/ca.crt`,
  }
}

/** The kubelet of the node, with the same account and certificate authority as the API server. */
function kubeletTarget(address: string | undefined, target: KubeTarget): KubeTarget | undefined {
  if (address === undefined || address === '') return undefined
  const host = isIP(address) === 6 ? `[${address}]` : address
  const server = URL.parse(`https://${host}`)
  if (server === null || server.pathname !== '/') {
    throw new PenstockError(
      'PEN_USAGE',
      `--kubelet-address needs an address such as 10.0.0.1:10250; found "${address}".`,
    )
  }
  if (server.port === '') server.port = '10250'
  return { ...target, server, serverName: undefined }
}

function sidecarOf(flags: BundleFlags): Sidecar | undefined {
  const volume = flags['log-volume']
  if (volume === undefined) return undefined
  if (!volume.startsWith('/'))
    throw new PenstockError('PEN_USAGE', `--log-volume needs an absolute path; found "${volume}".`)
  const listed = (text: string) => text.split(',').filter((item) => item !== '')
  return new Sidecar({
    volume,
    paths: listed(flags['log-paths'] ?? ''),
    pipelines: flags.pipelines === undefined ? undefined : listed(flags.pipelines),
    drainSeconds: flags['drain-seconds'] ?? 20,
  })
}
