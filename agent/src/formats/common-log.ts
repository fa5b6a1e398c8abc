// Lines of web servers: the common log format, the combined one and the error logs of the same family.
// `-` stands for nothing and gives no field. The patterns go back in a line: they are bounded, however long it is.

import { float, type Value, type ValueObject } from '../event/value.ts'
import { parseTimestamp, type Strftime } from './datetime.ts'
import { bounded, compileBounded } from './regex-linear.ts'
import type { Zone } from './timezone.ts'

/** What stopped the parsing of a line. */
export interface LineProblem {
  readonly problem: string
}

export function isLineProblem(result: ValueObject | LineProblem): result is LineProblem {
  return typeof (result as LineProblem).problem === 'string' && Object.keys(result).length === 1
}

const request = String.raw`(?:-|"(?:-|\s*(?<message>(?<method>\w+)\s+(?<path>[\\"][^"]*?|[^"\s]*?)\s+(?<protocol>[^"\s]+)|[^"]*?)\s*)")`
const common = String.raw`^\s*(?:-|(?<host>\S+?))\s+(?:-|(?<identity>\S+?))\s+(?:-|(?<user>.+?))\s+(?:-|\[(?:-|(?<timestamp>[^[]*?))\])\s+${request}\s+(?:-|(?<status>\d+))\s+(?:-|(?<size>\d+))`

// Lines as servers write them, with one blank between fields and without quotes in quotes: the same match in one pass. Only
// what is written otherwise needs the patterns above.
const usualCommon = String.raw`^(?:-|(?<host>\S+)) (?:-|(?<identity>\S+)) (?:-|(?<user>\S+)) \[(?<timestamp>[^\][]+)\] "(?<message>(?<method>\w+) (?<path>[^"\s\\][^"\s]*) (?<protocol>[^"\s]+))" (?:-|(?<status>\d+)) (?:-|(?<size>\d+))`

const commonLines = [new RegExp(`${usualCommon}$`), compileBounded(`${common}\\s*$`, '')]
const combinedLines = [
  new RegExp(String.raw`${usualCommon} "(?<referrer>[^"]*)" "(?:-|(?<agent>[^"\n]*))"$`),
  compileBounded(String.raw`${common}\s+(?:-|"(?<referrer>[^"]*?)")\s+(?:-|"(?:-|(?<agent>.*?))")\s*$`, ''),
]

/** The groups of the first pattern that matches. */
export function firstMatch(patterns: readonly RegExp[], line: string): Readonly<Record<string, string>> | undefined {
  for (const pattern of patterns) {
    const match = pattern.exec(line)
    if (match !== null) return match.groups
  }
  return undefined
}

const errorLines = [
  // As the server writes them, with a client and without brackets where none belong.
  /^\[(?!-\])(?<timestamp>[^\][]+)\] \[(?!-\])(?:(?<module>[^:\][]*):)?(?<severity>[^:\][]+)\] (?:\[pid (?<pid>\d+)(?::tid (?<thread>[^\]\s]+))?\] )?(?<message1>)\[client (?!-[\s\]])(?<client>[^\s\]:]+)(?::(?<port>\d+))?\] (?<message2>\S(?:.*\S)?)$/,
  bounded(
    /^\s*(?:-|\[(?:-|(?<timestamp>[^[]*?))\])\s+(?:-|\[(?:-|(?:(?<module>[^:\]]*):)?(?<severity>[^[\]]*?))\])\s+(?:-\s+|\[\s*pid\s*(?:-|(?<pid>\d+)(?:\s*:\s*tid\s*(?<thread>[^\]]*?))?)\s*\]\s+)?(?<message1>[^[]*?)\s*(?:\[\s*client\s*(?:-|(?<client>\S+?)(?::(?<port>\d+))?)\s*\]\s*(?<message2>.*?))?\s*$/,
  ),
]

const integers = new Set([
  'status',
  'size',
  'pid',
  'port',
  'tid',
  'cid',
  'line',
  'id',
  'body_bytes_size',
  'request_length',
  'upstream_response_length',
  'upstream_status',
])
const floats = new Set(['request_time', 'upstream_response_time', 'excess'])

/** The fields of a matched line; a field `timestamp` is read by the pattern. */
export function lineFields(
  groups: Readonly<Record<string, string | undefined>>,
  timestampPattern: Strftime,
  zone: Zone,
): ValueObject | LineProblem {
  const fields: ValueObject = {}
  for (const name in groups) {
    const text = groups[name]
    if (text === undefined) continue
    let value: Value = text
    if (name === 'timestamp') {
      const timestamp = parseTimestamp(timestampPattern, text, zone)
      if (timestamp === undefined) return { problem: `failed parsing timestamp ${text}` }
      value = timestamp
    } else if (integers.has(name)) {
      value = Number(text)
    } else if (floats.has(name)) {
      value = float(Number(text))
    }
    fields[name] = value
  }
  return fields
}

export function parseCommonLog(line: string, timestampPattern: Strftime, zone: Zone): ValueObject | LineProblem {
  const groups = firstMatch(commonLines, line)
  if (groups === undefined) return { problem: 'failed parsing common log line' }
  return lineFields(groups, timestampPattern, zone)
}

export function parseCombinedLog(line: string, timestampPattern: Strftime, zone: Zone): ValueObject | LineProblem {
  const groups = firstMatch(combinedLines, line)
  if (groups === undefined) return { problem: 'failed parsing combined log line' }
  return lineFields(groups, timestampPattern, zone)
}

