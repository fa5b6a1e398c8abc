// The rules for resources that the operator accepts from a hostile tenant, checked in the bytes that agents receive. The checks use
// independent code where possible: Node's block lists for addresses, and its URL parser for files.

import { BlockList, isIP } from 'node:net'
import { isDeepStrictEqual } from 'node:util'
import { type Bundle, isSecretPlace, pipelineOf, readBundle, secretKeys, withSecrets } from '@penstock/agent/bundle'
import { findComponent, optionsOf } from '@penstock/agent/config'
import {
  type ComponentKind,
  isTable,
  limits,
  meaningOf,
  memberNamed,
  pathOf,
  schemaBelow,
  walkOptions,
} from '@penstock/agent/schema'
import { keysOf, loadPart, type PipelinePart, partsOf, secretsOf } from '@penstock/agent/testing/operator'
import type { Artifact, SecretRef } from '../compile/artifact.ts'
import { standIn } from '../compile/secrets.ts'
import { renderBundle } from '../render/bundle.ts'
import { type BundleEntry, fragmentOf } from '../render/fragment.ts'
import { platform, storeSpec, tenant, victim, victimText } from './world.ts'

/** Networks that no tenant may reach, as a block list of Node. */
const denied = new BlockList()
for (const [network, prefix] of [
  ['0.0.0.0', 8],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['100.100.100.200', 32],
  ['168.63.129.16', 32],
  ['192.0.0.192', 32],
  ['10.96.0.1', 32],
] as const) {
  denied.addSubnet(network, prefix, 'ipv4')
  // IPv6 addresses that contain an IPv4 address: compatible, mapped, translated, NAT64, 6to4.
  const [a = 0, b = 0, c = 0, d = 0] = network.split('.').map(Number)
  const high = ((a << 8) | b).toString(16)
  const low = ((c << 8) | d).toString(16)
  for (const [start, bits] of [
    ['::', 96],
    ['::ffff:', 96],
    ['::ffff:0:', 96],
    ['64:ff9b::', 96],
  ] as const)
    denied.addSubnet(`${start}${high}:${low}`, bits + prefix, 'ipv6')
  denied.addSubnet(`2002:${high}:${low}::`, 16 + prefix, 'ipv6')
}
for (const [network, prefix] of [
  ['fe80::', 10],
  ['fd00:ec2::', 32],
  ['fd20:ce::254', 128],
] as const)
  denied.addSubnet(network, prefix, 'ipv6')

const deniedNames = /^(.*\.)?localhost$|^kubernetes\.default\.svc$/

async function bundleOf(artifacts: readonly Artifact[]): Promise<Bundle> {
  const rendered = await renderBundle(
    artifacts.map((artifact) => ({ fragment: fragmentOf(artifact), createdAt: artifact.createdAt })),
  )
  return readBundle(
    rendered,
    rendered.shards.map(({ data }) => data),
  )
}

/** The victim's part of a bundle without other tenants. */
export async function victimPartOf(artifact: Artifact): Promise<PipelinePart> {
  return partsOf(await bundleOf([artifact])).get(victim.id) as PipelinePart
}

/** The problem of a bundle with a tenant's artifact and the victim's; undefined if there is none. */
export async function problemOf(
  artifact: Artifact,
  victimArtifact: Artifact,
  alone: PipelinePart,
  hasPolicy: boolean,
  dataDir: string,
): Promise<string | undefined> {
  return judge(await bundleOf([victimArtifact, artifact]), alone, hasPolicy, dataDir)
}

/** The same for a rendered bundle. */
export function judge(bundle: Bundle, alone: PipelinePart, hasPolicy: boolean, dataDir: string): string | undefined {
  const parts = partsOf(bundle)
  const part = parts.get(tenant.id)
  if (part === undefined || parts.size !== 2) return `the bundle has the pipelines ${[...parts.keys()].join(', ')}`
  if (!isDeepStrictEqual(parts.get(victim.id), alone))
    return "the tenant's artifact changes the victim's part of the bundle"
  const components = [bundle.sources ?? {}, bundle.transforms, bundle.sinks].flatMap((list) => Object.keys(list))
  const stray = [...components, ...bundle.hub.subscriptions.map(({ out }) => out)].find(
    (id) => ![tenant.id, victim.id].includes(pipelineOf(id)),
  )
  if (stray !== undefined) return `the component ${stray} is in no pipeline`
  if (part.pipeline.restricted !== true || part.pipeline.egress === undefined) return 'the pipeline is not restricted'
  return (
    referenceProblem(part) ??
    secretProblem(part) ??
    platformProblem(part) ??
    optionProblem(part, hasPolicy) ??
    loadProblem(part, dataDir)
  )
}

