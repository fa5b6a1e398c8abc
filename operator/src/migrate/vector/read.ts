// The places of a configuration of Vector: a file in TOML, YAML or JSON, `customConfig` among the values of its Helm chart, a
// ConfigMap, or a custom resource of an operator for it.

import { formatOf, type Segments } from '@penstock/agent/config'
import { isTable } from '@penstock/agent/schema'
import { type Root as FoundRoot, type Table, type TableDocument, tableDocuments } from '../documents.ts'
import type { Gap, NamedText } from '../draft.ts'

/** One configuration with its places. */
export interface Root extends FoundRoot {
  /** The resource of the operator for Vector that holds it. */
  readonly resource?: Resource
}

export interface Resource {
  readonly kind: string
  readonly name: string
  readonly namespace?: string | undefined
}

/** Resources of the operator for Vector that describe agents, and hold no components. */
const ofAgents: ReadonlySet<string> = new Set(['Vector', 'VectorAggregator', 'ClusterVectorAggregator'])

const isConfig = (table: Table) => ['sources', 'transforms', 'sinks'].some((list) => isTable(table[list]))

/** Whether a text holds a configuration of Vector. */
export function isVector({ file, text }: NamedText): boolean {
  return rootsOf({ file, text }, 0, []).length > 0
}

/** All configurations of a file; what cannot be read is a gap. */
export function readRoots(given: NamedText, gaps: Gap[]): readonly Root[] {
  const before = gaps.length
  const roots = rootsOf(given, 0, gaps)
  if (roots.length === 0 && gaps.length === before) {
    gaps.push({
      file: given.file,
      line: 1,
      subject: given.file,
      reason: 'the file has no `sources`, `transforms` or `sinks`',
      nearest: 'Name the file that has them, or `--from` the agent that it is for.',
    })
  }
  return roots
}

/** @param above number of lines of the file before the text */
function rootsOf(given: NamedText, above: number, gaps: Gap[]): readonly Root[] {
  return tableDocuments(given, { format: formatOf(given.file), above, gaps, maxProblems: 5 }).flatMap((document) =>
    rootsIn(document, gaps),
  )
}

function rootsIn({ file, value, lineOf, below, inside }: TableDocument, gaps: Gap[]): readonly Root[] {
  const { kind, spec, data, customConfig, metadata, apiVersion, role } = value
  const isOfOperator = typeof apiVersion === 'string' && apiVersion.startsWith('observability.kaasops.io/')
  if (isOfOperator && typeof kind === 'string' && ofAgents.has(kind)) {
    gaps.push({
      file,
      line: lineOf(['kind']),
      subject: kind,
      reason: 'the resource describes agents, and a Pipeline has none',
      nearest: 'The Agent `node` of the installation runs Pipelines. Set resources and tolerations in an Agent.',
      isReplaced: true,
    })
    return [{ ...below([], {}), resource: resourceOf(kind, metadata) }]
  }
  if (isTable(customConfig) && isConfig(customConfig) && typeof role === 'string' && /aggregator/i.test(role)) {
    gaps.push({
      file,
      line: lineOf(['role']),
      subject: `role: ${role}`,
      reason: 'the agents of a node run the Pipeline, unless an Agent of mode Aggregator selects it',
      nearest: 'Create an Agent with `spec.mode: Aggregator` that selects the Pipeline.',
    })
  }
  if (isTable(customConfig) && isConfig(customConfig)) return [below(['customConfig'], customConfig)]
  if (typeof kind === 'string' && isTable(spec) && isConfig(spec))
    return [{ ...below(['spec'], spec), resource: resourceOf(kind, metadata) }]
  if (kind === 'ConfigMap' && isTable(data)) {
    return Object.entries(data).flatMap(([name, inner]) => {
      if (typeof inner !== 'string') return []
      const { text, above } = inside(['data', name], inner)
      return rootsOf({ file: name, text }, above, []).map((root) => ({ ...root, file }))
    })
  }
  return isConfig(value) ? [below([], value)] : []
}

function resourceOf(kind: string, metadata: unknown): Resource {
  const { name, namespace } = isTable(metadata) ? metadata : {}
  return {
    kind,
    name: typeof name === 'string' ? name : kind.toLowerCase(),
    namespace: typeof namespace === 'string' ? namespace : undefined,
  }
}

/** Components of several resources beside each other: as the operator does, their ids begin with the name of their resource. */
export function withScopes(roots: readonly Root[]): readonly Root[] {
  const resources = roots.filter(({ resource }) => resource !== undefined)
  if (resources.length < 2) return roots
  return roots.map((root) => {
    const { resource, config } = root
    if (resource === undefined) return root
    const prefix = `${[...(resource.namespace === undefined ? [] : [resource.namespace]), resource.name].join('-').replaceAll('.', '-')}-`
    const lists = (['sources', 'transforms', 'sinks'] as const).flatMap((kind) => {
      const table = config[kind]
      if (!isTable(table)) return []
      const entries = Object.entries(table).map(([id, given]) => {
        const inputs = isTable(given) ? given['inputs'] : undefined
        const list = Array.isArray(inputs) ? inputs.map((input) => `${prefix}${String(input)}`) : inputs
        return [`${prefix}${id}`, isTable(given) && list !== undefined ? { ...given, inputs: list } : given]
      })
      return [[kind, Object.fromEntries(entries)]]
    })
    const lineOf = (path: Segments) =>
      root.lineOf(path.map((segment, index) => (index === 1 ? String(segment).replace(prefix, '') : segment)))
    return { ...root, config: { ...config, ...Object.fromEntries(lists) }, lineOf }
  })
}
