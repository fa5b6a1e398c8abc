// Function `reverse_dns`.

import { parseIp } from '../../formats/ip.ts'
import { defineFunction, failure, type Result } from '../function.ts'
import { kinds } from '../kind.ts'
import { askNetwork, needsNetwork } from '../network.ts'

const patienceMs = 5000
const keptMs = 60_000

export const reverseDns = defineFunction({
  name: 'reverse_dns',
  category: 'System',
  summary: "Looks up the host name of an IP address with the system's resolver.",
  description:
    'Needs `remap.network: true` at the top level of the configuration. The program waits up to 5 seconds; a result is cached for a minute.',
  parameters: [{ name: 'value', kind: kinds.string, description: 'The address.' }],
  returns: kinds.string,
  fallible: 'always',
  errors: ['The text is not an address.', 'The address has no name, or there was no response.'],
  pure: false,
  reaches: 'network',
  examples: [
    { source: 'reverse_dns("no address") ?? "unknown"', result: '"unknown"' },
    { source: 'is_string(reverse_dns("127.0.0.1") ?? "unknown")', result: 'true' },
    { source: 'name, err = reverse_dns("")\n[name, is_string(err)]', result: '["", true]' },
  ],
  compile(call) {
    needsNetwork(call, 'reverse_dns')
    return (value: string): Result => {
      if (parseIp(value) === undefined) return failure(`unable to parse IP address: ${value}`)
      const request = { kind: 'reverse', address: value, timeoutMs: patienceMs } as const
      const { text, problem } = askNetwork(request, `reverse ${value}`, patienceMs, () => keptMs)
      return text ?? failure(`unable to perform a lookup: ${problem}`)
    }
  },
})
