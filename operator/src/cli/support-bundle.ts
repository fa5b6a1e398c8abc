// `penstock support-bundle [-o FILE]`: collects the data for analysing Penstock in a cluster in one archive: resources with their status,
// workloads, events, and the logs of operator and agents. `-n` limits it to the data that a user of that namespace may read. Secret values
// are never read; anything that may be a secret in an option is masked, rather too much than too little.

import { open, rm } from 'node:fs/promises'
import { pipeline as connectStreams } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { errorText, fileReason, PenstockError } from '@penstock/agent/errors'
import { type Flags, version } from '@penstock/agent/program'
import { pack } from 'tar-stream'
import { stringify } from 'yaml'
import { kinds } from '../api/kinds.ts'
import { version as apiVersionName, type KubeObject, type ResourceType } from '../api/object.ts'
import { type KubeClient, KubeError } from '../kube/client.ts'
import {
  coreEventType,
  daemonSetType,
  deploymentType,
  leaseType,
  nodeType,
  podType,
  secretType,
  statefulSetType,
} from '../kube/resource-types.ts'
import { helpOf, parseFlags } from './arguments.ts'
import { connect, connectionOptions } from './cluster.ts'

const logLines = 5000
const ours = 'app.kubernetes.io/name in (penstock-agent,penstock-operator)'

export const options = {
  output: { type: 'string', short: 'o', value: 'FILE', help: 'Archive to write (penstock-support-TIME.tar.gz).' },
  namespace: { type: 'string', short: 'n', value: 'NS', help: 'Namespace to collect (the whole cluster).' },
  ...connectionOptions,
} as const satisfies Flags

export const usage = `Usage: penstock support-bundle [FLAGS]

Collects resources with their status, workloads, events and logs in an archive, for the analysis of a fault. It contains no Secrets. It leaves out everything that you may not read, and names it; if that is everything, there is no archive.

${helpOf(options)}
`

/** The resources that could be read, and the others. */
interface Outcome {
  readonly parts: Set<string>
  readonly problems: string[]
  /** The first error of a request without a response. */
  unreachable?: KubeError
}

export async function run(argv: string[]): Promise<number> {
  const { flags: values } = parseFlags(argv, options)
  const { client } = await connect(values)
  const folder = `penstock-support-${new Date().toISOString().slice(0, 19).replaceAll(':', '')}`
  const file = values.output ?? `${folder}.tar.gz`
  const target = await open(file, 'wx').catch((error: unknown) => {
    const message = `"${file}" cannot be created: ${fileReason(error)}.`
    throw new PenstockError('PEN_CANNOT_CREATE', message, { cause: error })
  })
  const archive = pack()
  const written = connectStreams(archive, createGzip(), target.createWriteStream())
  written.catch(() => {}) // awaited below; until then it must not count as unhandled
  const outcome: Outcome = { parts: new Set(), problems: [] }
  const { parts, problems } = outcome
  const add = (name: string, text: string) => void archive.entry({ name: `${folder}/${name}` }, text)
  for await (const [name, text] of contents(client, values.namespace, outcome)) add(name, text)
  add(
    'about.txt',
    `Penstock ${version}\nAPI ${apiVersionName}\n\n${problems.length === 0 ? 'Everything could be read.' : `Could not be read:\n${problems.join('\n')}`}\n`,
  )
  archive.finalize()
  await written
  if (parts.size === 0 && outcome.unreachable !== undefined) {
    await rm(file)
    throw outcome.unreachable
  }
  for (const problem of problems) console.error(problem)
  if (parts.size === 0) {
    await rm(file)
    const other = values.namespace === undefined ? ' Try one namespace by `-n NAMESPACE`.' : ''
    throw new PenstockError('PEN_KUBERNETES', `Nothing could be read, so there is no archive.${other}`)
  }
  const missing = problems.length === 0 ? '' : ` ${problems.length} things could not be read; about.txt names them.`
  console.log(
    `${file}: ${[...parts].join(', ')}.${missing} Secrets are not included; review the archive before you share it.`,
  )
  return 0
}

