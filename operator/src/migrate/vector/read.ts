// Finds a Vector configuration in a TOML, YAML or JSON file, in `customConfig` of Helm values, in a ConfigMap or a Secret, or in a custom
// resource of an operator for Vector.

import { formatOf, type Segments } from '@penstock/agent/config'
import { isTable } from '@penstock/agent/schema'
import { renderedIn } from '../chart-templates.ts'
import {
  allAt,
  type Root as FoundRoot,
  memberAt,
  type Places,
  type Reading,
  type Table,
  type TableDocument,
  tableDocuments,
  withPaths,
} from '../documents.ts'
import type { AggregatorPods, Gap, NamedText } from '../draft.ts'
import { isBlank } from '../inner.ts'
import { withQuotedVariables } from './bare-variables.ts'
import { type Mount, mountsIn } from './mounts.ts'
import { isOldChart, oldChartConfig } from './old-chart.ts'
import { settings } from './settings.ts'

/** One configuration with the places of its parts. */
export interface Root extends FoundRoot, Places {
  /** The resource of the operator for Vector that contains it. */
  readonly resource?: Resource
  /** The pods of the chart, if it does not run one on every node. */
  readonly aggregator?: AggregatorPods
  /** The document that contains it. */
  readonly unit?: string
  /** Whether it is the whole configuration of an agent, as in values of a chart. */
  readonly isWhole?: boolean
  /** The folders of the node that the chart mounts. */
  readonly mounts?: readonly Mount[]
}

export interface Resource {
  readonly kind: string
  readonly name: string
  readonly namespace?: string | undefined
  /** Whether it reads only the pods of its namespace. */
  readonly isConfined: boolean
}

/** Resources of the operator for Vector that describe agents and contain no components. */
const ofAgents: ReadonlySet<string> = new Set(['Vector', 'VectorAggregator', 'ClusterVectorAggregator'])

const printed = (inputs: readonly string[]) => ({ type: 'console', inputs, encoding: { codec: 'json' } })
const exported = (inputs: readonly string[]) => ({ type: 'prometheus_exporter', inputs, address: '0.0.0.0:9090' })
const listening = ['datadog_agent', 'fluent', 'logstash', 'splunk_hec', 'statsd', 'syslog', 'vector']
const aggregator: Table = {
  sources: Object.fromEntries([...listening, 'internal_metrics'].map((type) => [type, { type }])),
  sinks: {
    prom_exporter: exported(['internal_metrics']),
    stdout: printed(listening.filter((type) => type !== 'statsd')),
  },
}

/** The default configurations of the chart, by the role of its agents. */
const chartConfigs: Readonly<Record<string, Table>> = {
  Agent: {
    sources: Object.fromEntries(
      ['kubernetes_logs', 'host_metrics', 'internal_metrics'].map((type) => [type, { type }]),
    ),
    sinks: {
      prom_exporter: exported(['host_metrics', 'internal_metrics']),
      stdout: printed(['kubernetes_logs']),
    },
  },
  Aggregator: aggregator,
  'Stateless-Aggregator': aggregator,
}

const isConfig = (table: Table) => ['sources', 'transforms', 'sinks'].some((list) => isTable(table[list]))

/** Whether a text contains a Vector configuration. */
export function isVector({ file, text }: NamedText): boolean {
  return rootsOf({ file, text }, { above: 0 }, []).length > 0
}

/** All configurations of a file. Parts that cannot be read become gaps. */
export function readRoots(given: NamedText, gaps: Gap[]): readonly Root[] {
  const before = gaps.length
  const found = rootsOf(given, { above: 0, indent: given.indent ?? 0 }, gaps)
  const roots = found.length > 0 ? found : ofSettings(given)
  if (roots.length === 0 && gaps.length === before) {
    gaps.push({
      file: given.file,
      line: 1,
      subject: given.file,
      reason: isBlank(given.text) ? 'the file is empty' : 'the file has no `sources`, `transforms` or `sinks`',
      nearest: 'Pass the file that has them, or set `--from` to the agent that the file configures.',
    })
  }
  return roots
}

/** A file of a configuration that contains only settings, or tests. */
const ofSettings = (given: NamedText): readonly Root[] =>
  tableDocuments(withQuotedVariables(given), {
    format: formatOf(given.file),
    above: 0,
    gaps: [],
    maxProblems: 0,
  }).flatMap((document) => {
    const names = Object.keys(document.value)
    const isKnown = names.every((name) => name === 'tests' || Object.hasOwn(settings, name))
    return isKnown && names.length > 0 ? [document.below([], document.value)] : []
  })

