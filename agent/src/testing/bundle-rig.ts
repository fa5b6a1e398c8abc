// A bundle runner in this process, with a folder of pod logs and an API server on loopback.

import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pino } from 'pino'
import { BundleRunner } from '../bundle/runner.ts'
import type { Registry } from '../component.ts'
import { loadConfigObject } from '../config/load.ts'
import { kubeConfigTarget } from '../kube/config.ts'
import { PodLogHub } from '../sources/orchestrator_logs/hub.ts'
import { Metrics } from '../telemetry/metrics.ts'
import { Topology } from '../topology/run.ts'
import { bundleFiles, project, type TestBundle } from './bundle.ts'
import { RecordedEvents } from './harness.ts'
import type { KubeApi } from './kube-api.ts'

interface Given {
  /** Pod logs are in its folder `logs`. */
  readonly folder: string
  readonly components: Registry
  readonly api: KubeApi
  readonly bundle: TestBundle
  readonly drainMs?: number | undefined
  readonly hub?: Partial<ConstructorParameters<typeof PodLogHub>[0]> | undefined
}

export class BundleRig implements AsyncDisposable {
  readonly runner: BundleRunner
  readonly metrics = new Metrics()
  /** The counters of the hub. */
  readonly events = new RecordedEvents()
  /** Warnings and errors. */
  readonly logged: string[] = []
  readonly #folder: string
  readonly topology: Topology
  #hub: PodLogHub | undefined

  static async start(given: Given): Promise<BundleRig> {
    const rig = new BundleRig(given)
    await rig.runner.start(rig.topology)
    return rig
  }

  private constructor({ folder, components, api, bundle, drainMs, hub }: Given) {
    this.#folder = folder
    const { metrics, events } = this
    const dataDir = join(folder, 'data')
    for (const name of ['bundle', 'secrets', 'data']) mkdirSync(join(folder, name), { recursive: true })
    const logger = pino({ level: 'warn' }, { write: (line) => void this.logged.push(line) })
    writeFileSync(join(folder, 'kubeconfig'), api.kubeConfig())
    const loaded = loadConfigObject({ data_dir: dataDir }, { env: {}, allowEmpty: true })
    if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems))
    project(join(folder, 'secrets'), {})
    this.put(bundle)
    this.runner = new BundleRunner({
      bundleDir: join(folder, 'bundle'),
      secretsDir: join(folder, 'secrets'),
      dataDir,
      node: 'node-1',
      denied: [],
      components,
      logger,
      metrics,
      openHub: async () => {
        this.#hub = new PodLogHub({
          node: 'node-1',
          target: await kubeConfigTarget(join(folder, 'kubeconfig')),
          logsDir: join(folder, 'logs'),
          dataDir,
          logger,
          events,
          ...hub,
        })
        return this.#hub
      },
    })
    this.topology = new Topology(loaded.config, {
      logger,
      metrics,
      bundle: this.runner.parts,
      ...(drainMs === undefined ? {} : { drainMs }),
    })
  }

  put(bundle: TestBundle): void {
    project(join(this.#folder, 'bundle'), bundleFiles(bundle).files)
  }

  async [Symbol.asyncDispose]() {
    await this.runner.stop()
    await this.topology.stop(2000)
    await this.#hub?.close()
  }
}
