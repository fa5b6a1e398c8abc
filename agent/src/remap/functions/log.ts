// Function `log`.

import type { Value } from '../../event/value.ts'
import { defineFunction } from '../function.ts'
import { kinds } from '../kind.ts'
import { valueText } from '../text.ts'

export const log = defineFunction({
  name: 'log',
  category: 'Debug',
  summary: "Writes a line to the agent's log.",
  description: 'Each call in a program writes at most one line per `rate_limit_secs`; further lines are suppressed.',
  parameters: [
    {
      name: 'value',
      kind: kinds.any,
      description: 'The value to log; values other than text are logged in a JSON-like form.',
    },
    {
      name: 'level',
      kind: kinds.string,
      required: false,
      default: 'info',
      enum: ['trace', 'debug', 'info', 'warn', 'error'],
      description: 'The level of the line.',
    },
    {
      name: 'rate_limit_secs',
      kind: kinds.integer,
      required: false,
      default: 1,
      description: 'Minimum seconds between two lines of this call; 0 for no limit.',
    },
  ],
  returns: kinds.null,
  fallible: 'never',
  pure: false,
  examples: [
    { source: 'log("hello", level: "debug")', result: 'null' },
    { source: 'log({"a": 1})', result: 'null' },
    { source: 'log("slow", level: "warn", rate_limit_secs: 60)', result: 'null' },
  ],
  compile(call) {
    let next = 0
    return (value: Value, level: 'trace' | 'debug' | 'info' | 'warn' | 'error', seconds: number | bigint) => {
      const present = Date.now()
      if (present < next) return null
      next = present + Number(seconds) * 1000
      call.runtime.log(level, typeof value === 'string' ? value : valueText(value))
      return null
    }
  },
})
