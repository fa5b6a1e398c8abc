// Function `parse_klog`.

import { firstMatch, isLineProblem, lineFields } from '../../formats/common-log.ts'
import { strftime } from '../../formats/datetime.ts'
import { bounded } from '../../formats/regex-linear.ts'
import { utc } from '../../formats/timezone.ts'
import { whiteSpace } from '../../formats/white-space.ts'
import { defineFunction, failure, type Result } from '../function.ts'
import { kinds } from '../kind.ts'
import { glogLevels } from './parse_glog.ts'

const lines = [
  // Without a further bracket there is one place where the file can end.
  /^(?<level>\w)(?<timestamp>\d{4} \d{2}:\d{2}:\d{2}\.\d{6}) +(?<id>\d+) (?<file>[^:\n]+):(?<line>\d+)\] (?<message>[^\]\s\x85]+(?: [^\]\s\x85]+)*)$/,
  bounded(
    new RegExp(
      `^${whiteSpace}*(?<level>\\w)(?<timestamp>\\d{4} \\d{2}:\\d{2}:\\d{2}\\.\\d{6})${whiteSpace}+(?<id>\\d+)${whiteSpace}(?<file>[^\\n]+):(?<line>\\d+)\\]${whiteSpace}(?<message>[^\\n]*?)${whiteSpace}*$`,
    ),
  ),
]
const form = strftime('%Y%m%d %H:%M:%S%.f')

export const parseKlog = defineFunction({
  name: 'parse_klog',
  category: 'Parse',
  summary: 'Reads a log line of a component of Kubernetes.',
  description:
    'Such lines name no year: it is the current one, or the last one for a line of December that is read in January.',
  parameters: [{ name: 'value', kind: kinds.string, description: 'The line.' }],
  returns: kinds.objectOf({
    level: kinds.string,
    timestamp: kinds.timestamp,
    id: kinds.integer,
    file: kinds.string,
    line: kinds.integer,
    message: kinds.string,
  }),
  fallible: 'always',
  errors: ['The line has another form.'],
  pure: false,
  fresh: true,
  examples: [
    { source: 'parse_klog!("I0505 17:59:40.692994   28133 klog.go:70] hello").message', result: '"hello"' },
    { source: 'parse_klog!("E0505 17:59:40.692994   28133 klog.go:70] hello").level', result: '"error"' },
    { source: 'parse_klog("no such line") ?? {}', result: '{  }' },
  ],
  compile:
    () =>
    (text: string): Result => {
      const groups = firstMatch(lines, text)
      if (groups === undefined) return failure('failed parsing klog message')
      const level = glogLevels[groups['level'] as string]
      if (level === undefined) return failure(`unrecognized log level "${groups['level']}"`)
      const present = new Date()
      const timestamp = groups['timestamp'] as string
      const year = present.getUTCFullYear() - (timestamp.startsWith('12') && present.getUTCMonth() === 0 ? 1 : 0)
      const fields = lineFields({ ...groups, timestamp: `${year}${timestamp}` }, form, utc)
      return isLineProblem(fields) ? failure(fields.problem) : { ...fields, level }
    },
})
