// `penstock support-bundle [-o FILE]`: everything that helps to understand a cluster's Penstock in one archive: resources with
// their status, workloads, events, the logs of operator and agents. Values of Secrets are never read; what may be a secret inside
// an option is masked, rather too much than too little.

import { createWriteStream } from 'node:fs'
import { pipeline as connectStreams } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { errorText } from '@penstock/agent/errors'
import { type Flags, version } from '@penstock/agent/program'
import { pack } from 'tar-stream'
import { stringify } from 'yaml'
import { kinds } from '../api/kinds.ts'
import { version as apiVersionName, type KubeObject, type ResourceType } from '../api/object.ts'
import type { KubeClient } from '../kube/client.ts'
import {
  daemonSetType,
  deploymentType,
  eventType,
  leaseType,
  nodeType,
  podType,
  secretType,
  statefulSetType,
} from '../kube/types.ts'
import { helpOf, parseFlags } from './arguments.ts'
import { connect, connectionOptions } from './cluster.ts'

const logLines = 5000
const ours = 'app.kubernetes.io/name in (penstock-agent,penstock-operator)'

export const options = {
  output: { type: 'string', short: 'o', value: 'FILE', help: 'the archive (penstock-support-TIME.tar.gz)' },
  ...connectionOptions,
} as const satisfies Flags

export const usage = `Usage: penstock support-bundle [FLAGS]

Writes resources with their status, workloads, events and logs into an archive: what helps to find a fault. Secrets are not in it.

${helpOf(options)}
`

export async function run(argv: string[]): Promise<number> {
  const { flags: values } = parseFlags(argv, options)
  const { client } = await connect(values)
  const folder = `penstock-support-${new Date().toISOString().slice(0, 19).replaceAll(':', '')}`
  const file = values.output ?? `${folder}.tar.gz`
  const archive = pack()
  const written = connectStreams(archive, createGzip(), createWriteStream(file, { flags: 'wx' }))
  written.catch(() => {}) // awaited below; until then it must not count as unhandled
  const problems: string[] = []
  const add = (name: string, text: string) => void archive.entry({ name: `${folder}/${name}` }, text)
  for await (const [name, text] of contents(client, problems)) add(name, text)
  add(
    'about.txt',
    `Penstock ${version}\nAPI ${apiVersionName}\n\n${problems.length === 0 ? 'Everything could be read.' : `Could not be read:\n${problems.join('\n')}`}\n`,
  )
  archive.finalize()
  await written
  for (const problem of problems) console.error(problem)
  console.log(
    `${file}: resources, workloads, events and logs. Secrets are not in it; look through it before you pass it on.`,
  )
  return 0
}

async function* contents(
  client: KubeClient,
  problems: string[],
): AsyncGenerator<readonly [name: string, text: string]> {
  const list = async (type: ResourceType, options: { labelSelector?: string; metadataOnly?: boolean } = {}) => {
    try {
      return await client.list(type, options)
    } catch (error) {
      problems.push(`${type.plural}: ${errorText(error)}`)
      return []
    }
  }
  for (const kind of kinds) yield [`resources/${kind.plural}.yaml`, yaml(await list(kind))]
  for (const type of [daemonSetType, deploymentType, statefulSetType, leaseType]) {
    const all = await list(type)
    yield [`workloads/${type.plural}.yaml`, yaml(all.filter(isOurs))]
  }
  yield ['workloads/secrets.yaml', yaml((await list(secretType, { metadataOnly: true })).filter(isOurs))]
  yield [
    'nodes.yaml',
    yaml(
      (await list(nodeType)).map(({ metadata, ...rest }) => ({
        ...rest,
        metadata: { name: metadata.name, labels: metadata.labels },
      })) as KubeObject[],
    ),
  ]
  const kindNames = new Set(kinds.map(({ kind }) => kind))
  const events = (await list(eventType)) as readonly (KubeObject & { regarding?: { kind?: string; name?: string } })[]
  yield [
    'events.yaml',
    yaml(
      events.filter(({ regarding }) => kindNames.has(regarding?.kind ?? '') || regarding?.name?.includes('penstock')),
    ),
  ]
  const pods = await list(podType, { labelSelector: ours })
  yield ['pods.yaml', yaml(pods)]
  for (const pod of pods) {
    const { namespace = 'default', name } = pod.metadata
    const { containers = [] } = (pod as KubeObject & { spec?: { containers?: readonly { name: string }[] } }).spec ?? {}
    for (const container of containers) {
      const path = `/api/v1/namespaces/${namespace}/pods/${name}/log?container=${container.name}&tailLines=${logLines}`
      try {
        yield [`logs/${namespace}_${name}_${container.name}.log`, await client.text(path)]
      } catch (error) {
        problems.push(`Log of ${namespace}/${name}: ${errorText(error)}`)
      }
    }
  }
}

function isOurs(object: KubeObject): boolean {
  return (
    object.metadata.labels?.['app.kubernetes.io/managed-by'] === 'penstock' || object.metadata.name.includes('penstock')
  )
}

function yaml(objects: readonly KubeObject[]): string {
  return objects.map((object) => `---\n${stringify(masked(withoutNoise(object)), { lineWidth: 0 })}`).join('')
}

function withoutNoise(object: KubeObject): object {
  const { managedFields: _, annotations = {}, ...metadata } = object.metadata
  const { 'kubectl.kubernetes.io/last-applied-configuration': __, ...kept } = annotations
  return { ...object, metadata: { ...metadata, ...(Object.keys(kept).length === 0 ? {} : { annotations: kept }) } }
}

const mayBeSecret = /pass|secret|token|credential|private|api_?key|license_?key|access_?key|authorization|^key$|_pass$/i
/** Keys whose values only name something. */
const names = new Set(['secretName', 'secretKeyRef', 'configMapKeyRef', 'strategy', 'imagePullSecrets', 'secretRefs'])

/** Text that may be a secret becomes `***`; references to Secrets stay, because they are what one looks for. */
export function masked(value: unknown, secret = false): unknown {
  if (typeof value === 'string') return secret && !/^SECRET\[[^\]]+\]$/.test(value) ? '***' : withoutCredentials(value)
  if (Array.isArray(value)) return value.map((item) => masked(item, secret))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, below]) => {
      if (names.has(key)) return [key, below]
      const isObject = typeof below === 'object' && below !== null
      return [key, masked(below, (secret && !isObject) || mayBeSecret.test(key))]
    }),
  )
}

/** `https://user:password@host` without the part before the at sign. */
function withoutCredentials(text: string): string {
  return text.replace(/([a-z][a-z0-9+.-]*:\/\/)[^/\s@]+@/gi, '$1***@')
}
