// The meaning of an option's value, beyond its type. A declaration states it once, with the option. The rules for tenants, ports of
// NetworkPolicies, quotas and reference pages derive from it; no rule identifies an option by its name.

import { declaredMembers, isTable, type Schema, variantsFor } from './walk.ts'

/** Facets of one option, stored as `x-means`. Several may apply at once: an address can also be secret because it contains a password. */
export interface Meaning {
  /** Plain data: it opens no file and no connection, and names no identity. */
  readonly text?: true
  /** Must never be printed. */
  readonly secret?: true
  readonly program?: 'program' | 'condition'
  readonly file?: FileMeaning
  readonly address?: AddressMeaning
  /**
   * A credential that replaces the agent's own identity. All members of a table with the same word belong together. If no such set is
   * complete, the component uses the identity of the agent or its node.
   */
  readonly explicit?: string
  /**
   * The owner of a value that a namespaced resource cannot set. The owner is the operator, or the agent (except on a user's own machine),
   * or a cluster-scoped resource, because the value affects more than one namespace.
   */
  readonly owner?: 'operator' | 'agent' | 'cluster'
  /** Whether the operator or the agent overrides the user's value if an operator runs the agent. */
  readonly fixed?: true
  /** The quantity that the number limits. */
  readonly limit?: LimitName
  /** The minimum in a namespaced resource. */
  readonly tenantMinimum?: number
}

export interface FileMeaning {
  readonly use: 'read' | 'write' | 'folder' | 'glob'
  /** The form of text that the option accepts instead of a file name. */
  readonly inline?: InlineForm
  /** Warns about a relative path, because its meaning depends on the working directory of the agent. */
  readonly absolute?: true
  /** The paths are below a folder that the agent or the operator chooses. */
  readonly within?: 'pod logs' | 'sidecar volume'
}

export interface AddressMeaning {
  /** The schemes with their default ports. */
  readonly ports: Readonly<Record<string, number>>
  /** The scheme to assume for text without one: a host, perhaps with a port. */
  readonly bare?: string
  /** Whether the value is only a part of the host, and other options determine the rest. */
  readonly part?: true
}

// --- Under an operator ---

/** How an operator treats an option. */
export interface OperatorTreatment {
  /** In a namespaced Pipeline, Source or Sink. `content`: text and Secrets are allowed, file names are not. */
  readonly namespaced: 'honoured' | 'content' | 'refused' | 'fixed'
  /** In a ClusterPipeline, ClusterSource or ClusterSink. A fixed option has no effect, and a warning reports it. */
  readonly cluster: 'honoured' | 'fixed'
  /** For the reference; undefined if both kinds honour the option. */
  readonly note?: string
}

export function operatorTreatment({ owner, fixed, file }: Meaning): OperatorTreatment {
  const cluster = fixed === true ? 'fixed' : 'honoured'
  if (owner !== undefined) {
    const refused =
      fixed === true
        ? 'rejected in namespaced resources, and without effect in others'
        : 'rejected in namespaced resources'
    const why = {
      operator: 'the operator sets it',
      agent: 'the agent sets it',
      cluster: 'it reaches beyond one namespace',
    }[owner]
    return { namespaced: 'refused', cluster, note: `Under an operator: ${refused}, because ${why}.` }
  }
  if (fixed === true) {
    return { namespaced: 'fixed', cluster, note: 'Under an operator: without effect, because the agent sets it.' }
  }
  if (file === undefined || file.within !== undefined) return { namespaced: 'honoured', cluster }
  return file.inline === undefined
    ? {
        namespaced: 'refused',
        cluster,
        note: 'Under an operator: rejected in namespaced resources, because it names a file.',
      }
    : {
        namespaced: 'content',
        cluster,
        note: 'Under an operator: in namespaced resources, set the content itself, directly or from a Secret, not a file name.',
      }
}

// --- Content instead of a file name ---

export type InlineForm = 'pem' | 'json' | 'data'

/** Whether text is content instead of a file name. Both the readers of options and the rules for tenants use this function. */
export function isInline(form: InlineForm | undefined, text: string): boolean {
  switch (form) {
    case 'pem':
      return text.startsWith('-----BEGIN ')
    case 'json':
      return text.trimStart().startsWith('{')
    case 'data':
      return text.startsWith('data:')
    case undefined:
      return false
  }
}

/**
 * Whether text names a file, either because of its option or because of its URL scheme. The check of the scheme also covers plain text:
 * opens.test.ts finds no plain text that opens a file, but an oversight there would expose files to tenants.
 */
export function namesFile(meanings: readonly Meaning[], text: string): boolean {
  const files = meanings.flatMap(({ file }) => file ?? [])
  if (files.length > 0) return !files.some(({ inline }) => isInline(inline, text))
  return !meanings.some(({ program }) => program !== undefined) && isFileUrl(text)
}

/** Whether text is a `file:` URL, which some libraries treat as a path. */
export function isFileUrl(text: string): boolean {
  return URL.parse(text)?.protocol === 'file:'
}

// --- Limits for the components of tenants ---

export type LimitName =
  | 'lineBytes'
  | 'mergedLineBytes'
  | 'frameBytes'
  | 'readBytes'
  | 'fingerprintLines'
  | 'keptMilliseconds'
  | 'prefetched'
  | 'pollers'
  | 'bufferEvents'
  | 'pipelineBufferEvents'
  | 'bufferBytes'
  | 'batchBytes'
  | 'batchEvents'
  | 'concurrency'