// --- Nothing outside of the namespace ---

function referenceProblem(part: PipelinePart): string | undefined {
  const ids = new Set([
    ...part.subscriptions.map(({ out }) => out),
    ...[part.sources, part.transforms, part.sinks].flatMap((list) => Object.keys(list)),
  ])
  for (const id of ids) if (!id.startsWith(`${tenant.id}/`)) return `the id ${id} is not the pipeline's own`
  for (const subscription of part.subscriptions) {
    const { namespaces, cursor, out, options } = subscription
    if (!isDeepStrictEqual(namespaces, [tenant.namespace]))
      return `${out} reads the namespaces ${JSON.stringify(namespaces)}`
    if (Object.hasOwn(subscription, 'namespaceSelector')) return `${out} selects namespaces`
    if (!cursor.startsWith(`uid-${tenant.namespace}-${tenant.pipeline}/`))
      return `${out} has the positions of ${cursor}`
    const text = JSON.stringify(options ?? {})
    if (text.includes('metadata.namespace')) return `${out} has its own filter: ${text.slice(0, 200)}`
  }
  for (const [id, options] of Object.entries({ ...part.transforms, ...part.sinks })) {
    const inputs = (options as { inputs?: unknown }).inputs
    if (!Array.isArray(inputs)) return `${id} has no list of inputs`
    for (const input of inputs) {
      const named = [...ids].some((own) => input === own || (typeof input === 'string' && input.startsWith(`${own}.`)))
      if (!named || String(input).includes('*')) return `${id} has the input ${JSON.stringify(input)}`
    }
  }
  const { deadLetter } = part.pipeline
  if (deadLetter !== undefined && !ids.has(deadLetter.sink)) return `dead letters go to ${deadLetter.sink}`
  for (const id of part.pipeline.platform ?? []) if (!ids.has(id)) return `${id} counts as the platform's`
  return undefined
}

/** All uses of secrets are listed, and a listed secret is the tenant's, or is where the owner of a ClusterSink has put it. */
function secretProblem(part: PipelinePart): string | undefined {
  const { secrets = [] } = part.pipeline as BundleEntry
  const listed = new Map(secrets.map((ref) => [ref.key, ref]))
  for (const key of keysOf(part)) if (!listed.has(key)) return `the place of the secret ${key} is not listed`
  for (const { key, parts } of secrets) {
    const namespaces = new Set(parts.flatMap((each) => (typeof each === 'string' ? [] : [each.namespace])))
    const isOwners = isDeepStrictEqual(namespaces, new Set([platform]))
    if (!isOwners && [...namespaces].some((namespace) => namespace !== tenant.namespace))
      return `the secret ${key} is of ${[...namespaces].join(' and ')}`
    if (!isOwners) continue
    for (const each of parts) {
      if (typeof each !== 'string' && (each.name !== 'store' || each.key !== 'token'))
        return `the secret ${each.name} of the platform is used`
    }
    for (const [id, options] of Object.entries({ ...part.sources, ...part.transforms, ...part.sinks })) {
      const { auth, ...rest } = options as { auth?: unknown; type?: unknown; endpoint?: unknown }
      // The owner's token is sent only to the owner's address, whatever else the tenant has overridden.
      const { type, config } = storeSpec
      const isStore =
        isTable(auth) && isSecretPlace(auth['token']) && rest.type === type && rest.endpoint === config.endpoint
      if (secretKeys(isStore ? rest : options).has(key)) return `${id} holds a secret of the platform`
    }
  }
  const text = JSON.stringify([part.sources, part.transforms, part.sinks, part.subscriptions])
  if (text.includes(victimText)) return `text of the victim's resources is in the tenant's part`
  return undefined
}

/** Components that count as the platform's are exactly those that the owner of `store` wrote. */
function platformProblem(part: PipelinePart): string | undefined {
  for (const id of part.pipeline.platform ?? []) {
    const sink = part.sinks[id]
    if (!isTable(sink)) return `${id} belongs to the platform and is not a sink`
    const { labels, tenant_id: tenantId, inputs: _, ...rest } = sink
    if (tenantId !== tenant.namespace) return `${id} has the tenant ${JSON.stringify(tenantId)}`
    if (!isTable(labels) || labels['cluster'] !== storeSpec.enforced.labels.cluster)
      return `${id} lacks the enforced label`
    const { endpoint, encoding } = storeSpec.config
    const { auth, type, ...others } = rest
    if (!isDeepStrictEqual({ endpoint, encoding }, others) || type !== storeSpec.type || !isTable(auth))
      return `${id} is not what its owner wrote`
  }
  return undefined
}

