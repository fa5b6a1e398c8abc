// Function `parse_klog`.

import { defineFunction } from '../function.ts'
import { googleLog } from '../google-log.ts'

/** The current year, or the last one for a line of December that is read in January. */
function withYear(time: string): string {
  const present = new Date()
  return `${present.getUTCFullYear() - (time.startsWith('12') && present.getUTCMonth() === 0 ? 1 : 0)}${time}`
}

export const parseKlog = defineFunction({
  ...googleLog({ name: 'klog', dateDigits: 4, completeTime: withYear }),
  name: 'parse_klog',
  summary: 'Reads a log line of a component of Kubernetes.',
  description:
    'Such lines name no year: it is the current one, or the last one for a line of December that is read in January.',
  pure: false,
  examples: [
    { source: 'parse_klog!("I0505 17:59:40.692994   28133 klog.go:70] hello").message', result: '"hello"' },
    { source: 'parse_klog!("E0505 17:59:40.692994   28133 klog.go:70] hello").level', result: '"error"' },
    { source: 'parse_klog("no such line") ?? {}', result: '{  }' },
  ],
})
