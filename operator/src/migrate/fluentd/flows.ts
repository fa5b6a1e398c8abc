// Matches that pass events on to other matches or back to the source, and what their options become.

import type { Described } from '../page.ts'
import { recordReformer } from './reform.ts'
import { labelRouter } from './router.ts'

export const flows: readonly Described[] = [
  {
    name: 'copy',
    becomes: 'the sinks of its stores read the same transforms',
    options: { copy_mode: 'each store has its own copy of an event' },
  },
  { name: 'relabel', becomes: 'the filters and matches of the label', options: {} },
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
