// Parses lines of the Google logging library and its Kubernetes variant, for `parse_glog` and `parse_klog`. They differ only in the
// digits of the date: the Kubernetes variant has no year.

import { firstMatch, isLineProblem, lineFields } from '../formats/common-log.ts'
import { strftime } from '../formats/datetime.ts'
import { bounded } from '../formats/regex-linear.ts'
import { utc } from '../formats/timezone.ts'
import { whiteSpace } from '../formats/white-space.ts'
import { type FunctionDeclaration, failure, type Result } from './function.ts'
import { kinds } from './kind.ts'

const levels: Readonly<Record<string, string>> = { I: 'info', W: 'warning', E: 'error', F: 'fatal' }
const form = strftime('%Y%m%d %H:%M:%S%.f')

function linesOf(dateDigits: number) {
  const start = `(?<level>\\w)(?<timestamp>\\d{${dateDigits}} \\d{2}:\\d{2}:\\d{2}\\.\\d{6})`
  return [
    // Without another bracket, the file can end at only one position.
    new RegExp(
      `^${start} +(?<id>\\d+) (?<file>[^:\\n]+):(?<line>\\d+)\\] (?<message>[^\\]\\s\\x85]+(?: [^\\]\\s\\x85]+)*)$`,
    ),
    bounded(
      new RegExp(
        `^${whiteSpace}*${start}${whiteSpace}+(?<id>\\d+)${whiteSpace}(?<file>[^\\n]+):(?<line>\\d+)\\]${whiteSpace}(?<message>[^\\n]*?)${whiteSpace}*$`,
      ),
    ),
  ]
}

export interface GoogleLog {
  /** For error messages. */
  readonly name: 'glog' | 'klog'
  readonly dateDigits: number
  /** The time of a line with its year, such as `20210131 14:48:54.411655`. */
  readonly completeTime: (time: string) => string
}

/** Shared by the declarations of both functions. */
export function googleLog({ name, dateDigits, completeTime }: GoogleLog) {
  const lines = linesOf(dateDigits)
  return {
    category: 'Parse',
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
    errors: ['The line has another format.'],
    fresh: true,
    compile:
      () =>
      (text: string): Result => {
        const groups = firstMatch(lines, text)
        if (groups === undefined) return failure(`failed parsing ${name} message`)
        const level = levels[groups['level'] as string]
        if (level === undefined) return failure(`unrecognized log level "${groups['level']}"`)
        const timestamp = completeTime(groups['timestamp'] as string)
        const fields = lineFields({ ...groups, timestamp }, form, utc, false)
        return isLineProblem(fields) ? failure(fields.problem) : { ...fields, level }
      },
  } as const satisfies Partial<FunctionDeclaration>
}
