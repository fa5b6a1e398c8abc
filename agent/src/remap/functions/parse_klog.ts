// Function `parse_klog`.

import { defineFunction } from '../function.ts'
import { googleLog } from '../google-log.ts'

/** The current year, or the previous one for a December line read in January. */
function withYear(time: string): string {
  const present = new Date()
  return `${present.getUTCFullYear() - (time.startsWith('12') && present.getUTCMonth() === 0 ? 1 : 0)}${time}`
}

export const parseKlog = defineFunction({
  ...googleLog({ name: 'klog', dateDigits: 4, completeTime: withYear }),
  name: 'parse_klog',
  summary: 'Parses a log line of a Kubernetes component.',
  description:
    'Such lines contain no year: the function adds the current one, or the previous one for a December line read in January.',
  pure: false,
  examples: [
    { source: 'parse_klog!("I0505 17:59:40.692994   28133 klog.go:70] hello").message', result: '"hello"' },
    { source: 'parse_klog!("E0505 17:59:40.692994   28133 klog.go:70] hello").level', result: '"error"' },
    { source: 'parse_klog("no such line") ?? {}', result: '{  }' },
  ],
})
