// The meaning of an option's value, beyond its type. A declaration states it once, beside the option; rules for tenants, ports of
// NetworkPolicies, quotas and reference pages are derived from it. No rule identifies an option by its name.

import { declaredMembers, isTable, type Schema, variantsFor } from './walk.ts'

/** Facets of one option, as `x-means`. Text and a secret may be more than data at the same time: an address with a password. */
export interface Meaning {
  /** Data and nothing else: it opens no file and no connection, and names no identity. */
  readonly text?: true
  /** Never printed. */
  readonly secret?: true
  readonly program?: 'program' | 'condition'
  readonly file?: FileMeaning
  readonly address?: AddressMeaning
  /**
   * A credential that is used in place of the agent's own identity. All members of a table with the same word belong together; if a table
   * has such members and no word is complete, the component uses the identity of the agent or its node.
   */
  readonly explicit?: string
  /**
   * The owner of the value in a namespaced resource: the operator itself; the agent, except on a user's own machine; or only the owner
   * of a cluster kind, because the value reaches beyond a namespace.
   */
  readonly owner?: 'operator' | 'agent' | 'cluster'
  /** If an operator runs the agent, the operator or the agent sets the value and overrides the user's. */
  readonly fixed?: true
  /** The quantity that the number bounds. */
  readonly limit?: LimitName
  /** The lowest number in a namespaced resource. */
  readonly tenantMinimum?: number
}

export interface FileMeaning {
  readonly use: 'read' | 'write' | 'folder' | 'glob'
  /** The form of text that is in place of a file's name. */
  readonly inline?: InlineForm
  /** A name should be an absolute path; a relative one brings a warning, because it depends on the folder in which the agent starts. */
  readonly absolute?: true
  /** The paths lie below a folder that the agent or the operator chooses. */
  readonly within?: 'pod logs' | 'sidecar volume'
}

export interface AddressMeaning {
  /** The schemes with their usual ports. */
  readonly ports: Readonly<Record<string, number>>
  /** The scheme of text that names none: a host, perhaps with a port. */
  readonly bare?: string
  /** Other options give the rest of the host. */
  readonly part?: true
}

// --- Under an operator ---

/** The treatment of an option under an operator. */
export interface OperatorTreatment {
  /** In a Pipeline, Source or Sink of a namespace. `content`: text and Secrets, and no name of a file. */
  readonly namespaced: 'honoured' | 'content' | 'refused' | 'fixed'
  /** In a ClusterPipeline, ClusterSource or ClusterSink. A fixed option has no effect, and a warning reports it. */
  readonly cluster: 'honoured' | 'fixed'
  /** For the reference; undefined where both obey it. */
  readonly note?: string
}

export function operatorTreatment({ owner, fixed, file }: Meaning): OperatorTreatment {
  const cluster = fixed === true ? 'fixed' : 'honoured'
  if (owner !== undefined) {
    const refused =
      fixed === true
        ? 'refused in namespaced resources, and without effect in others'
        : 'refused in namespaced resources'
    const why = {
      operator: 'the operator sets it',
      agent: 'the agent sets it',
      cluster: 'it looks beyond a namespace',
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
        note: 'Under an operator: refused in namespaced resources, because it names a file.',
      }
    : {
        namespaced: 'content',
        cluster,
        note: 'Under an operator: in namespaced resources the content itself, also from a Secret, and no name of a file.',
      }
}

// --- Content in place of a file's name ---

export type InlineForm = 'pem' | 'json' | 'data'

/** Whether text is content and no name. Those who read an option and those who judge it both decide by this. */
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
 * Whether text names a file: by the option that it is given to, or by its scheme, as the parser of URLs reads it. The scheme counts in plain
 * text, too: opens.test.ts sees no such option opened, but a mistake there would cost a file.
 */
export function namesFile(meanings: readonly Meaning[], text: string): boolean {
  const files = meanings.flatMap(({ file }) => file ?? [])
  if (files.length > 0) return !files.some(({ inline }) => isInline(inline, text))
  return !meanings.some(({ program }) => program !== undefined) && isFileUrl(text)
}

/** Whether text is a URL of a file, which some libraries read like a path. */
export function isFileUrl(text: string): boolean {
  return URL.parse(text)?.protocol === 'file:'
}

// --- Limits of what a tenant's component holds ---

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
  /** Limit for namespaced kinds, unless a TenantPolicy sets another one. */
  readonly cap: number
  readonly description: string
  /** The field of a TenantPolicy, where it does not stand below `spec.limits`. */
  readonly field?: 'maxReadBytes'
}

