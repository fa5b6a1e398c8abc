// Annotations of pods that change how Filebeat reads their lines: `co.elastic.logs/json.…`, `include_lines` and `exclude_lines`. A program
// reads them from the metadata of the pod, because the configuration does not contain them.

import { textLiteral } from '@penstock/agent/config'
import type { Step } from '../draft.ts'
import { indent } from '../otel/text.ts'
import { expansion, intoRoot, withoutNulls } from './decoders.ts'

/** The annotations that programs read, as a text for reports. */
export const readHints = '`enabled`, `json.…`, `include_lines` and `exclude_lines`'
/** The annotations that nothing reads. */
export const unreadHints = 'others, such as `multiline.…`, `module`, `fileset`, `processors.…`, `pipeline` and `raw`,'

/** Collects the annotations of a pod without their prefix. Those for its container take precedence. */
const collected = (prefix: string): readonly string[] => [
  'annotations = object(%orchestrator.pod_annotations) ?? {}',
  `start = ${textLiteral(`${prefix}.logs/`)}`,
  `own = ${textLiteral(`${prefix}.logs.`)} + (string(%orchestrator.container_name) ?? "") + "/"`,
  'shared = map_keys(filter(annotations) -> |key, _value| { starts_with(key, start) }) -> |key| { replace(key, start, "", count: 1) }',
  'special = map_keys(filter(annotations) -> |key, _value| { starts_with(key, own) }) -> |key| { replace(key, own, "", count: 1) }',
  '%hints = merge(shared, special)',
]

/** How a `filestream` input writes decoded members. The older inputs write a text of their own in place of the message, and have no target. */
const written = (isStream: boolean): readonly string[] =>
  isStream
    ? [
        '  target = string(%hints."json.target") ?? ""',
        '  if is_object(decoded) && target != "" {',
        '    . = object(set(., split(target, "."), decoded) ?? null) ?? .',
      ]
    : ['  if is_object(decoded) && %hints."json.keys_under_root" != "true" {', '    .json = decoded']

/** Decodes a line of JSON with the options in the annotations, as the input does. */
const jsonLines = (isStream: boolean): readonly string[] => [
  'if length(filter(object!(%hints)) -> |key, _value| { starts_with(key, "json.") }) > 0 {',
  '  name = string(%hints."json.message_key") ?? ""',
  '  adds_error = %hints."json.add_error_key" == "true"',
  '  decoded = parse_json(string(.message) ?? "") ?? null',
  '  if is_object(decoded) {',
  '    member = get(decoded, [name]) ?? null',
  '    %line = string(member) ?? ""',
  '    if name != "" {',
  '      if adds_error && !is_string(member) {',
  `        decoded.error = { "message": "Key '" + name + "' not found", "type": "json" }`,
  '      }',
  ...(isStream ? [] : ['      decoded = object(set(decoded, [name], %line) ?? null) ?? {}']),
  '    }',
  ...withoutNulls('string(.message) ?? ""').map((line) => `    ${line}`),
  '    del(.message)',
  '  } else if adds_error {',
  '    decoded = { "error": { "message": "Error decoding JSON", "type": "json" } }',
  '    if name != "" {',
  '      %line = string(.message) ?? ""',
  '      decoded = object(set(decoded, [name], %line) ?? null) ?? {}',
  ...(isStream ? [] : ['      del(.message)']),
  '    }',
  '  }',
  `  ${expansion}`,
  ...written(isStream),
  '  } else if is_object(decoded) && %hints."json.overwrite_keys" == "true" {',
  indent(indent(intoRoot(true, false).join('\n'))),
  '  } else if is_object(decoded) {',
  indent(indent(intoRoot(false, false).join('\n'))),
  '  }',
  ...(isStream ? ['  if is_object(decoded) && (string(%line) ?? "") != "" { .message = %line }'] : []),
  '}',
]

/** Whether one of the regular expressions in an annotation, which commas separate, matches the line. */
const matching = (name: string): string =>
  `filter(split(string(%hints.${name}) ?? "", ",")) -> |_index, item| { match(line, to_regex(strip_whitespace(string!(item))) ?? r'^\\b$') }`

const lines = [
  'line = string(%line) ?? string(.message) ?? ""',
  `is_wanted = (string(%hints.include_lines) ?? "") == "" || length(${matching('include_lines')}) > 0`,
  `is_wanted && ((string(%hints.exclude_lines) ?? "") == "" || length(${matching('exclude_lines')}) == 0)`,
].join('\n')

/**
 * The steps that do what the annotations of a pod ask for.
 * @param isStream whether the input of pods is `filestream`, whose parser for JSON has other options
 */
export const hintSteps = (prefix: string, isStream: boolean): readonly Step[] => [
  { type: 'remap', text: [...collected(prefix), ...jsonLines(isStream)].join('\n') },
  { type: 'filter', text: lines },
]