/** @param place the place of the text in the file */
function rootsOf(given: NamedText, place: Pick<Reading, 'above' | 'indent'>, gaps: Gap[]): readonly Root[] {
  const text = withQuotedVariables(given)
  return tableDocuments(text, { format: formatOf(given.file), ...place, gaps, maxProblems: 5 }).flatMap(
    (document, index) => rootsIn(document, gaps).map((root) => ({ ...root, unit: String(index) })),
  )
}

/** The folders of a configuration in which each file contains one component, and the name of a file is its id. */
export const componentFolders = ['sources', 'transforms', 'sinks', 'enrichment_tables'] as const
const ofComponent = new RegExp(
  `(?:^|[/\\\\])(${componentFolders.join('|')})[/\\\\]([^/\\\\]+)\\.(?:ya?ml|toml|json)$`,
  'i',
)

/** A file that contains one component. */
function componentIn(document: TableDocument): readonly Root[] {
  const { file, value } = document
  const [, list, id] = ofComponent.exec(file) ?? []
  if (list === undefined || id === undefined || typeof value['type'] !== 'string') return []
  return [{ file, config: { [list]: { [id]: value } }, ...withPaths(document, (path) => path.slice(2)) }]
}

function rootsIn(document: TableDocument, gaps: Gap[]): readonly Root[] {
  const { file, value, lineOf, below, inside } = document
  const { kind, spec, customConfig, apiVersion, role } = value
  const isOfOperator =
    typeof apiVersion === 'string' && /^(?:observability\.kaasops|vector\.zcentric)\./.test(apiVersion)
  if (isOfOperator && typeof kind === 'string' && ofAgents.has(kind)) {
    gaps.push({
      file,
      line: lineOf(['kind']),
      subject: kind,
      reason: 'the resource describes agents, which are not part of a Pipeline',
      nearest:
        'The Agent `node` of the installation runs Pipelines. Set resources and tolerations there, or in another Agent.',
      isReplaced: true,
    })
    return [{ ...below([], {}), resource: resourceOf(value, kind) }]
  }
  const isValues = (isTable(customConfig) && isConfig(customConfig)) || isOfChart(value)
  const pods = isValues && typeof role === 'string' && /aggregator/i.test(role) ? { aggregator: podsOf(value) } : {}
  if (isValues && 'aggregator' in pods) {
    gaps.push({
      file,
      line: lineOf(['role']),
      subject: `role: ${role}`,
      reason:
        'an Agent of mode Aggregator runs the Pipeline; sources that read a node stay with the agents of the nodes',
      nearest: 'Apply the Agent, too. Set other values of the pods in its `spec.podTemplate`.',
      isReplaced: true,
    })
  }
  if (isOldChart(value) && !(isTable(customConfig) && isConfig(customConfig))) {
    const { config, at } = oldChartConfig(value)
    return [{ file, config, ...withRawPlaces(document, at) }]
  }
  if (isTable(customConfig) && isConfig(customConfig))
    return [{ ...below(['customConfig'], renderedIn(customConfig)), ...pods, mounts: mountsIn(value), isWhole: true }]
  if (kind === undefined && isOfChart(value)) return [{ ...withoutConfig(value, file, lineOf, gaps), ...pods }]
  if (typeof kind === 'string' && isTable(spec) && isConfig(spec))
    return [{ ...below(['spec'], spec), resource: resourceOf(value, kind) }]
  const texts = [...(kind === 'ConfigMap' ? ['data'] : []), ...(kind === 'Secret' ? ['data', 'stringData'] : [])]
  if (texts.length > 0) {
    return texts.flatMap((list) =>
      Object.entries(isTable(value[list]) ? value[list] : {}).flatMap(([name, inner]) => {
        if (typeof inner !== 'string') return []
        const isEncoded = kind === 'Secret' && list === 'data'
        const plain = isEncoded ? Buffer.from(inner, 'base64').toString('utf8') : inner
        const { text, above, indent } = inside([list, name], plain)
        const found = rootsOf({ file: name, text }, { above, indent }, []).map((root) => ({ ...root, file }))
        // The lines of an encoded text are not those of the file.
        return isEncoded ? found.map((root) => ({ ...root, ...allAt(lineOf([list, name])) })) : found
      }),
    )
  }
  return isConfig(value) ? [below([], value)] : componentIn(document)
}