async function* contents(
  client: KubeClient,
  namespace: string | undefined,
  outcome: Outcome,
): AsyncGenerator<readonly [name: string, text: string]> {
  const { parts, problems } = outcome
  const list = async (
    part: string,
    type: ResourceType,
    options: { labelSelector?: string; metadataOnly?: boolean } = {},
  ): Promise<readonly KubeObject[] | undefined> => {
    // Cluster-scoped objects are not part of a namespace.
    if (namespace !== undefined && !type.namespaced) return undefined
    try {
      const found = await client.list(type, { ...options, namespace })
      parts.add(part)
      return found
    } catch (error) {
      if (error instanceof KubeError && error.unreachable !== undefined) outcome.unreachable ??= error
      problems.push(`${type.plural}: ${errorText(error)}`)
      return undefined
    }
  }
  for (const kind of kinds) {
    const found = await list('resources', kind)
    if (found !== undefined) yield [`resources/${kind.plural}.yaml`, yaml(found)]
  }
  for (const type of [daemonSetType, deploymentType, statefulSetType, leaseType]) {
    const all = await list('workloads', type)
    if (all !== undefined) yield [`workloads/${type.plural}.yaml`, yaml(all.filter(isOurs))]
  }
  const secrets = await list('names of Secrets', secretType, { metadataOnly: true })
  if (secrets !== undefined) yield ['workloads/secrets.yaml', yaml(secrets.filter(isOurs))]
  const nodes = await list('nodes', nodeType)
  if (nodes !== undefined) {
    const named = nodes.map(({ metadata: { name, labels }, ...rest }) => ({ ...rest, metadata: { name, labels } }))
    yield ['nodes.yaml', yaml(named as KubeObject[])]
  }
  const kindNames = new Set(kinds.map(({ kind }) => kind))
  const events = (await list('events', coreEventType)) as readonly EventObject[] | undefined
  if (events !== undefined) {
    const about = events.filter(
      ({ involvedObject: { kind, name } = {} }) => kindNames.has(kind ?? '') || name?.includes('penstock'),
    )
    yield ['events.yaml', yaml(about)]
  }
  const pods = await list('pods', podType, { labelSelector: ours })
  if (pods === undefined) return
  yield ['pods.yaml', yaml(pods)]
  for (const pod of pods) yield* logsOf(client, pod, { parts, problems })
}

type EventObject = KubeObject & { readonly involvedObject?: { readonly kind?: string; readonly name?: string } }

async function* logsOf(
  client: KubeClient,
  pod: KubeObject & { readonly spec?: { readonly containers?: readonly { readonly name: string }[] } },
  { parts, problems }: Outcome,
): AsyncGenerator<readonly [name: string, text: string]> {
  const { namespace = 'default', name } = pod.metadata
  for (const container of pod.spec?.containers ?? []) {
    const path = `/api/v1/namespaces/${namespace}/pods/${name}/log?container=${container.name}&tailLines=${logLines}`
    try {
      const text = await client.text(path)
      parts.add('logs')
      yield [`logs/${namespace}_${name}_${container.name}.log`, text]
    } catch (error) {
      problems.push(`Log of ${namespace}/${name}: ${errorText(error)}`)
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
/** Keys whose values are only names. */
const names = new Set(['secretName', 'secretKeyRef', 'configMapKeyRef', 'strategy', 'imagePullSecrets', 'secretRefs'])

/** Text that may be a secret becomes `***`; references to Secrets stay, because they are needed for the analysis. */
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

/** Removes the user information from `https://user:password@host`. */
function withoutCredentials(text: string): string {
  return text.replace(/([a-z][a-z0-9+.-]*:\/\/)[^/\s@]+@/gi, '$1***@')
}