/** Lines of the error log. What stands before and after the client are `message1` and `message2` if both are there. */
export function parseErrorLog(line: string, timestampPattern: Strftime, zone: Zone): ValueObject | LineProblem {
  const found = firstMatch(errorLines, line)
  if (found === undefined) return { problem: 'failed parsing error log line' }
  const { message1, message2, ...groups } = found
  const fields = lineFields(groups, timestampPattern, zone)
  if (isLineProblem(fields)) return fields
  if (message1 && message2) {
    fields.message1 = message1
    fields.message2 = message2
  } else {
    const message = message2 || message1
    if (message !== undefined && message !== '' && message !== '-') fields.message = message
  }
  return fields
}

// The lines of nginx: of its default format, of its error log, of its ingress controller.
const nginxHead = String.raw`^\s*(?:-|(?<ADDR>\S+))\s+-\s+(?:-|(?<USER>\S+))\s+\[(?<timestamp>.+?)\]\s+`
const usualNginxHead = String.raw`^(?:-|(?<ADDR>\S+)) - (?:-|(?<USER>\S+)) \[(?<timestamp>[^\]\n]+)\] `
// The request ends at the first quote in lines as nginx writes them.
const nginx = (pattern: string, address: string, user: string): RegExp[] => {
  const head = (text: string): string => text.replace('ADDR', address).replace('USER', user)
  const usual = pattern.replace('(?<request>.*?)', '(?<request>[^"\\n]*)').replaceAll(String.raw`\s+`, ' ')
  return [new RegExp(head(usualNginxHead) + usual), compileBounded(head(nginxHead) + pattern, '')]
}

const nginxLines = {
  combined: nginx(
    String.raw`"(?<request>.*?)"\s+(?<status>\d+)\s+(?<size>\d+)\s+"(?<referer>[^"]*)"\s+"(?<agent>[^"]*)"(?:\s+"(?:-|(?<compression>[^"]+))")?\s*$`,
    'client',
    'user',
  ),
  main: nginx(
    String.raw`"(?<request>.*?)"\s+(?<status>\d+)\s+(?<body_bytes_size>\d+)\s+"(?:-|(?<http_referer>[^"]+))"\s+"(?:-|(?<http_user_agent>[^"]+))"\s+"(?:-|(?<http_x_forwarded_for>[^"]+))"\s*$`,
    'remote_addr',
    'remote_user',
  ),
  ingress_upstreaminfo: nginx(
    String.raw`"(?<request>[^"]*)"\s+(?<status>\d+)\s+(?<body_bytes_size>\d+)\s+"(?:-|(?<http_referer>[^"]+))"\s+"(?:-|(?<http_user_agent>[^"]+))"\s+(?<request_length>\d+)\s+(?<request_time>\d+\.\d+)\s+\[(?<proxy_upstream_name>[^\]]+)\]\s+\[(?<proxy_alternative_upstream_name>[^\]]*)\]\s+(?:-|(?<upstream_addr>\S+))\s+(?:-|(?<upstream_response_length>\d+))\s+(?:-|(?<upstream_response_time>\d+\.\d+))\s+(?:-|(?<upstream_status>\d+))\s+(?<req_id>\w+)\s*$`,
    'remote_addr',
    'remote_user',
  ),
  error: [
    // A message without the marks of what follows ends at the first of them.
    /^(?<timestamp>\S+ \S+) \[(?<severity>\w+)\] (?<pid>\d+)#(?<tid>\d+):(?: \*(?<cid>\d+))? (?<message>[^,\s][^,\n]*(?:,(?!\s+(?:excess|client|server|request|upstream|host|refer?rer):)[^,\n]*)*)(?:, excess: (?<excess>\S+) by zone "(?<zone>[^"\n]+)")?(?:, client: (?<client>[^,\n]+))?(?:, server: (?<server>[^,\n]*))?(?:, request: "(?<request>[^"\n]+)")?(?:, upstream: "(?<upstream>[^"\n]+)")?(?:, host: "(?<host>[^"\n]+)")?(?:, refer?rer: "(?<referer>[^"\n]+)")?$/,
    bounded(
      /^\s*(?<timestamp>\S+\s+\S+)\s+\[(?<severity>\w+)\]\s+(?<pid>\d+)#(?<tid>\d+):(?:\s+\*(?<cid>\d+))?\s+(?<message>.+?)(?:,\s+excess:\s+(?<excess>\S+)\s+by\s+zone\s+"(?<zone>[^"]+)")?(?:,\s+client:\s+(?<client>.+?))?(?:,\s+server:\s+(?<server>.*?))?(?:,\s+request:\s+"(?<request>.+?)")?(?:,\s+upstream:\s+"(?<upstream>.+?)")?(?:,\s+host:\s+"(?<host>.+?)")?(?:,\s+refer?rer:\s+"(?<referer>.+?)")?\s*$/,
    ),
  ],
} as const

export function parseNginxLog(
  line: string,
  form: keyof typeof nginxLines,
  timestampPattern: Strftime,
  zone: Zone,
): ValueObject | LineProblem {
  const groups = firstMatch(nginxLines[form], line)
  if (groups === undefined) return { problem: 'failed parsing log line' }
  return lineFields(groups, timestampPattern, zone)
}
