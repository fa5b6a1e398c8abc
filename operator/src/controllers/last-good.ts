// The last accepted versions of Pipelines whose newest version is not accepted, kept across restarts: one ConfigMap each, in the
// operator's namespace. Artifacts contain no secret values. An accepted Pipeline has no such ConfigMap.

import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { gunzip, gzip } from 'node:zlib'
import { errorText } from '@penstock/agent/errors'
import type { Logger } from '@penstock/agent/telemetry'
import type { KubeObject } from '../api/object.ts'
import type { Artifact } from '../compile/artifact.ts'
import { isTerminating, type KubeClient } from '../kube/client.ts'
import { configMapType } from '../kube/resource-types.ts'

const label = 'penstock.dev/last-good'
const compress = promisify(gzip)
const decompress = promisify(gunzip)

/** Far larger than any artifact that fits in a ConfigMap. */
const maxArtifactBytes = 64 << 20

interface ConfigMap extends KubeObject {
  readonly binaryData?: Readonly<Record<string, string>>
}

export class LastGood {
  readonly #kube: KubeClient
  readonly #namespace: string
  readonly #logger: Logger
  /** Digest of the stored version, by id. */
  readonly #stored = new Map<string, string>()

  constructor(kube: KubeClient, namespace: string, logger: Logger) {
    this.#kube = kube
    this.#namespace = namespace
    this.#logger = logger
  }

  /** Reads the versions stored by an earlier process. */
  async load(signal: AbortSignal): Promise<readonly Artifact[]> {
    const artifacts: Artifact[] = []
    const options = { namespace: this.#namespace, labelSelector: `${label}=true`, signal }
    for (const map of await this.#kube.list<ConfigMap>(configMapType, options)) {
      try {
        const bytes = await decompress(Buffer.from(map.binaryData?.['artifact.json.gz'] ?? '', 'base64'), {
          maxOutputLength: maxArtifactBytes,
        })
        const artifact = JSON.parse(bytes.toString('utf8')) as Artifact
        this.#stored.set(artifact.id, digestOf(artifact))
        artifacts.push(artifact)
      } catch (error) {
        // Another client has changed it. The Pipeline then stops until its newest version is accepted.
        this.#logger.warn(
          { error: errorText(error), config_map: map.metadata.name },
          'Could not read a stored version of a Pipeline.',
        )
      }
    }
    return artifacts
  }

  async keep(artifact: Artifact, signal: AbortSignal): Promise<void> {
    const digest = digestOf(artifact)
    if (this.#stored.get(artifact.id) === digest) return
    const bytes = await compress(Buffer.from(JSON.stringify(artifact)))
    const map = {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: {
        name: nameOf(artifact.id),
        namespace: this.#namespace,
        labels: { 'app.kubernetes.io/managed-by': 'penstock', [label]: 'true' },
        annotations: { 'penstock.dev/pipeline': artifact.id },
      },
      binaryData: { 'artifact.json.gz': bytes.toString('base64') },
    }
    try {
      await this.#kube.apply(configMapType, map, { signal })
      this.#stored.set(artifact.id, digest)
    } catch (error) {
      if (!isTerminating(error)) throw error
    }
  }

  async drop(id: string, signal: AbortSignal): Promise<void> {
    if (!this.#stored.has(id)) return
    await this.#kube.delete(configMapType, this.#namespace, nameOf(id), { signal })
    this.#stored.delete(id)
  }

  /** Ids of the Pipelines with a stored version. */
  ids(): readonly string[] {
    return [...this.#stored.keys()]
  }
}

function nameOf(id: string): string {
  return `penstock-last-good-${createHash('sha256').update(id).digest('hex').slice(0, 24)}`
}

function digestOf({ hash, generation, uid }: Artifact): string {
  return `${uid}/${generation}/${hash}`
}
