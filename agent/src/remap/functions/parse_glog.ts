// Function `parse_glog`.

import { firstMatch, isLineProblem, lineFields } from '../../formats/common-log.ts'
import { strftime } from '../../formats/datetime.ts'
import { bounded } from '../../formats/regex-linear.ts'
import { utc } from '../../formats/timezone.ts'
import { whiteSpace } from '../../formats/white-space.ts'
import { defineFunction, failure, type Result } from '../function.ts'
import { kinds } from '../kind.ts'

export const glogLevels: Readonly<Record<string, string>> = { I: 'info', W: 'warning', E: 'error', F: 'fatal' }

const lines = [
  // Without a further bracket there is one place where the file can end.
  /^(?<level>\w)(?<timestamp>\d{8} \d{2}:\d{2}:\d{2}\.\d{6}) +(?<id>\d+) (?<file>[^:\n]+):(?<line>\d+)\] (?<message>[^\]\s\x85]+(?: [^\]\s\x85]+)*)$/,
  bounded(
    new RegExp(
      `^${whiteSpace}*(?<level>\\w)(?<timestamp>\\d{8} \\d{2}:\\d{2}:\\d{2}\\.\\d{6})${whiteSpace}+(?<id>\\d+)${whiteSpace}(?<file>[^\\n]+):(?<line>\\d+)\\]${whiteSpace}(?<message>[^\\n]*?)${whiteSpace}*$`,
    ),
  ),
]
const form = strftime('%Y%m%d %H:%M:%S%.f')

export const parseGlog = defineFunction({
  name: 'parse_glog',
  category: 'Parse',
  summary: 'Reads a line of the Google logging library.',
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
  pure: true,
  fresh: true,
  examples: [
    {
      source: 'parse_glog!("I20210131 14:48:54.411655 15520 main.c++:9] Hello world!").message',
      result: '"Hello world!"',
    },
    { source: 'parse_glog!("W20210131 14:48:54.411655 15520 main.c++:9] Hello world!").level', result: '"warning"' },
    { source: 'parse_glog("no such line") ?? {}', result: '{  }' },
  ],
  compile:
    () =>
    (text: string): Result => {
      const groups = firstMatch(lines, text)
      if (groups === undefined) return failure('failed parsing glog message')
      const level = glogLevels[groups['level'] as string]
      if (level === undefined) return failure(`unrecognized log level "${groups['level']}"`)
      const fields = lineFields(groups, form, utc)
      return isLineProblem(fields) ? failure(fields.problem) : { ...fields, level }
    },
})