// --- Files, addresses and limits ---

function optionProblem(part: PipelinePart, hasPolicy: boolean): string | undefined {
  const platforms = part.pipeline.platform ?? []
  for (const [kind, components] of listsOf(part)) {
    for (const [id, { type, inputs: _, ...options }] of Object.entries(components)) {
      const declaration = findComponent(kind, String(type))
      if (declaration === undefined) return `${id} is of the unknown type ${JSON.stringify(type)}`
      if (platforms.includes(id)) continue
      let problem: string | undefined
      walkOptions(
        optionsOf(declaration).schema,
        options,
        ({ path, value, schemas }) => {
          const meanings = schemas.map(meaningOf)
          const at = `${id}: ${pathOf(path)} is ${JSON.stringify(value)?.slice(0, 200)}`
          if (typeof value === 'number') {
            for (const { limit } of meanings)
              if (limit !== undefined && !hasPolicy && value > limits[limit].cap)
                problem ??= `${at}, above ${limits[limit].cap}`
          }
          if (typeof value !== 'string') return undefined
          if (meanings.some(({ program }) => program !== undefined)) return undefined
          if (URL.parse(value)?.protocol === 'file:') problem ??= `${at}, a URL of a file`
          for (const { address } of meanings)
            if (address !== undefined && isDenied(value)) problem ??= `${at}, a denied address`
          return undefined
        },
        isSecretPlace,
      )
      if (problem !== undefined) return problem
    }
  }
  return undefined
}

/** Whether an address, with or without a scheme, is in a denied network or names a denied host. */
function isDenied(text: string): boolean {
  for (const each of text.split(',')) {
    const named = URL.parse(each)
    // The URL parser does not normalize hosts of unknown schemes.
    const rest = named !== null && named.host !== '' ? named.href.slice(named.protocol.length) : `//${each.trim()}`
    const host =
      URL.parse(`http:${rest}`)
        ?.hostname.replace(/^\[|\]$/g, '')
        .replace(/\.$/, '') ?? ''
    const version = isIP(host)
    if (version === 0 ? deniedNames.test(host) : denied.check(host, version === 4 ? 'ipv4' : 'ipv6')) return true
    if (host === '::' || host === '::1') return true
  }
  return false
}

type Components = Readonly<Record<string, Record<string, unknown>>>

function listsOf(part: PipelinePart): readonly (readonly [ComponentKind, Components])[] {
  const subscribed = Object.fromEntries(
    part.subscriptions.map(({ out, options }) => [out, { ...options, type: 'orchestrator_logs' }]),
  )
  return [
    ['source', { ...part.sources, ...subscribed } as Components],
    ['transform', part.transforms as Components],
    ['sink', part.sinks as Components],
  ]
}

// --- The agent accepts it ---

/** A plausible value for the secret. */
function fittingValue(kind: ComponentKind, type: string, path: readonly (string | number)[], ref: SecretRef): string {
  const declaration = findComponent(kind, type)
  let schema = declaration === undefined ? undefined : optionsOf(declaration).schema
  for (const key of path)
    schema = schema === undefined ? undefined : (memberNamed(schema, String(key))?.schema ?? schemaBelow(schema, key))
  const inline = schema === undefined ? undefined : meaningOf(schema).file?.inline
  if (inline === 'pem') return '-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----'
  if (inline === 'json') return '{}'
  return standIn(kind, type, path, ref)
}

/** Loads the part as an agent does, with secret values that fit their options. */
function loadProblem(part: PipelinePart, dataDir: string): string | undefined {
  const { secrets = [] } = part.pipeline as BundleEntry
  const values = new Map<string, string>()
  let isClear = true
  for (const [kind, components] of listsOf(part)) {
    for (const [, options] of Object.entries(components)) {
      withSecrets(options, (key, path) => {
        const ref = secrets.find((each) => each.key === key)
        if (ref === undefined) return undefined
        const value = fittingValue(kind, String(options['type']), path, ref)
        // One value cannot fit options of different formats.
        if ((values.get(key) ?? value) !== value) isClear = false
        values.set(key, value)
        return undefined
      })
    }
  }
  if (!isClear) return undefined
  const all = { value: (key: string) => Buffer.from(values.get(key) ?? 'x'), digest: () => 'x' }
  const loaded = loadPart(part, secretsOf(part, all), { dataDir, denied: [], env: {} })
  if (loaded.ok) return undefined
  return `the agent refuses it: ${loaded.problems
    .map(({ path, message }) => `${path}: ${message}`)
    .join('; ')
    .slice(0, 1000)}`
}