interface Limit {
  readonly unit: 'bytes' | 'number'
  /** Limit for namespaced resources, unless a TenantPolicy sets another one. */
  readonly cap: number
  readonly description: string
  /** The field of a TenantPolicy, if it is not below `spec.limits`. */
  readonly field?: 'maxReadBytes'
}

const mebibyte = 1024 * 1024

/** The limits, by the name of the field below `spec.limits` of a TenantPolicy. */
export const limits: Readonly<Record<LimitName, Limit>> = {
  lineBytes: { unit: 'bytes', cap: 4 * mebibyte, description: 'Maximum `max_line_bytes` of a source.' },
  mergedLineBytes: { unit: 'bytes', cap: 16 * mebibyte, description: 'Maximum `max_merged_line_bytes` of a source.' },
  frameBytes: {
    unit: 'bytes',
    cap: 16 * mebibyte,
    description: 'Maximum length of a frame or message that a codec accepts.',
  },
  readBytes: {
    unit: 'bytes',
    cap: 4 * mebibyte,
    description: 'Maximum `max_read_bytes` of a source.',
    field: 'maxReadBytes',
  },
  fingerprintLines: { unit: 'number', cap: 1000, description: 'Maximum number of lines that identify a file.' },
  keptMilliseconds: {
    unit: 'number',
    cap: 3_600_000,
    description: 'Maximum time in milliseconds for which a source keeps data about deleted pods.',
  },
  prefetched: {
    unit: 'number',
    cap: 10_000,
    description: 'Maximum number of unacknowledged messages of a source.',
  },
  pollers: { unit: 'number', cap: 32, description: 'Maximum number of tasks with which a source polls in parallel.' },
  bufferEvents: { unit: 'number', cap: 20_000, description: 'Maximum number of events in one memory buffer.' },
  pipelineBufferEvents: {
    unit: 'number',
    cap: 50_000,
    description: 'Maximum number of events in all memory buffers of a Pipeline together.',
  },
  bufferBytes: { unit: 'bytes', cap: 10 * 1024 * mebibyte, description: 'Maximum size of one disk buffer in bytes.' },
  batchBytes: { unit: 'bytes', cap: 32 * mebibyte, description: 'Maximum size of one batch in bytes.' },
  batchEvents: { unit: 'number', cap: 100_000, description: 'Maximum number of events in one batch.' },
  concurrency: { unit: 'number', cap: 200, description: 'Maximum number of concurrent requests of one sink.' },
}

// --- Addresses ---

export interface Authority {
  readonly host: string
  readonly port: number | undefined
}

/** Literal hosts of an address, as a connection would interpret them, with their ports. Commas separate several hosts. */
export function authoritiesOf({ ports, bare }: AddressMeaning, text: string): Authority[] {
  // URL parsers ignore these characters, so they must not hide a host.
  const plain = text.replaceAll(/[\t\n\r]/g, '').replaceAll(/^[\0-\x20]+|[\0-\x20]+$/g, '')
  const match = /^([a-z][a-z0-9+.-]*):[\\/]*/i.exec(plain)
  const named = match?.[1]?.toLowerCase()
  const isNamed = named !== undefined && (Object.hasOwn(ports, named) || plain.includes('://'))
  const scheme = isNamed ? named : bare
  if (scheme === undefined) return []
  // Ignore slashes before a host without a scheme too, because a component may later put a scheme before the text.
  const rest = isNamed ? plain.slice((match as RegExpExecArray)[0].length) : plain.replace(/^[\\/]+/, '')
  const authority = /^[^/\\?#]*/.exec(rest)?.[0] ?? ''
  return authority
    .slice(authority.lastIndexOf('@') + 1)
    .split(',')
    .filter((part) => part !== '')
    .map((part) => authorityOf(part, ports[scheme]))
}

function authorityOf(part: string, defaultPort: number | undefined): Authority {
  // `URL` normalizes a host as a connection would: 0x7f.1, 2130706433, [::ffff:7f00:1]. It would lose port 80 and a port that is a
  // template, so the port is parsed separately.
  const port = /:(\d+)$/.exec(part)?.[1]
  const given = part.includes('{{') ? null : URL.parse(`http://${part}`)
  const host = given?.hostname ?? part.replace(/:[^:\]]*$/, '')
  return {
    host: host
      .replace(/^\[|\]$/g, '')
      .toLowerCase()
      .replace(/\.$/, ''),
    port: port === undefined ? defaultPort : Number(port),
  }
}

// --- Reading declarations ---

/** The meaning of an option; empty if it declares none. */
export function meaningOf(schema: Schema): Meaning {
  return (schema['x-means'] ?? {}) as Meaning
}

/**
 * Paths of tables that use the identity of the agent, because none of their sets of credentials is complete. `value` contains the
 * effective options: a member with an absent reference is absent.
 */
export function implicitIdentities(
  schema: Schema,
  value: unknown,
  path: readonly string[] = [],
): (readonly string[])[] {
  const table = value ?? (schema['x-optional'] === true ? undefined : schema['default'])
  if (!isTable(table)) return []
  const found: (readonly string[])[] = []
  for (const variant of variantsFor(schema, table)) {
    const words = new Map<string, boolean>()
    for (const { name, schema: member, value: given } of declaredMembers(variant, table)) {
      const { explicit } = meaningOf(member)
      if (explicit !== undefined) words.set(explicit, (words.get(explicit) ?? true) && given !== undefined)
      found.push(...implicitIdentities(member, given, [...path, name]))
    }
    if (words.size > 0 && ![...words.values()].includes(true)) found.push(path)
  }
  return found
}
