// The filter `kubernetes`, which adds the metadata of pods to records, and merges the fields of lines in JSON into them.

import { fieldLiteral, textLiteral } from '@penstock/agent/config'
import type { Step } from '../draft.ts'
import { annotatedLines, excludeStep } from './annotations.ts'
import { apart, together } from './own-time.ts'
import { parserLines } from './parsers.ts'
import { type Context, common, matched, type Plugin } from './plugin.ts'
import { entriesOf, isOn, lastValue, type Section } from './sections.ts'

type Steps = readonly Step[]

const own = "the source uses the agent's access to the API server"

/** Options that are a gap if they are enabled. */
const sources: NonNullable<Plugin<Steps>['itself']> = Object.fromEntries(
  (
    [
      ['use_journal', 'the source reads the log files of pods, not the journal'],
      ['use_tag_for_meta', 'the source also has the labels and annotations of pods'],
      ['dummy_meta', 'the source has the actual metadata of pods'],
      ['owner_references', 'the source does not read the owners of pods'],
      ['use_pod_association', 'the source does not look up pods by addresses in records'],
      ['namespace_metadata_only', 'the source reads metadata of pods, too'],
    ] as const
  ).map(([name, reason]) => [
    name,
    { how: own, unless: /^(?:on|true|yes|1)$/i, reason, nearest: 'Remove the option, or fields in a remap transform.' },
  ]),
)

export const kubernetes: Plugin<Steps> = {
  name: 'kubernetes',
  becomes:
    'a remap transform that uses the metadata of `orchestrator_logs`; a filter transform for the exclusion annotation',
  options: {
    ...common,
    ...matched,
    merge_log: '`parse_json` of the line',
    merge_json_log: 'as `Merge_Log`, under its older name',
    merge_log_key: 'the object for the parsed line',
    merge_log_trim: 'whether to remove newlines at the end of the texts in the parsed line',
    keep_log: 'without it, the line is deleted',
    labels: 'whether to include labels',
    annotations: 'whether to include annotations',
    namespace_labels: 'an object `kubernetes_namespace`',
    namespace_annotations: 'a gap if enabled',
    'k8s-logging.exclude': 'a filter transform',
    'k8s-logging.parser': 'the parser that the annotation names, with `Merge_Log`',
    merge_parser: 'the parser of the line, with `Merge_Log`',
  },
  itself: {
    ...sources,
    ...Object.fromEntries(
      [
        'kube_url',
        'kube_ca_file',
        'kube_ca_path',
        'kube_token_file',
        'kube_token_ttl',
        'kube_tag_prefix',
        'regex_parser',
        'buffer_size',
        'use_kubelet',
        'kubelet_port',
        'kubelet_host',
        'kube_meta_cache_ttl',
        'kube_meta_namespace_cache_ttl',
        'kube_token_command',
        'tls.verify',
        'tls.debug',
        'dns_retries',
        'dns_wait_time',
        'cache_use_docker_id',
        'kube_meta_preload_cache_dir',
        'tls.verify_hostname',
        'tls.vhost',
      ].map((name): [string, string] => [name, own]),
    ),
  },
  build: (section, context) => {
    const steps: Step[] = []
    if (isOn(lastValue(section, 'k8s-logging.exclude'), false)) {
      steps.push(excludeStep)
    }
    const facts = [
      ['pod_name', 'pod_name'],
      ['namespace_name', 'pod_namespace'],
      ['pod_id', 'pod_uid'],
      ...(isOn(lastValue(section, 'labels'), true) ? [['labels', 'pod_labels']] : []),
      ...(isOn(lastValue(section, 'annotations'), true) ? [['annotations', 'pod_annotations']] : []),
      ['host', 'pod_node_name'],
      ['pod_ip', 'pod_ip'],
      ['container_name', 'container_name'],
      ['container_hash', 'container_image_id'],
      ['container_image', 'container_image'],
    ].map(([to, from]) => `  ${textLiteral(to ?? '')}: %orchestrator.${from},`)
    const merges = lastValue(section, 'merge_log') ?? lastValue(section, 'merge_json_log')
    const lines = [
      // The metadata replaces fields of the line with the same name.
      ...(isOn(merges, false) ? mergeLines(section, context) : []),
      '.kubernetes = filter({',
      ...facts,
      '  "docker_id": replace(string(%orchestrator.container_id) ?? "", r\'^.*://\', ""),',
      '}) -> |_key, value| { value != null && value != {} && value != "" }',
    ]
    if (isOn(lastValue(section, 'namespace_labels'), false)) {
      lines.push(
        '.kubernetes_namespace = filter({ "name": %orchestrator.pod_namespace, "labels": %orchestrator.namespace_labels }) -> |_key, value| { value != null && value != {} }',
      )
    }
    if (isOn(lastValue(section, 'namespace_annotations'), false)) {
      context.gap(
        section,
        'kubernetes: Namespace_Annotations',
        'the source does not read annotations of namespaces',
        'Use namespace labels.',
      )
    }
    steps.push({ type: 'remap', text: lines.join('\n') })
    return steps
  },
}

/** Lines that parse `.log` into `merged` by the parser of the filter, or as JSON. */
function mergedLines(section: Section, context: Context): readonly string[] {
  const entry = entriesOf(section, 'merge_parser').at(-1)
  const lines = entry === undefined ? undefined : parserLines(entry.value, 'string(.log) ?? ""', context, entry)
  if (lines === undefined) return ['merged = object(.log) ?? parse_json(string(.log) ?? "") ?? null']
  return [...lines, 'merged = parsed']
}

/** Only a line with such an escape sequence can have texts that end in a newline, or in the two characters of its escape sequence. */
const trimLines = [
  `  if contains(string(.log) ?? "", ${textLiteral('\\n')}) || contains(string(.log) ?? "", ${textLiteral('\\r')}) {`,
  '    merged = map_values(object!(merged)) -> |value| {',
  `      if is_string(value) { replace(string!(value), r'(?:\\n|\\\\[nr])+$', "") } else { value }`,
  '    }',
  '  }',
]

function mergeLines(section: Section, context: Context): string[] {
  const under = lastValue(section, 'merge_log_key')
  const keeps = isOn(lastValue(section, 'keep_log'), true)
  if (under === undefined) {
    context.replaced(
      section,
      'kubernetes: Merge_Log',
      'a field `timestamp` of a line would replace the time of the event, so it becomes `log_timestamp`',
      'Set `Merge_Log_Key`, or use `log_timestamp`.',
    )
  }
  const isAnnotated = isOn(lastValue(section, 'k8s-logging.parser'), false)
  const lines = mergedLines(section, context)
  return [
    ...(isAnnotated ? annotatedLines(section, context, lines) : lines),
    'if is_object(merged) {',
    ...(isOn(lastValue(section, 'merge_log_trim'), true) ? trimLines : []),
    ...(keeps ? [] : ['  del(.log)']),
    ...(under === undefined
      ? [`  ${apart('merged')}`, '  . = merge(., object!(merged))']
      : [
          // Only a field of the record itself has another name.
          `  ${together('merged')}`,
          `  ${fieldLiteral([under])} = merged`,
        ]),
    '}',
  ]
}