const mebibyte = 1024 * 1024

/** By the name of the field below `spec.limits` of a TenantPolicy. */
export const limits: Readonly<Record<LimitName, Limit>> = {
  lineBytes: { unit: 'bytes', cap: 4 * mebibyte, description: 'Greatest `max_line_bytes` of a source.' },
  mergedLineBytes: { unit: 'bytes', cap: 16 * mebibyte, description: 'Greatest `max_merged_line_bytes` of a source.' },
  frameBytes: { unit: 'bytes', cap: 16 * mebibyte, description: 'Longest frame or message that a codec accepts.' },
  readBytes: {
    unit: 'bytes',
    cap: 4 * mebibyte,
    description: 'Greatest `max_read_bytes` of a source.',
    field: 'maxReadBytes',
  },
  fingerprintLines: { unit: 'number', cap: 1000, description: 'Lines that identify a file.' },
  keptMilliseconds: {
    unit: 'number',
    cap: 3_600_000,
    description: 'Milliseconds for which a source keeps data about deleted pods.',
  },
  prefetched: {
    unit: 'number',
    cap: 10_000,
    description: 'Messages that a source holds before they are acknowledged.',
  },
  pollers: { unit: 'number', cap: 32, description: 'Tasks with which a source polls side by side.' },
  bufferEvents: { unit: 'number', cap: 20_000, description: 'Events in one memory buffer.' },
  pipelineBufferEvents: {
    unit: 'number',
    cap: 50_000,
    description: 'Events in all memory buffers of a Pipeline together.',
  },
  bufferBytes: { unit: 'bytes', cap: 10 * 1024 * mebibyte, description: 'Bytes of one buffer on disk.' },
  batchBytes: { unit: 'bytes', cap: 32 * mebibyte, description: 'Bytes of one batch.' },
  batchEvents: { unit: 'number', cap: 100_000, description: 'Events of one batch.' },
  concurrency: { unit: 'number', cap: 200, description: 'Requests of one sink in flight.' },
}

// --- Addresses ---

export interface Authority {
  readonly host: string
  readonly port: number | undefined
}

/** Literal hosts of an address, as a connection would read them, with their ports; several after commas. */
export function authoritiesOf({ ports, bare }: AddressMeaning, text: string): Authority[] {
  // The parser of URLs drops these, so a host that they split is still that host.
  const plain = text.replaceAll(/[\t\n\r]/g, '').replaceAll(/^[\0-\x20]+|[\0-\x20]+$/g, '')
  const match = /^([a-z][a-z0-9+.-]*):[\\/]*/i.exec(plain)
  const named = match?.[1]?.toLowerCase()
  const isNamed = named !== undefined && (Object.hasOwn(ports, named) || plain.includes('://'))
  const scheme = isNamed ? named : bare
  if (scheme === undefined) return []
  // Slashes before a host without a scheme are dropped like those after a scheme: such text becomes an address by a scheme before it.
  const rest = isNamed ? plain.slice((match as RegExpExecArray)[0].length) : plain.replace(/^[\\/]+/, '')
  const authority = /^[^/\\?#]*/.exec(rest)?.[0] ?? ''
  return authority
    .slice(authority.lastIndexOf('@') + 1)
    .split(',')
    .filter((part) => part !== '')
    .map((part) => authorityOf(part, ports[scheme]))
}

function authorityOf(part: string, usual: number | undefined): Authority {
  // The parser for the web reads an address as a connection would: 0x7f.1, 2130706433, [::ffff:7f00:1]. A port that is a template, or
  // the usual one of the web, would get lost there.
  const port = /:(\d+)$/.exec(part)?.[1]
  const given = part.includes('{{') ? null : URL.parse(`http://${part}`)
  const host = given?.hostname ?? part.replace(/:[^:\]]*$/, '')
  return {
    host: host
      .replace(/^\[|\]$/g, '')
      .toLowerCase()
      .replace(/\.$/, ''),
    port: port === undefined ? usual : Number(port),
  }
}

// --- Reading declarations ---

/** The meaning of an option; empty if it declares none. */
export function meaningOf(schema: Schema): Meaning {
  return (schema['x-means'] ?? {}) as Meaning
}

/**
 * Paths of tables that use the identity of the agent: they have members for credentials, and none of them is complete. `value` holds
 * the effective options: a member that an absent reference leaves out is absent.
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
