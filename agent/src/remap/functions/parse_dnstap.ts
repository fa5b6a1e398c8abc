// Function `parse_dnstap`.

import { parseDnstap } from '../../formats/dnstap.ts'
import { defineFunction, failure, type Result } from '../function.ts'
import { kinds } from '../kind.ts'

const base64 = /^[A-Za-z0-9+/]*={0,2}$/

export const parseDnstapFunction = defineFunction({
  name: 'parse_dnstap',
  category: 'Parse',
  summary: 'Parses a Base64-encoded dnstap message, a query to or a response from a name server.',
  description: 'An unreadable DNS message in it stays Base64 in `rawData`, and `error` contains the reason.',
  parameters: [
    { name: 'value', kind: kinds.string, description: 'The message in Base64.' },
    {
      name: 'lowercase_hostnames',
      kind: kinds.boolean,
      required: false,
      default: false,
      description: 'Whether to convert host names to lower case.',
    },
  ],
  returns: kinds.object,
  fallible: 'always',
  errors: ['The text is not Base64.', 'The data is not a dnstap message.'],
  pure: true,
  examples: [
    {
      source: 'parse_dnstap!("CgNuczFyFQgFEAEYASIECgAAATDnB0Dw0dX9BXgB")',
      result:
        '{ "dataType": "Message", "dataTypeId": 1, "messageType": "ClientQuery", "messageTypeId": 5, "serverId": "ns1", "socketFamily": "INET", "socketProtocol": "UDP", "sourceAddress": "10.0.0.1", "sourcePort": 999, "time": 1605724400000000000, "timePrecision": "ns", "timestamp": t\'2020-11-18T18:33:20Z\' }',
    },
    { source: 'parse_dnstap("no message") ?? {}', result: '{  }' },
    { source: 'parse_dnstap("eAE=") ?? "no message"', result: '"no message"' },
  ],
  compile:
    () =>
    (value: string, lowercase: boolean): Result => {
      if (!base64.test(value)) return failure(`${value} is not a valid base64 encoded string`)
      const fields = parseDnstap(Buffer.from(value, 'base64'), lowercase)
      return typeof fields === 'string' ? failure(`dnstap parsing failed: ${fields}`) : fields
    },
})
