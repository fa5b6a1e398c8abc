// The compiler's quarantine, kept across restarts in a ConfigMap of the operator's namespace. Only the leader writes it, because only
// the leader compiles stored Pipelines. Another version of the operator starts with an empty quarantine, because its compiler may
// succeed where the earlier one failed.

import { errorText } from '@penstock/agent/errors'
import { version } from '@penstock/agent/program'
import type { Logger } from '@penstock/agent/telemetry'
import type { KubeObject } from '../api/object.ts'
import { MemoryQuarantine, type QuarantineEntry } from '../compile/quarantine.ts'
import type { KubeClient } from '../kube/client.ts'
import { configMapType } from '../kube/resource-types.ts'

const name = 'penstock-compile-quarantine'

type ConfigMap = KubeObject & { readonly data?: Readonly<Record<string, string>> }

export class KeptQuarantine extends MemoryQuarantine {
  readonly #kube: KubeClient
  readonly #namespace: string
  readonly #logger: Logger
  /** The write in progress, and the next one, which writes the state at its start. */
  #writing: Promise<void> | undefined
  #next: Promise<void> | undefined

  private constructor(
    kube: KubeClient,
    namespace: string,
    logger: Logger,
    left: readonly (readonly [string, QuarantineEntry])[],
  ) {
    super(left)
    this.#kube = kube
    this.#namespace = namespace
    this.#logger = logger
  }

  static async load(kube: KubeClient, namespace: string, logger: Logger, signal: AbortSignal): Promise<KeptQuarantine> {
    const found = await kube.get<ConfigMap>(configMapType, namespace, name, { signal })
    let left: readonly (readonly [string, QuarantineEntry])[] = []
    if (found?.data?.['version'] === version) {
      try {
        const entries: unknown = JSON.parse(found.data['entries.json'] ?? '[]')
        if (Array.isArray(entries)) left = entries as typeof left
      } catch (error) {
        logger.warn({ error: errorText(error), config_map: name }, "Could not read the compiler's quarantine.")
      }
    }
    for (const [, { id, refusal }] of left)
      if (refusal === undefined)
        logger.warn({ pipeline: id }, 'An operator stopped while it compiled this Pipeline; it is compiled last.')
    return new KeptQuarantine(kube, namespace, logger, left)
  }

  /** Resolves when the current state is written. */
  protected override save(): Promise<void> {
    if (this.#writing === undefined) {
      this.#writing = this.#write().finally(() => {
        this.#writing = undefined
      })
      return this.#writing
    }
    this.#next ??= this.#writing.then(() => {
      this.#next = undefined
      return this.save()
    })
    return this.#next
  }

  async #write(): Promise<void> {
    try {
      await this.#kube.apply(configMapType, {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: {
          name,
          namespace: this.#namespace,
          labels: { 'app.kubernetes.io/managed-by': 'penstock' },
        },
        data: { version, 'entries.json': JSON.stringify(this.entries()) },
      })
    } catch (error) {
      // Compiling continues, because the entry only matters after a restart.
      this.#logger.warn({ error: errorText(error) }, "Could not write the compiler's quarantine.")
    }
  }
}
