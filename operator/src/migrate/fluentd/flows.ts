// biome-ignore-all lint/suspicious/noTemplateCurlyInString: placeholders of Fluentd are meant
// Matches that pass events on to other matches or back to the source, and what their options become.

import type { Described } from '../page.ts'
import { childrenOf, parameter } from './element.ts'
import { recordReformer } from './reform.ts'
import { roundRobin } from './roundrobin.ts'
import { labelRouter } from './router.ts'
import type { Element } from './syntax.ts'

export const flows: readonly Described[] = [
  {
    name: 'copy',
    becomes: 'the sinks of its stores read the same transforms',
    options: { copy_mode: 'each store has its own copy of an event' },
  },
  { name: 'relabel', becomes: 'the filters and matches of the label', options: {} },
  roundRobin,
  {
    name: 'route',
    becomes: 'a filter transform for each route, followed by the filters and matches of its label and the new tag',
    options: {
      route: 'the tags of the events, a new prefix, and whether further routes get them too',
      remove_tag_prefix: 'the new tag',
      add_tag_prefix: 'the new tag',
    },
    itself: {
      match_cache_size: 'the patterns decide when the Pipeline is made',
      tag_cache_size: 'the patterns decide when the Pipeline is made',
    },
  },
  {
    name: 'forest',
    becomes: 'the sink of its template',
    options: {
      subtype: 'the type of the sink',
      template: 'the options of the sink',
      remove_prefix: 'the text for `${tag}`',
      add_prefix: 'the text for `${tag}`',
    },
  },
  labelRouter,
  recordReformer,
  {
    name: 'rewrite_tag_filter',
    becomes: 'a filter transform for each rule, followed by the filters and matches of the new tag',
    options: {
      rule: 'the condition of a branch; the first rule that matches wins',
      capitalize_regex_backreference: 'the new tag',
      hostname_command: 'the name of the host of the agent',
      remove_tag_prefix: 'the new tag',
      emit_mode: 'the agent passes events on in its own batches',
    },
  },
  {
    name: 'tag_normaliser',
    becomes: 'a remap transform that keeps the new tag, if an output writes tags',
    options: {
      format: 'the new tag',
      key_prefix: 'the object with the fields of the format',
      unknown: 'the text for a field without a value',
    },
    itself: { sticky_tags: 'the transform works out each tag' },
  },
  {
    name: 'detect_exceptions',
    becomes: '`multiline` of the source',
    options: {
      languages: '`preset`',
      remove_tag_prefix: 'the tag after the step',
      multiline_flush_interval: '`timeoutMs`; without it, two seconds',
      message: 'the source joins the line itself',
      stream: 'the source joins lines of one stream',
      max_bytes: 'an info: the source joins all lines of an event',
      max_lines: 'an info: the source joins all lines of an event',
      match_tag: 'the tag stays the same',
      force_line_breaks: 'joined lines are separated by line feeds',
    },
  },
  {
    name: 'concat',
    becomes: '`multiline` of the source',
    options: {
      key: 'the source joins the line itself',
      multiline_start_regexp: '`start`',
      continuous_line_regexp: '`condition`',
      multiline_end_regexp: 'a gap, unless it detects lines that Docker has split',
      stream_identity_key: 'the source joins lines of one container',
      flush_interval: '`timeoutMs`; without it, 60 seconds',
      timeout_label: 'events take the same path after a timeout',
      separator: 'joined lines are separated by line feeds',
      partial_key: 'the source joins partial lines itself',
      partial_value: 'the source joins partial lines itself',
      use_partial_metadata: 'the source joins partial lines itself',
      use_partial_cri_logtag: 'the source joins partial lines itself',
      partial_cri_logtag_key: 'the source joins partial lines itself',
      partial_cri_stream_key: 'the source joins partial lines itself',
      keep_partial_metadata: 'the source joins partial lines itself',
      keep_partial_key: 'the source joins partial lines itself',
      use_first_timestamp: 'an event gets the time of its first line',
    },
  },
]

/** The match for the template of a `forest`. */
export function treeOf(forest: Element): Element {
  const [template] = childrenOf(forest, 'template')
  const own = template?.parameters ?? []
  const type = { file: forest.file, line: forest.line, key: '@type', value: parameter(forest, 'subtype') ?? '' }
  const id = forest.parameters.filter(({ key }) => key === '@id')
  const parameters = own.map((each) => ({
    ...each,
    value: each.value.replace(
      /__(TAG|TAG_PARTS|HOSTNAME)(\[-?\d+\])?__/g,
      (_, name, part = '') => `\${${name.toLowerCase()}${part}}`,
    ),
  }))
  return { ...forest, parameters: [type, ...id, ...parameters], children: template?.children ?? [] }
}
