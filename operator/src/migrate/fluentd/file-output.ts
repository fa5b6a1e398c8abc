// Converts the Fluentd output that writes files.

import { fieldLiteral, textLiteral } from '@penstock/agent/config'
import type { Context } from '../fluent-bit/plugin.ts'
import { lastValue } from '../fluent-bit/sections.ts'
import { eventTime } from '../unix-time.ts'
import { isOn, type Plugged } from './element.ts'
import { formatItself, formatLines, formatOptions, oldFormatOptions } from './formats.ts'
import { secondsOf } from './inputs.ts'
import { rubyTimeFormat } from './ruby-time.ts'
import type { Tag } from './tags.ts'
import { chunkTemplate, stepsOf, tagLines, translated } from './translation.ts'

/** The date in the name of a file without one: that of the period of a chunk, which is a day by default. */
function sliceOf(section: Plugged): string {
  const period = secondsOf(lastValue(section, 'buffer.timekey')) ?? 86_400
  const byPeriod = ['%Y%m%d', ...(period < 86_400 ? ['%H'] : []), ...(period < 3600 ? ['%M'] : [])].join('')
  return lastValue(section, 'time_slice_format') ?? (period < 60 ? `${byPeriod}%S` : byPeriod)
}

/** The path as Fluentd completes it: the date, unless the path has one, and the suffix. */
function nameOf(section: Plugged): { readonly path: string; readonly suffix: string; readonly slice: string } {
  const slice = sliceOf(section)
  const path = lastValue(section, 'path') ?? '/var/log/fluent/out'
  // In early versions, an asterisk stands for the date, and the path has no suffix.
  if (path.includes('*')) return { path: path.replace('*', slice), suffix: '', slice }
  const hasSuffix = isOn(lastValue(section, 'add_path_suffix'), true)
  return { path, suffix: hasSuffix ? (lastValue(section, 'path_suffix') ?? '.log') : '', slice }
}

/** Fields for the time and the tag, as outputs of early versions add them. */
function fieldLines(section: Plugged, context: Context, tag: Tag | undefined): readonly string[] {
  const read = (key: string) => lastValue(section, key)
  const format = textLiteral(rubyTimeFormat(read('time_format') ?? '%Y-%m-%dT%H:%M:%SZ'))
  return [
    ...(isOn(read('include_tag_key'), false) ? tagLines(read('tag_key') ?? 'tag', section, context, tag) : []),
    ...(isOn(read('include_time_key'), false)
      ? [`${fieldLiteral([read('time_key') ?? 'time'])} = format_timestamp(${eventTime}, ${format}) ?? null`]
      : []),
  ]
}

export const file = translated({
  name: 'file',
  as: 'file',
  becomes: '`file`',
  names: {},
  options: {
    path: '`path`',
    compress: '`compression`',
    'format.@type': '`encoding`',
    format: 'as `format.@type`',
    'buffer.timekey': 'the date in `path`',
    time_slice_format: 'the date in `path`',
    add_path_suffix: 'whether `path` ends in the suffix',
    path_suffix: 'the end of `path`',
    include_time_key: 'a field for the time',
    time_key: 'the name of that field',
    time_format: 'the format of that field',
    include_tag_key: 'a field for the tag',
    tag_key: 'the name of that field',
    ...formatOptions,
    ...oldFormatOptions,
  },
  itself: {
    ...formatItself,
    recompress: 'the sink writes files once',
    append: 'the sink appends to files',
    utc: 'the zone of the time is UTC',
    localtime: 'the zone of the time is UTC, as in containers',
    symlink_path: {
      how: 'the sink creates no links',
      unless: /./,
      reason: 'the sink creates no links',
      nearest: 'Read the file with the date in its name.',
    },
  },
  also: (section, context, tag) => {
    const { path, suffix, slice } = nameOf(section)
    const filled = chunkTemplate(path, tag)
    if (filled === undefined)
      context.gap(
        section,
        `file: ${path}`,
        'the path contains parts of tags',
        'Set `path` to a template with fields of the event.',
      )
    const format = (lastValue(section, 'format.@type') ?? lastValue(section, 'format') ?? 'out_file').toLowerCase()
    const lines = formatLines(section, format)
    if (format === 'out_file') {
      const reason = 'Fluentd writes the time and the tag before the record; the sink writes the record alone'
      context.replaced(section, 'file: format', reason, 'Set fields for them in a remap transform.')
    } else if (format !== 'json' && lines === undefined)
      context.gap(
        section,
        `file: format ${format}`,
        'the sink writes lines of JSON',
        'Build the text in a remap transform, and use the codec `text`.',
      )
    const hasDate = /%[YmdHMS]/.test(path)
    const start = filled?.template ?? '/var/log/fluent/out'
    const before = suffix !== '' && start.endsWith(suffix) ? start.slice(0, -suffix.length) : start
    const found = `${before}${hasDate ? '' : `.${slice}`}`
    return {
      options: { path: '/var/log', file: 'out', format: 'plain' },
      steps: [...stepsOf([...(filled?.lines ?? []), ...fieldLines(section, context, tag)]), ...stepsOf(lines ?? [])],
      config: {
        path: `${found}${suffix}`,
        ...(/^gz/.test(lastValue(section, 'compress') ?? '') ? { compression: 'gzip' } : {}),
        ...(lines === undefined ? {} : { encoding: { codec: 'text' } }),
      },
    }
  },
})