/** The places of components whose options are partly in the text `rawConfig`. @param at the path in the values */
function withRawPlaces(document: TableDocument, at: (path: Segments) => Segments): Places {
  const placeOf: Places['placeOf'] = (path, position) => {
    const [kind = '', id = '', ...option] = path
    const [base, name] = [at([kind, id]), option[0]]
    const text = memberAt(document.value, [...base, 'rawConfig'])
    const isOutside = name === undefined || memberAt(document.value, [...base, name]) !== undefined
    if (typeof text !== 'string' || isOutside) return document.placeOf(at(path), position)
    const { above, indent } = document.inside([...base, 'rawConfig'], text)
    const reading: Reading = { format: 'toml', above, indent, gaps: [], maxProblems: 0 }
    const [raw] = tableDocuments({ file: document.file, text }, reading)
    return raw === undefined ? document.placeOf(base) : raw.placeOf(option, position)
  }
  return { placeOf, lineOf: (path) => placeOf(path).line }
}

/** The pods of the chart as those of an Agent. */
function podsOf(values: Table): AggregatorPods {
  const { replicas, autoscaling, persistence, resources, ...others } = values
  const scaled = isTable(autoscaling) && autoscaling['enabled'] === true ? autoscaling : undefined
  const stored = isTable(persistence) && persistence['enabled'] === true && !/^Stateless/.test(String(values['role']))
  const placed = ['tolerations', 'nodeSelector', 'affinity', 'topologySpreadConstraints'].flatMap((name) => {
    const value = others[name]
    const isEmpty = !isTable(value) || Object.keys(value).length === 0
    return Array.isArray(value) ? (value.length === 0 ? [] : [[name, value]]) : isEmpty ? [] : [[name, value]]
  })
  const { storageClassName, size = '10Gi' } = stored ? persistence : {}
  return {
    aggregator: {
      ...(scaled === undefined
        ? { replicas: typeof replicas === 'number' ? replicas : 1 }
        : {
            autoscaling: {
              minReplicas: scaled['minReplicas'] ?? 1,
              maxReplicas: scaled['maxReplicas'] ?? 10,
              targetCPU: scaled['targetCPUUtilizationPercentage'] ?? 80,
            },
          }),
      ...(stored ? { storage: { size, ...(typeof storageClassName === 'string' && { storageClassName }) } } : {}),
      ...Object.fromEntries(placed),
    },
    ...(isTable(resources) && Object.keys(resources).length > 0 && { resources }),
  }
}

/** Whether a table contains chart values, whose configuration is in `customConfig` or missing. */
function isOfChart({ role, customConfig, image }: Table): boolean {
  if (typeof role === 'string' && Object.hasOwn(chartConfigs, role)) return true
  if (isTable(customConfig) && Object.keys(customConfig).length === 0) return true
  const repository = isTable(image) ? image['repository'] : undefined
  return typeof repository === 'string' && /(?:^|\/)timberio\/vector$/.test(repository)
}

/** Values without a configuration: the chart's default applies, unless the values refer to a ConfigMap. */
function withoutConfig(values: Table, file: string, lineOf: (path: Segments) => number, gaps: Gap[]): Root {
  const { role, existingConfigMaps } = values
  const subject = 'customConfig'
  if (Array.isArray(existingConfigMaps) && existingConfigMaps.length > 0) {
    gaps.push({
      file,
      line: lineOf(['existingConfigMaps']),
      subject: 'existingConfigMaps',
      reason: `the configuration is in the ConfigMap \`${existingConfigMaps.join('`, `')}\``,
      nearest: `Convert it: \`kubectl get configmap ${String(existingConfigMaps[0])} -o yaml | penstock convert -f -\`.`,
    })
    return { file, config: {}, ...allAt(lineOf(['existingConfigMaps'])) }
  }
  const name = typeof role === 'string' && Object.hasOwn(chartConfigs, role) ? role : 'Aggregator'
  const line = lineOf([role === undefined ? 'customConfig' : 'role'])
  gaps.push({
    file,
    line,
    subject,
    reason: `the values have no configuration, so the chart's default for the role \`${name}\` applies`,
    nearest: 'If other values have `customConfig`, convert those.',
    isReplaced: true,
  })
  return { file, config: chartConfigs[name] as Table, ...allAt(line) }
}

function resourceOf({ metadata, apiVersion }: Table, kind: string): Resource {
  const { name, namespace } = isTable(metadata) ? metadata : {}
  return {
    kind,
    // The same kind of another operator reads all pods.
    isConfined: kind === 'VectorPipeline' && !/^vector\.zcentric\./.test(String(apiVersion)),
    name: typeof name === 'string' ? name : kind.toLowerCase(),
    namespace: typeof namespace === 'string' ? namespace : undefined,
  }
}

/** Merges the components of several resources. As the operator does, prefixes ids with the name of the resource. */
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
    const places = withPaths(root, (path) =>
      path.map((segment, index) => (index === 1 ? String(segment).replace(prefix, '') : segment)),
    )
    return { ...root, config: { ...config, ...Object.fromEntries(lists) }, ...places }
  })
}
